"""Commands to a phone as types: what a caller says, as `machines.arguments` checks it. More members reach the phone.

Phones read numbers and booleans through text, so `12` and `"12"` are the same.
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, Required, TypeAlias

from svc_proto.relay.shapes import Selector
from svc_proto.schema.json_schema import rule

__all__ = ["ARGUMENTS", "QUERIES"]

Whole: TypeAlias = Annotated[int | str, rule(pattern="^ *-?[0-9]{1,19} *$")]
Place: TypeAlias = Annotated[int | str, rule(minimum=0, pattern="^ *[0-9]{1,19} *$")]
Text: TypeAlias = str | float
Word: TypeAlias = Annotated[str | float, rule(pattern=r"\S")]
Switch: TypeAlias = bool | Literal["true", "false"]


class ScreenQuery(Selector, total=False):
    """How a screen is read."""

    include_bounds: Switch


class EventsQuery(Selector, total=False):
    """Which events."""

    limit: int
    since: int


class DiffScreen(Selector, total=False):
    """A screen that was seen before."""

    previous_hash: Required[Word]


class FindNodes(Selector, total=False):
    """What to look for on the screen."""

    text: Annotated[object, "what it has to hold"]
    clickable: Switch | None
    limit: Whole | None


class Node(Selector, total=False):
    """A node of the screen: one of the two names it."""

    nodeId: Word  # noqa: N815 - as it goes over the wire
    node_id: Word


class Tap(Node, total=False):
    """A node, or a place."""

    x: Place | None
    y: Place | None
    duration_ms: Whole | None


class LongPress(Node, total=False):
    """A node, or a place."""

    x: Place | None
    y: Place | None
    duration: Whole | None
    duration_ms: Whole | None


class Typed(Selector, total=False):
    """A text."""

    text: Required[Text]


class TapText(Selector, total=False):
    """What is to be tapped, by its text."""

    text: Required[Word]


class Drag(Selector, total=False):
    """From one place to another."""

    start_x: Required[Place]
    start_y: Required[Place]
    end_x: Required[Place]
    end_y: Required[Place]
    duration_ms: Whole | None


class Swipe(Selector, total=False):
    """A direction, or from one place to another."""

    direction: str
    start_x: Whole | None
    start_y: Whole | None
    end_x: Whole | None
    end_y: Whole | None
    duration_ms: Whole | None


class Scroll(Selector, total=False):
    """A direction: up, down, left or right, in any case."""

    direction: Required[str]


class PressKey(Selector, total=False):
    """A key of the phone."""

    key: Required[Word]


class Wait(Selector, total=False):
    """How long."""

    ms: Whole | None


class OpenApp(Selector, total=False):
    """An app."""

    package: Required[Word]


class Action(Selector, total=False):
    """What to do; of an intent more members say the rest."""

    action: Required[Word]


class EventStream(Selector, total=False):
    """Whether events are collected."""

    enabled: Required[Switch]


class SearchContacts(Selector, total=False):
    """Whom to look for."""

    query: Required[Word]
    limit: Whole | None


class Call(Selector, total=False):
    """Whom to call."""

    number: Required[Word]


class SendSms(Selector, total=False):
    """Whom to tell what."""

    to: Required[Word]
    body: Required[Word]


class ShareMedia(Selector, total=False):
    """Files by any of these members, or text."""

    attachments: list[object]
    media_tokens: list[object]
    paths: list[object]
    text: Annotated[object, "what is said with them"]


class SendMms(ShareMedia, total=False):
    """Whom to send it to."""

    to: Required[Word]


ARGUMENTS: dict[str, type] = {
    "/diff_screen": DiffScreen,
    "/find_nodes": FindNodes,
    "/describe_node": Node,
    "/tap": Tap,
    "/tap_text": TapText,
    "/long_press": LongPress,
    "/drag": Drag,
    "/type": Typed,
    "/swipe": Swipe,
    "/scroll": Scroll,
    "/press_key": PressKey,
    "/wait": Wait,
    "/open_app": OpenApp,
    "/clipboard": Typed,
    "/media": Action,
    "/send_intent": Action,
    "/broadcast": Action,
    "/events/stream": EventStream,
    "/search_contacts": SearchContacts,
    "/call": Call,
    "/send_sms": SendSms,
    "/share_media": ShareMedia,
    "/send_mms": SendMms,
}
"""The bodies of POST; other routes take nothing but a selector."""

QUERIES: dict[str, type] = {"/screen": ScreenQuery, "/events": EventsQuery}
"""The same for GET."""
