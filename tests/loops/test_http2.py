"""Tests of HTTP/2: concurrent streams, a file and its ranges, events of a turn, TLS with ALPN."""

from __future__ import annotations

from svc_proto.wire.events import ResponseData, ResponseEnd, ResponseHead
from svc_proto.wire.sse import EventStreamDecoder
from tests.loops.clients import HttpClient, WebSocketTestClient
from tests.loops.environment import Environment, bearer
from tests.loops.live_environment import LiveEnvironment
from tests.support.http_client import Response

KEY = "sk-loop-h2"
PER_CONNECTION = (b"date", b"connection")


def client2(world: Environment, *, tls: bool = False) -> HttpClient:
    return HttpClient(world.connect(tls=tls), world.authority(), world.entropy, http2=True)


def plainly(answer: Response) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, fields and body of a response, without the fields that differ between connections."""
    return answer.status, [field for field in answer.headers if field[0] not in PER_CONNECTION], answer.body


def test_many_at_the_same_time(served: Environment) -> None:
    client = client2(served)
    asked = [client.begin("GET", "/health") for _ in range(90)]
    assert {each.finish().status for each in reversed(asked)} == {200}
    client.wire.close()


def test_a_file_and_its_ranges(relayed: Environment) -> None:
    phone = relayed.pair(surface="android")
    data = bytes(range(256)) * 3000
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
    headers = {**bearer(phone.token), "content-type": "multipart/form-data; boundary=b"}
    client = client2(relayed)
    stored = client.request("POST", "/media/upload", headers=headers, body=head + data + b"\r\n--b--\r\n")
    assert stored.status == 200, stored
    path = f"/media/{stored.json['token']}"
    whole = client.request("GET", path, headers=bearer(phone.token))
    assert (whole.status, whole.body) == (200, data)
    part = client.request("GET", path, headers={**bearer(phone.token), "range": "bytes=1000-300999"})
    assert (part.status, part.body) == (206, data[1000:301_000])
    old = relayed.client().request("GET", path, headers=bearer(phone.token))
    assert plainly(whole) == plainly(old)


def test_a_turn_over_server_sent_events(world: Environment) -> None:
    api = world.api(key=KEY)
    session = api.session()
    port = api.server.port
    client = HttpClient(world.connect(port=port), f"127.0.0.1:{port}", world.entropy, http2=True)
    body = {"message": "/count 3"}
    turn = client.begin("POST", f"/api/sessions/{session}/chat/stream", body, headers=api.headers)
    assert client.request("GET", "/health").status == 200  # another stream is served meanwhile
    decoder = EventStreamDecoder()
    names: list[str] = []
    while not isinstance(event := turn.next(), ResponseEnd):
        if isinstance(event, ResponseData):
            names += [message.event for message in decoder.receive_data(event.data)]
        else:
            assert isinstance(event, ResponseHead)
            assert (event.status, event.headers.get(b"content-type")) == (200, b"text/event-stream")
    assert names[0] == "session.created"
    assert "assistant.delta" in names
    assert "run.completed" in names
    assert api.server.stop() == 0


def test_tls_with_alpn(world: Environment) -> None:
    relay = world.start_relay(tls=True)
    if isinstance(world, LiveEnvironment):
        world.alpn = ["h2", "http/1.1"]
    client = client2(world, tls=True)
    if isinstance(world, LiveEnvironment):
        assert client.wire._sock.selected_alpn_protocol() == "h2"  # type: ignore[attr-defined] # of live wires only
        world.alpn = ["http/1.1"]
    assert client.request("POST", "/pairing/register", body=b'{"code": "ABC123"}').status == 200
    phone = WebSocketTestClient(client)
    message = phone.sign_in(pairing_code="ABC123", device_name="P", device_id="p", client_surface="android")
    assert message["type"] == "auth.ok"
    other = world.client(tls=True)
    assert other.request("GET", "/health").json["clients"] == 1
    other.wire.close()
    relay.begin_stop()
    assert phone.wait_closed().code == 1001
    client.wire.close()
    assert relay.exit_code() == 0
