"""Asking the user before something that cannot be taken back (spec "Bridge safety gates" 5b, wire bridge 5.5, 5.6).

| state     | trigger     | next       |                                                                     |
|-----------|-------------|------------|---------------------------------------------------------------------|
| NONE      | ASK         | REQUESTED  | a full-screen overlay: the command, the flagged verb, the full text |
| NONE      | CANNOT_SHOW | IMPOSSIBLE | "missing overlay permission counts as denial"                       |
| REQUESTED | ALLOW       | ALLOWED    |                                                                     |
| REQUESTED | DENY        | DENIED     | "a denial is final"                                                 |
| REQUESTED | TIME_OUT    | TIMED_OUT  | counts as denial                                                    |
| REQUESTED | CANNOT_SHOW | IMPOSSIBLE | the permission was taken back while it was open                     |
| REQUESTED | WITHDRAW    | WITHDRAWN  | master off, or the connection lost: there is nothing to allow       |

What the user does not want to be asked about again is kept by verb for the touches and by action for the four routes
that always ask, so trusting "send" on a button does not silence messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import define, field, frozen

from svc_proto.basics.moment import Moment
from svc_proto.machines.transitions import Table, step
from svc_proto.phone.backend import PhoneCommand
from svc_proto.phone.safety.bounds import MAX_TIMEOUT, MIN_TIMEOUT

__all__ = [
    "CONFIRMATION_TABLE",
    "AwaitingConfirmation",
    "SafetyConfirmation",
    "ConfirmationState",
    "ConfirmationTrigger",
    "ConfirmationRequest",
    "TrustedActions",
    "clamp_timeout",
]


class ConfirmationState(Enum):
    """Where an overlay is in its life."""

    NONE = "(none)"
    REQUESTED = "Requested"
    ALLOWED = "Allowed"
    DENIED = "Denied"
    TIMED_OUT = "Timed out"
    IMPOSSIBLE = "Impossible"
    WITHDRAWN = "Withdrawn"


class ConfirmationTrigger(Enum):
    """What happens to it."""

    ASK = "ask"
    CANNOT_SHOW = "cannot show"
    ALLOW = "allow"
    DENY = "deny"
    TIME_OUT = "time out"
    WITHDRAW = "withdraw"


CONFIRMATION_TABLE: Table[ConfirmationState, ConfirmationTrigger] = {
    (ConfirmationState.NONE, ConfirmationTrigger.ASK): ConfirmationState.REQUESTED,
    (ConfirmationState.NONE, ConfirmationTrigger.CANNOT_SHOW): ConfirmationState.IMPOSSIBLE,
    (ConfirmationState.REQUESTED, ConfirmationTrigger.ALLOW): ConfirmationState.ALLOWED,
    (ConfirmationState.REQUESTED, ConfirmationTrigger.DENY): ConfirmationState.DENIED,
    (ConfirmationState.REQUESTED, ConfirmationTrigger.TIME_OUT): ConfirmationState.TIMED_OUT,
    (ConfirmationState.REQUESTED, ConfirmationTrigger.CANNOT_SHOW): ConfirmationState.IMPOSSIBLE,
    (ConfirmationState.REQUESTED, ConfirmationTrigger.WITHDRAW): ConfirmationState.WITHDRAWN,
}


@frozen
class AwaitingConfirmation:
    """A command waits for the user's answer to this confirmation."""

    confirmation_id: str


@frozen(kw_only=True)
class ConfirmationRequest:
    """What the overlay shows. `action` is the route without slash; `verb` is None on the routes that always ask."""

    action: str
    verb: str | None
    text: str  # all of it: the text a verb stands in, or what would leave the phone


@define(kw_only=True)
class SafetyConfirmation:
    """One overlay. `deadline` in monotonic seconds."""

    confirmation_id: str
    command: PhoneCommand
    question: ConfirmationRequest
    context: tuple[str, ...]  # what was on the screen when the user was asked: an Allow is good for that alone
    deadline: float
    state: ConfirmationState = field(default=ConfirmationState.NONE, init=False)

    def step(self, trigger: ConfirmationTrigger) -> None:
        """Follow the table."""
        self.state = step(CONFIRMATION_TABLE, self.state, trigger)

    def due(self, now: Moment) -> bool:
        """Whether it has waited too long."""
        return now.mono >= self.deadline


class TrustedActions:
    """What the user ticked "do not ask again" for. `verbs` and `actions` restore what a store has kept."""

    def __init__(self, *, verbs: Iterable[str] = (), actions: Iterable[str] = ()) -> None:
        self._verbs = dict.fromkeys(verbs)
        self._actions = dict.fromkeys(actions)

    @property
    def verbs(self) -> tuple[str, ...]:
        """Trusted verbs, oldest first."""
        return tuple(self._verbs)

    @property
    def actions(self) -> tuple[str, ...]:
        """Trusted actions (`call`, `send_sms`, `send_mms`, `share_media`), oldest first."""
        return tuple(self._actions)

    def covers(self, question: ConfirmationRequest) -> bool:
        """Whether the overlay can be skipped."""
        return question.action in self._actions if question.verb is None else question.verb in self._verbs

    def remember(self, question: ConfirmationRequest) -> None:
        """Not to ask again about the verb, or the action where there is none. To be called on an Allow only."""
        if question.verb is None:
            self._actions[question.action] = None
        else:
            self._verbs[question.verb] = None

    def reset(self) -> None:
        """Ask about everything again."""
        self._verbs.clear()
        self._actions.clear()


def clamp_timeout(seconds: float) -> float:
    """The nearest time-out the user may set, in seconds."""
    return max(MIN_TIMEOUT, min(MAX_TIMEOUT, seconds))
