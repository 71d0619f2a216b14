"""Master toggle and its idle timer (spec "Bridge (Device Control, sideload build)").

| state | trigger                 | next  |                                                               |
|-------|-------------------------|-------|---------------------------------------------------------------|
| OFF   | TURN_ON                 | ARMED | the accessibility grant is there; foreground notification     |
| OFF   | TURN_ON_INACCESSIBLE    | OFF   | "does not arm the bridge"; a hint to the system settings      |
| OFF   | COMMAND                 | OFF   | refused with 403, but for the routes that bypass the master   |
| ARMED | COMMAND                 | ARMED | "idle timer resets"                                           |
| ARMED | IDLE                    | OFF   | "idle time reaches the configured auto-disable interval"      |
| ARMED | TURN_OFF                | OFF   | "foreground notification removed"                             |
| ARMED | PROCESS_DEATH           | OFF   | "state is not persisted": a new `MasterToggle` is off         |
"""

from enum import Enum

from svc_proto.basics.moment import Moment
from svc_proto.machines.transitions import Table, step
from svc_proto.phone.safety.bounds import DEFAULT_IDLE_MINUTES, MAX_IDLE_MINUTES, MIN_IDLE_MINUTES

__all__ = [
    "MASTER_TABLE",
    "MasterToggle",
    "MasterState",
    "MasterTrigger",
]


class MasterState(Enum):
    """State of the toggle: whether the agent may act on the phone."""

    OFF = "Off"
    ARMED = "Armed"


class MasterTrigger(Enum):
    """Trigger of a transition of `MASTER_TABLE`."""

    TURN_ON = "turn on"
    TURN_ON_INACCESSIBLE = "turn on without accessibility"
    COMMAND = "any command"
    IDLE = "idle"
    TURN_OFF = "turn off"
    PROCESS_DEATH = "process death"


MASTER_TABLE: Table[MasterState, MasterTrigger] = {
    (MasterState.OFF, MasterTrigger.TURN_ON): MasterState.ARMED,
    (MasterState.OFF, MasterTrigger.TURN_ON_INACCESSIBLE): MasterState.OFF,
    (MasterState.OFF, MasterTrigger.COMMAND): MasterState.OFF,
    (MasterState.ARMED, MasterTrigger.COMMAND): MasterState.ARMED,
    (MasterState.ARMED, MasterTrigger.IDLE): MasterState.OFF,
    (MasterState.ARMED, MasterTrigger.TURN_OFF): MasterState.OFF,
    (MasterState.ARMED, MasterTrigger.PROCESS_DEATH): MasterState.OFF,
}


class MasterToggle:
    """Toggle that starts off; intervals in minutes, clamped to 5..120; time on the monotonic clock."""

    def __init__(self, *, idle_minutes: int = DEFAULT_IDLE_MINUTES) -> None:
        self._state = MasterState.OFF
        self._active_at = 0.0  # the time of arming or of the last command since
        self.idle_minutes = max(MIN_IDLE_MINUTES, min(MAX_IDLE_MINUTES, idle_minutes))
        self._turned_off_by: MasterTrigger | None = None

    @property
    def state(self) -> MasterState:
        """The state of the toggle."""
        return self._state

    @property
    def is_armed(self) -> bool:
        """Report whether the toggle is on."""
        return self._state is MasterState.ARMED

    @property
    def turned_off_by(self) -> MasterTrigger | None:
        """The reason why the toggle is off; None while it is on, or if it was never on."""
        return None if self.is_armed else self._turned_off_by

    def turn_on(self, now: Moment, *, accessible: bool) -> bool:
        """Turn on at the user's request; return whether the toggle is on.

        It stays off if it was off and `accessible` is false. When it goes on, the idle timer starts.
        """
        if self.is_armed:
            return True
        self._step(MasterTrigger.TURN_ON if accessible else MasterTrigger.TURN_ON_INACCESSIBLE)
        self._active_at = now.mono
        return self.is_armed

    def turn_off(self) -> bool:
        """Turn off at the user's request; return whether the toggle was on."""
        return self._turn_off(MasterTrigger.TURN_OFF)

    def process_death(self) -> bool:
        """Turn off at the end of the process; return whether the toggle was on."""
        return self._turn_off(MasterTrigger.PROCESS_DEATH)

    def command(self, now: Moment) -> None:
        """Record a command of the agent, which restarts the idle timer while the toggle is on."""
        self._step(MasterTrigger.COMMAND)
        self._active_at = now.mono

    def advance(self, now: Moment) -> bool:
        """Turn off when the interval has passed without a command; return whether that happened."""
        due = self.next_deadline()
        if due is None or now.mono < due:
            return False
        return self._turn_off(MasterTrigger.IDLE)

    def next_deadline(self) -> float | None:
        """Return when (monotonic seconds) the idle timer expires; None while the toggle is off."""
        return self._active_at + self.idle_minutes * 60.0 if self.is_armed else None

    def auto_disable_at_ms(self, now: Moment) -> int | None:
        """Return when the idle timer expires, in epoch ms for `bridge.status`; None while the toggle is off."""
        due = self.next_deadline()
        return None if due is None else int(now.at(due).wall * 1000)

    def _turn_off(self, trigger: MasterTrigger) -> bool:
        if not self.is_armed:
            return False
        self._step(trigger)
        self._turned_off_by = trigger
        return True

    def _step(self, trigger: MasterTrigger) -> None:
        self._state = step(MASTER_TABLE, self._state, trigger)
