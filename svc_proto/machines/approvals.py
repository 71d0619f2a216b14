"""Approvals of tool calls that a run waits for: requested, answered once, denied after a timeout (wire api 6.5).

An answer is for one call, which it names by `call_id`. Clients in use send none. Then it allows a call only if exactly
one approval is open, and has been for `DOUBLE_ANSWER_WINDOW`; "all" does not change that. A denial needs no name, since
it does no harm: it is for the oldest approval, or for all.

| state   | trigger | next      |
|---------|---------|-----------|
| pending | ANSWER  | answered  |
| pending | TIMEOUT | expired   | counts as `deny`
| pending | STOP    | withdrawn | counts as `deny`
"""

from enum import Enum

from attrs import define, field, frozen

from svc_proto.basics.errors import Refused
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import JsonObject

__all__ = [
    "APPROVAL_TABLE",
    "DENY",
    "DOUBLE_ANSWER_WINDOW",
    "LASTING",
    "LASTING_TEXT",
    "ApprovalAnswer",
    "Approval",
    "ApprovalState",
    "ApprovalTrigger",
    "PendingApprovals",
    "parse_approval",
]

DENY = "deny"
LASTING = ("session", "always")  # answers that outlive one call
LASTING_TEXT = "an approval for more than one call needs the right manage, which this pairing withholds: answer once"
# An answer without a name within 2 s of a new approval may have been meant for the one before.
DOUBLE_ANSWER_WINDOW = 2.0  # s
CHOICES = ("once", "session", "always", DENY)
SYNONYMS = {"approve": "once", "approved": "once", "allow": "once"}


class ApprovalState(Enum):
    """State of an approval."""

    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class ApprovalTrigger(Enum):
    """Event that can change the state of an approval."""

    ANSWER = "answer"
    TIMEOUT = "timeout"
    STOP = "stop"


APPROVAL_TABLE: Table[ApprovalState, ApprovalTrigger] = {
    (ApprovalState.PENDING, ApprovalTrigger.ANSWER): ApprovalState.ANSWERED,
    (ApprovalState.PENDING, ApprovalTrigger.TIMEOUT): ApprovalState.EXPIRED,
    (ApprovalState.PENDING, ApprovalTrigger.STOP): ApprovalState.WITHDRAWN,
}


@define(eq=False)
class Approval:
    """An approval that was requested: call, choices, start and deadline in monotonic seconds, state and answer."""

    call_id: str
    choices: tuple[str, ...]
    asked: float
    deadline: float
    state: ApprovalState = field(default=ApprovalState.PENDING, init=False)
    choice: str = field(default=DENY, init=False)  # the present answer
    text: str = field(default="", init=False)  # the answer to a question in the owner's words

    def step(self, trigger: ApprovalTrigger) -> None:
        """Change the state by `APPROVAL_TABLE`."""
        self.state = step(APPROVAL_TABLE, self.state, trigger)


@frozen(kw_only=True)
class ApprovalAnswer:
    """Answer of a user; `call_id` is None if it names no call; with `everything` a denial is for all.

    `text` answers a question of the agent in words; its `choice` is then `once`.
    """

    choice: str
    call_id: str | None = None
    everything: bool = False
    text: str = ""


class PendingApprovals:
    """Open approvals of one run, oldest first."""

    def __init__(self) -> None:
        self._pending: list[Approval] = []

    def __len__(self) -> int:
        return len(self._pending)

    def request(self, call_id: str, choices: tuple[str, ...], *, now: float, within: float) -> Approval:
        """Add an open approval for a call, with its choices and its deadline."""
        approval = Approval(call_id, choices, now, now + within)
        self._pending.append(approval)
        return approval

    def answer(self, answer: ApprovalAnswer, now: float) -> list[Approval]:
        """Apply an answer and return the approvals that it settles.

        Raise `Refused` 409 `approval_not_pending` if no such approval is open, or if it is not certain which one is
        meant, and 400 `invalid_approval_choice` for a choice that was not offered. Then nothing has changed.
        """
        meant = self._meant(answer, now)
        if not all(answer.choice in approval.choices for approval in meant):
            raise _invalid("this choice is not offered", "choice")
        for approval in meant:
            approval.choice, approval.text = answer.choice, answer.text
            self._resolve(approval, ApprovalTrigger.ANSWER)
        return meant

    def expire(self, approval: Approval) -> None:
        """Mark an open approval as expired, which counts as denied."""
        self._resolve(approval, ApprovalTrigger.TIMEOUT)

    def withdraw(self, approval: Approval) -> None:
        """Withdraw an approval, since the run has stopped waiting; do nothing if it is settled."""
        if approval.state is ApprovalState.PENDING:
            self._resolve(approval, ApprovalTrigger.STOP)

    def _meant(self, answer: ApprovalAnswer, now: float) -> list[Approval]:
        pending = self._pending
        if answer.call_id is not None:
            named = [approval for approval in pending if approval.call_id == answer.call_id]
            if not named:
                raise _not_pending("no approval is pending for this call")
            return named
        if not pending:
            raise _not_pending("no approval is pending")
        if answer.choice != DENY:
            if now < pending[-1].asked + DOUBLE_ANSWER_WINDOW:
                raise _not_pending("the question is new, and the answer does not say that it is meant: send call_id")
            if len(pending) > 1:
                raise _not_pending("several approvals are pending: send the call_id of one")
        return pending[:] if answer.everything else pending[:1]

    def _resolve(self, approval: Approval, trigger: ApprovalTrigger) -> None:
        approval.step(trigger)
        self._pending.remove(approval)


def parse_approval(body: JsonObject) -> ApprovalAnswer:
    """Parse the body of an answer.

    Raise `Refused` 400 `invalid_approval_choice` for an unknown choice, or a `call_id` that is no string.
    """
    word = body.first_text("choice").lower()
    word = SYNONYMS.get(word, word)
    if word not in CHOICES:
        raise _invalid(f"choice must be one of {', '.join(CHOICES)}", "choice")
    call_id = body.string("call_id")
    if call_id != body.get("call_id"):
        raise _invalid("call_id must be a string", "call_id")
    everything = body.get("all") is True or body.get("resolve_all") is True
    return ApprovalAnswer(choice=word, call_id=call_id, everything=everything)


def _invalid(message: str, name: str) -> Refused:
    return Refused(400, "invalid_approval_choice", message, extra={"field": name})


def _not_pending(message: str) -> Refused:
    return Refused(409, "approval_not_pending", message)
