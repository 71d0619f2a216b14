"""Assignment of a realtime provider's responses to requests: one response is requested at a time.

A provider names a response only when it starts, and may still send events of a cancelled one. So a request that was
sent and then given up before its response has started leaves an orphan: the next response that starts within five
seconds is assigned to it. A response that starts while no request is open is classified as `STRAY`: to be cancelled.
"""

from collections import deque
from enum import Enum

from svc_proto.machines.transitions import Table, step
from svc_proto.voice.realtime.actions import ConversationAction

__all__ = ["ORPHAN_TTL", "RESPONSE_TABLE", "ProviderResponses", "ResponseState", "ResponseTrigger", "ResponseOrigin"]

PREVIOUS_RESPONSE_TIMEOUT = 2.5  # s for the provider to finish a response before the next is requested
ORPHAN_TTL = 5.0  # s; a provider that has not started a response by then has dropped it
MAX_IGNORED = 64  # ids of responses that were given up; the oldest is dropped
MAX_OPEN = 16  # responses in progress at the provider; the oldest is dropped
MAX_ORPHANS = 16  # requests that may still start a response; the oldest is dropped


class ResponseState(Enum):
    """State of the requested response."""

    NONE = "none"
    HELD = "held"
    ASKED = "asked"
    STARTED = "started"


class ResponseTrigger(Enum):
    """Trigger of a transition of `RESPONSE_TABLE`."""

    WANT = "want"
    ORDER = "order"
    START = "start"
    END = "end"


_S, _T = ResponseState, ResponseTrigger
RESPONSE_TABLE: Table[ResponseState, ResponseTrigger] = {
    # The provider accepts no request during another response: this one waits, at most 2.5 s; or it replaces a request
    # that was not sent yet.
    **{(state, _T.WANT): _S.HELD for state in _S},
    (_S.HELD, _T.ORDER): _S.ASKED,  # the provider is free, or the wait has timed out
    (_S.ASKED, _T.START): _S.STARTED,  # the response has started, and has an id
    # It has ended, or was given up; a request whose response has not started leaves an orphan.
    **{(state, _T.END): _S.NONE for state in _S if state is not _S.NONE},
}


class ResponseOrigin(Enum):
    """Classification of a response that starts: requested, known, given up, or not requested."""

    OURS = "ours"  # the requested one
    KNOWN = "known"  # started before
    STRAY = "stray"  # not requested, or not any more: cancel it
    IGNORED = "ignored"  # given up earlier


class ProviderResponses:
    """Requests and responses of one provider socket."""

    def __init__(self) -> None:
        self.state = ResponseState.NONE
        self.current: str | None = None  # the id of the requested response, once it has started
        self.due: float | None = None  # when to call `assume_free`
        self._order: list[ConversationAction] = []  # not sent yet
        self._orphans: deque[float] = deque(maxlen=MAX_ORPHANS)  # when each of them expires
        self._dead: dict[str, None] = {}
        self._open: dict[str, None] = {}

    @property
    def talking(self) -> bool:
        """Report whether a response of the provider is in progress, or a request for one was sent."""
        return bool(self._open) or self.state is ResponseState.ASKED

    def request(self, order: ConversationAction, now: float) -> list[ConversationAction]:
        """Request a response: return the request now, or hold it until the provider is free, at most until `due`."""
        self._step(ResponseTrigger.WANT)
        self.current, self._order = None, [order]
        if self._open:
            self.due = now + PREVIOUS_RESPONSE_TIMEOUT
            return []
        return self._request_response()

    def assume_free(self) -> list[ConversationAction]:
        """Return the held request at `due`, although the provider has not reported the end of its response."""
        self._open.clear()
        return self._request_response()

    def give_up(self, now: float) -> None:
        """Give up the current request and its response."""
        if self.current is not None:
            self.ignore(self.current)
        elif self.state is not ResponseState.NONE:
            if self.state is ResponseState.ASKED:
                self._orphans.append(now + ORPHAN_TTL)
            self._step(ResponseTrigger.END)
        self._order, self.due = [], None

    def ignore(self, response_id: str) -> None:
        """Ignore further events of this response."""
        self._dead[response_id] = None
        if len(self._dead) > MAX_IGNORED:
            del self._dead[next(iter(self._dead))]
        if self.current == response_id:
            self._step(ResponseTrigger.END)
            self.current = None

    def start(self, response_id: str, now: float) -> ResponseOrigin:
        """Return the origin of a response at its first event, or at any later one; assign it to its request, if any."""
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
        """Handle the end of a response: return the held request, if any, if the provider is free now."""
        self._open.pop(response_id, None)
        return [] if self._open else self._request_response()

    def _request_response(self) -> list[ConversationAction]:
        order, self._order, self.due = self._order, [], None
        if self.state is ResponseState.HELD:
            self._step(ResponseTrigger.ORDER)
        return order

    def _step(self, trigger: ResponseTrigger) -> None:
        self.state = step(RESPONSE_TABLE, self.state, trigger)
