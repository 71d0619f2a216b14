"""Which of a realtime provider's responses count: one is asked for, those that were given up are ignored.

A provider names a response only when it starts, and may still tell of one that was cancelled. So what was asked for and
given up before it started is an orphan: the next one to start, within five seconds, is taken for it. What starts before
its order was given is nobody's.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from svc_proto.machines.transitions import Table, step
from svc_proto.voice.realtime.actions import ConversationAction

__all__ = ["ORPHAN_TTL", "RESPONSE_TABLE", "ProviderResponses", "ResponseState", "ResponseTrigger", "ResponseOrigin"]

PREVIOUS_RESPONSE_TIMEOUT = 2.5  # s for the provider to finish with a response before the next is asked for
ORPHAN_TTL = 5.0  # s; a provider that has not started a response by then has dropped it
MAX_IGNORED = 64  # ids of responses that were given up; the oldest is forgotten
MAX_OPEN = 16  # responses under way at the provider; the oldest is forgotten
MAX_ORPHANS = 16  # that may still start; the oldest is forgotten


class ResponseState(Enum):
    """How far the response is that is wanted."""

    NONE = "none"
    HELD = "held"
    ASKED = "asked"
    STARTED = "heard"


class ResponseTrigger(Enum):
    """What moves it."""

    WANT = "want"
    ORDER = "order"
    START = "start"
    END = "end"


_S, _T = ResponseState, ResponseTrigger
RESPONSE_TABLE: Table[ResponseState, ResponseTrigger] = {
    # The provider takes no order while it is at another response: this one waits, at most 2.5 s; or it takes the place
    # of one that was wanted before.
    **{(state, _T.WANT): _S.HELD for state in _S},
    (_S.HELD, _T.ORDER): _S.ASKED,  # it is free, or was not in time
    (_S.ASKED, _T.START): _S.STARTED,  # it has begun, and has a name
    # Over, or given up; what was asked for and has not begun is an orphan.
    **{(state, _T.END): _S.NONE for state in _S if state is not _S.NONE},
}


class ResponseOrigin(Enum):
    """What the start of a response means."""

    OURS = "ours"  # the one that was asked for
    KNOWN = "known"  # told before
    STRAY = "stray"  # nobody asked for it, or not any more: cancel it
    IGNORED = "ignored"  # given up earlier


class ProviderResponses:
    """The responses of one provider socket."""

    def __init__(self) -> None:
        self.state = ResponseState.NONE
        self.current: str | None = None  # the one that is heard
        self.due: float | None = None  # when to `assume_free`
        self._order: list[ConversationAction] = []  # not yet given
        self._orphans: deque[float] = deque(maxlen=MAX_ORPHANS)  # until when each is waited for
        self._dead: dict[str, None] = {}
        self._open: dict[str, None] = {}

    @property
    def talking(self) -> bool:
        """Whether the provider may be saying something, or about to."""
        return bool(self._open) or self.state is ResponseState.ASKED

    def request(self, order: ConversationAction, now: float) -> list[ConversationAction]:
        """Ask for a response, now or as soon as the provider is free."""
        self._step(ResponseTrigger.WANT)
        self.current, self._order = None, [order]
        if self._open:
            self.due = now + PREVIOUS_RESPONSE_TIMEOUT
            return []
        return self._ask_now()

    def assume_free(self) -> list[ConversationAction]:
        """`due` has come, and the provider does not say that it is free: ask without its word."""
        self._open.clear()
        return self._ask_now()

    def give_up(self, now: float) -> None:
        """Have nothing to do any more with what was asked for."""
        if self.current is not None:
            self.ignore(self.current)
        elif self.state is not ResponseState.NONE:
            if self.state is ResponseState.ASKED:
                self._orphans.append(now + ORPHAN_TTL)
            self._step(ResponseTrigger.END)
        self._order, self.due = [], None

    def ignore(self, response_id: str) -> None:
        """Ignore what still comes of it."""
        self._dead[response_id] = None
        if len(self._dead) > MAX_IGNORED:
            del self._dead[next(iter(self._dead))]
        if self.current == response_id:
            self._step(ResponseTrigger.END)
            self.current = None

    def start(self, response_id: str, now: float) -> ResponseOrigin:
        """A response has begun, or something of it came before its beginning."""
        if response_id == self.current:
            return ResponseOrigin.KNOWN
        if response_id in self._dead:
            return ResponseOrigin.IGNORED
        self._open[response_id] = None
        if len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
        while self._orphans and now >= self._orphans[0]:
            self._orphans.popleft()
        if self._orphans:
            self._orphans.popleft()
        elif self.state is ResponseState.ASKED:
            self._step(ResponseTrigger.START)
            self.current = response_id
            return ResponseOrigin.OURS
        self.ignore(response_id)
        return ResponseOrigin.STRAY

    def finish(self, response_id: str) -> list[ConversationAction]:
        """The provider is done with it: it may be free now."""
        self._open.pop(response_id, None)
        return [] if self._open else self._ask_now()

    def _ask_now(self) -> list[ConversationAction]:
        order, self._order, self.due = self._order, [], None
        if self.state is ResponseState.HELD:
            self._step(ResponseTrigger.ORDER)
        return order

    def _step(self, trigger: ResponseTrigger) -> None:
        self.state = step(RESPONSE_TABLE, self.state, trigger)
