import json
import re
from typing import Any

import pytest

from clients.phone.emulator import EmulatedPhone
from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.tools.phone_tools import MAX_PICTURE, PHONE_TOOLS
from svc_proto.agent.tools.tool import Arguments
from svc_proto.basics.brand import HERMES
from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.machines.phone_registry import ASKS_ITS_USER
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.service_clients.phone_control import PhoneResponse, RelayPhoneControl
from tests.agent.harness import AgentHarness
from tests.agent.tools.phone_world import unfenced
from tests.support.playbook import make_flow
from tests.support.servers.model_server import calls, plain

SMS = {"to": "+15550100", "body": "Hello"}


@pytest.fixture
def world() -> AgentHarness:
    return AgentHarness(phone=True)


def call(world: AgentHarness, tool: str, /, **arguments: Any) -> str:
    world.model.answers = [calls((tool, arguments)), plain("Ok")]
    world.host.events.clear()
    world.answer("Go")
    (finished,) = world.host.finished
    return unfenced(finished.output)


def test_every_route_has_a_tool() -> None:
    old = {("GET", "/apps"), ("POST", HERMES.self_foreground)}
    assert {(row.route.method, row.route.path) for row in PHONE_TOOLS} == set(DEVICE_CONTROL) - old
    assert [row.name for row in PHONE_TOOLS if row.route.path == "/tap"] == ["tap", "set_bar"]  # a bar has no route
    assert len({row.name for row in PHONE_TOOLS}) == len(PHONE_TOOLS)
    for row in PHONE_TOOLS:
        if row.route.rules and row.name != "return_to_app":
            assert row.tool.properties, row.name
        assert set(row.tool.required) <= set(row.tool.properties)
    asking = {row.name for row in PHONE_TOOLS if row.tool.needs_approval is not None}
    assert asking == {"send_intent", "broadcast", "call", "send_sms", "send_mms"}


def test_limits_match_the_routes() -> None:
    """Compare the tools' ranges of `limit` with those to which a phone clamps it (wire bridge 3.4, 3.6, 3.7)."""
    limits = {row.route.path: row.tool.properties["limit"] for row in PHONE_TOOLS if "limit" in row.tool.properties}
    assert {path: (limit["minimum"], limit["maximum"]) for path, limit in limits.items()} == {
        "/find_nodes": (1, 512),
        "/events": (1, 500),
        "/search_contacts": (1, 100),
    }


def test_durations_match_the_routes() -> None:
    """Compare the tools' ranges of durations and pauses in milliseconds with the routes' (wire bridge 3.4 and 3.5)."""
    named = ("duration", "duration_ms", "ms")
    members = [(row.route.path, *member) for row in PHONE_TOOLS for member in row.tool.properties.items()]
    spans = {path: (name, member) for path, name, member in members if name in named}
    assert {path: (name, span["minimum"], span["maximum"]) for path, (name, span) in spans.items()} == {
        "/long_press": ("duration", 100, 3_000),
        "/drag": ("duration_ms", 100, 3_000),
        "/swipe": ("duration_ms", 1, 10_000),
        "/wait": ("ms", 0, 15_000),
    }


def test_reading_tools(world: AgentHarness) -> None:
    head, *lines = call(world, "phone_screen").splitlines()
    assert re.fullmatch(r"screen \d+ com\.example\.launcher 1080x2400", head)
    assert lines[1] == '1 button "Mail"'
    assert call(world, "phone_screen", include_bounds=True).splitlines()[2] == '1 button "Mail" [0,240,1080,400]'
    assert json.loads(call(world, "phone_events", limit=5))["entries"] == []
    assert json.loads(call(world, "phone_ping"))["pong"] is True
    assert call(world, "phone_return_to_app").startswith("brought the chat app to the front; changed: true; app: ")


def test_a_screenshot_is_shown_to_the_model(world: AgentHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    text = call(world, "phone_screenshot")
    (stored,) = world.host.pictures
    assert (text.endswith(f"://{stored.token}"), stored.kind, stored.data[:4]) == (True, "image/png", b"\x89PNG")
    picture = world.model.seen[1]["messages"][-1]["content"][1]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")

    pictures = [b"", b"<svg", b"\x89PNG\r\n\x1a\n".ljust(MAX_PICTURE + 1)]

    def media(self: RelayPhoneControl, token: str) -> Flow[bytes]:
        yield from ()
        if not (data := pictures.pop(0)):
            raise ToolError("gone")
        return data

    monkeypatch.setattr(RelayPhoneControl, "media", media)
    while pictures:
        assert "MEDIA:svc-relay://" in call(world, "phone_screenshot")  # for the user
        assert world.model.seen[-1]["messages"][-1]["role"] == "tool"
    assert world.host.pictures == (stored,)
    pictures.append(b"\x89PNG\r\n\x1a\n".ljust(MAX_PICTURE))
    call(world, "phone_screenshot")
    assert len(world.host.pictures) == 2


@pytest.mark.parametrize("direction", ["up", "down", "left", "right"])
@pytest.mark.parametrize("distance", ["short", "long"])
def test_a_swipe_in_a_direction(world: AgentHarness, direction: str, distance: str) -> None:
    told = call(world, "phone_swipe", direction=direction, distance=distance)
    start_x, start_y, end_x, end_y = map(int, re.findall(r"\d+", told)[:4])
    across, along = end_x - start_x, end_y - start_y
    if direction in ("up", "down"):
        assert across == 0
        assert (along < 0) is (direction == "up")
    else:
        assert along == 0
        assert (across < 0) is (direction == "left")


def test_a_swipe_from_point_to_point(world: AgentHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"start_x": 10, "start_y": 900, "end_x": 10, "end_y": 300}
    assert call(world, "phone_swipe", **given).startswith("swiped from 10,900 to 10,300; changed: false")
    assert call(world, "phone_swipe", start_x=1).startswith("error: give direction, or all of start_x")
    asked: list[tuple[str, object]] = []
    through = RelayPhoneControl.call

    def call_of(self: RelayPhoneControl, method: str, path: str, arguments: Arguments) -> Flow[PhoneResponse]:
        asked.append((path, arguments.get("device")))
        return (yield from through(self, method, path, arguments))

    monkeypatch.setattr(RelayPhoneControl, "call", call_of)
    call(world, "phone_swipe", direction="up", device="the other")
    assert asked[0] == ("/screen", "the other")


MMS = {"to": "+15550100", "text": "Hello"}


@pytest.mark.parametrize(
    ("tool", "arguments"), [("phone_send_sms", SMS), ("phone_call", {"number": "55"}), ("phone_send_mms", MMS)]
)
def test_phone_with_gates_confirms_itself(world: AgentHarness, tool: str, arguments: dict[str, str]) -> None:
    world.host.can_request_approval = False
    assert json.loads(call(world, tool, **arguments))["confirmed"] is True  # by the confirmation on the phone
    assert world.host.asked == []
    assert f"pending {tool}" not in world.host.event_names
    assert "error: 404 unknown_device" not in call(world, tool, **arguments, device="Reference phone")
    assert call(world, tool, **arguments, device="absent").startswith("error: This call needs the user's approval")


def test_phone_lost_after_the_confirmation_was_left_to_it(world: AgentHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = RelayPhoneControl.gate_bound_arguments

    def judge_and_lose(self: RelayPhoneControl, arguments: Arguments) -> Flow[Arguments | None]:
        bound = yield from judge(self, arguments)
        (phone,) = world.relay.phones._phones.values()
        phone.status = {}  # as reported by another phone
        return bound

    monkeypatch.setattr(RelayPhoneControl, "gate_bound_arguments", judge_and_lose)
    refused = call(world, "phone_send_sms", **SMS)
    assert refused.startswith("error: 409 phone_asks_nobody")
    assert "try once more" in refused
    monkeypatch.undo()
    world.host.choices = ["deny"]
    assert "The user did not allow this call" in call(world, "phone_send_sms", **SMS)  # approval is requested here now


@pytest.mark.parametrize("tool", ["phone_send_intent", "phone_broadcast"])
def test_unconfirmed_routes_need_approval(world: AgentHarness, tool: str) -> None:
    """Request approval of raw intents and broadcasts, which the phone does not confirm (wire bridge 5.2)."""
    world.host.choices = ["once"]
    assert "absent" not in call(world, tool, action="android.intent.action.VIEW")
    assert len(world.host.asked) == 1
    world.host.can_request_approval = False
    refused = call(world, tool, action="android.intent.action.VIEW")
    assert refused.startswith("error: This call needs the user's approval, which cannot be requested here")
    assert world.host.at[-1] - world.host.at[-4] < 1.0
    assert f"pending {tool}" not in world.host.event_names
    assert (f"started {tool}" in world.host.event_names, len(world.host.asked)) == (True, 1)


@pytest.mark.parametrize(
    "status",
    [{}, {"phone_connected": True}, {"phone_connected": True, "safety": {}}, {"safety": {"blocklist_count": 1}}],
)
def test_phone_without_reported_gates_needs_approval(
    status: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave the approval to a phone only if it is connected to a local relay and reports its gates."""
    monkeypatch.setattr(RelayPhoneControl, "_status", lambda self, query="": make_flow(status))

    def plan(parts: AgentParts, engine: Engine) -> Flow[tuple[Arguments | None, Arguments | None]]:
        here, there = (RelayPhoneControl(engine, f"http://{host}:8767", "") for host in ("127.0.0.1", "relay.example"))
        assert not (yield from there.phone_status(SMS))
        return (yield from here.gate_bound_arguments(SMS)), (yield from there.gate_bound_arguments(SMS))

    assert AgentHarness().run(plan) == (None, None)
    status |= {"phone_connected": True, "safety": {"blocklist_count": 0}}
    assert AgentHarness().run(plan) == ({**SMS, ASKS_ITS_USER: True}, None)


def test_text_message_needs_approval(world: AgentHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RelayPhoneControl, "gate_bound_arguments", lambda self, arguments: make_flow(None))
    assert "The user did not allow this call" in call(world, "phone_send_sms", **SMS)
    (asked,) = world.host.asked
    assert asked.pattern == 'phone_send_sms {"body":"Hello","to":"+15550100"}'
    assert asked.description == "A text message is sent from the phone and may cost money. To: +15550100."
    world.host.choices = ["session"]
    assert json.loads(call(world, "phone_send_sms", **SMS))["status"] == "sent"


def test_by_the_built_in_agent(world: AgentHarness) -> None:
    world.command("/phone ping")
    assert world.host.text.startswith('`phone_ping` answered:\n\n```\n{"pong":true')
    world.host.events.clear()
    world.command("/phone tap text=Mail")
    assert 'tapped 1 button "Mail" (LinearLayout); changed: true' in world.host.text


def test_phone_without_device_control() -> None:
    world = AgentHarness(relay=True)
    assert call(world, "phone_ping").startswith("error: 503 phone_not_connected")
    world.start_phone(EmulatedPhone(build="googlePlay"))
    text = call(world, "phone_tap_text", text="Mail")
    assert text.startswith("error: 403 device_control_sideload_only")
    assert text.count("do not retry") == 1


def test_the_other_spelling() -> None:
    world = AgentHarness(phone=True, brand=HERMES)
    assert call(world, "phone_screenshot").splitlines()[-1].startswith("MEDIA:hermes-relay://")
    assert call(world, "phone_return_to_app").startswith("brought the chat app to the front; changed: true")
