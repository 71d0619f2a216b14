"""When to ping a silent peer, and when to give it up. Any byte from the peer is a sign of life.

Whoever does not read for a while hears nothing, and has to be heard: it pings, more often than the peer's patience is
long, and gives nobody up.

| state   | trigger | next    | action  |
|---------|---------|---------|---------|
| LIVE    | HEARD   | LIVE    | nothing; the interval begins anew
| LIVE    | DUE     | PROBED  | ping: nothing was heard for `interval`
| PROBED  | HEARD   | LIVE    | nothing
| PROBED  | DUE     | LOST    | drop: nothing was heard for `patience` after the ping
| LIVE    | HOLD    | HELD    | nothing
| PROBED  | HOLD    | HELD    | nothing
| HELD    | DUE     | HELD    | ping: we are here
| HELD    | HEARD   | HELD    | nothing
| HELD    | HOLD    | HELD    | nothing
| HELD    | RELEASE | LIVE    | nothing; the interval begins anew
| other   | RELEASE | as is   | nothing
| LOST    | HEARD   | LOST    | nothing
| LOST    | DUE     | LOST    | drop
| LOST    | HOLD    | LOST    | nothing
"""

from __future__ import annotations

from enum import Enum

__all__ = ["LIFE", "Keepalive", "KeepaliveAction", "KeepaliveState", "KeepaliveTrigger"]


class KeepaliveAction(Enum):
    """What the owner is to do."""

    NOTHING = "nothing"
    PING = "ping"
    DROP = "drop"


class KeepaliveState(Enum):
    """What we know of the peer."""

    LIVE = "live"
    PROBED = "probed"
    HELD = "held"
    LOST = "lost"


class KeepaliveTrigger(Enum):
    """What moves it."""

    HEARD = "heard"
    DUE = "due"
    HOLD = "hold"
    RELEASE = "release"


LIFE: dict[tuple[KeepaliveState, KeepaliveTrigger], tuple[KeepaliveState, KeepaliveAction]] = {
    (KeepaliveState.LIVE, KeepaliveTrigger.HEARD): (KeepaliveState.LIVE, KeepaliveAction.NOTHING),
    (KeepaliveState.LIVE, KeepaliveTrigger.DUE): (KeepaliveState.PROBED, KeepaliveAction.PING),
    (KeepaliveState.PROBED, KeepaliveTrigger.HEARD): (KeepaliveState.LIVE, KeepaliveAction.NOTHING),
    (KeepaliveState.PROBED, KeepaliveTrigger.DUE): (KeepaliveState.LOST, KeepaliveAction.DROP),
    (KeepaliveState.LIVE, KeepaliveTrigger.HOLD): (KeepaliveState.HELD, KeepaliveAction.NOTHING),
    (KeepaliveState.LIVE, KeepaliveTrigger.RELEASE): (KeepaliveState.LIVE, KeepaliveAction.NOTHING),
    (KeepaliveState.PROBED, KeepaliveTrigger.HOLD): (KeepaliveState.HELD, KeepaliveAction.NOTHING),
    (KeepaliveState.PROBED, KeepaliveTrigger.RELEASE): (KeepaliveState.PROBED, KeepaliveAction.NOTHING),
    (KeepaliveState.HELD, KeepaliveTrigger.DUE): (KeepaliveState.HELD, KeepaliveAction.PING),
    (KeepaliveState.HELD, KeepaliveTrigger.HEARD): (KeepaliveState.HELD, KeepaliveAction.NOTHING),
    (KeepaliveState.HELD, KeepaliveTrigger.HOLD): (KeepaliveState.HELD, KeepaliveAction.NOTHING),
    (KeepaliveState.HELD, KeepaliveTrigger.RELEASE): (KeepaliveState.LIVE, KeepaliveAction.NOTHING),
    (KeepaliveState.LOST, KeepaliveTrigger.HOLD): (KeepaliveState.LOST, KeepaliveAction.NOTHING),
    (KeepaliveState.LOST, KeepaliveTrigger.RELEASE): (KeepaliveState.LOST, KeepaliveAction.NOTHING),
    (KeepaliveState.LOST, KeepaliveTrigger.HEARD): (KeepaliveState.LOST, KeepaliveAction.NOTHING),
    (KeepaliveState.LOST, KeepaliveTrigger.DUE): (KeepaliveState.LOST, KeepaliveAction.DROP),
}


class Keepalive:
    """The ping policy of one connection. All times in seconds of the monotonic clock."""

    __slots__ = ("_interval", "_patience", "_since", "_state")

    def __init__(self, interval: float, patience: float, now: float) -> None:
        self._interval = interval
        self._patience = patience
        self._since = now  # of the last sign of life, or of the ping
        self._state = KeepaliveState.LIVE

    @property
    def state(self) -> KeepaliveState:
        """What we know of the peer."""
        return self._state

    @property
    def due(self) -> float:
        """When `advance` will next have something to do."""
        match self._state:
            case KeepaliveState.LIVE:
                return self._since + self._interval
            case KeepaliveState.HELD:
                return self._since + self._patience / 2
            case _:
                return self._since + self._patience

    def heard(self, now: float) -> None:
        """Bytes came from the peer."""
        if self._state is not KeepaliveState.LIVE:
            self._step(KeepaliveTrigger.HEARD)
        self._since = now

    def hold(self, holding: bool, now: float) -> None:
        """We read no more from the peer, or go on. What it has said meanwhile is heard then."""
        was = self._state
        self._step(KeepaliveTrigger.HOLD if holding else KeepaliveTrigger.RELEASE)
        if self._state is not was:
            self._since = now

    def advance(self, now: float) -> KeepaliveAction:
        """Time has passed; say what to do about it."""
        if now < self.due:
            return KeepaliveAction.NOTHING
        action = self._step(KeepaliveTrigger.DUE)
        self._since = now
        return action

    def _step(self, trigger: KeepaliveTrigger) -> KeepaliveAction:
        self._state, action = LIFE[self._state, trigger]
        return action
