"""The routes of Device Control: the 34 paths of SPEC.md, `/clipboard` twice, and both spellings of self-foreground.

Agents call these routes, the relay forwards them to a phone. A new route is a row here, a handler of the reference
phone and a test.
"""

from collections.abc import Mapping
from typing import Final

from svc_proto.basics.brand import HERMES, SVC
from svc_proto.schema.device_control import ControlRoute, ControlTool, PrivateContent, RouteEffect, ScreenGesture
from svc_proto.schema.device_control_arguments import (
    ANY_TEXT,
    ATTACHMENTS_OR_TEXT,
    DIRECTION,
    NODE,
    POINT,
    STROKE,
    either_rule,
    flag_rule,
    integer_rule,
    text_rule,
)

__all__ = ["DEVICE_CONTROL", "check_arguments"]

READS, ACTS, CONFIGURES = RouteEffect.READS, RouteEffect.ACTS, RouteEffect.CONFIGURES
JsonMember = Mapping[str, object]
WORD: JsonMember = {"type": "string"}
WHOLE: JsonMember = {"type": "integer"}
PIXEL: JsonMember = {"type": "integer", "minimum": 0}
FLAG: JsonMember = {"type": "boolean"}
NODE_ID: JsonMember = {"type": "string"}
LOOK: JsonMember = {"type": "integer"}
WAY: JsonMember = {"type": "string", "enum": ["up", "down", "left", "right"]}
EXTRAS: JsonMember = {"type": "object"}
ATTACHMENTS: JsonMember = {
    "type": "array",
    "description": "files: media is a bare media token, or path an absolute path on this host",
    "items": {
        "type": "object",
        "properties": {"media": WORD, "path": WORD, "content_type": WORD, "file_name": WORD},
    },
}
LINE_MEMBERS = {"start_x": PIXEL, "start_y": PIXEL, "end_x": PIXEL, "end_y": PIXEL}
LINE_WITHIN = integer_rule("start_x", "start_y", "end_x", "end_y", least=0)
ACTION = text_rule("action")


def _range(low: int, high: int) -> JsonMember:
    return {"type": "integer", "minimum": low, "maximum": high}


def _one_of(*words: str) -> JsonMember:
    return {"type": "string", "enum": list(words)}


CORE = (
    ControlRoute(
        method="GET", path="/ping", summary="Check that the phone answers",
        sentence=("Checked the connection", "check the connection"), effect=READS,
        is_free=True, is_probe=True, needs_master=False,
        tools=(ControlTool(
            name="ping", description="Whether the phone is there.", group="look", is_rare=True, is_wordless=True
        ),),
    ),
    ControlRoute(
        method="POST", path="/setup", summary="Check that the phone answers, during setup",
        sentence=("Set up the phone", "set up the phone"), effect=CONFIGURES, is_probe=True,
        tools=(ControlTool(
            name="setup", description="Greet a phone that was just paired.", group="look", is_rare=True,
            is_wordless=True,
        ),),
    ),
    ControlRoute(
        method="GET", path="/current_app", summary="Return the app in the foreground",
        sentence=("Checked which app is open", "check which app is open"), effect=READS, needs_master=False,
        by_hand="current_app",
        tools=(ControlTool(
            name="current_app", description="The package of the app in front.", group="look", is_rare=True
        ),),
    ),
    ControlRoute(
        method="POST", path=SVC.self_foreground, summary="Bring the phone's own app to the foreground",
        sentence=("Went back to the client", "go back to the client"), effect=ACTS, handler="return_to_client",
        needs_master=False,
        tools=(ControlTool(
            name="return_to_app", description="Bring the chat app on the phone to the front again.", group="look",
            is_rare=True,
        ),),
    ),
    ControlRoute(
        method="POST", path=HERMES.self_foreground, summary="Bring the phone's own app to the foreground (alias)",
        sentence=("Went back to the client", "go back to the client"), effect=ACTS, handler="return_to_client",
        needs_master=False,
    ),
)  # fmt: skip
READ = (
    ControlRoute(
        method="GET", path="/screen", summary="Read the nodes of the screen",
        sentence=("Read the screen", "read the screen"), effect=READS, content=PrivateContent.SCREEN,
        rules=(flag_rule("include_bounds"),),
        tools=(ControlTool(
            name="screen", properties={"include_bounds": FLAG},
            description=(
                "Read the screen, a line a node: number, kind, texts, state. "
                "Acts on a node take its number as nodeId, and the screen's as look."
            ),
        ),),
    ),
    ControlRoute(
        method="GET", path="/screen_hash", summary="Return a hash of the screen", handler="screen_hash_route",
        sentence=("Checked whether the screen has changed", "check whether the screen has changed"), effect=READS,
        tools=(ControlTool(
            name="screen_hash", description="A fingerprint of the screen.", group="look", is_rare=True,
            is_wordless=True,
        ),),
    ),
    ControlRoute(
        method="POST", path="/diff_screen", summary="Compare the screen with an earlier hash",
        sentence=("Compared the screen", "compare the screen"), effect=READS, rules=(text_rule("previous_hash"),),
        tools=(ControlTool(
            name="diff_screen", description="Whether the screen has changed since a fingerprint.",
            required=("previous_hash",), properties={"previous_hash": WORD}, group="look", is_rare=True,
            is_wordless=True,
        ),),
    ),
    ControlRoute(
        method="POST", path="/find_nodes", summary="Find nodes on the screen",
        sentence=("Searched the screen", "search the screen"), effect=READS, content=PrivateContent.SCREEN,
        rules=(ANY_TEXT, flag_rule("clickable"), integer_rule("limit", required=False)),
        tools=(ControlTool(
            name="find_nodes", description="Find nodes on the screen by text or class.", group="look",
            properties={"text": WORD, "class_name": WORD, "clickable": FLAG, "limit": _range(1, 512)},
        ),),
    ),
    ControlRoute(
        method="POST", path="/describe_node", summary="Describe a node of the screen",
        sentence=("Read a part of the screen", "read a part of the screen"), effect=READS,
        content=PrivateContent.SCREEN, rules=(NODE,),
        tools=(ControlTool(
            name="describe_node", description="Everything about one node.", required=("nodeId",),
            properties={"nodeId": NODE_ID, "look": LOOK}, group="look", is_rare=True,
        ),),
    ),
    ControlRoute(
        method="GET", path="/screenshot", summary="Take a screenshot",
        sentence=("Took a picture of the screen", "take a picture of the screen"), effect=READS, by_hand="screenshot",
        tools=(ControlTool(name="screenshot", description="Take a picture of the screen."),),
    ),
    ControlRoute(
        method="GET", path="/get_apps", summary="List the apps that can be launched",
        sentence=("Listed the apps", "list the apps"), effect=READS,
        tools=(ControlTool(name="get_apps", description="The apps that can be opened.", group="look"),),
    ),
    ControlRoute(
        method="GET", path="/apps", summary="List the apps that can be launched (alias)", handler="get_apps",
        sentence=("Listed the apps", "list the apps"), effect=READS,
    ),
)  # fmt: skip
ACT = (
    ControlRoute(
        method="POST", path="/tap", summary="Tap a point or a node", sentence=("Tapped", "tap"), effect=ACTS,
        wakes_screen=True, gesture=ScreenGesture.PRESS, by_hand="tap",
        rules=(either_rule("nodeId", POINT, text_rule("nodeId")), integer_rule("duration_ms", required=False)),
        tools=(
            ControlTool(
                name="tap", description="Tap a node or a point.",
                properties={"nodeId": NODE_ID, "look": LOOK, "x": PIXEL, "y": PIXEL},
            ),
            ControlTool(
                name="set_bar", description="Set a bar to a part of its length.", required=("nodeId", "percent"),
                properties={"nodeId": NODE_ID, "look": LOOK, "percent": _range(0, 100)}, group="touch", is_rare=True,
            ),
        ),
    ),
    ControlRoute(
        method="POST", path="/tap_text", summary="Tap a node by its text", sentence=("Tapped {text}", "tap {text}"),
        effect=ACTS, wakes_screen=True, gesture=ScreenGesture.PRESS, rules=(text_rule("text"),),
        tools=(ControlTool(
            name="tap_text", description="Tap what has this text. index chooses among several.",
            required=("text",), properties={"text": WORD, "index": _range(1, 512), "exact": FLAG},
        ),),
    ),
    ControlRoute(
        method="POST", path="/long_press", summary="Press a point or a node for a long time",
        sentence=("Pressed and held", "press and hold"), effect=ACTS, wakes_screen=True, gesture=ScreenGesture.PRESS,
        by_hand="long_press",
        rules=(either_rule("nodeId", POINT, NODE), integer_rule("duration", "duration_ms", required=False)),
        tools=(ControlTool(
            name="long_press", description="Press a node, or a point, for long.", group="touch",
            properties={"nodeId": NODE_ID, "look": LOOK, "x": PIXEL, "y": PIXEL, "duration": _range(100, 3000)},
        ),),
    ),
    ControlRoute(
        method="POST", path="/drag", summary="Drag from one point to another", sentence=("Dragged", "drag"),
        effect=ACTS, wakes_screen=True, gesture=ScreenGesture.STROKE,
        rules=(LINE_WITHIN, integer_rule("duration_ms", required=False)),
        tools=(ControlTool(
            name="drag", description="Drag from one point to another.", required=tuple(LINE_MEMBERS),
            properties={**LINE_MEMBERS, "duration_ms": _range(100, 3000)}, group="touch", is_rare=True,
        ),),
    ),
    ControlRoute(
        method="POST", path="/type", summary="Type text", sentence=("Typed {text}", "type {text}"), effect=ACTS,
        handler="type_text", wakes_screen=True, gesture=ScreenGesture.TEXT, by_hand="type",
        rules=(text_rule("text", blank=True),),
        tools=(ControlTool(
            name="type",
            description="Type into the field nodeId, else the focused one; enter then presses Enter.",
            properties={
                "text": WORD, "nodeId": NODE_ID, "look": LOOK, "mode": _one_of("replace", "append", "clear"),
                "enter": FLAG,
            },
        ),),
    ),
    ControlRoute(
        method="POST", path="/swipe", summary="Swipe across the screen", sentence=("Swiped", "swipe"), effect=ACTS,
        wakes_screen=True, gesture=ScreenGesture.STROKE, by_hand="swipe",
        rules=(either_rule("start_x", STROKE, DIRECTION), integer_rule("duration_ms", required=False)),
        tools=(ControlTool(
            name="swipe", description="Move a finger in a direction, or from one point to another.", group="touch",
            properties={
                "direction": WAY, "distance": _one_of("short", "medium", "long"), **LINE_MEMBERS,
                "duration_ms": _range(1, 10_000),
            },
        ),),
    ),
    ControlRoute(
        method="POST", path="/scroll", summary="Scroll the screen or a node", sentence=("Scrolled", "scroll"),
        effect=ACTS, wakes_screen=True, gesture=ScreenGesture.SCROLL, rules=(DIRECTION,),
        tools=(ControlTool(
            name="scroll", description="Scroll the screen or a node, once or until a text is found.",
            required=("direction",),
            properties={"direction": WAY, "until": WORD, "nodeId": NODE_ID, "look": LOOK},
        ),),
    ),
    ControlRoute(
        method="POST", path="/press_key", summary="Press a system key", sentence=("Pressed {key}", "press {key}"),
        effect=ACTS, wakes_screen=True, gesture=ScreenGesture.KEY, by_hand="key", rules=(text_rule("key"),),
        tools=(ControlTool(
            name="press_key", description="Press a key.", required=("key",),
            properties={
                "key": _one_of(
                    *("back", "home", "recents", "notifications", "quick_settings", "power_dialog", "lock_screen"),
                    *("enter", "delete", "paste", "volume_up", "volume_down", "wakeup"),
                )
            },
        ),),
    ),
    ControlRoute(
        method="POST", path="/wait", summary="Wait for a number of milliseconds", sentence=("Waited", "wait"),
        effect=ACTS, rules=(integer_rule("ms", required=False),),
        tools=(ControlTool(
            name="wait", description="Wait until a text is shown or gone, or for ms.", group="touch",
            properties={"text": WORD, "gone": FLAG, "ms": _range(0, 15_000)}, is_wordless=True,
        ),),
    ),
    ControlRoute(
        method="POST", path="/open_app", summary="Open an app", sentence=("Opened {app}", "open {app}"), effect=ACTS,
        wakes_screen=True, checks_target=True, rules=(text_rule("package"),),
        tools=(ControlTool(
            name="open_app", description="Open an app by name or package.", required=("package",),
            properties={"package": WORD},
        ),),
    ),
    ControlRoute(
        method="GET", path="/clipboard", summary="Read the clipboard", handler="read_clipboard",
        sentence=("Read the clipboard", "read the clipboard"), effect=READS, wakes_screen=True,
        content=PrivateContent.RECORDS,
        tools=(ControlTool(name="clipboard_read", description="Read the phone's clipboard.", group="send"),),
    ),
    ControlRoute(
        method="POST", path="/clipboard", summary="Write the clipboard", handler="write_clipboard",
        sentence=("Put text on the clipboard", "put text on the clipboard"), effect=ACTS, wakes_screen=True,
        rules=(text_rule("text", blank=True),),
        tools=(ControlTool(
            name="clipboard_write", description="Set the phone's clipboard.", required=("text",),
            properties={"text": WORD}, group="send",
        ),),
    ),
    ControlRoute(
        method="POST", path="/media", summary="Control media playback",
        sentence=("Controlled the player", "control the player"), effect=ACTS, wakes_screen=True, rules=(ACTION,),
        tools=(ControlTool(
            name="media", description="Control what is playing.", required=("action",), group="send", is_rare=True,
            is_wordless=True,
            properties={
                "action": _one_of("play", "pause", "toggle", "next", "previous", "volume_up", "volume_down")
            },
        ),),
    ),
    ControlRoute(
        method="POST", path="/send_intent", summary="Start an activity by an intent",
        sentence=("Started an action", "start an action"), effect=ACTS, wakes_screen=True, checks_target=True,
        rules=(ACTION,),
        tools=(ControlTool(
            name="send_intent", description="Start an Android intent.", required=("action",),
            properties={
                "action": WORD, "data": WORD, "package": WORD, "component": WORD, "category": WORD,
                "extras": EXTRAS,
            },
            needs_approval="An intent can make any app do something.", group="send", is_rare=True,
        ),),
    ),
    ControlRoute(
        method="POST", path="/broadcast", summary="Send a broadcast intent",
        sentence=("Sent a broadcast", "send a broadcast"), effect=ACTS, wakes_screen=True, checks_target=True,
        rules=(ACTION,),
        tools=(ControlTool(
            name="broadcast", description="Send an Android broadcast.", required=("action",),
            properties={"action": WORD, "data": WORD, "package": WORD, "extras": EXTRAS},
            needs_approval="A broadcast can make any app do something.", group="send", is_rare=True,
        ),),
    ),
)  # fmt: skip
EVENTS = (
    ControlRoute(
        method="GET", path="/events", summary="List recent events of the screen", is_probe=True,
        sentence=("Read what has happened on the screen", "read what has happened on the screen"), effect=READS,
        content=PrivateContent.EVENTS, rules=(integer_rule("limit", "since", required=False),),
        tools=(ControlTool(
            name="events", description="What has happened on the screen lately.", group="look", is_rare=True,
            properties={"limit": _range(1, 500), "since": {**WHOLE, "description": "epoch milliseconds"}},
        ),),
    ),
    ControlRoute(
        method="POST", path="/events/stream", summary="Start or stop the recording of events",
        sentence=("Changed the recording of events", "change the recording of events"), effect=CONFIGURES,
        handler="events_stream", rules=(flag_rule("enabled", required=True),),
        tools=(ControlTool(
            name="events_stream", description="Record such events, or stop that.", required=("enabled",),
            properties={"enabled": FLAG}, group="look", is_rare=True, is_wordless=True,
        ),),
    ),
)  # fmt: skip
PEOPLE = (
    ControlRoute(
        method="GET", path="/location", summary="Return the location",
        sentence=("Read the location", "read the location"), effect=READS, content=PrivateContent.RECORDS,
        tools=(ControlTool(
            name="location", description="Where the phone was last.", group="people", is_wordless=True
        ),),
    ),
    ControlRoute(
        method="POST", path="/search_contacts", summary="Search the contacts",
        sentence=("Searched the contacts", "search the contacts"), effect=READS, content=PrivateContent.RECORDS,
        rules=(text_rule("query"), integer_rule("limit", required=False)),
        tools=(ControlTool(
            name="search_contacts", description="Find contacts by name.", required=("query",),
            properties={"query": WORD, "limit": _range(1, 100)}, group="people",
        ),),
    ),
    ControlRoute(
        method="POST", path="/call", summary="Start a phone call", sentence=("Called {number}", "call {number}"),
        effect=ACTS, wakes_screen=True, always_asks=True, rules=(text_rule("number"),),
        tools=(ControlTool(
            name="call", description="Call a number.", required=("number",), properties={"number": WORD},
            needs_approval="A call is placed from the phone and may cost money.", group="people",
        ),),
    ),
    ControlRoute(
        method="POST", path="/send_sms", summary="Send a text message",
        sentence=("Sent a message to {to}", "send a message to {to}"), effect=ACTS, wakes_screen=True,
        always_asks=True, rules=(text_rule("to"), text_rule("body")),
        tools=(ControlTool(
            name="send_sms", description="Send a text message.", required=("to", "body"),
            properties={"to": WORD, "body": WORD},
            needs_approval="A text message is sent from the phone and may cost money.", group="people",
        ),),
    ),
    ControlRoute(
        method="POST", path="/share_media", summary="Share files or text with an app",
        sentence=("Shared a file", "share a file"), effect=ACTS, wakes_screen=True, checks_target=True,
        always_asks=True, rules=(ATTACHMENTS_OR_TEXT,),
        tools=(ControlTool(
            name="share_media",
            description="Open the phone's share screen with text or files; the user chooses where they go.",
            properties={"text": WORD, "title": WORD, "attachments": ATTACHMENTS, "package": WORD}, group="send",
            is_rare=True,
        ),),
    ),
    ControlRoute(
        method="POST", path="/send_mms", summary="Send a text message with files",
        sentence=("Sent a picture message to {to}", "send a picture message to {to}"), effect=ACTS, wakes_screen=True,
        checks_target=True, always_asks=True, rules=(text_rule("to"), ATTACHMENTS_OR_TEXT),
        tools=(ControlTool(
            name="send_mms", description="Open a message with text or files to a number; the user sends it.",
            required=("to",), properties={"to": WORD, "text": WORD, "attachments": ATTACHMENTS, "package": WORD},
            needs_approval="A message is opened on the phone, addressed and ready to be sent.", group="people",
            is_rare=True,
        ),),
    ),
)  # fmt: skip

DEVICE_CONTROL: Final[dict[tuple[str, str], ControlRoute]] = {
    (row.method, row.path): row for row in (*CORE, *READ, *ACT, *EVENTS, *PEOPLE)
}
"""Every route by method and path. A phone is sent the original spelling of self-foreground, whichever was called."""


def check_arguments(method: str, path: str, arguments: Mapping[str, object]) -> None:
    """Raise `Refused` 400 `invalid_field` that names the field for arguments that the route cannot use."""
    for rule in DEVICE_CONTROL[method, path].rules:
        rule.check(arguments)
