"""Which of a realtime provider's responses count: one is asked for, those that were given up are ignored.

A provider takes no order for a response while it is at another one, so an order waits until it is free, at most 2.5 s.

A provider names a response only when it starts, and may still tell of one that was cancelled. So what was asked for and
given up before it started is an orphan: the next one to start, within five seconds, is taken for it. What starts before
its order was given is nobody's.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from svc_proto.machines.broker_orders import Order

__all__ = ["ORPHANED_FOR", "ProviderResponses", "Start"]

FREE_WITHIN = 2.5  # s for the provider to finish with a response before the next is asked for
ORPHANED_FOR = 5.0  # s; a provider that has not started a response by then has dropped it
MAX_DEAD = 64  # ids of responses that were given up; the oldest is forgotten
MAX_OPEN = 16  # responses under way at the provider; the oldest is forgotten
MAX_ORPHANS = 16  # that may still start; the oldest is forgotten


class Start(Enum):
    """What the start of a response means."""

    OURS = "ours"  # the one that was asked for
    KNOWN = "known"  # told before
    STRAY = "stray"  # nobody asked for it, or not any more: cancel it
    IGNORED = "ignored"  # given up earlier


class ProviderResponses:
    """The responses of one provider socket."""

    def __init__(self) -> None:
        self.current: str | None = None
        self.awaited = False  # asked for, and not started
        self.due: float | None = None  # when to `assume_free`
        self._order: Order | None = None  # not yet given
        self._orphans: deque[float] = deque(maxlen=MAX_ORPHANS)  # until when each is waited for
        self._dead: dict[str, None] = {}
        self._open: dict[str, None] = {}

    @property
    def talking(self) -> bool:
        """Whether the provider may be saying something, or about to."""
        return bool(self._open) or self._ordered

    def ask(self, order: Order, now: float) -> list[Order]:
        """Ask for a response, now or as soon as the provider is free."""
        self.current, self.awaited = None, True
        self._order = order
        if self._open:
            self.due = now + FREE_WITHIN
            return []
        return self._ask_now()

    def assume_free(self) -> list[Order]:
        """`due` has come, and the provider does not say that it is free: ask without its word."""
        self._open.clear()
        return self._ask_now()

    def give_up(self, now: float) -> None:
        """Have nothing to do any more with what was asked for."""
        if self.current is not None:
            self.bury(self.current)
        elif self._ordered:
            self._orphans.append(now + ORPHANED_FOR)
        self.awaited = False
        self._order = self.due = None

    def bury(self, response_id: str) -> None:
        """Ignore what still comes of it."""
        self._dead[response_id] = None
        if len(self._dead) > MAX_DEAD:
            del self._dead[next(iter(self._dead))]
        if self.current == response_id:
            self.current = None

    def start(self, response_id: str, now: float) -> Start:
        """A response has begun, or something of it came before its beginning."""
        if response_id == self.current:
            return Start.KNOWN
        if response_id in self._dead:
            return Start.IGNORED
        self._open[response_id] = None
        if len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
        while self._orphans and now >= self._orphans[0]:
            self._orphans.popleft()
        if self._orphans:
            self._orphans.popleft()
        elif self._ordered:
            self.current, self.awaited = response_id, False
            return Start.OURS
        self.bury(response_id)
        return Start.STRAY

    def over(self, response_id: str) -> list[Order]:
        """The provider is done with it: it may be free now."""
        self._open.pop(response_id, None)
        return [] if self._open else self._ask_now()

    @property
    def _ordered(self) -> bool:
        """Whether the provider was asked for one that has not started."""
        return self.awaited and self._order is None

    def _ask_now(self) -> list[Order]:
        order, self._order, self.due = self._order, None, None
        return [] if order is None else [order]
