"""Tools for the phone: one row for each Device Control route of SPEC.md, called through the relay (wire bridge 3, 6).

Calls, messages, raw intents and broadcasts need approval: they may cost money, or bypass the phone's safety gates. If
the phone itself requests confirmation of calls and messages, no approval is requested here. Sharing needs none, since
the user then chooses the recipient on the phone. All calls keep the order of the model's answer, so that a look
behind an act shows its effect.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from attrs import evolve, field, frozen

from svc_proto.agent.phone_consent import ConsentingPhoneControl
from svc_proto.agent.tools.phone_actions import PhoneActions
from svc_proto.agent.tools.phone_result import result_of
from svc_proto.agent.tools.tool import Arguments, Tool, ToolImage, ToolResult, Toolset, schema
from svc_proto.agent.turn_consent import CallConsent
from svc_proto.basics.brand import Brand
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.machines.inbox import image_type
from svc_proto.schema.effects.command_effects import Effect, effect_of_command, needs_screen
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.authority import BRIDGE
from svc_proto.service_clients.phone_control import PhoneControl, PhoneResponse, RelayPhoneControl

__all__ = ["PHONE_TOOLS", "PhoneTool", "run_phone_tool", "phone_tools", "tools_of"]

MAX_PICTURE = 4 * 1024 * 1024  # bytes of a picture for a model
Properties: TypeAlias = "Mapping[str, Mapping[str, object]]"
NONE: Properties = {}


@frozen(kw_only=True)
class PhoneTool:
    """Definition of the tool `phone_<name>` of a route, which `perform` uses in place of a plain call."""

    name: str
    method: str
    path: str
    description: str
    required: tuple[str, ...] = ()
    properties: Properties = NONE
    changes_screen: bool = False
    needs_approval: str | None = None
    phone_asks_user: bool = False  # the phone's gates request confirmation (wire bridge 5.2, "always confirm")
    is_rare: bool = False  # behind `more_tools` for every model
    perform: Callable[[PhoneActions, Arguments], Flow[str]] | None = None  # None: the route's answer is the result
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
        needs=BRIDGE,
        available=link.is_phone_connected,
        hidden=link.unneeded_arguments,
        tools=_consenting_tools(link, brand),
    )


def tools_of(link: PhoneControl, brand: Brand) -> tuple[Tool, ...]:
    """Return the phone's tools, whose acts do not request the owner's consent."""
    actions = PhoneActions(link)
    return tuple(_tool(row, actions, link, brand) for row in PHONE_TOOLS)


def run_phone_tool(
    row: PhoneTool, actions: PhoneActions, link: PhoneControl, brand: Brand, arguments: Arguments
) -> Flow[str | PhoneResponse]:
    """Run a row on the phone: return the text of its result, or the route's answer. Raises `ToolError`."""
    if row.name == "return_to_app":
        return (yield from actions.return_to_app(brand.self_foreground, arguments))
    if row.perform is not None:
        return (yield from row.perform(actions, arguments))
    return (yield from link.call(row.method, row.path, arguments))


def _consenting_tools(link: RelayPhoneControl, brand: Brand) -> tuple[Tool, ...]:
    """Return the phone's tools; each call of a turn passes the owner's consent."""
    actions = PhoneActions(link)

    def with_consent(row: PhoneTool, consent: CallConsent) -> Tool:
        control = ConsentingPhoneControl(link, consent)
        return _tool(row, actions.over(control), control, brand)

    return tuple(
        evolve(_tool(row, actions, link, brand), with_consent=partial(with_consent, row)) for row in PHONE_TOOLS
    )


def _effect_of(row: PhoneTool, arguments: Arguments) -> Effect | None:
    return None if needs_screen(row.path, arguments) else effect_of_command(row.path, arguments, ScreenTree())


def _tool(row: PhoneTool, actions: PhoneActions, link: PhoneControl, brand: Brand) -> Tool:
    def run(arguments: Arguments) -> Flow[str | ToolResult]:
        answer = yield from run_phone_tool(row, actions, link, brand, arguments)
        if isinstance(answer, str):
            return answer
        text = result_of(row.name, answer, brand)
        return (yield from _with_picture(link, answer, text)) if row.name == "screenshot" else text

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
        is_rare=row.is_rare,
        hidden_by_default=("look", "include_bounds", "duration", "duration_ms", "exact", "class_name"),
        sequential=True,
        is_act=row.changes_screen,
    )


def _with_picture(link: PhoneControl, answer: PhoneResponse, text: str) -> Flow[ToolResult]:
    """Add the picture itself, for models that take pictures; without it the user still sees the marker."""
    try:
        data = yield from link.media(JsonObject.of(answer.body).text("media").rpartition("/")[2])
    except ToolError:
        return ToolResult(text)
    kind = image_type(data)
    if kind is None or len(data) > MAX_PICTURE:
        return ToolResult(text)
    return ToolResult(text, (ToolImage(f"image/{kind}", b64encode(data).decode("ascii")),))


# Groups of tools that a model with a small context gets on demand; see `svc_proto.agent.tool_selection`.
ON_DEMAND = {
    "look": (
        *("ping", "setup", "current_app", "return_to_app", "screen_hash", "diff_screen", "find_nodes"),
        *("describe_node", "events", "events_stream"),
    ),
    "touch": ("long_press", "drag", "swipe", "wait", "set_bar"),
    "send": ("clipboard_read", "clipboard_write", "media", "send_intent", "broadcast", "share_media"),
    "people": ("location", "search_contacts", "call", "send_sms", "send_mms"),
}
# Tools whose results have no words of others.
WORDLESS = ("ping", "setup", "screen_hash", "diff_screen", "location", "events_stream", "wait", "media")
WORD: Mapping[str, object] = {"type": "string"}
WHOLE: Mapping[str, object] = {"type": "integer"}
PIXEL: Mapping[str, object] = {"type": "integer", "minimum": 0}
FLAG: Mapping[str, object] = {"type": "boolean"}
NODE: Mapping[str, object] = {"type": "string"}
LOOK: Mapping[str, object] = {"type": "integer"}
DIRECTION: Mapping[str, object] = {"type": "string", "enum": ["up", "down", "left", "right"]}
DEVICE: Mapping[str, object] = {"type": "string", "description": "which phone, if there are several: its name or id"}
EXTRAS: Mapping[str, object] = {"type": "object"}
ATTACHMENTS: Mapping[str, object] = {
    "type": "array",
    "description": "files: media is a bare media token, or path an absolute path on this host",
    "items": {
        "type": "object",
        "properties": {"media": WORD, "path": WORD, "content_type": WORD, "file_name": WORD},
    },
}


def _ms(low: int, high: int) -> Mapping[str, object]:
    return {"type": "integer", "minimum": low, "maximum": high}


def _limit(high: int) -> Mapping[str, object]:
    return {"type": "integer", "minimum": 1, "maximum": high}


def _one_of(*words: str) -> Mapping[str, object]:
    return {"type": "string", "enum": list(words)}


PHONE_TOOLS: tuple[PhoneTool, ...] = (
    # core
    PhoneTool(name="ping", method="GET", path="/ping", description="Whether the phone is there.", is_rare=True),
    PhoneTool(
        name="setup", method="POST", path="/setup", description="Greet a phone that was just paired.", is_rare=True
    ),
    PhoneTool(
        name="current_app", method="GET", path="/current_app", description="The package of the app in front.",
        is_rare=True,
    ),
    PhoneTool(
        name="return_to_app", method="POST", path="/return_to_svc", changes_screen=True,
        description="Bring the chat app on the phone to the front again.", is_rare=True,
    ),
    # read
    PhoneTool(
        name="screen", method="GET", path="/screen",
        description=(
            "What is on the screen, a line a node: number, kind, texts, unusual state. "
            "Acts on a node take its number as nodeId, and the screen's as look."
        ),
        properties={"include_bounds": FLAG}, perform=PhoneActions.screen,
    ),
    PhoneTool(
        name="screen_hash", method="GET", path="/screen_hash", description="A fingerprint of the screen.", is_rare=True
    ),
    PhoneTool(
        name="diff_screen", method="POST", path="/diff_screen", is_rare=True,
        description="Whether the screen has changed since a fingerprint.",
        required=("previous_hash",), properties={"previous_hash": WORD},
    ),
    PhoneTool(
        name="find_nodes", method="POST", path="/find_nodes", perform=PhoneActions.find_nodes,
        description="Find nodes on the screen by text or class.",
        properties={"text": WORD, "class_name": WORD, "clickable": FLAG, "limit": _limit(512)},
    ),
    PhoneTool(
        name="describe_node", method="POST", path="/describe_node", description="Everything about one node.",
        required=("nodeId",), properties={"nodeId": NODE, "look": LOOK}, is_rare=True,
        perform=PhoneActions.describe_node,
    ),
    PhoneTool(
        name="screenshot", method="GET", path="/screenshot",
        description="Take a picture of the screen, for the user and for you.",
    ),
    PhoneTool(
        name="get_apps", method="GET", path="/get_apps", description="The apps that can be opened.",
        perform=PhoneActions.get_apps,
    ),
    # act
    PhoneTool(
        name="tap", method="POST", path="/tap", changes_screen=True, description="Tap a node, or a point.",
        properties={"nodeId": NODE, "look": LOOK, "x": PIXEL, "y": PIXEL}, perform=PhoneActions.tap,
    ),
    PhoneTool(
        name="tap_text", method="POST", path="/tap_text", changes_screen=True,
        description="Tap what has this text; index chooses among several.",
        required=("text",), properties={"text": WORD, "index": _limit(512), "exact": FLAG},
        perform=PhoneActions.tap_text,
    ),
    PhoneTool(
        name="long_press", method="POST", path="/long_press", changes_screen=True,
        description="Press a node, or a point, for long.",
        properties={"nodeId": NODE, "look": LOOK, "x": PIXEL, "y": PIXEL, "duration": _ms(100, 3000)},
        perform=PhoneActions.long_press,
    ),
    PhoneTool(
        name="drag", method="POST", path="/drag", changes_screen=True, description="Drag from one point to another.",
        required=("start_x", "start_y", "end_x", "end_y"),
        properties={
            "start_x": PIXEL, "start_y": PIXEL, "end_x": PIXEL, "end_y": PIXEL, "duration_ms": _ms(100, 3000),
        },
        is_rare=True, perform=PhoneActions.drag,
    ),
    PhoneTool(
        name="type", method="POST", path="/type", changes_screen=True,
        description="Put text into the field nodeId, else the focused one, then press Enter if enter is true.",
        properties={
            "text": WORD, "nodeId": NODE, "look": LOOK, "mode": _one_of("replace", "append", "clear"), "enter": FLAG,
        },
        perform=PhoneActions.type_text,
    ),
    PhoneTool(
        name="swipe", method="POST", path="/swipe", changes_screen=True,
        description="Move a finger in a direction, or from one point to another.",
        properties={
            "direction": DIRECTION, "distance": _one_of("short", "medium", "long"),
            "start_x": PIXEL, "start_y": PIXEL, "end_x": PIXEL, "end_y": PIXEL, "duration_ms": _ms(1, 10_000),
        },
        perform=PhoneActions.swipe,
    ),
    PhoneTool(
        name="scroll", method="POST", path="/scroll", changes_screen=True,
        description="Show more of the screen or of a node, once or until a text is found.",
        required=("direction",), properties={"direction": DIRECTION, "until": WORD, "nodeId": NODE, "look": LOOK},
        perform=PhoneActions.scroll,
    ),
    PhoneTool(
        name="press_key", method="POST", path="/press_key", changes_screen=True, description="Press a key.",
        required=("key",),
        properties={
            "key": _one_of(
                *("back", "home", "recents", "notifications", "quick_settings", "power_dialog", "lock_screen"),
                *("enter", "delete", "paste", "volume_up", "volume_down", "wakeup"),
            )
        },
        perform=PhoneActions.press_key,
    ),
    PhoneTool(
        name="wait", method="POST", path="/wait", changes_screen=True,
        description="Wait until a text is shown or gone, or for ms.",
        properties={"text": WORD, "gone": FLAG, "ms": _ms(0, 15_000)}, perform=PhoneActions.wait,
    ),
    PhoneTool(
        name="open_app", method="POST", path="/open_app", changes_screen=True,
        description="Open an app by its package or name.",
        required=("package",), properties={"package": WORD}, perform=PhoneActions.open_app,
    ),
    PhoneTool(
        name="set_bar", method="POST", path="/tap", changes_screen=True,
        description="Set a bar to a part of its length.",
        required=("nodeId", "percent"),
        properties={"nodeId": NODE, "look": LOOK, "percent": {"type": "integer", "minimum": 0, "maximum": 100}},
        is_rare=True, perform=PhoneActions.set_bar,
    ),
    PhoneTool(name="clipboard_read", method="GET", path="/clipboard", description="Read the phone's clipboard."),
    PhoneTool(
        name="clipboard_write", method="POST", path="/clipboard", changes_screen=True,
        description="Set the phone's clipboard.",
        required=("text",), properties={"text": WORD},
    ),
    PhoneTool(
        name="media", method="POST", path="/media", changes_screen=True, description="Control what is playing.",
        required=("action",), is_rare=True,
        properties={"action": _one_of("play", "pause", "toggle", "next", "previous", "volume_up", "volume_down")},
    ),
    PhoneTool(
        name="send_intent", method="POST", path="/send_intent", changes_screen=True,
        description="Start an Android intent.",
        required=("action",), is_rare=True,
        properties={
            "action": WORD, "data": WORD, "package": WORD, "component": WORD, "category": WORD, "extras": EXTRAS,
        },
        needs_approval="An intent can make any app do something.",
    ),
    PhoneTool(
        name="broadcast", method="POST", path="/broadcast", changes_screen=True,
        description="Send an Android broadcast.", is_rare=True,
        required=("action",), properties={"action": WORD, "data": WORD, "package": WORD, "extras": EXTRAS},
        needs_approval="A broadcast can make any app do something.",
    ),
    # events
    PhoneTool(
        name="events", method="GET", path="/events", description="What has happened on the screen lately.",
        properties={"limit": _limit(500), "since": {**WHOLE, "description": "epoch milliseconds"}}, is_rare=True,
    ),
    PhoneTool(
        name="events_stream", method="POST", path="/events/stream", description="Record such events, or stop that.",
        required=("enabled",), properties={"enabled": FLAG}, is_rare=True,
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
        name="share_media", method="POST", path="/share_media", changes_screen=True, is_rare=True,
        description="Open the phone's share screen with text or files; the user chooses where they go.",
        properties={"text": WORD, "title": WORD, "attachments": ATTACHMENTS, "package": WORD},
    ),
    PhoneTool(
        name="send_mms", method="POST", path="/send_mms", changes_screen=True, is_rare=True,
        description="Open a message with text or files to a number; the user sends it.",
        required=("to",), properties={"to": WORD, "text": WORD, "attachments": ATTACHMENTS, "package": WORD},
        needs_approval="A message is opened on the phone, addressed and ready to be sent.",
        phone_asks_user=True,
    ),
)  # fmt: skip
"""One row for each route; `/apps` is an old name of `/get_apps`, and `/clipboard` is two tools."""
