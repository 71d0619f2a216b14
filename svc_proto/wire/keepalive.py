"""When to ping a silent peer, and when to give it up. Any byte from the peer is a sign of life.

Whoever does not read for a while (`hold`) hears nothing, and has to be heard: it pings, twice in the time of a peer's
patience, and gives nobody up.

| state   | trigger | next    | action  |
|---------|---------|---------|---------|
| LIVE    | HEARD   | LIVE    | nothing; the interval begins anew
| LIVE    | DUE     | PROBED  | ping: nothing was heard for `interval`
| PROBED  | HEARD   | LIVE    | nothing
| PROBED  | DUE     | LOST    | drop: nothing was heard for `patience` after the ping
| LOST    | HEARD   | LOST    | nothing
| LOST    | DUE     | LOST    | drop
"""

from __future__ import annotations

from enum import Enum

__all__ = ["KEEPALIVE_TABLE", "Keepalive", "KeepaliveAction", "KeepaliveState", "KeepaliveTrigger"]


class KeepaliveAction(Enum):
    """What the owner of a connection is to do about pings."""

    NOTHING = "nothing"
    PING = "ping"
    DROP = "drop"


class KeepaliveState(Enum):
    """What we know of the peer."""

    LIVE = "live"
    PROBED = "probed"
    LOST = "lost"


class KeepaliveTrigger(Enum):
    """What moves it."""

    RECEIVED = "heard"
    DUE = "due"


KEEPALIVE_TABLE: dict[tuple[KeepaliveState, KeepaliveTrigger], tuple[KeepaliveState, KeepaliveAction]] = {
    (KeepaliveState.LIVE, KeepaliveTrigger.RECEIVED): (KeepaliveState.LIVE, KeepaliveAction.NOTHING),
    (KeepaliveState.LIVE, KeepaliveTrigger.DUE): (KeepaliveState.PROBED, KeepaliveAction.PING),
    (KeepaliveState.PROBED, KeepaliveTrigger.RECEIVED): (KeepaliveState.LIVE, KeepaliveAction.NOTHING),
    (KeepaliveState.PROBED, KeepaliveTrigger.DUE): (KeepaliveState.LOST, KeepaliveAction.DROP),
    (KeepaliveState.LOST, KeepaliveTrigger.RECEIVED): (KeepaliveState.LOST, KeepaliveAction.NOTHING),
    (KeepaliveState.LOST, KeepaliveTrigger.DUE): (KeepaliveState.LOST, KeepaliveAction.DROP),
}
_LIVE = KeepaliveState.LIVE  # as in `wire.websocket`


class Keepalive:
    """The ping policy of one connection. All times in seconds of the monotonic clock."""

    __slots__ = ("_interval", "_patience", "_since", "_state", "held")

    def __init__(self, interval: float, patience: float, now: float) -> None:
        self._interval = interval
        self._patience = patience
        self._since = now  # of the last sign of life, or of the ping
        self._state = KeepaliveState.LIVE
        self.held = False  # we do not read

    @property
    def state(self) -> KeepaliveState:
        """What we know of the peer."""
        return self._state

    @property
    def due(self) -> float:
        """When `advance` will next have something to do."""
        if self.held:
            return self._since + self._patience / 2
        return self._since + (self._interval if self._state is _LIVE else self._patience)

    def mark_received(self, now: float) -> bool:
        """Bytes came from the peer. True: `due` may be sooner than it was, since no answer is waited for any more."""
        self._since = now
        if self._state is _LIVE:
            return False
        self._step(KeepaliveTrigger.RECEIVED)
        return True

    def set_paused(self, holding: bool, now: float) -> None:
        """We read no more from the peer, or go on. What it has said meanwhile is heard then."""
        if holding is not self.held:
            self.held = holding
            self.mark_received(now)  # what was asked of the peer is asked anew

    def advance(self, now: float) -> KeepaliveAction:
        """Time has passed; say what to do about it."""
        if now < self.due:
            return KeepaliveAction.NOTHING
        action = KeepaliveAction.PING if self.held else self._step(KeepaliveTrigger.DUE)
        self._since = now
        return action

    def _step(self, trigger: KeepaliveTrigger) -> KeepaliveAction:
        self._state, action = KEEPALIVE_TABLE[self._state, trigger]
        return action
