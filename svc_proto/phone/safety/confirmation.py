"""Confirmation by the user before an irreversible action (spec "Bridge safety gates" 5b, wire bridge 5.5, 5.6).

| state     | trigger       | next       |                                                                     |
|-----------|---------------|------------|---------------------------------------------------------------------|
| NONE      | `ASK`         | REQUESTED  | a full-screen overlay: the command, the flagged verb, the full text |
| NONE      | `CANNOT_SHOW` | IMPOSSIBLE | "missing overlay permission counts as denial"                       |
| REQUESTED | `ALLOW`       | ALLOWED    |                                                                     |
| REQUESTED | `DENY`        | DENIED     | "a denial is final"                                                 |
| REQUESTED | `TIME_OUT`    | TIMED_OUT  | counts as denial                                                    |
| REQUESTED | `CANNOT_SHOW` | IMPOSSIBLE | the permission was withdrawn while the overlay was open             |
| REQUESTED | `WITHDRAW`    | WITHDRAWN  | master off, connection lost, or caller gone: no Allow has an effect |

Trust is kept by verb for the touches and by action for the four always-confirmed routes, so that trusting "send" on a
button does not silence messages.
"""

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
    """State of a confirmation."""

    NONE = "(none)"
    REQUESTED = "Requested"
    ALLOWED = "Allowed"
    DENIED = "Denied"
    TIMED_OUT = "Timed out"
    IMPOSSIBLE = "Impossible"
    WITHDRAWN = "Withdrawn"


class ConfirmationTrigger(Enum):
    """Trigger of a transition of `CONFIRMATION_TABLE`."""

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
    """Result of a command that waits for the user's answer to this confirmation."""

    confirmation_id: str


@frozen(kw_only=True)
class ConfirmationRequest:
    """Content of an overlay; `action` is the route without slash, `verb` is None on the always-confirmed routes."""

    action: str
    verb: str | None
    text: str  # in full: the text that contains the verb, or the data that would leave the phone


@define(kw_only=True)
class SafetyConfirmation:
    """State of one overlay; `deadline` in monotonic seconds."""

    confirmation_id: str
    command: PhoneCommand
    question: ConfirmationRequest
    context: tuple[str, ...]  # the screen's content at the request: an Allow is valid for that alone
    deadline: float
    state: ConfirmationState = field(default=ConfirmationState.NONE, init=False)

    def step(self, trigger: ConfirmationTrigger) -> None:
        """Change the state by `CONFIRMATION_TABLE`; raise `LocalProtocolError` if it has no row for the trigger."""
        self.state = step(CONFIRMATION_TABLE, self.state, trigger)

    def due(self, now: Moment) -> bool:
        """Report whether the deadline has passed."""
        return now.mono >= self.deadline


class TrustedActions:
    """Verbs and actions that need no more confirmation; `verbs` and `actions` restore stored ones."""

    def __init__(self, *, verbs: Iterable[str] = (), actions: Iterable[str] = ()) -> None:
        self._verbs = dict.fromkeys(verbs)
        self._actions = dict.fromkeys(actions)

    @property
    def verbs(self) -> tuple[str, ...]:
        """The trusted verbs, oldest first."""
        return tuple(self._verbs)

    @property
    def actions(self) -> tuple[str, ...]:
        """The trusted actions (`call`, `send_sms`, `send_mms`, `share_media`), oldest first."""
        return tuple(self._actions)

    def covers(self, question: ConfirmationRequest) -> bool:
        """Report whether the verb is trusted, or the action if there is no verb, so that no overlay is needed."""
        return question.action in self._actions if question.verb is None else question.verb in self._verbs

    def remember(self, question: ConfirmationRequest) -> None:
        """Trust the verb, or the action if there is no verb; to be called after an Allow only."""
        if question.verb is None:
            self._actions[question.action] = None
        else:
            self._verbs[question.verb] = None

    def reset(self) -> None:
        """Remove all trust."""
        self._verbs.clear()
        self._actions.clear()


def clamp_timeout(seconds: float) -> float:
    """Return the nearest time-out that the user may set, in seconds."""
    return max(MIN_TIMEOUT, min(MAX_TIMEOUT, seconds))
