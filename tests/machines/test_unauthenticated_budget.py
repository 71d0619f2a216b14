"""One budget for all peers that nobody knows."""

from __future__ import annotations

import pytest

from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.machines.unauthenticated_budget import LIFE, ONE_READ, Guest, GuestState, GuestTrigger, Strangers

S, T = GuestState, GuestTrigger
BUDGET, SHARE, MOST = 1_000_000, 400_000, 3
A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"


class Caller(Guest):
    """One that tells when it is woken."""

    def __init__(self, woken: list[Guest]) -> None:
        super().__init__()
        self.woken = woken

    def wake(self) -> None:
        self.woken.append(self)


class House:
    """The machine, and who was woken."""

    def __init__(self) -> None:
        self.strangers = Strangers(budget=BUDGET, share=SHARE, most=MOST)
        self.woken: list[Guest] = []

    def admit(self, host: str | None) -> Guest:
        guest = self.try_to_admit(host)
        assert guest is not None
        return guest

    def try_to_admit(self, host: str | None) -> Guest | None:
        guest = Caller(self.woken)
        return guest if self.strangers.admit(guest, host) else None


def test_a_guest_that_does_not_mind() -> None:
    Guest().wake()


def test_the_table_crossed() -> None:
    expected = {
        (S.READING, T.CROWD): S.WAITING,
        (S.WAITING, T.CROWD): S.WAITING,
        (S.WAITING, T.ROOM): S.READING,
        (S.READING, T.LEAVE): S.GONE,
        (S.WAITING, T.LEAVE): S.GONE,
        (S.GONE, T.LEAVE): S.GONE,
    }
    assert expected == LIFE


def test_who_holds_nothing_never_waits() -> None:
    house = House()
    for host in (A, A, B, B):
        assert house.strangers.weigh(house.admit(host), 250_000)
    assert house.strangers.held == BUDGET
    phone = house.admit(C)
    assert house.strangers.weigh(phone, 0)
    assert not phone.waiting
    assert house.strangers.weigh(phone, 1)
    assert phone.waiting


def test_the_newest_waits_until_there_is_room() -> None:
    house = House()
    first, second, third = house.admit(A), house.admit(B), house.admit(C)
    for guest in (first, second):
        house.strangers.weigh(guest, SHARE)
    house.strangers.weigh(third, 200_001)
    assert [guest.waiting for guest in (first, second, third)] == [False, False, True]
    house.strangers.weigh(first, SHARE - 1)
    assert house.woken == [third]
    assert not third.waiting


def test_the_share_of_an_address() -> None:
    house = House()
    first, second, other = house.admit(A), house.admit("::ffff:" + A), house.admit(B)
    house.strangers.weigh(first, SHARE)
    house.strangers.weigh(second, 1)
    house.strangers.weigh(other, SHARE)
    assert (first.waiting, second.waiting, other.waiting) == (False, True, False)
    house.strangers.leave(other)
    assert house.woken == []  # there was room for all: its own address is full
    house.strangers.leave(first)
    assert house.woken == [second]


def test_a_64_is_one_address_and_this_host_none() -> None:
    house = House()
    for number in range(MOST):
        house.admit(f"2001:db8::{number}")
    assert house.try_to_admit("2001:db8::ffff") is None
    house.admit("2001:db8:0:1::1")
    for host in (*LOOPBACK, None):
        for _ in range(MOST + 1):
            assert house.strangers.weigh(house.admit(host), 50_000)
    assert house.strangers.held == 800_000  # twice a share


def test_the_last_of_its_kind_goes_at_once() -> None:
    house = House()
    many = [house.admit(None) for _ in range(5)]
    for guest in many[:4]:
        assert house.strangers.weigh(guest, 312_500)
    assert [guest.waiting for guest in many] == [False, False, False, True, False]
    assert not house.strangers.weigh(many[4], 1)
    assert house.strangers.weigh(many[0], 312_499)  # it holds less: it is not the one to go
    house.strangers.leave(many[4])
    assert house.strangers.weigh(many[0], 312_500)
    assert house.strangers.weigh(many[3], 312_500)  # nothing new


def test_room_is_given_to_addresses_in_turn() -> None:
    house = House()
    big = [house.admit(None) for _ in range(2)]
    for guest in big:
        house.strangers.weigh(guest, 500_000)
    crowd = [house.admit(host) for host in (A, A, A, B)]
    for guest in crowd:
        house.strangers.weigh(guest, 1)
    house.strangers.weigh(big[0], 500_000 - ONE_READ - 4)
    assert house.woken == [crowd[0], crowd[3]]
    house.strangers.leave(big[1])
    assert house.woken == [crowd[0], crowd[3], crowd[1], crowd[2]]


def test_who_waits_for_its_address_does_not_hold_up_others() -> None:
    house = House()
    hog, first, second = house.admit(None), house.admit(A), house.admit(B)
    house.strangers.weigh(hog, BUDGET)
    house.strangers.weigh(first, 1)
    house.strangers.weigh(second, 1)
    house.strangers.weigh(hog, BUDGET - SHARE - 10)
    assert house.woken == [first, second]
    house.strangers.weigh(second, 11)
    assert not second.waiting
    house.strangers.weigh(first, SHARE + 1)  # more than its share, and with it more than the budget
    house.strangers.weigh(second, 12)
    assert (first.waiting, second.waiting) == (True, True)
    house.strangers.weigh(hog, 0)
    assert house.woken == [first, second, second]
    assert first.waiting


def test_one_that_waits_for_its_share_leaves_room_to_others() -> None:
    house = House()
    hog, first, second = house.admit(None), house.admit(A), house.admit(B)
    house.strangers.weigh(hog, BUDGET)
    house.strangers.weigh(first, SHARE)
    house.strangers.weigh(second, 1)
    house.strangers.weigh(hog, BUDGET - SHARE - ONE_READ + 1)
    assert house.woken == [first]
    house.strangers.weigh(first, SHARE + 1)
    assert first.waiting
    assert house.woken == [first, second]


def test_a_proxy_names_an_address() -> None:
    house = House()
    guests = [house.admit(None) for _ in range(MOST + 1)]
    for guest in guests[:MOST]:
        assert house.strangers.move(guest, A)
        assert house.strangers.move(guest, A)
    assert not house.strangers.move(guests[MOST], A)
    assert house.strangers.move(guests[MOST], B)
    house.strangers.weigh(guests[0], SHARE)
    house.strangers.weigh(guests[1], 1)
    assert guests[1].waiting
    assert house.strangers.move(guests[1], B)
    assert house.woken == [guests[1]]
    house.strangers.weigh(guests[2], 1)
    house.strangers.weigh(guests[0], SHARE + 1)
    assert house.strangers.move(guests[0], C)  # it takes its bytes along, and waits on
    assert guests[0].waiting
    assert house.woken == [guests[1], guests[2]]


@pytest.mark.parametrize("host", [A, None])
def test_nothing_comes_of_one_that_has_left(host: str | None) -> None:
    house = House()
    guest = house.admit(host)
    house.strangers.weigh(guest, 5)
    house.strangers.leave(guest)
    house.strangers.leave(guest)
    assert house.strangers.weigh(guest, 7)
    assert house.strangers.move(guest, B)
    assert house.strangers.held == 0
    assert all(house.try_to_admit(B) for _ in range(MOST))
