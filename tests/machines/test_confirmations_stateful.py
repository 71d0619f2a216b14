"""The questions of a run beside a plain list: one is shown at a time, the oldest, and it is answered once."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.machines.confirmations import MAX_OPEN, Confirmations, Question

NAMES = st.integers(0, 3).map(lambda number: f"q{number}")


class ConfirmationsAgainstAModel(RuleBasedStateMachine):
    """`open` are the questions, oldest first, `shown` what the person sees, `answered` whether that has an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Confirmations()
        self.open: list[Question] = []
        self.shown: Question | None = None
        self.answered = False

    @rule(name=NAMES)
    def ask(self, name: str) -> None:
        question = Question(name, f"May I do {name}?")
        taken = name not in [each.id for each in self.open] and len(self.open) < MAX_OPEN
        if self.asked.ask(question):
            assert taken
            self.shown = question
        if taken:
            self.open.append(question)

    @rule(beside=st.integers(-1, 1))
    def ask_a_crowd(self, beside: int) -> None:
        for number in range(MAX_OPEN + beside):
            self.ask(f"q{number}")

    @rule(name=NAMES)
    def settle(self, name: str) -> None:
        if self.asked.settle(name):
            self.shown, self.answered = self.asked.head, False
        self.open = [question for question in self.open if question.id != name]

    @rule(left=st.integers(0, 3))
    def settle_from_the_oldest(self, left: int) -> None:
        while len(self.open) > left:
            self.settle(self.open[0].id)
            self.the_oldest_is_shown()

    @rule(name=st.one_of(st.none(), st.just(""), NAMES))
    def take(self, name: str | None) -> None:
        taken = self.asked.take(name)
        meant = bool(self.open) and not self.answered and (not name or name == self.open[0].id)
        assert taken == (self.open[0] if meant else None)
        self.answered = self.answered or meant

    @invariant()
    def the_oldest_is_shown(self) -> None:
        # Wire api 6.5: the approval call "resolves the oldest pending request", whichever the person has seen.
        oldest = self.open[0] if self.open else None
        assert self.asked.head == oldest
        assert self.shown == oldest
        assert len(self.open) <= MAX_OPEN


TestConfirmationsAgainstAModel = ConfirmationsAgainstAModel.TestCase
TestConfirmationsAgainstAModel.settings = settings(max_examples=30, stateful_step_count=25)
