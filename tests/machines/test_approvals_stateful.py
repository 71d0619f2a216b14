"""The questions of a run beside a plain list: answered once, oldest first, `deny` unless somebody said otherwise."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.basics.errors import Refused
from svc_proto.machines.approvals import DENY, Approval, Approvals, ApprovalState

OFFERS = (("once", "session", "always", DENY), ("once", DENY))


class ApprovalsAgainstAModel(RuleBasedStateMachine):
    """`open` are the questions that wait, `settled` what became of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.approvals = Approvals()
        self.open: list[Approval] = []
        self.settled: dict[Approval, tuple[ApprovalState, str]] = {}

    @rule(choices=st.sampled_from(OFFERS))
    def ask(self, choices: tuple[str, ...]) -> None:
        self.open.append(self.approvals.ask(choices, 60.0))

    @rule(choice=st.sampled_from(OFFERS[0]), everything=st.booleans())
    def answer(self, choice: str, everything: bool) -> None:
        meant = self.open if everything else self.open[:1]
        if not meant or any(choice not in approval.choices for approval in meant):
            with pytest.raises(Refused) as refused:
                self.approvals.answer(choice, everything=everything)
            assert refused.value.status == (400 if meant else 409)
            return
        assert self.approvals.answer(choice, everything=everything) == meant
        self._settle(list(meant), ApprovalState.ANSWERED, choice)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def lapse(self, data: st.DataObject) -> None:
        approval = data.draw(st.sampled_from(self.open))
        self.approvals.lapse(approval)
        self._settle([approval], ApprovalState.LAPSED, DENY)

    @precondition(lambda self: self.open or self.settled)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        approval = data.draw(st.sampled_from([*self.open, *self.settled]))
        self.approvals.withdraw(approval)
        if approval in self.open:
            self._settle([approval], ApprovalState.WITHDRAWN, DENY)

    @invariant()
    def what_is_settled_stays_so(self) -> None:
        assert len(self.approvals) == len(self.open)
        assert all((approval.state, approval.choice) == end for approval, end in self.settled.items())
        assert all(approval.state is ApprovalState.PENDING and approval.choice == DENY for approval in self.open)

    def _settle(self, approvals: list[Approval], state: ApprovalState, choice: str) -> None:
        for approval in approvals:
            self.open.remove(approval)
            self.settled[approval] = (state, choice)


TestApprovalsAgainstAModel = ApprovalsAgainstAModel.TestCase
TestApprovalsAgainstAModel.settings = settings(max_examples=30, stateful_step_count=25)
