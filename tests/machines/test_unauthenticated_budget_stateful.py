"""The memory budget with random connections: sums, limits, and no wait without a reason."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.machines.unauthenticated_budget import READ_SIZE, BudgetedConnection, BudgetState, UnauthenticatedBudget

BUDGET, SHARE, MOST = 10 * READ_SIZE, 4 * READ_SIZE, 4
HOSTS = (None, "127.0.0.1", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "a name")
KEYS = {"127.0.0.1": None, "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::2": "2001:db8::1"}
SIZES = st.sampled_from([0, 1, READ_SIZE - 1, READ_SIZE, READ_SIZE + 1, 2 * READ_SIZE, 4 * READ_SIZE])


class Caller(BudgetedConnection):
    """Budgeted connection that checks, when it is resumed, that it is admitted and reading."""

    def __init__(self, peers: dict[BudgetedConnection, str | None]) -> None:
        super().__init__()
        self.peers = peers

    def resume(self) -> None:
        assert self.state is BudgetState.READING
        assert self in self.peers


class Crowd(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.unknown_hosts = UnauthenticatedBudget(budget=BUDGET, share=SHARE, most=MOST)
        self.peers: dict[BudgetedConnection, str | None] = {}

    def _pick(self, number: int) -> BudgetedConnection:
        return list(self.peers)[number % len(self.peers)]

    def _there(self, host: str | None) -> list[BudgetedConnection]:
        return [peer for peer, from_where in self.peers.items() if from_where == host]

    @rule(host=st.sampled_from(HOSTS))
    def admit(self, host: str | None) -> None:
        key = KEYS.get(host or "", host)
        peer = Caller(self.peers)
        admitted = self.unknown_hosts.admit(peer, host)
        assert admitted is (key is None or len(self._there(key)) < MOST)
        if admitted:
            self.peers[peer] = key

    @precondition(lambda self: self.peers)
    @rule(number=st.integers(0, 50), size=SIZES)
    def weigh(self, number: int, size: int) -> None:
        peer = self._pick(number)
        if peer.waiting:
            size = min(size, peer.held)  # a waiting connection is not read
        if not self.unknown_hosts.update_usage(peer, size):
            assert self.unknown_hosts.held > BUDGET * 5 // 4
            self._leave(peer)

    @precondition(lambda self: self.peers)
    @rule(number=st.integers(0, 50), host=st.sampled_from(HOSTS))
    def move(self, number: int, host: str | None) -> None:
        peer = self._pick(number)
        key = KEYS.get(host or "", host)
        if host is None:
            return
        full = key is not None and len(self._there(key)) >= MOST and self.peers[peer] != key
        assert self.unknown_hosts.change_address(peer, host) is not full
        if not full:
            self.peers[peer] = key

    @precondition(lambda self: self.peers)
    @rule(number=st.integers(0, 50))
    def leave(self, number: int) -> None:
        self._leave(self._pick(number))

    def _leave(self, peer: BudgetedConnection) -> None:
        del self.peers[peer]
        self.unknown_hosts.remove(peer)

    @invariant()
    def sums_are_right(self) -> None:
        assert self.unknown_hosts.held == sum(peer.held for peer in self.peers)
        assert self.unknown_hosts.held <= BUDGET * 5 // 4

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        if self.unknown_hosts.held > BUDGET or any(peer.state is BudgetState.READING for peer in self.peers):
            return
        for peer, host in self.peers.items():
            assert host is not None
            assert sum(other.held for other in self._there(host)) > SHARE, peer

    def teardown(self) -> None:
        for peer in list(self.peers):
            self._leave(peer)
        assert self.unknown_hosts.held == 0
        assert self.unknown_hosts.admit(BudgetedConnection(), "192.0.2.1")


TestCrowd = Crowd.TestCase
