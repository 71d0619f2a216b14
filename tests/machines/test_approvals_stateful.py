"""The questions of a run beside a plain list: answered once, by name or when nothing else can be meant, else `deny`."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.basics.errors import Refused
from svc_proto.machines.approvals import DENY, SETTLING, Answer, Approval, Approvals, ApprovalState

OFFERS = (("once", "session", "always", DENY), ("once", DENY))


class ApprovalsAgainstAModel(RuleBasedStateMachine):
    """`open` are the questions that wait, `settled` what became of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.approvals = Approvals()
        self.now = 0.0
        self.count = 0
        self.open: list[Approval] = []
        self.settled: dict[Approval, tuple[ApprovalState, str]] = {}

    @rule(choices=st.sampled_from(OFFERS))
    def ask(self, choices: tuple[str, ...]) -> None:
        self.count += 1
        self.open.append(self.approvals.ask(f"call_{self.count}", choices, now=self.now, within=60.0))

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data(), choice=st.sampled_from(OFFERS[0]), everything=st.booleans())
    def answer(self, data: st.DataObject, choice: str, everything: bool) -> None:
        named = data.draw(st.sampled_from([None, "call_0", *(each.call_id for each in self.open)]))
        if named is not None:
            meant = [each for each in self.open if each.call_id == named]
        elif choice == DENY:
            meant = self.open[:] if everything else self.open[:1]
        elif len(self.open) == 1 and self.now >= self.open[0].asked + SETTLING:  # a yes to all is one to what was shown
            meant = self.open[:]
        else:
            meant = []
        answer = Answer(choice=choice, call_id=named, everything=everything)
        if not meant or any(choice not in approval.choices for approval in meant):
            with pytest.raises(Refused) as refused:
                self.approvals.answer(answer, self.now)
            assert refused.value.status == (400 if meant else 409)
            return
        assert self.approvals.answer(answer, self.now) == meant
        self._settle(meant, ApprovalState.ANSWERED, choice)

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
