import pytest

from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.machines.unauthenticated_budget import (
    READ_SIZE,
    BudgetedConnection,
    BudgetState,
    BudgetTrigger,
    UnauthenticatedBudget,
)

S, T = BudgetState, BudgetTrigger
BUDGET, SHARE, MOST = 1_000_000, 400_000, 3
A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"


class Caller(BudgetedConnection):
    """Budgeted connection that records when its reading is resumed."""

    def __init__(self, woken: list[BudgetedConnection]) -> None:
        super().__init__()
        self.woken = woken

    def resume(self) -> None:
        self.woken.append(self)


class House:
    """A memory budget, and the list of connections whose reading it has resumed."""

    def __init__(self) -> None:
        self.unknown_hosts = UnauthenticatedBudget(budget=BUDGET, share=SHARE, most=MOST)
        self.woken: list[BudgetedConnection] = []

    def admit(self, host: str | None) -> BudgetedConnection:
        peer = self.try_to_admit(host)
        assert peer is not None
        return peer

    def try_to_admit(self, host: str | None) -> BudgetedConnection | None:
        peer = Caller(self.woken)
        return peer if self.unknown_hosts.admit(peer, host) else None


def test_connections_with_bytes_wait_for_room() -> None:
    house = House()
    for host in (A, A, B, B):
        assert house.unknown_hosts.update_usage(house.admit(host), 250_000)
    assert house.unknown_hosts.held == BUDGET
    phone = house.admit(C)
    assert [(house.unknown_hosts.update_usage(phone, size), phone.waiting) for size in (0, 1)] == [
        (True, False),
        (True, True),
    ]
    house = House()
    first, second, third = house.admit(A), house.admit(B), house.admit(C)
    for peer in (first, second):
        house.unknown_hosts.update_usage(peer, SHARE)
    house.unknown_hosts.update_usage(third, 200_001)
    assert [peer.waiting for peer in (first, second, third)] == [False, False, True]
    house.unknown_hosts.update_usage(first, SHARE - 1)
    assert house.woken == [third]
    assert not third.waiting


def test_networks_share_the_room_and_loopback_is_exempt() -> None:
    house = House()
    for number in range(MOST):
        house.admit(f"2001:db8::{number}")
    assert house.try_to_admit("2001:db8::ffff") is None
    house.admit("2001:db8:0:1::1")
    for host in (*LOOPBACK, None):
        for _ in range(MOST + 1):
            assert house.unknown_hosts.update_usage(house.admit(host), 50_000)
    assert house.unknown_hosts.held == 800_000  # twice a share
    house = House()
    first, second, other = house.admit(A), house.admit("::ffff:" + A), house.admit(B)
    house.unknown_hosts.update_usage(first, SHARE)
    house.unknown_hosts.update_usage(second, 1)
    house.unknown_hosts.update_usage(other, SHARE)
    assert (first.waiting, second.waiting, other.waiting) == (False, True, False)
    house.unknown_hosts.remove(other)
    assert house.woken == []  # the budget has room; its own address is full
    house.unknown_hosts.remove(first)
    assert house.woken == [second]
    house = House()
    big = [house.admit(None) for _ in range(2)]
    for peer in big:
        house.unknown_hosts.update_usage(peer, 500_000)
    crowd = [house.admit(host) for host in (A, A, A, B)]
    for peer in crowd:
        house.unknown_hosts.update_usage(peer, 1)
    house.unknown_hosts.update_usage(big[0], 500_000 - READ_SIZE - 4)
    assert house.woken == [crowd[0], crowd[3]]
    house.unknown_hosts.remove(big[1])
    assert house.woken == [crowd[0], crowd[3], crowd[1], crowd[2]]


def test_last_waiting_connection_is_dropped_when_full() -> None:
    house = House()
    many = [house.admit(None) for _ in range(5)]
    for peer in many[:4]:
        assert house.unknown_hosts.update_usage(peer, 312_500)
    assert [peer.waiting for peer in many] == [False, False, False, True, False]
    assert not house.unknown_hosts.update_usage(many[4], 1)
    assert house.unknown_hosts.update_usage(many[0], 312_499)  # another connection holds more and is dropped first
    house.unknown_hosts.remove(many[4])
    assert house.unknown_hosts.update_usage(many[0], 312_500)
    assert house.unknown_hosts.update_usage(many[3], 312_500)  # unchanged
    BudgetedConnection().resume()


def test_a_full_share_leaves_room_for_others() -> None:
    house = House()
    hog, first, second = house.admit(None), house.admit(A), house.admit(B)
    house.unknown_hosts.update_usage(hog, BUDGET)
    house.unknown_hosts.update_usage(first, 1)
    house.unknown_hosts.update_usage(second, 1)
    house.unknown_hosts.update_usage(hog, BUDGET - SHARE - 10)
    assert house.woken == [first, second]
    house.unknown_hosts.update_usage(second, 11)
    assert not second.waiting
    house.unknown_hosts.update_usage(first, SHARE + 1)  # more than its share, and the budget is exceeded
    house.unknown_hosts.update_usage(second, 12)
    assert (first.waiting, second.waiting) == (True, True)
    house.unknown_hosts.update_usage(hog, 0)
    assert house.woken == [first, second, second]
    assert first.waiting
    house = House()
    hog, first, second = house.admit(None), house.admit(A), house.admit(B)
    house.unknown_hosts.update_usage(hog, BUDGET)
    house.unknown_hosts.update_usage(first, SHARE)
    house.unknown_hosts.update_usage(second, 1)
    house.unknown_hosts.update_usage(hog, BUDGET - SHARE - READ_SIZE + 1)
    assert house.woken == [first]
    house.unknown_hosts.update_usage(first, SHARE + 1)
    assert first.waiting
    assert house.woken == [first, second]


def test_a_proxy_names_an_address() -> None:
    house = House()
    peers = [house.admit(None) for _ in range(MOST + 1)]
    for peer in peers[:MOST]:
        assert house.unknown_hosts.change_address(peer, A)
        assert house.unknown_hosts.change_address(peer, A)
    assert not house.unknown_hosts.change_address(peers[MOST], A)
    assert house.unknown_hosts.change_address(peers[MOST], B)
    house.unknown_hosts.update_usage(peers[0], SHARE)
    house.unknown_hosts.update_usage(peers[1], 1)
    assert peers[1].waiting
    assert house.unknown_hosts.change_address(peers[1], B)
    assert house.woken == [peers[1]]
    house.unknown_hosts.update_usage(peers[2], 1)
    house.unknown_hosts.update_usage(peers[0], SHARE + 1)
    assert house.unknown_hosts.change_address(peers[0], C)  # its bytes move with it, and it still waits
    assert peers[0].waiting
    assert house.woken == [peers[1], peers[2]]


@pytest.mark.parametrize("host", [A, None])
def test_removed_connection_has_no_effect(host: str | None) -> None:
    house = House()
    peer = house.admit(host)
    house.unknown_hosts.update_usage(peer, 5)
    house.unknown_hosts.remove(peer)
    house.unknown_hosts.remove(peer)
    assert house.unknown_hosts.update_usage(peer, 7)
    assert house.unknown_hosts.change_address(peer, B)
    assert house.unknown_hosts.held == 0
    assert all(house.try_to_admit(B) for _ in range(MOST))
