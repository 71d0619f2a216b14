"""Test of a WebSocket (RFC 6455) with the largest message and a flood of pings (wire core 1.7)."""

from tests.loops.environment import Environment


def test_the_largest_message_and_a_flood_of_pings(relayed: Environment) -> None:
    ws = relayed.pair(deflate=False)
    ws.send_binary(bytes(8 * 1024 * 1024))
    for _ in range(2000):
        ws.send_envelope("system", "ping", {"ts": 1}, "flood")
    for _ in range(2000):
        assert ws.receive_message()["type"] == "pong"
