"""Questions to a person that a run waits for: asked, answered once, denied when nobody answers (wire api 6.5).

| state   | trigger | next      |
|---------|---------|-----------|
| pending | ANSWER  | answered  |
| pending | TIMEOUT | lapsed    | counts as `deny`
| pending | STOP    | withdrawn | counts as `deny`
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import define, field

from svc_proto.basics.errors import Refused
from svc_proto.machines.table import Table, step

__all__ = ["APPROVAL_TABLE", "DENY", "Approval", "ApprovalState", "ApprovalTrigger", "Approvals", "parse_approval"]

DENY = "deny"
CHOICES = ("once", "session", "always", DENY)
SYNONYMS = {"approve": "once", "approved": "once", "allow": "once"}


class ApprovalState(Enum):
    """What became of a question."""

    PENDING = "pending"
    ANSWERED = "answered"
    LAPSED = "lapsed"
    WITHDRAWN = "withdrawn"


class ApprovalTrigger(Enum):
    """What moves it."""

    ANSWER = "answer"
    TIMEOUT = "timeout"
    STOP = "stop"


APPROVAL_TABLE: Table[ApprovalState, ApprovalTrigger] = {
    (ApprovalState.PENDING, ApprovalTrigger.ANSWER): ApprovalState.ANSWERED,
    (ApprovalState.PENDING, ApprovalTrigger.TIMEOUT): ApprovalState.LAPSED,
    (ApprovalState.PENDING, ApprovalTrigger.STOP): ApprovalState.WITHDRAWN,
}


@define(eq=False)
class Approval:
    """One question: what may be answered, and until when (monotonic seconds)."""

    choices: tuple[str, ...]
    deadline: float
    state: ApprovalState = field(default=ApprovalState.PENDING, init=False)
    choice: str = field(default=DENY, init=False)  # the answer, as it stands

    def step(self, trigger: ApprovalTrigger) -> None:
        """Move along the table."""
        self.state = step(APPROVAL_TABLE, self.state, trigger)


class Approvals:
    """The open questions of one run, oldest first."""

    def __init__(self) -> None:
        self._pending: list[Approval] = []

    def __len__(self) -> int:
        return len(self._pending)

    def ask(self, choices: tuple[str, ...], deadline: float) -> Approval:
        """A question is open from now on."""
        approval = Approval(choices, deadline)
        self._pending.append(approval)
        return approval

    def answer(self, choice: str, *, everything: bool = False) -> list[Approval]:
        """Answer the oldest question, or all; those that were answered.

        `Refused` 409 `approval_not_pending` when none is open, 400 `invalid_approval_choice` for a choice that was
        not offered; then nothing has changed.
        """
        meant = self._pending if everything else self._pending[:1]
        if not meant:
            raise Refused(409, "approval_not_pending", "no approval is pending")
        if not all(choice in approval.choices for approval in meant):
            raise Refused(400, "invalid_approval_choice", "this choice is not offered", extra={"field": "choice"})
        answered = list(meant)
        for approval in answered:
            approval.choice = choice
            self._settle(approval, ApprovalTrigger.ANSWER)
        return answered

    def lapse(self, approval: Approval) -> None:
        """Nobody answered in time."""
        self._settle(approval, ApprovalTrigger.TIMEOUT)

    def withdraw(self, approval: Approval) -> None:
        """The run does not wait any more; harmless for a question that is settled."""
        if approval.state is ApprovalState.PENDING:
            self._settle(approval, ApprovalTrigger.STOP)

    def _settle(self, approval: Approval, trigger: ApprovalTrigger) -> None:
        approval.step(trigger)
        self._pending.remove(approval)


def parse_approval(body: Mapping[str, object]) -> tuple[str, bool]:
    """The choice, and whether it is for all open questions. `Refused` 400 `invalid_approval_choice`."""
    choice = body.get("choice")
    word = choice.strip().lower() if isinstance(choice, str) else ""
    word = SYNONYMS.get(word, word)
    if word not in CHOICES:
        message = f"choice must be one of {', '.join(CHOICES)}"
        raise Refused(400, "invalid_approval_choice", message, extra={"field": "choice"})
    return word, body.get("all") is True or body.get("resolve_all") is True
