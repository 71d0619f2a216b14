import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.tools.phone_tools import PHONE_TOOLS
from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.mcp.phone_features import POLL_INTERVAL, phone_features, poll_for_changes, watch_by_polling
from svc_proto.mcp.server_features import DirectTool, ServerFeatures
from svc_proto.service_clients.phone_control import PhoneResponse, RelayPhoneControl
from tests.agent.harness import AgentHarness
from tests.mcp.stdio_harness import McpStdioHarness
from tests.support.playbook import make_flow, run_flow


def with_offer(world: AgentHarness, plan: Callable[[ServerFeatures], Flow[Any]]) -> Any:
    def run(parts: AgentParts, engine: Engine) -> Flow[Any]:
        link = RelayPhoneControl(engine, "http://127.0.0.1:8767", "", who="MCP on this host", file="mcp-relay.json")
        return (yield from plan(phone_features(link)))

    return world.run(run)


def call(offer: ServerFeatures, name: str, arguments: Mapping[str, object] | None = None) -> Flow[Any]:
    (offered,) = [each for each in offer.tools if each.tool.name == name]
    assert not isinstance(offered.run, DirectTool)
    found = yield from offered.run(arguments or {})
    if isinstance(found, str):
        return json.loads(found)
    return found[0]["text"] if found[0]["type"] == "text" else found


def read(offer: ServerFeatures, uri: str) -> Flow[Any]:
    (resource,) = [each for each in offer.resources if each.uri == uri]
    return (yield from resource.read())


def test_every_route_is_a_tool_with_annotations() -> None:
    offer = phone_features(RelayPhoneControl(cast("Engine", None), "http://x", "t"))
    by_name = {each.tool.name: each for each in offer.tools}
    assert len(by_name) == len(PHONE_TOOLS)
    destructive = "phone_send_intent phone_broadcast phone_call phone_send_sms phone_send_mms"
    assert [name for name, each in by_name.items() if each.destructive] == destructive.split()
    changing = {name for name, each in by_name.items() if not each.reads_only}
    assert {"phone_tap", "phone_setup", "phone_events_stream", "phone_open_app"} <= changing
    assert not {"phone_screen", "phone_find_nodes", "phone_search_contacts", "phone_location"} & changing
    assert by_name["phone_tap_text"].title == "Tap text"
    assert [each.uri for each in offer.resources] == [f"phone://{each.name}" for each in offer.resources]


def test_phone_is_controlled_and_read() -> None:
    world = AgentHarness(phone=True)

    def plan(offer: ServerFeatures) -> Flow[list[Any]]:
        media_types = [resource.media_type for resource in offer.resources]
        assert media_types == ["application/json", "image/png", *["application/json"] * 5]
        opened = yield from call(offer, "phone_open_app", {"package": "com.example.mail"})
        picture = yield from call(offer, "phone_screenshot")
        found = [opened, picture]
        for resource in offer.resources:
            found += [(yield from resource.read())]
        return found

    opened, picture, screen, shot, app, apps, notifications, activity, devices = with_offer(world, plan)
    assert opened.startswith("opened com.example.mail; changed: true; app: com.example.launcher -> com.example.mail")
    assert (picture[0]["type"], picture[0]["mimeType"]) == ("image", "image/png")
    assert b64decode(picture[0]["data"]).startswith(b"\x89PNG")
    assert json.loads(screen)["packageName"] == "com.example.mail"
    assert shot.startswith(b"\x89PNG")
    assert json.loads(app) == {"package": "com.example.mail"}
    assert json.loads(apps)
    assert json.loads(notifications)["count"] == 0
    done = [(row["path"], row["decision"]) for row in json.loads(activity)["activity"]]
    assert done == [
        *((path, "executed") for path in ("/get_apps", "/current_app", "/screenshot", "/screen", "/screenshot")),
        *((path, "executed") for path in ("/screen", "/screen", "/open_app", "/screen")),
    ]
    (device,) = json.loads(devices)["devices"]
    assert device["active"] is True
    names = [session.device_name for session in world.relay.sessions.active(world.relay.engine.now)]
    assert "MCP on this host" in names
    assert "mcp-relay.json" in str(world.disk.paths())


def test_without_a_phone() -> None:
    world = AgentHarness(relay=True)
    for plan in (lambda offer: call(offer, "phone_screenshot"), lambda offer: read(offer, "phone://screen")):
        with pytest.raises(ToolError, match="503 phone_not_connected"):
            with_offer(world, plan)


class FakeLink:
    """`PhoneControl` that gives one prepared answer to each call, and one file."""

    def __init__(self, answer: Mapping[str, object], data: bytes) -> None:
        self.answer = PhoneResponse(200, answer)
        self.data = data
        self.configured = True
        self.is_phone_connected = self.gate_bound_arguments = None
        self.engine = SimpleNamespace(entropy=bytes)  # the first look has number 100
        self.asked: list[str] = []
        self.given: Mapping[str, object] = {}  # arguments of the last call

    def call(self, method: str, path: str, arguments: Mapping[str, object]) -> Flow[PhoneResponse]:
        self.given = arguments
        return make_flow(self.answer)

    def media(self, token: str) -> Flow[bytes]:
        self.asked.append(token)
        return make_flow(self.data)


@pytest.mark.parametrize("marker", ["MEDIA:hermes-relay://t0", "MEDIA:svc-relay://t0"])
def test_screenshot_is_fetched_by_its_token(marker: str) -> None:
    link = FakeLink({"media": marker}, b"GIF89a")
    (block,) = run_flow(call(phone_features(cast("RelayPhoneControl", link)), "phone_screenshot"))
    assert (block["mimeType"], link.asked) == ("image/gif", ["t0"])


def test_invalid_images_and_refused_lists() -> None:
    link = FakeLink({"media": 5}, b"<svg")
    with pytest.raises(ToolError, match="could not be had"):
        next(call(phone_features(cast("RelayPhoneControl", link)), "phone_screenshot"))
    assert link.asked == [""]
    link = FakeLink({"error": "local callers only"}, b"")
    link.answer = PhoneResponse(403, link.answer.body)
    with pytest.raises(ToolError, match="403: local callers only"):
        next(read(phone_features(cast("RelayPhoneControl", link)), "phone://devices"))


def test_screen_has_bounds_on_request_only() -> None:
    bounds = {"left": 0, "top": 0, "right": 9, "bottom": 9}
    node = {"nodeId": "w0:1", "text": "Hi", "bounds": bounds, "className": "android.widget.TextView"}
    link = FakeLink({"packageName": "a.b", "rootBounds": bounds, "nodes": [node]}, b"")
    offer = phone_features(cast("RelayPhoneControl", link))
    assert run_flow(call(offer, "phone_screen")) == 'screen 100 a.b 9x9\n1 "Hi"'
    assert run_flow(call(offer, "phone_screen", {"include_bounds": True})) == 'screen 101 a.b 9x9\n1 "Hi" [0,0,9,9]'
    assert json.loads(run_flow(read(offer, "phone://screen")))["nodes"] == [node]
    assert link.given == {"include_bounds": True}  # without bounds phones in use find no nodes at all (wire bridge 3.4)


def test_changes_are_polled_without_notifications() -> None:
    world, told = AgentHarness(phone=True), list[str]()

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        link = RelayPhoneControl(engine, "http://127.0.0.1:8767", "")
        offer = phone_features(link, poll_for_changes(engine, link))
        watched = [each for each in offer.resources if each.watch is not None]
        stops = [each.watch(partial(told.append, each.name)) for each in watched if each.watch]
        yield from sleep(engine, 5.0)
        assert told == []
        assert world.relay.notifications.post("1", {"title": "Mail"})
        yield from sleep(engine, 5.0)
        assert told == ["notifications"]
        for stop in stops:
            stop()

    world.run(plan)


def test_change_is_reported_once(peer: McpStdioHarness) -> None:
    engine: Engine = peer.engine
    words = iter(["a", "a", "b", None, "b", "c", "c"])
    told: list[float] = []

    def read() -> Flow[str]:
        yield from ()
        word = next(words)
        if word is None:
            raise ToolError("it is not there")
        return word

    def tell() -> None:
        told.append(round(engine.now.mono - begun))

    stops: list[Callable[[], None]] = []
    begun = engine.now.mono
    peer.act(lambda: stops.append(watch_by_polling(engine, read, tell)))
    for _ in range(5):
        peer.after(POLL_INTERVAL)
    assert told == [round(2 * POLL_INTERVAL), round(5 * POLL_INTERVAL)]
    peer.act(stops[0])
    peer.after(10 * POLL_INTERVAL)
    assert next(words) == "c"  # polling has stopped
