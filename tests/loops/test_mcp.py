"""Test of MCP over HTTP: a request that listens, beside one that does not read."""

import json

from svc_proto.mcp.pending_request import STATELESS_VERSION
from svc_proto.wire.sse import EventStreamDecoder
from tests.loops.environment import Environment, bearer
from tests.mcp.http_harness import HANDSHAKE, TYPES, message
from tests.mcp.stdio_harness import modern


def open_session(world: Environment, token: str) -> dict[str, str]:
    """Open an MCP session, and return the headers of its further requests."""
    about = message("initialize", protocolVersion=HANDSHAKE, capabilities={})
    opened = world.http("POST", "/mcp", headers={**bearer(token), **TYPES}, body=about)
    session = (opened.headers.get(b"mcp-session-id") or b"").decode()
    return {**bearer(token), **TYPES, "mcp-session-id": session, "mcp-protocol-version": HANDSHAKE}


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
    ping = message("tools/call", 7, name="phone_ping", arguments={})
    calling = relayed.client().begin("POST", "/mcp", headers=session, body=ping)
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
