"""MCP over HTTP: a picture from the disk, a question between a call and its answer, and who hangs up has cancelled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from svc_proto.mcp.conversation import MODERN
from svc_proto.wire.sse import EventStreamDecoder
from tests.loops.world import World, bearer
from tests.mcp.desk import modern
from tests.mcp.web import HANDSHAKE, message

TYPES = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()


def call(name: str, **arguments: object) -> dict[str, object]:
    return message("tools/call", 7, name=f"phone_{name}", arguments=arguments)


def test_a_session(relayed: World) -> None:
    phone = relayed.phone()
    client, headers = relayed.client(), {**bearer(phone.token), **TYPES}
    about = message("initialize", protocolVersion=HANDSHAKE, capabilities={"elicitation": {}})
    opened = client.ask("POST", "/mcp", headers=headers, body=encoded(about))
    session = {"mcp-session-id": (opened.headers.get(b"mcp-session-id") or b"").decode()}
    shot = client.ask("POST", "/mcp", headers={**headers, **session}, body=encoded(call("screenshot")))
    assert shot.json["result"]["content"][0]["mimeType"] == "image/png"
    asking = client.begin("POST", "/mcp", headers={**headers, **session}, body=encoded(call("broadcast", action="x")))
    asking.some()
    accepted = encoded({"jsonrpc": "2.0", "id": "ask-1", "result": {"action": "accept"}})
    assert relayed.http("POST", "/mcp", headers={**headers, **session}, body=accepted).status == 202
    _, question, answer = EventStreamDecoder().receive_data(asking.finish().body)
    assert json.loads(question.data)["method"] == "elicitation/create"
    assert json.loads(answer.data)["result"]["isError"] is False
    assert client.ask("DELETE", "/mcp", headers={**headers, **session}).status == 204
    assert phone.stop() == 0


def test_who_hangs_up_has_cancelled(relayed: World) -> None:
    phone = relayed.fake_phone()
    named = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "phone_tap"}
    headers = {**bearer(phone.token), **TYPES, **named}
    body = encoded(message("tools/call", 7, **modern(name="phone_tap", arguments={"x": 1, "y": 2})))
    first = relayed.client().begin("POST", "/mcp", headers=headers, body=body)
    assert phone.command()["path"] == "/tap"
    second = relayed.client().begin("POST", "/mcp", headers=headers, body=body)  # waits for its turn
    first.wire.close()
    command = phone.command()
    phone.respond(command["request_id"], {"ok": True})
    assert second.finish().json["result"]["isError"] is False
