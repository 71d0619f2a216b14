"""Keepalive: when to ping a silent peer, and when to drop it. Any byte from the peer is a sign of life.

While reading is paused (`set_paused`), no bytes are received, so the peer must not time out either. Pings are then sent
at half of `patience`, and the peer is never dropped.

After a host was suspended or a process was stopped, all deadlines have passed, and what the peers have sent is unread.
An action more than `FROZEN` seconds after its deadline is therefore a ping, whose time begins when the process runs
again, unless the peer is lost already.

| state   | trigger  | next    | action  |
|---------|----------|---------|---------|
| LIVE    | RECEIVED | LIVE    | nothing; the interval begins anew
| LIVE    | DUE      | PROBED  | ping: no byte was received for `interval`
| PROBED  | RECEIVED | LIVE    | nothing
| PROBED  | DUE      | LOST    | drop: no byte was received for `patience` after the ping
| PROBED  | LATE     | PROBED  | ping: this process did not run at the deadline
| LIVE    | LATE     | PROBED  | ping
| LOST    | LATE     | LOST    | drop
| LOST    | RECEIVED | LOST    | nothing
| LOST    | DUE      | LOST    | drop
"""

from enum import Enum

__all__ = ["KEEPALIVE_TABLE", "Keepalive", "KeepaliveAction", "KeepaliveState", "KeepaliveTrigger"]


class KeepaliveAction(Enum):
    """Action of the owner of a connection."""

    NOTHING = "nothing"
    PING = "ping"
    DROP = "drop"


class KeepaliveState(Enum):
    """States of the peer's liveness."""

    LIVE = "live"
    PROBED = "probed"
    LOST = "lost"


class KeepaliveTrigger(Enum):
    """Triggers of the state changes of the peer's liveness."""

    RECEIVED = "received"
    DUE = "due"
    LATE = "late"


KEEPALIVE_TABLE: dict[tuple[KeepaliveState, KeepaliveTrigger], tuple[KeepaliveState, KeepaliveAction]] = {
    (KeepaliveState.LIVE, KeepaliveTrigger.RECEIVED): (KeepaliveState.LIVE, KeepaliveAction.NOTHING),
    (KeepaliveState.LIVE, KeepaliveTrigger.DUE): (KeepaliveState.PROBED, KeepaliveAction.PING),
    (KeepaliveState.PROBED, KeepaliveTrigger.RECEIVED): (KeepaliveState.LIVE, KeepaliveAction.NOTHING),
    (KeepaliveState.PROBED, KeepaliveTrigger.DUE): (KeepaliveState.LOST, KeepaliveAction.DROP),
    (KeepaliveState.LIVE, KeepaliveTrigger.LATE): (KeepaliveState.PROBED, KeepaliveAction.PING),
    (KeepaliveState.PROBED, KeepaliveTrigger.LATE): (KeepaliveState.PROBED, KeepaliveAction.PING),
    (KeepaliveState.LOST, KeepaliveTrigger.LATE): (KeepaliveState.LOST, KeepaliveAction.DROP),
    (KeepaliveState.LOST, KeepaliveTrigger.RECEIVED): (KeepaliveState.LOST, KeepaliveAction.NOTHING),
    (KeepaliveState.LOST, KeepaliveTrigger.DUE): (KeepaliveState.LOST, KeepaliveAction.DROP),
}
FROZEN = 10.0  # s after a deadline, from which on the process counts as not running at that time
_LIVE = KeepaliveState.LIVE  # alias, as in `wire.websocket`


class Keepalive:
    """Ping policy of a connection. All times are seconds of the monotonic clock."""

    __slots__ = ("_interval", "_since", "_state", "_timeout", "held")

    def __init__(self, interval: float, patience: float, now: float) -> None:
        self._interval = interval
        self._timeout = patience
        self._since = now  # of the last sign of life, or of the ping
        self._state = KeepaliveState.LIVE
        self.held = False  # reading is paused

    @property
    def state(self) -> KeepaliveState:
        """State of the peer's liveness."""
        return self._state

    @property
    def due(self) -> float:
        """Time of the next action of `advance`."""
        if self.held:
            return self._since + self._timeout / 2
        return self._since + (self._interval if self._state is _LIVE else self._timeout)

    def mark_received(self, now: float) -> bool:
        """Record bytes from the peer; return True if `due` may be earlier now, since no pong is awaited any more."""
        self._since = now
        if self._state is _LIVE:
            return False
        self._step(KeepaliveTrigger.RECEIVED)
        return True

    def set_paused(self, holding: bool, now: float) -> None:
        """Record that reading is paused or resumed. Bytes sent meanwhile are received afterwards."""
        if holding is not self.held:
            self.held = holding
            self.mark_received(now)  # a pending ping is void

    def advance(self, now: float, woken: float = 0.0) -> KeepaliveAction:
        """Return the action that is due at `now`; `woken` is the time at which the process runs, if that is later."""
        if now < self.due:
            return KeepaliveAction.NOTHING
        late = woken - now > FROZEN
        trigger = KeepaliveTrigger.LATE if late else KeepaliveTrigger.DUE
        action = KeepaliveAction.PING if self.held else self._step(trigger)
        self._since = woken if late else now
        return action

    def _step(self, trigger: KeepaliveTrigger) -> KeepaliveAction:
        self._state, action = KEEPALIVE_TABLE[self._state, trigger]
        return action
