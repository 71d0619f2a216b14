"""Phones for MCP clients of the relay: tools, grants, pictures, notifications and updates."""

import json
from base64 import b64decode
from typing import Any

import pytest

from svc_proto.basics.errors import ToolError
from svc_proto.commands import ReadFile
from svc_proto.relay.mcp_phone_control import LocalPhoneControl
from tests.mcp.http_harness import events, stream_messages
from tests.relay.harness import REMOTE, HttpCall, RelayHarness
from tests.relay.mcp_client import RelayMcpClient, result, text, upload
from tests.relay.oauth_client import OAuthTestClient
from tests.relay.routes.media_harness import PNG
from tests.relay.routes.media_harness import book as book


def test_a_tool_is_the_route(book: RelayHarness, agent: RelayMcpClient) -> None:
    called = agent.tool("phone_media", action="play")
    command = agent.paired.phone.command()
    assert (command["method"], command["path"], command["body"]) == ("POST", "/media", {"action": "play"})
    agent.paired.phone.reply(command, 200, {"ok": True})
    assert json.loads(text(called)) == {"ok": True}
    (record,) = book.activity()
    assert (record["path"], record["decision"], record["asked_by"]) == ("/media", "executed", "Pixel")
    (log,) = [log for log in book.logs if log.event == "phone driven"]
    assert log.fields["session"] == agent.paired.prefix
    read = agent.tool("phone_screen", device="Pixel", include_bounds=False)
    command = agent.paired.phone.command()
    assert command["params"] == {"include_bounds": "true"}
    agent.paired.phone.reply(command, 200, [1])
    assert text(read).partition(" ")[0] == "screen"
    located = agent.tool("phone_location")
    agent.paired.phone.reply(agent.paired.phone.command(), 200, [1])
    assert json.loads(text(located)) == {"value": "[1]"}


def test_activity_has_only_the_sessions_own_commands(book: RelayHarness, agent: RelayMcpClient) -> None:
    def told(agent: RelayMcpClient) -> list[Any]:
        (read,) = result(agent.read("activity"))["contents"]
        rows = json.loads(read["text"])["activity"]
        return [(row["path"], row["params"], row["decision"]) for row in rows]

    for action in ("play", "pause"):
        agent.tool("phone_media", action=action)
        agent.paired.phone.reply(agent.paired.phone.command(), 200, {})
    assert told(agent) == [("/media", {"action": action}, "executed") for action in ("pause", "play")]
    assert told(RelayMcpClient(book)) == []
    path, grants = f"/sessions/{agent.paired.prefix}", {"grants": {"bridge": 10}}
    assert book.request("PATCH", path, grants, token=agent.paired.token, peer=REMOTE).status == 200
    session = book.relay.sessions.lookup(agent.paired.token, book.now)
    assert session is not None
    book.after(11.0)
    with pytest.raises(ToolError, match="403 grant_required"):
        next(LocalPhoneControl(book.relay, session).activity())


def test_refusals_become_tool_errors(book: RelayHarness, agent: RelayMcpClient) -> None:
    assert "404 unknown_device" in text(agent.tool("phone_ping", device="absent"))
    assert "400 invalid_field" in text(agent.tool("phone_search_contacts", query=" "))
    agent.paired.phone.vanish()
    assert "503 phone_not_connected" in text(agent.tool("phone_ping"))
    waiting = RelayMcpClient(book)
    call = waiting.tool("phone_ping")
    book.after(40.0)
    assert call.answer is not None
    assert "504 phone_timeout" in bytes(call.heard).decode()


def test_phone_with_gates_needs_no_elicitation(agent: RelayMcpClient) -> None:
    call = agent.tool("phone_call", number="1")
    assert b"elicitation/create" in bytes(call.heard)
    agent.paired.phone.send("bridge", "bridge.status", {"safety": {"blocklist_count": 1}})
    agent.tool("phone_call", number="1")
    command = agent.paired.phone.command()
    assert (command["path"], command["body"]) == ("/call", {"number": "1"})
    elsewhere = agent.tool("phone_call", number="1", device="absent")
    assert b"elicitation/create" in bytes(elsewhere.heard)


def test_grant_is_checked_for_each_call(book: RelayHarness, agent: RelayMcpClient) -> None:
    path, grants = f"/sessions/{agent.paired.prefix}", {"grants": {"bridge": 10}}
    assert book.request("PATCH", path, grants, token=agent.paired.token, peer=REMOTE).status == 200
    first, second = agent.tool("phone_tap", x=1, y=2), agent.tool("phone_tap", x=3, y=4)
    command = agent.paired.phone.command()
    book.after(11.0)
    agent.paired.phone.reply(command, 403, {"error": "late"})
    assert (first.answer is not None, b"grant_required" in bytes(second.heard)) == (True, True)
    assert [envelope["type"] for envelope in agent.paired.phone.envelopes()] == ["error"]  # no second command
    assert agent.begin("ping").result.status == 403


def test_pictures_come_from_the_registry_up_to_a_size(
    book: RelayHarness, agent: RelayMcpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shoot(token: str, ask: str = "tool") -> HttpCall:
        call = agent.tool("phone_screenshot") if ask == "tool" else agent.read("screenshot")
        agent.paired.phone.reply(agent.paired.phone.command(), 200, {"media": f"MEDIA:hermes-relay://{token}"})
        return call

    token = upload(book, agent)
    (block,) = result(shoot(token))["content"]
    assert (block["type"], block["mimeType"], b64decode(block["data"])) == ("image", "image/png", PNG)
    (read,) = result(shoot(token, "read"))["contents"]
    assert b64decode(read["blob"]) == PNG
    assert "(404)" in text(shoot("nothing"))
    book.refuse = (ReadFile,)
    assert "cannot be read" in text(shoot(token))
    monkeypatch.setattr("svc_proto.relay.mcp_phone_control.MAX_PICTURE", 8)
    token = upload(book, agent)
    call = agent.tool("phone_screenshot")
    agent.paired.phone.reply(agent.paired.phone.command(), 200, {"media": f"MEDIA:hermes-relay://{token}"})
    assert "too large" in text(call)
    assert book.node.operations.open_handles == 0


def test_notifications_are_read_and_updates_sent_to_subscribers(agent: RelayMcpClient, book: RelayHarness) -> None:
    (read,) = result(agent.read("notifications"))["contents"]
    assert json.loads(read["text"]) == {"ok": True, "notifications": [], "count": 0}

    def changed() -> list[str]:
        book.after(1.0)
        return [note["params"]["uri"].removeprefix("phone://") for note in stream_messages(listening)]

    for name in ("devices", "notifications"):
        assert agent.request("resources/subscribe", uri=f"phone://{name}") == {}
    listening = agent.listen()
    agent.paired.phone.send("notifications", "notification.posted", {"title": "Mail"})
    agent.paired.phone.send("notifications", "notification.posted", {})
    assert changed() == ["notifications"]
    other = book.pair(device_name="Tablet", device_id="t-1").phone
    assert changed() == ["notifications", "devices"]
    (read,) = result(agent.read("devices"))["contents"]
    assert [(row["device_name"], row["active"]) for row in json.loads(read["text"])["devices"]] == [
        ("Pixel", True),
        ("Tablet", False),
    ]
    assert book.request("POST", "/bridge/select-active", {"device": "t-1"}).status == 200
    assert changed()[2:] == ["devices"]
    other.vanish()
    assert changed()[3:] == ["devices"]
    path, grants = f"/sessions/{agent.paired.prefix}", {"grants": {"bridge": 10}}
    assert book.request("PATCH", path, grants, token=agent.paired.token, peer=REMOTE).status == 200
    book.after(11.0)
    agent.paired.phone.send("notifications", "notification.posted", {"title": "Mail"})
    assert len(changed()) == 4  # the grant has expired


def test_flapping_phone_causes_few_updates(book: RelayHarness, agent: RelayMcpClient) -> None:
    agent.request("resources/subscribe", uri="phone://devices")
    listening = agent.listen()
    for _ in range(10):
        book.pair(device_name="Tablet", device_id="t-1").phone.vanish()
    book.after(5.0)
    assert len(events(listening)) == 2  # at once and a second later


def test_read_only_scope_is_refused_on_acting_routes(book: RelayHarness) -> None:
    app = OAuthTestClient(book).authorize(scope="bridge:read")
    session = book.relay.sessions.find_by_access_token(app.access, book.now)
    assert session is not None
    phones = LocalPhoneControl(book.relay, session)
    for method, path, status in (("POST", "/tap", 403), ("POST", "/screen", 403), ("GET", "/bridge/devices", 200)):
        (answer,) = book.spawn(phones.call(method, path, {}))
        assert answer.status == status, path
