"""The memory budget of all unauthenticated connections."""

from __future__ import annotations

import pytest

from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.machines.unauthenticated_budget import (
    BUDGET_TABLE,
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
    """Connection that records its resumption."""

    def __init__(self, woken: list[BudgetedConnection]) -> None:
        super().__init__()
        self.woken = woken

    def resume(self) -> None:
        self.woken.append(self)


class House:
    """Budget with the connections that it resumed."""

    def __init__(self) -> None:
        self.strangers = UnauthenticatedBudget(budget=BUDGET, share=SHARE, most=MOST)
        self.woken: list[BudgetedConnection] = []

    def admit(self, host: str | None) -> BudgetedConnection:
        guest = self.try_to_admit(host)
        assert guest is not None
        return guest

    def try_to_admit(self, host: str | None) -> BudgetedConnection | None:
        guest = Caller(self.woken)
        return guest if self.strangers.admit(guest, host) else None


def test_resume_without_an_effect() -> None:
    BudgetedConnection().resume()


def test_state_table() -> None:
    expected = {
        (S.READING, T.BUDGET_EXCEEDED): S.WAITING,
        (S.WAITING, T.BUDGET_EXCEEDED): S.WAITING,
        (S.WAITING, T.BUDGET_AVAILABLE): S.READING,
        (S.READING, T.LEAVE): S.GONE,
        (S.WAITING, T.LEAVE): S.GONE,
        (S.GONE, T.LEAVE): S.GONE,
    }
    assert expected == BUDGET_TABLE


def test_connection_without_bytes_never_waits() -> None:
    house = House()
    for host in (A, A, B, B):
        assert house.strangers.update_usage(house.admit(host), 250_000)
    assert house.strangers.held == BUDGET
    phone = house.admit(C)
    assert house.strangers.update_usage(phone, 0)
    assert not phone.waiting
    assert house.strangers.update_usage(phone, 1)
    assert phone.waiting


def test_newest_connection_waits_for_room() -> None:
    house = House()
    first, second, third = house.admit(A), house.admit(B), house.admit(C)
    for guest in (first, second):
        house.strangers.update_usage(guest, SHARE)
    house.strangers.update_usage(third, 200_001)
    assert [guest.waiting for guest in (first, second, third)] == [False, False, True]
    house.strangers.update_usage(first, SHARE - 1)
    assert house.woken == [third]
    assert not third.waiting


def test_share_per_address() -> None:
    house = House()
    first, second, other = house.admit(A), house.admit("::ffff:" + A), house.admit(B)
    house.strangers.update_usage(first, SHARE)
    house.strangers.update_usage(second, 1)
    house.strangers.update_usage(other, SHARE)
    assert (first.waiting, second.waiting, other.waiting) == (False, True, False)
    house.strangers.remove(other)
    assert house.woken == []  # the budget has room; its own address is full
    house.strangers.remove(first)
    assert house.woken == [second]


def test_ipv6_64_is_one_address_and_loopback_is_exempt() -> None:
    house = House()
    for number in range(MOST):
        house.admit(f"2001:db8::{number}")
    assert house.try_to_admit("2001:db8::ffff") is None
    house.admit("2001:db8:0:1::1")
    for host in (*LOOPBACK, None):
        for _ in range(MOST + 1):
            assert house.strangers.update_usage(house.admit(host), 50_000)
    assert house.strangers.held == 800_000  # twice a share


def test_last_waiting_connection_is_dropped_when_full() -> None:
    house = House()
    many = [house.admit(None) for _ in range(5)]
    for guest in many[:4]:
        assert house.strangers.update_usage(guest, 312_500)
    assert [guest.waiting for guest in many] == [False, False, False, True, False]
    assert not house.strangers.update_usage(many[4], 1)
    assert house.strangers.update_usage(many[0], 312_499)  # another connection holds more and is dropped first
    house.strangers.remove(many[4])
    assert house.strangers.update_usage(many[0], 312_500)
    assert house.strangers.update_usage(many[3], 312_500)  # unchanged


def test_room_is_assigned_to_addresses_in_turn() -> None:
    house = House()
    big = [house.admit(None) for _ in range(2)]
    for guest in big:
        house.strangers.update_usage(guest, 500_000)
    crowd = [house.admit(host) for host in (A, A, A, B)]
    for guest in crowd:
        house.strangers.update_usage(guest, 1)
    house.strangers.update_usage(big[0], 500_000 - READ_SIZE - 4)
    assert house.woken == [crowd[0], crowd[3]]
    house.strangers.remove(big[1])
    assert house.woken == [crowd[0], crowd[3], crowd[1], crowd[2]]


def test_connection_waiting_for_its_share_does_not_block_others() -> None:
    house = House()
    hog, first, second = house.admit(None), house.admit(A), house.admit(B)
    house.strangers.update_usage(hog, BUDGET)
    house.strangers.update_usage(first, 1)
    house.strangers.update_usage(second, 1)
    house.strangers.update_usage(hog, BUDGET - SHARE - 10)
    assert house.woken == [first, second]
    house.strangers.update_usage(second, 11)
    assert not second.waiting
    house.strangers.update_usage(first, SHARE + 1)  # more than its share, and the budget is exceeded
    house.strangers.update_usage(second, 12)
    assert (first.waiting, second.waiting) == (True, True)
    house.strangers.update_usage(hog, 0)
    assert house.woken == [first, second, second]
    assert first.waiting


def test_connection_over_its_share_leaves_room_for_others() -> None:
    house = House()
    hog, first, second = house.admit(None), house.admit(A), house.admit(B)
    house.strangers.update_usage(hog, BUDGET)
    house.strangers.update_usage(first, SHARE)
    house.strangers.update_usage(second, 1)
    house.strangers.update_usage(hog, BUDGET - SHARE - READ_SIZE + 1)
    assert house.woken == [first]
    house.strangers.update_usage(first, SHARE + 1)
    assert first.waiting
    assert house.woken == [first, second]


def test_a_proxy_names_an_address() -> None:
    house = House()
    guests = [house.admit(None) for _ in range(MOST + 1)]
    for guest in guests[:MOST]:
        assert house.strangers.change_address(guest, A)
        assert house.strangers.change_address(guest, A)
    assert not house.strangers.change_address(guests[MOST], A)
    assert house.strangers.change_address(guests[MOST], B)
    house.strangers.update_usage(guests[0], SHARE)
    house.strangers.update_usage(guests[1], 1)
    assert guests[1].waiting
    assert house.strangers.change_address(guests[1], B)
    assert house.woken == [guests[1]]
    house.strangers.update_usage(guests[2], 1)
    house.strangers.update_usage(guests[0], SHARE + 1)
    assert house.strangers.change_address(guests[0], C)  # its bytes move with it, and it still waits
    assert guests[0].waiting
    assert house.woken == [guests[1], guests[2]]


@pytest.mark.parametrize("host", [A, None])
def test_removed_connection_has_no_effect(host: str | None) -> None:
    house = House()
    guest = house.admit(host)
    house.strangers.update_usage(guest, 5)
    house.strangers.remove(guest)
    house.strangers.remove(guest)
    assert house.strangers.update_usage(guest, 7)
    assert house.strangers.change_address(guest, B)
    assert house.strangers.held == 0
    assert all(house.try_to_admit(B) for _ in range(MOST))
