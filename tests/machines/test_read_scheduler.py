"""Strangers in turn: what is read at once, who gets in line, and that everybody comes out of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.machines.read_scheduler import PART, ROUND, Turns

AT_ONCE, RATE = 4 * PART, 1_000_000.0
HANDFUL = AT_ONCE // 2


def new() -> Turns[str]:
    return Turns(at_once=AT_ONCE, rate=RATE)


def test_what_is_there_is_read_at_once() -> None:
    turns = new()
    assert turns.take("a", AT_ONCE - 1, 0.0) == AT_ONCE - 1
    assert turns.due is None
    assert turns.take("b", PART, 0.0) == PART  # as long as anything is left, a part may be read
    assert turns.take("c", 1, 0.0) == 0
    assert "c" in turns
    assert "b" not in turns
    assert turns.due == PART / RATE


def test_what_fits_is_read_without_a_line() -> None:
    turns = new()
    assert turns.take("a", AT_ONCE - 1, 0.0) == AT_ONCE - 1
    assert turns.take("a", 1, 0.0) == 1
    assert turns.take("a", 10, 10 / RATE) == 10  # what has come back since
    assert turns.due is None
    assert turns.take("a", AT_ONCE + 1, 100.0) == AT_ONCE - HANDFUL
    assert turns.take("b", 1, 200.0) == 0  # nobody goes before those who wait


def test_what_is_at_hand_is_taken_without_asking_and_comes_back() -> None:
    turns = new()
    assert turns.at_hand == HANDFUL
    turns.at_hand -= HANDFUL  # as a channel does
    assert turns.take("a", AT_ONCE - 2 * HANDFUL, 0.0) == 0
    assert turns.at_hand == HANDFUL  # and nothing besides
    turns.at_hand -= 10
    assert turns.take("a", HANDFUL - 10, 0.0) == HANDFUL - 10
    assert turns.at_hand == 0
    assert turns.take("a", 1, 100.0) == 1
    assert turns.at_hand == HANDFUL - 1
    turns.charge(1, 200.0)
    assert turns.at_hand == HANDFUL
    turns.at_hand -= HANDFUL
    assert turns.take("a", 2 * AT_ONCE, 300.0) == AT_ONCE - HANDFUL  # never more in one go than `AT_ONCE`


def test_what_was_at_hand_is_there_for_those_who_wait() -> None:
    turns = new()
    assert turns.at_hand == HANDFUL
    for guest in "abcde":
        turns.wait(guest)
    assert turns.at_hand == 0
    assert [turns.next(0.0) for _ in range(5)] == [*"abcd", None]  # `AT_ONCE` in parts


@pytest.mark.parametrize("how", ["take", "charge", "wait"])
def test_nothing_is_at_hand_while_somebody_waits(how: str) -> None:
    turns = new()
    if how == "take":
        turns.take("a", 2 * AT_ONCE, 0.0)
    elif how == "charge":
        turns.charge(AT_ONCE + 1, 0.0)
    else:
        turns.wait("a")
    assert turns.at_hand == 0
    assert turns.take("b", 1, 0.0) == 0


def test_of_much_some_is_read_at_once() -> None:
    turns = new()
    assert turns.take("a", 10 * AT_ONCE, 0.0) == AT_ONCE
    assert "a" in turns
    assert turns.due == PART / RATE


def test_who_comes_while_others_wait_gets_in_line() -> None:
    turns = new()
    turns.take("a", 2 * AT_ONCE, 0.0)
    assert turns.take("b", 1, 100.0) == 0
    assert (turns.next(100.0), turns.next(100.0), turns.next(100.0)) == ("a", "b", None)
    assert turns.due is None


def test_a_moment_is_not_longer_for_having_waited_long() -> None:
    turns = new()
    turns.take("a", 2 * AT_ONCE, 0.0)
    went = 0
    while turns.next(100.0) is not None:
        turns.wait("a")
        went += 1
    assert went * PART == ROUND
    turns.leave("a")
    assert turns.take("b", 2 * AT_ONCE, 200.0) == AT_ONCE - HANDFUL  # so much is for those who wait alone


def test_who_has_more_goes_to_the_end_of_the_line() -> None:
    turns = new()
    for name in "abc":
        turns.take(name, 2 * AT_ONCE, 0.0)
    assert turns.next(1.0) == "a"
    turns.wait("a")
    turns.leave("b")
    turns.leave("nobody")
    assert (turns.next(1.0), turns.next(1.0)) == ("c", "a")


def test_nobody_goes_on_before_it_is_due() -> None:
    turns = new()
    turns.take("a", 2 * AT_ONCE, 0.0)
    due = turns.due
    assert due is not None
    assert turns.next(0.0) is None
    assert turns.next(due) == "a"


@given(st.lists(st.tuples(st.integers(1, 5 * AT_ONCE), st.floats(0, 0.01)), max_size=30))
def test_everybody_is_heard_out_and_never_too_fast(arrivals: list[tuple[int, float]]) -> None:
    turns, left, now, read = Turns[int](at_once=AT_ONCE, rate=RATE), dict[int, int](), 0.0, 0
    for guest, (size, later) in enumerate(arrivals):
        now += later
        taken = turns.take(guest, size, now)
        read += taken
        if taken < size:
            left[guest] = size - taken
        assert (guest in turns) is (guest in left)
    while left:
        due = turns.due
        assert due is not None
        now = max(now, due + 1e-9)
        went = turns.next(now)
        assert went is not None
        read += min(PART, left[went])
        left[went] -= PART
        if left[went] > 0:
            turns.wait(went)
        else:
            del left[went]
        assert read <= AT_ONCE + PART + now * RATE
    assert turns.due is None


def test_what_costs_more_than_its_bytes_is_waited_for() -> None:
    turns = Turns[str](at_once=4096, rate=16_384.0)
    assert turns.take("a", 100, 0.0) == 100
    turns.charge(3996 + 8192, 0.0)
    turns.wait("a")
    assert turns.due == 0.5
    assert turns.next(0.5) is None
    assert turns.next(0.51) == "a"
