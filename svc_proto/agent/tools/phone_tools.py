"""Tools for the phone: one row for each Device Control route of SPEC.md, called through the relay (wire bridge 3, 6).

Calls, messages, raw intents and broadcasts need approval: they may cost money, or bypass the phone's safety gates. If
the phone itself requests confirmation of calls and messages, no approval is requested here. Sharing needs none, since
the user then chooses the recipient on the phone. Actions on the screen keep the order of the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from attrs import evolve, field, frozen

from svc_proto.agent.phone_consent import ConsentingPhoneControl
from svc_proto.agent.tools.phone_result import result_of
from svc_proto.agent.tools.tool import Arguments, Tool, Toolset, schema
from svc_proto.agent.turn_consent import CallConsent
from svc_proto.basics.brand import SVC, Brand
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.schema.effects.command_effects import Effect, effect_of_command, needs_screen
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.phone_control import PhoneControl, PhoneResponse, RelayPhoneControl

__all__ = ["PHONE_TOOLS", "PhoneTool", "path_of", "run_phone_tool", "phone_tools", "tools_of"]

SWIPE_PART = {"short": 15, "medium": 30, "long": 45}  # per cent of the axis for a swipe
Properties: TypeAlias = "Mapping[str, Mapping[str, object]]"
NONE: Properties = {}


@frozen(kw_only=True)
class PhoneTool:
    """Definition of the tool `phone_<name>`. `prepare` converts the tool's arguments to the route's."""

    name: str
    method: str
    path: str
    description: str
    required: tuple[str, ...] = ()
    properties: Properties = NONE
    changes_screen: bool = False
    needs_approval: str | None = None
    phone_asks_user: bool = False  # the phone's gates request confirmation (wire bridge 5.2, "always confirm")
    always: Arguments = NONE  # further arguments of the route
    prepare: Callable[[PhoneControl, Arguments], Flow[Arguments]] | None = None
    parameters: Mapping[str, object] = field(init=False)  # built once for all toolboxes

    @parameters.default
    def _schema(self) -> Mapping[str, object]:
        return schema(self.required, **self.properties, device=DEVICE)


def phone_tools(link: RelayPhoneControl, brand: Brand) -> Toolset:
    """Return the toolset of the phone."""
    return Toolset(
        name="phone",
        label="Phone",
        description="Device Control: look at the paired phone and act on it",
        configured=link.configured,
        available=link.is_phone_connected,
        tools=tuple(
            evolve(tool, with_consent=partial(_with_consent, row, link, brand))
            for row, tool in zip(PHONE_TOOLS, tools_of(link, brand), strict=True)
        ),
    )


def tools_of(link: PhoneControl, brand: Brand) -> tuple[Tool, ...]:
    """Return the phone's tools."""
    return tuple(_tool(row, link, brand) for row in PHONE_TOOLS)


def run_phone_tool(row: PhoneTool, link: PhoneControl, brand: Brand, arguments: Arguments) -> Flow[PhoneResponse]:
    """Run a row on the phone. Raises `ToolError` if the phone cannot be reached."""
    given = arguments if row.prepare is None else (yield from row.prepare(link, arguments))
    return (yield from link.call(row.method, path_of(row, brand), {**given, **row.always}))


def path_of(row: PhoneTool, brand: Brand) -> str:
    """Return the route's path."""
    return brand.self_foreground if row.name == "return_to_app" else row.path


def _with_consent(row: PhoneTool, link: RelayPhoneControl, brand: Brand, consent: CallConsent) -> Tool:
    return _tool(row, ConsentingPhoneControl(link, consent), brand)


def _effect_of(row: PhoneTool, arguments: Arguments) -> Effect | None:
    return None if needs_screen(row.path, arguments) else effect_of_command(row.path, arguments, ScreenTree())


def _tool(row: PhoneTool, link: PhoneControl, brand: Brand) -> Tool:
    def run(arguments: Arguments) -> Flow[str]:
        answer = yield from run_phone_tool(row, link, brand, arguments)
        return result_of(row.name, answer, brand, bounds=arguments.get("include_bounds") is True)

    return Tool(
        name=f"phone_{row.name}",
        description=row.description,
        parameters=row.parameters,
        run=run,
        needs_approval=row.needs_approval,
        requests_own_approval=link.gate_bound_arguments if row.phone_asks_user else None,
        effect_of=partial(_effect_of, row),
        source="" if row.name in WORDLESS else "phone",
        group=next((group for group, names in ON_DEMAND.items() if row.name in names), ""),
        hidden_by_default=("device", "include_bounds", "duration", "duration_ms"),
        sequential=row.changes_screen,
    )


def _swipe(link: PhoneControl, arguments: Arguments) -> Flow[Arguments]:
    """Convert a direction to coordinates, since phones in use support no directions (wire bridge 3.9)."""
    if all(name in arguments for name in ("start_x", "start_y", "end_x", "end_y")):
        return arguments
    direction = arguments.get("direction")
    if direction is None:
        raise ToolError("give direction, or all of start_x, start_y, end_x and end_y")
    device = {name: value for name, value in arguments.items() if name == "device"}
    screen = yield from link.call("GET", "/screen", {"include_bounds": True, **device})
    bounds = JsonObject.of(screen.body).get_object("rootBounds")
    found = [side for name in SIDES if (side := bounds.integer(name)) is not None]
    if len(found) < len(SIDES):
        raise ToolError(result_of("screen", screen, SVC) if screen.status >= 400 else "the screen has no bounds")
    left, top, right, bottom = found
    middle_x, middle_y = (left + right) // 2, (top + bottom) // 2
    part = SWIPE_PART[str(arguments.get("distance", "medium"))]
    across, along = (right - left) * part // 200, (bottom - top) * part // 200
    step_x = {"left": -across, "right": across}.get(str(direction), 0)
    step_y = {"up": -along, "down": along}.get(str(direction), 0)
    line = {
        "start_x": middle_x - step_x,
        "start_y": middle_y - step_y,
        "end_x": middle_x + step_x,
        "end_y": middle_y + step_y,
    }
    return {**{name: value for name, value in arguments.items() if name != "distance"}, **line}


# Groups of tools that a model with a small context gets on demand; see `svc_proto.agent.tool_selection`.
ON_DEMAND = {
    "look": (
        *("ping", "setup", "current_app", "return_to_app", "screen_hash", "diff_screen", "find_nodes"),
        *("describe_node", "events", "events_stream"),
    ),
    "touch": ("long_press", "drag", "swipe", "wait"),
    "send": ("clipboard_read", "clipboard_write", "media", "send_intent", "broadcast", "share_media"),
    "people": ("location", "search_contacts", "call", "send_sms", "send_mms"),
}
# Tools whose results have no words of others.
WORDLESS = ("ping", "setup", "screen_hash", "diff_screen", "location", "events_stream", "wait", "media")
SIDES = ("left", "top", "right", "bottom")
WORD: Mapping[str, object] = {"type": "string"}
WHOLE: Mapping[str, object] = {"type": "integer"}
PIXEL: Mapping[str, object] = {"type": "integer", "minimum": 0, "description": "pixels of the screen"}
FLAG: Mapping[str, object] = {"type": "boolean"}
NODE: Mapping[str, object] = {"type": "string", "description": "as phone_screen or phone_find_nodes gave it"}
DIRECTION: Mapping[str, object] = {"type": "string", "enum": ["up", "down", "left", "right"]}
DEVICE: Mapping[str, object] = {"type": "string", "description": "which phone, if there are several: its name or id"}
EXTRAS: Mapping[str, object] = {"type": "object", "description": "extras, plain values only"}
ATTACHMENTS: Mapping[str, object] = {
    "type": "array",
    "description": "files: media is a bare media token, or path an absolute path on this host",
    "items": {
        "type": "object",
        "properties": {"media": WORD, "path": WORD, "content_type": WORD, "file_name": WORD},
    },
}


def _ms(low: int, high: int) -> Mapping[str, object]:
    return {"type": "integer", "minimum": low, "maximum": high, "description": "milliseconds"}


def _limit(high: int) -> Mapping[str, object]:
    return {"type": "integer", "minimum": 1, "maximum": high}


def _one_of(*words: str) -> Mapping[str, object]:
    return {"type": "string", "enum": list(words)}


PHONE_TOOLS: tuple[PhoneTool, ...] = (
    # core
    PhoneTool(name="ping", method="GET", path="/ping", description="Whether the phone is there."),
    PhoneTool(name="setup", method="POST", path="/setup", description="Greet a phone that was just paired."),
    PhoneTool(name="current_app", method="GET", path="/current_app", description="The package of the app in front."),
    PhoneTool(
        name="return_to_app", method="POST", path="/return_to_svc", changes_screen=True,
        description="Bring the chat app on the phone to the front again.",
    ),
    # read
    PhoneTool(
        name="screen", method="GET", path="/screen",
        description="What is on the screen: texts and controls with their node ids. What is not mentioned is false.",
        properties={"include_bounds": {**FLAG, "description": "also where each one is, in pixels"}},
        always={"include_bounds": True},  # phones in use find no nodes without it (wire bridge 3.4)
    ),
    PhoneTool(name="screen_hash", method="GET", path="/screen_hash", description="A fingerprint of the screen."),
    PhoneTool(
        name="diff_screen", method="POST", path="/diff_screen",
        description="Whether the screen has changed since a fingerprint.",
        required=("previous_hash",), properties={"previous_hash": WORD},
    ),
    PhoneTool(
        name="find_nodes", method="POST", path="/find_nodes",
        description="Find what is on the screen by its text, its class, or whether it can be tapped.",
        properties={"text": WORD, "class_name": WORD, "clickable": FLAG, "limit": _limit(512)},
    ),
    PhoneTool(
        name="describe_node", method="POST", path="/describe_node", description="Everything about one node.",
        required=("nodeId",), properties={"nodeId": NODE},
    ),
    PhoneTool(
        name="screenshot", method="GET", path="/screenshot",
        description="Take a picture of the screen, to show it to the user.",
    ),
    PhoneTool(name="get_apps", method="GET", path="/get_apps", description="The apps that can be opened."),
    # act
    PhoneTool(
        name="tap", method="POST", path="/tap", changes_screen=True, description="Tap a node, or a point.",
        properties={"nodeId": NODE, "x": PIXEL, "y": PIXEL, "duration_ms": _ms(1, 3000)},
    ),
    PhoneTool(
        name="tap_text", method="POST", path="/tap_text", changes_screen=True,
        description="Tap the first thing on the screen whose text contains this.",
        required=("text",), properties={"text": WORD},
    ),
    PhoneTool(
        name="long_press", method="POST", path="/long_press", changes_screen=True,
        description="Press a node, or a point, for long.",
        properties={"nodeId": NODE, "x": PIXEL, "y": PIXEL, "duration": _ms(100, 3000)},
    ),
    PhoneTool(
        name="drag", method="POST", path="/drag", changes_screen=True, description="Drag from one point to another.",
        required=("start_x", "start_y", "end_x", "end_y"),
        properties={
            "start_x": PIXEL, "start_y": PIXEL, "end_x": PIXEL, "end_y": PIXEL, "duration_ms": _ms(100, 3000),
        },
    ),
    PhoneTool(
        name="type", method="POST", path="/type", changes_screen=True,
        description="Put text into the focused input; it replaces what is there.",
        required=("text",), properties={"text": WORD},
    ),
    PhoneTool(
        name="swipe", method="POST", path="/swipe", changes_screen=True,
        description="Swipe in a direction, or from one point to another.",
        properties={
            "direction": {**DIRECTION, "description": "where the finger goes"},
            "distance": _one_of("short", "medium", "long"),
            "start_x": PIXEL, "start_y": PIXEL, "end_x": PIXEL, "end_y": PIXEL, "duration_ms": _ms(1, 10_000),
        },
        prepare=_swipe,
    ),
    PhoneTool(
        name="scroll", method="POST", path="/scroll", changes_screen=True,
        description="Scroll the screen, or one node, to show more of it.",
        required=("direction",), properties={"direction": DIRECTION, "nodeId": NODE},
    ),
    PhoneTool(
        name="press_key", method="POST", path="/press_key", changes_screen=True, description="Press a system key.",
        required=("key",),
        properties={
            "key": _one_of(
                "back", "home", "recents", "notifications", "quick_settings", "power_dialog", "lock_screen"
            )
        },
    ),
    PhoneTool(
        name="wait", method="POST", path="/wait", changes_screen=True,
        description="Let the phone wait, 15 seconds at the most.",
        required=("ms",), properties={"ms": _ms(0, 15_000)},
    ),
    PhoneTool(
        name="open_app", method="POST", path="/open_app", changes_screen=True,
        description="Open an app by its package.",
        required=("package",), properties={"package": WORD},
    ),
    PhoneTool(name="clipboard_read", method="GET", path="/clipboard", description="Read the phone's clipboard."),
    PhoneTool(
        name="clipboard_write", method="POST", path="/clipboard", changes_screen=True,
        description="Set the phone's clipboard.",
        required=("text",), properties={"text": WORD},
    ),
    PhoneTool(
        name="media", method="POST", path="/media", changes_screen=True, description="Control what is playing.",
        required=("action",),
        properties={"action": _one_of("play", "pause", "toggle", "next", "previous", "volume_up", "volume_down")},
    ),
    PhoneTool(
        name="send_intent", method="POST", path="/send_intent", changes_screen=True,
        description="Start an Android intent.",
        required=("action",),
        properties={
            "action": WORD, "data": WORD, "package": WORD, "component": WORD, "category": WORD, "extras": EXTRAS,
        },
        needs_approval="An intent can make any app do something.",
    ),
    PhoneTool(
        name="broadcast", method="POST", path="/broadcast", changes_screen=True,
        description="Send an Android broadcast.",
        required=("action",), properties={"action": WORD, "data": WORD, "package": WORD, "extras": EXTRAS},
        needs_approval="A broadcast can make any app do something.",
    ),
    # events
    PhoneTool(
        name="events", method="GET", path="/events", description="What has happened on the screen lately.",
        properties={"limit": _limit(500), "since": {**WHOLE, "description": "epoch milliseconds"}},
    ),
    PhoneTool(
        name="events_stream", method="POST", path="/events/stream", description="Record such events, or stop that.",
        required=("enabled",), properties={"enabled": FLAG},
    ),
    # sideload-only
    PhoneTool(name="location", method="GET", path="/location", description="Where the phone was last."),
    PhoneTool(
        name="search_contacts", method="POST", path="/search_contacts", description="Find contacts by name.",
        required=("query",), properties={"query": WORD, "limit": _limit(100)},
    ),
    PhoneTool(
        name="call", method="POST", path="/call", changes_screen=True, description="Call a number.",
        required=("number",), properties={"number": WORD},
        needs_approval="A call is placed from the phone and may cost money.", phone_asks_user=True,
    ),
    PhoneTool(
        name="send_sms", method="POST", path="/send_sms", changes_screen=True, description="Send a text message.",
        required=("to", "body"), properties={"to": WORD, "body": WORD},
        needs_approval="A text message is sent from the phone and may cost money.",
        phone_asks_user=True,
    ),
    PhoneTool(
        name="share_media", method="POST", path="/share_media", changes_screen=True,
        description="Open the phone's share screen with text or files; the user chooses where they go.",
        properties={"text": WORD, "title": WORD, "attachments": ATTACHMENTS, "package": WORD},
    ),
    PhoneTool(
        name="send_mms", method="POST", path="/send_mms", changes_screen=True,
        description="Open a message with text or files to a number; the user sends it.",
        required=("to",), properties={"to": WORD, "text": WORD, "attachments": ATTACHMENTS, "package": WORD},
        needs_approval="A message is opened on the phone, addressed and ready to be sent.",
        phone_asks_user=True,
    ),
)  # fmt: skip
"""One row for each route; `/apps` is an old name of `/get_apps`, and `/clipboard` is two tools."""
