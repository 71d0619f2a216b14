"""Questions to a person that a run waits for: asked, answered once, denied when nobody answers (wire api 6.5).

An answer is for one call, and names it by `call_id`. One that does not, as clients in use do not, allows something only
if nothing else can have been meant: one question is open, and it was there before anybody could have answered another.
"All" names none: whoever says it cannot tell which those were. A denial needs no name, since it does no harm: it is for
the oldest question, or for all.

| state   | trigger | next      |
|---------|---------|-----------|
| pending | ANSWER  | answered  |
| pending | TIMEOUT | lapsed    | counts as `deny`
| pending | STOP    | withdrawn | counts as `deny`
"""

from __future__ import annotations

from enum import Enum

from attrs import define, field, frozen

from svc_proto.basics.errors import Refused
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import JsonObject

__all__ = [
    "APPROVAL_TABLE",
    "DENY",
    "DOUBLE_ANSWER_WINDOW",
    "ApprovalAnswer",
    "Approval",
    "ApprovalState",
    "ApprovalTrigger",
    "PendingApprovals",
    "parse_approval",
]

DENY = "deny"
DOUBLE_ANSWER_WINDOW = (
    2.0  # s after a question in which an answer without a name may have been meant for the one before it
)
CHOICES = ("once", "session", "always", DENY)
SYNONYMS = {"approve": "once", "approved": "once", "allow": "once"}


class ApprovalState(Enum):
    """What became of a question of a run."""

    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "lapsed"
    WITHDRAWN = "withdrawn"


class ApprovalTrigger(Enum):
    """What moves it."""

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
    """A question of a run: for which call, what may be answered, since when and until when (monotonic seconds)."""

    call_id: str
    choices: tuple[str, ...]
    asked: float
    deadline: float
    state: ApprovalState = field(default=ApprovalState.PENDING, init=False)
    choice: str = field(default=DENY, init=False)  # the answer, as it stands

    def step(self, trigger: ApprovalTrigger) -> None:
        """Move along the table."""
        self.state = step(APPROVAL_TABLE, self.state, trigger)


@frozen(kw_only=True)
class ApprovalAnswer:
    """What somebody said, for which call; None: it does not say. `everything`: all open questions are denied."""

    choice: str
    call_id: str | None = None
    everything: bool = False


class PendingApprovals:
    """The open questions of one run, oldest first."""

    def __init__(self) -> None:
        self._pending: list[Approval] = []

    def __len__(self) -> int:
        return len(self._pending)

    def request(self, call_id: str, choices: tuple[str, ...], *, now: float, within: float) -> Approval:
        """A question is open from now on."""
        approval = Approval(call_id, choices, now, now + within)
        self._pending.append(approval)
        return approval

    def answer(self, answer: ApprovalAnswer, now: float) -> list[Approval]:
        """Take an answer; the questions that it settled.

        `Refused` 409 `approval_not_pending` when the question that is meant is not open, or cannot be told, and 400
        `invalid_approval_choice` for a choice that was not offered; then nothing has changed.
        """
        meant = self._meant(answer, now)
        if not all(answer.choice in approval.choices for approval in meant):
            raise _invalid("this choice is not offered", "choice")
        for approval in meant:
            approval.choice = answer.choice
            self._resolve(approval, ApprovalTrigger.ANSWER)
        return meant

    def expire(self, approval: Approval) -> None:
        """Nobody answered in time."""
        self._resolve(approval, ApprovalTrigger.TIMEOUT)

    def withdraw(self, approval: Approval) -> None:
        """The run does not wait any more; harmless for a question that is settled."""
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
    """The body of an answer. `Refused` 400 `invalid_approval_choice`."""
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
