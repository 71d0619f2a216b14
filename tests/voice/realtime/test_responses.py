"""A provider's responses beside plain lists: one is asked for when the provider is free, and only that one counts."""

from __future__ import annotations

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.voice.realtime.orders import Order, ReadAloud, Respond
from svc_proto.voice.realtime.responses import (
    FREE_WITHIN,
    MAX_DEAD,
    MAX_OPEN,
    MAX_ORPHANS,
    ORPHANED_FOR,
    ProviderResponses,
    ResponseState,
    Start,
)

NAMES = st.integers(1, 5).map(lambda number: f"r{number}")
A_MOMENT = 0.125  # s; times are sums of eighths, which floats hold exactly


class ResponsesAgainstAModel(RuleBasedStateMachine):
    """`waiting` is an order that was not given yet, `given` one whose response has not started.

    `open` are the responses that the provider is at, `dead` those that do not count, oldest first; `orphans` when each
    response that was given up before it started counts as dropped by the provider.
    """

    def __init__(self) -> None:
        super().__init__()
        self.responses = ProviderResponses()
        self.serial = count(1)
        self.now = 0.0
        self.waiting: Order | None = None
        self.since = 0.0
        self.given = False
        self.current: str | None = None
        self.open: list[str] = []
        self.dead: list[str] = []
        self.orphans: list[float] = []

    # --- by us ---

    @precondition(lambda self: self.waiting is None and not self.given)
    @rule()
    def ask(self) -> None:
        order = ReadAloud(f"answer {next(self.serial)}")
        self.current = None
        self.waiting, self.since = order, self.now
        self._ordered(self.responses.ask(order, self.now))

    @rule()
    def give_up(self) -> None:
        self.responses.give_up(self.now)
        if self.current is not None:
            self._bury(self.current)
        if self.given:
            self.orphans = [*self.orphans, self.now + ORPHANED_FOR][-MAX_ORPHANS:]
        self.waiting, self.given = None, False

    @rule(times=st.integers(1, 3), eighths=st.sampled_from((1, 20, 39, 40)))
    def ask_and_give_up(self, times: int, eighths: int) -> None:
        self.give_up()
        for _ in range(times):
            self.wait(eighths)
            self.ask()
            self.give_up()

    @rule(name=NAMES)
    def bury(self, name: str) -> None:
        self.responses.bury(name)
        self._bury(name)

    # --- by the provider ---

    @rule(name=NAMES)
    def starts(self, name: str) -> None:
        if name == self.current:
            expected = Start.KNOWN
        elif name in self.dead:
            expected = Start.IGNORED
        else:
            if name not in self.open:
                self.open = [*self.open, name][-MAX_OPEN:]
            self.orphans = [until for until in self.orphans if self.now < until]
            if self.orphans:
                self.orphans.pop(0)
                expected = Start.STRAY
            else:
                expected = Start.OURS if self.given else Start.STRAY
            if expected is Start.OURS:
                self.current, self.given = name, False
            else:
                self._bury(name)
        assert self.responses.start(name, self.now) is expected

    @rule(number=st.sampled_from((MAX_OPEN, MAX_DEAD - 8, MAX_DEAD)))
    def a_crowd_starts(self, number: int) -> None:
        for _ in range(number):
            self.starts(f"stray {next(self.serial)}")

    @rule(name=NAMES)
    def is_over(self, name: str) -> None:
        self.open = [each for each in self.open if each != name]
        self._ordered(self.responses.over(name))

    @precondition(lambda self: self.open)
    @rule()
    def all_is_over(self) -> None:
        for name in list(self.open):
            self.is_over(name)

    # --- time ---

    @rule(eighths=st.integers(0, 50))
    def wait(self, eighths: int) -> None:
        self._until(self.now + eighths * A_MOMENT)

    @precondition(lambda self: self.waiting is not None or self.orphans)
    @rule(data=st.data(), before=st.sampled_from((0.0, A_MOMENT)))
    def wait_for_a_deadline(self, data: st.DataObject, before: float) -> None:
        due = [self.since + FREE_WITHIN] if self.waiting is not None else []
        self._until(max(self.now, data.draw(st.sampled_from([*due, *self.orphans])) - before))

    def _until(self, moment: float) -> None:
        """Whoever owns it calls `assume_free` at `due`."""
        if self.waiting is not None and moment >= self.since + FREE_WITHIN:
            self.now = max(self.now, self.since + FREE_WITHIN)
            self.open = []
            self._ordered(self.responses.assume_free())
            assert self.given
        self.now = moment

    # --- what must hold ---

    @invariant()
    def only_what_was_asked_for_counts(self) -> None:
        # Wire terminal-voice 6.6: "relay sends ONE response.create".
        assert self.responses.current == self.current
        held = ResponseState.HELD if self.waiting is not None else ResponseState.NONE
        heard = ResponseState.HEARD if self.current is not None else held
        assert self.responses.state is (ResponseState.ASKED if self.given else heard)
        assert self.responses.talking is (self.given or bool(self.open))

    @invariant()
    def an_order_waits_while_the_provider_is_at_another(self) -> None:
        assert self.waiting is None or self.open
        assert self.responses.due == (None if self.waiting is None else self.since + FREE_WITHIN)

    def _ordered(self, orders: list[Order]) -> None:
        """An order is given when the provider is free, and once."""
        due = [self.waiting] if self.waiting is not None and not self.open else []
        assert orders == due
        if due:
            self.waiting, self.given = None, True

    def _bury(self, name: str) -> None:
        if name not in self.dead:
            self.dead = [*self.dead, name][-MAX_DEAD:]
        if self.current == name:
            self.current = None


TestResponsesAgainstAModel = ResponsesAgainstAModel.TestCase
TestResponsesAgainstAModel.settings = settings(max_examples=25, stateful_step_count=40)


def test_what_was_given_up_before_it_started() -> None:
    """Each such orphan is waited for by itself: the next to start is taken for it, as long as it may come."""
    responses = ProviderResponses()
    for now in (0.0, ORPHANED_FOR):  # the provider drops the first
        assert responses.ask(Respond(), now) == [Respond()]
        responses.give_up(now)
        assert not responses.talking
    responses.ask(Respond(), ORPHANED_FOR)
    assert responses.start("orphan", ORPHANED_FOR) is Start.STRAY
    assert responses.start("ours", ORPHANED_FOR) is Start.OURS
    assert responses.start("ours", ORPHANED_FOR) is Start.KNOWN
    responses.give_up(ORPHANED_FOR)
    assert (responses.start("ours", ORPHANED_FOR), responses.current) == (Start.IGNORED, None)
    responses.ask(Respond(), ORPHANED_FOR)  # waits: `ours` is not over
    responses.give_up(ORPHANED_FOR)  # so nobody was asked, and there is no orphan
    responses.over("ours")
    responses.over("orphan")
    responses.ask(Respond(), ORPHANED_FOR)
    assert responses.start("next", ORPHANED_FOR) is Start.OURS


def test_as_many_as_are_under_way() -> None:
    responses = ProviderResponses()
    for number in range(MAX_OPEN):
        responses.start(f"open {number}", 0.0)
    for number in range(1, MAX_OPEN):
        responses.over(f"open {number}")
    assert responses.ask(Respond(), 0.0) == []  # the first is not over
