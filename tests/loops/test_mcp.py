"""Tests of MCP over HTTP: a session, cancelled calls, floods, and listening requests."""

from __future__ import annotations

import json

from svc_proto.mcp.pending_request import STATELESS_VERSION
from svc_proto.wire.sse import EventStreamDecoder
from tests.loops.environment import Environment, bearer
from tests.mcp.http_harness import HANDSHAKE, TYPES, message
from tests.mcp.stdio_harness import modern


def call(name: str, **arguments: object) -> dict[str, object]:
    return message("tools/call", 7, name=f"phone_{name}", arguments=arguments)


def test_a_session(relayed: Environment) -> None:
    phone = relayed.phone()
    client, headers = relayed.client(), {**bearer(phone.token), **TYPES}
    about = message("initialize", protocolVersion=HANDSHAKE, capabilities={"elicitation": {}})
    opened = client.request("POST", "/mcp", headers=headers, body=about)
    session = {"mcp-session-id": (opened.headers.get(b"mcp-session-id") or b"").decode()}
    shot = client.request("POST", "/mcp", headers={**headers, **session}, body=call("screenshot"))
    assert shot.json["result"]["content"][0]["mimeType"] == "image/png"
    asking = client.begin("POST", "/mcp", headers={**headers, **session}, body=call("broadcast", action="x"))
    asking.some()
    accepted = {"jsonrpc": "2.0", "id": "ask-1", "result": {"action": "accept"}}
    assert relayed.http("POST", "/mcp", headers={**headers, **session}, body=accepted).status == 202
    _, question, answer = EventStreamDecoder().receive_data(asking.finish().body)
    assert json.loads(question.data)["method"] == "elicitation/create"
    assert json.loads(answer.data)["result"]["isError"] is False
    assert client.request("DELETE", "/mcp", headers={**headers, **session}).status == 204
    assert phone.stop() == 0


def test_a_disconnected_client_cancels_its_call(relayed: Environment) -> None:
    phone = relayed.fake_phone()
    named = {"mcp-protocol-version": STATELESS_VERSION, "mcp-method": "tools/call", "mcp-name": "phone_media"}
    headers = {**bearer(phone.token), **TYPES, **named}
    body = message("tools/call", 7, **modern(name="phone_media", arguments={"action": "play"}))
    first = relayed.client().begin("POST", "/mcp", headers=headers, body=body)
    assert phone.command()["path"] == "/media"
    second = relayed.client().begin("POST", "/mcp", headers=headers, body=body)  # waits until the first is answered
    first.wire.close()
    command = phone.command()
    phone.respond(command["request_id"], {"ok": True})
    assert second.finish().json["result"]["isError"] is False


def open_session(world: Environment, token: str) -> dict[str, str]:
    """Open an MCP session, and return the headers of its further requests."""
    about = message("initialize", protocolVersion=HANDSHAKE, capabilities={})
    opened = world.http("POST", "/mcp", headers={**bearer(token), **TYPES}, body=about)
    session = (opened.headers.get(b"mcp-session-id") or b"").decode()
    return {**bearer(token), **TYPES, "mcp-session-id": session, "mcp-protocol-version": HANDSHAKE}


GARBAGE = (  # bodies, each with the status that it deserves
    (b"", 400),
    (b"\xff\xfe", 400),
    (b"[" * 100_000, 400),
    (b"[]", 400),
    ({"jsonrpc": "2.0", "id": [], "method": "ping"}, 400),
    ({"jsonrpc": "2.0", "id": 1, "method": 7}, 400),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}, 400),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400),
    (message("tools/call", 1, name="x" * 100_000), 200),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}', 400),
    (message("nothing/like/this"), 200),
    ({"jsonrpc": "2.0", "id": "ask-1", "result": {"action": "accept"}}, 202),
)


def test_a_flood_of_garbage_does_not_affect_calls(relayed: Environment) -> None:
    phone = relayed.phone()
    headers, client = open_session(relayed, phone.token), relayed.client()
    for body, status in GARBAGE * 10:
        assert client.request("POST", "/mcp", headers=headers, body=body).status == status, str(body)[:100]
    for name, value, status in (
        ("mcp-session-id", "0" * 32, 404),
        ("mcp-session-id", "x" * 5_000, 404),
        ("mcp-protocol-version", "1999-01-01", 400),
        ("content-type", "text/plain", 415),
        ("accept", "text/html", 406),
    ):
        asked = client.request("POST", "/mcp", headers={**headers, name: value}, body=message("ping"))
        assert asked.status == status, name
    assert client.request("POST", "/mcp", headers=headers, body=b" " * (2 * 1024 * 1024 + 1)).status == 413
    assert relayed.http("POST", "/mcp", headers=headers, body=call("ping")).json["result"]["isError"] is False
    assert phone.stop() == 0


def test_a_flood_of_calls_and_of_sessions_has_bounds(relayed: Environment) -> None:
    phone = relayed.fake_phone()
    headers = open_session(relayed, phone.token)
    waiting = []
    for number in range(32):
        body = {**call("ping"), "id": number}
        waiting.append(relayed.client().begin("POST", "/mcp", headers=headers, body=body))
    commands = [phone.command() for _ in waiting]
    many = relayed.http("POST", "/mcp", headers=headers, body={**call("ping"), "id": 32})
    assert many.json["error"]["message"] == "32 requests are under way"
    for _ in range(40):  # a caller has 32 at most: idle sessions are removed
        open_session(relayed, phone.token)
    for command in commands:
        phone.respond(command["request_id"], {"ok": True})
    assert all(each.finish().json["result"]["structuredContent"] == {"ok": True} for each in waiting)
    assert relayed.http("POST", "/mcp", headers=headers, body=message("ping")).status == 200


def test_a_listener_that_does_not_read_costs_one_note(relayed: Environment) -> None:
    phone = relayed.fake_phone()
    headers = open_session(relayed, phone.token)
    subscribe = message("resources/subscribe", uri="phone://notifications")
    assert relayed.http("POST", "/mcp", headers=headers, body=subscribe).json["result"] == {}
    deaf = relayed.client()
    deaf.begin("GET", "/mcp", headers=headers)
    deaf.wire.pause()
    for number in range(300):
        phone.send_envelope("notifications", "notification.posted", {"title": f"n{number}", "text": "x" * 1_000})
    calling = relayed.client().begin("POST", "/mcp", headers=headers, body=call("ping"))
    phone.respond(phone.command()["request_id"], {"ok": True})  # after all of them
    assert calling.finish().json["result"]["isError"] is False
    reading = relayed.client().begin("GET", "/mcp", headers={**headers, "last-event-id": "0-0"}).some()
    assert relayed.http("DELETE", "/mcp", headers=headers).status == 204
    notes = EventStreamDecoder().receive_data(reading.finish().body)
    assert 1 <= len(notes) <= 3  # one in each second
    assert {json.loads(note.data)["params"]["uri"] for note in notes} == {"phone://notifications"}


def test_a_request_that_listens(relayed: Environment) -> None:
    phone = relayed.fake_phone()
    named = {"mcp-protocol-version": STATELESS_VERSION, "mcp-method": "subscriptions/listen"}
    wanted = {"resourceSubscriptions": ["phone://notifications", "phone://screen"]}
    body = message("subscriptions/listen", "l", **modern(notifications=wanted))
    headers = {**bearer(phone.token), **TYPES, **named}
    listening, deaf = relayed.client().begin("POST", "/mcp", headers=headers, body=body).some(), relayed.client()
    deaf.begin("POST", "/mcp", headers=headers, body=body)
    deaf.wire.pause()
    for number in range(300):
        phone.send_envelope("notifications", "notification.posted", {"title": f"n{number}", "text": "x" * 1_000})
    session = open_session(relayed, phone.token)
    calling = relayed.client().begin("POST", "/mcp", headers=session, body=call("ping"))
    phone.respond(phone.command()["request_id"], {"ok": True})  # after all of them
    assert calling.finish().json["result"]["isError"] is False
    relayed.relay.begin_stop()
    told = EventStreamDecoder().receive_data(listening.finish().body)
    first, *updates, last = (json.loads(event.data) for event in told)
    assert first["params"]["notifications"] == {"resourceSubscriptions": ["phone://notifications"]}
    assert 1 <= len(updates) <= 3  # one in each second
    assert {each["params"]["uri"] for each in updates} == {"phone://notifications"}
    assert {each["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for each in (first, *updates)} == {"l"}
    assert (last["id"], last["result"]["resultType"]) == ("l", "complete")
