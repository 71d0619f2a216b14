"""Start and end events of a turn, and the interface of its projections.

A projection has one reader. It returns text, not bytes, so that a batch of small events is joined and encoded once.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from attrs import field

from svc_proto.agent.interface import ToolCall, TurnEvent
from svc_proto.api.chat.records import Usage
from svc_proto.basics import strict_json
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.moment import Moment

__all__ = ["Projection", "TimestampCache", "TurnStreamEvent", "TurnStarted", "TurnEnded", "encode_frame"]


@fast_frozen(kw_only=True)
class TurnStarted:
    """First event of a turn that begins: the client's messages are stored, and the agent is about to start.

    A turn that is stopped or refused before that has no such event.
    """

    title: str | None  # of the session
    user_id: str  # of the stored message
    user_text: str  # without its images, which the client has
    model: str = ""


@fast_frozen(kw_only=True)
class TurnEnded:
    """Last event of a turn: its answer, how it ended, and what it used."""

    content: str  # every delta, joined
    usage: Usage = field(factory=Usage)
    api_calls: int = 0
    finish: str = "stop"  # `stop`, `length`, `tool_calls`, `error` or `interrupted`
    interrupted: bool = False  # the run was stopped
    error: str | None = None  # for people; None unless the turn failed
    code: str = ""  # of the error
    reason: str | None = None  # for people: why a turn without an error was ended early
    unfinished: tuple[str, ...] = ()  # for people: acts without success, and what was left open
    calls: tuple[ToolCall, ...] = ()  # calls that the client is to make
    reasoning: str = ""  # of the last answer
    extra: Mapping[str, object] = field(
        factory=dict
    )  # further members of the last answer, for the client's next request

    @property
    def completed(self) -> bool:
        """Report whether the agent completed its answer."""
        return self.finish in ("stop", "tool_calls") and self.error is None

    @property
    def partial(self) -> bool:
        """Report whether the agent did not complete its answer."""
        return not self.completed


TurnStreamEvent: TypeAlias = TurnStarted | TurnEvent | TurnEnded


class Projection(Protocol):
    """Encoder of a turn's events as server-sent events for one reader."""

    def encode(self, event: TurnStreamEvent, now: Moment) -> str:
        """Return whole frames; empty if the projection has nothing for this event."""
        ...


class TimestampCache:
    """Formatter of the wall clock in epoch seconds with three decimals, which caches the text of the latest moment."""

    __slots__ = ("_now", "_text")

    def __init__(self) -> None:
        self._now: Moment | None = None
        self._text = ""

    def at(self, now: Moment) -> str:
        """Return the moment's epoch seconds as text with three decimals."""
        if now is not self._now:
            self._now = now
            self._text = f"{now.wall:.3f}"
        return self._text


def encode_frame(members: object, *, event: str | None = None) -> str:
    """Return one server-sent event with `members` as JSON in one `data` line, and the name `event` if given."""
    data = strict_json.dumps(members)
    return f"data: {data}\n\n" if event is None else f"event: {event}\ndata: {data}\n\n"
