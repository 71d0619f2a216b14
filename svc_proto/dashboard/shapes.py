"""What the dashboard is sent and answers by itself, as types: for its document (`dashboard.says`).

Most of its answers are those of the relay, the API and the reference phone, as they came.
"""
# Without `from __future__ import annotations`: see `schema.json_schema`.

from typing import Annotated, Literal, NotRequired, Required, TypedDict

from svc_proto.relay.shapes import Mint
from svc_proto.schema.json_schema import rule


class Problem(TypedDict):
    """What is wrong with an input."""

    type: str
    loc: Annotated[list[str], "where: query, limit"]
    msg: str


class Refusal(TypedDict):
    """A refusal; what another server said, where it was that one's."""

    detail: str | list[Problem] | dict[str, object]


class Rows(TypedDict):
    """A QR, without a margin."""

    rows: list[Annotated[str, rule(pattern="^[01]+$")]]


class Push(TypedDict):
    """That there is none."""

    configured: Literal[False]
    reason: str


class PicturePath(TypedDict):
    """A picture of this host."""

    path: str


class Wish(Mint, total=False):
    """What an invite is to say, and which routes it is to hold."""

    mode: Annotated[str | None, "auto, lan, mesh or public"]
    public_url: str | None
    prefer: str | None


class LimitQuery(TypedDict, total=False):
    """How many."""

    limit: int


class ExpiredQuery(TypedDict, total=False):
    """Which."""

    include_expired: bool


class ChatModel(TypedDict):
    """Whether there is a chat, and which model answers."""

    chat: bool
    model: Annotated[str | None, "null: the built-in agent"]


class WordsQuery(TypedDict, total=False):
    """What to look for."""

    q: str


class SeenQuery(TypedDict, total=False):
    """What was seen last."""

    seen: Annotated[str, "a tag: the answer waits until there is something else"]


class Vitals(TypedDict):
    """How the servers fare, now and in the last hour: numbers by `names`; null where there is none."""

    every: Annotated[float, "s between two rows"]
    span: Annotated[float, "s"]
    names: list[str]
    rows: list[list[float | None]]
    now: list[float | None]
    answers: Annotated[dict[str, bool], "whether each server is there"]


class PhoneScreen(TypedDict):
    """The reference phone as a person sees it."""

    name: str
    online: bool
    device_control: bool
    hint: str | None
    screen_on: bool
    battery: object
    screen: dict[str, object]
    latest: dict[str, object] | None
    questions: list[dict[str, object]]
    talk: list[dict[str, object]]
    awaits: bool
    tag: Annotated[str, "what `seen` is compared with"]
    seconds_left: Annotated[dict[str, float], "of the questions"]


class Touch(TypedDict, total=False):
    """A finger."""

    kind: Required[Annotated[str, "wake, tap, long_press, swipe and so on"]]
    x: NotRequired[int]
    y: NotRequired[int]


class Word(TypedDict, total=False):
    """An answer to a question of the phone."""

    question: Required[str]
    allow: Required[bool]
    remember: bool


class Toggle(TypedDict):
    """Device Control."""

    on: bool


class Said(TypedDict, total=False):
    """A word to the agent."""

    text: Required[str]
    aloud: bool


class Accepted(TypedDict):
    """It is done."""

    ok: Literal[True]


class CodeQuery(TypedDict, total=False):
    """Which agent waits."""

    code: Annotated[str, "the word that its page shows"]


class Ballot(TypedDict, total=False):
    """What the owner says to it."""

    code: Required[str]
    ballot: Required[str]
    answer: Required[Literal["allow", "refuse"]]
    scope: Literal["bridge", "bridge:read"]
    days: Literal["1", "7", "30", "365"]
