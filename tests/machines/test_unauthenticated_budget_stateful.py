"""Random connections: the sums are right, the budget is not exceeded for long, and no connection waits for nothing."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.machines.unauthenticated_budget import READ_SIZE, BudgetedConnection, BudgetState, UnauthenticatedBudget

BUDGET, SHARE, MOST = 10 * READ_SIZE, 4 * READ_SIZE, 4
HOSTS = (None, "127.0.0.1", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "a name")
KEYS = {"127.0.0.1": None, "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::2": "2001:db8::1"}
SIZES = st.sampled_from([0, 1, READ_SIZE - 1, READ_SIZE, READ_SIZE + 1, 2 * READ_SIZE, 4 * READ_SIZE])


class Caller(BudgetedConnection):
    """Connection that must be present and reading when it is resumed."""

    def __init__(self, guests: dict[BudgetedConnection, str | None]) -> None:
        super().__init__()
        self.guests = guests

    def resume(self) -> None:
        assert self.state is BudgetState.READING
        assert self in self.guests


class Crowd(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.strangers = UnauthenticatedBudget(budget=BUDGET, share=SHARE, most=MOST)
        self.guests: dict[BudgetedConnection, str | None] = {}

    def _pick(self, number: int) -> BudgetedConnection:
        return list(self.guests)[number % len(self.guests)]

    def _there(self, host: str | None) -> list[BudgetedConnection]:
        return [guest for guest, from_where in self.guests.items() if from_where == host]

    @rule(host=st.sampled_from(HOSTS))
    def admit(self, host: str | None) -> None:
        key = KEYS.get(host or "", host)
        guest = Caller(self.guests)
        admitted = self.strangers.admit(guest, host)
        assert admitted is (key is None or len(self._there(key)) < MOST)
        if admitted:
            self.guests[guest] = key

    @precondition(lambda self: self.guests)
    @rule(number=st.integers(0, 50), size=SIZES)
    def weigh(self, number: int, size: int) -> None:
        guest = self._pick(number)
        if guest.waiting:
            size = min(size, guest.held)  # a waiting connection is not read
        if not self.strangers.update_usage(guest, size):
            assert self.strangers.held > BUDGET * 5 // 4
            self._leave(guest)

    @precondition(lambda self: self.guests)
    @rule(number=st.integers(0, 50), host=st.sampled_from(HOSTS))
    def move(self, number: int, host: str | None) -> None:
        guest = self._pick(number)
        key = KEYS.get(host or "", host)
        if host is None:
            return
        full = key is not None and len(self._there(key)) >= MOST and self.guests[guest] != key
        assert self.strangers.change_address(guest, host) is not full
        if not full:
            self.guests[guest] = key

    @precondition(lambda self: self.guests)
    @rule(number=st.integers(0, 50))
    def leave(self, number: int) -> None:
        self._leave(self._pick(number))

    def _leave(self, guest: BudgetedConnection) -> None:
        del self.guests[guest]
        self.strangers.remove(guest)

    @invariant()
    def sums_are_right(self) -> None:
        assert self.strangers.held == sum(guest.held for guest in self.guests)
        assert self.strangers.held <= BUDGET * 5 // 4

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        if self.strangers.held > BUDGET or any(guest.state is BudgetState.READING for guest in self.guests):
            return
        for guest, host in self.guests.items():
            assert host is not None
            assert sum(other.held for other in self._there(host)) > SHARE, guest

    def teardown(self) -> None:
        for guest in list(self.guests):
            self._leave(guest)
        assert self.strangers.held == 0
        assert self.strangers.admit(BudgetedConnection(), "192.0.2.1")


TestCrowd = Crowd.TestCase
