import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.machines.read_scheduler import BURST_SIZE, SLICE_SIZE, ReadScheduler

AT_ONCE, RATE = 4 * SLICE_SIZE, 1_000_000.0
HANDFUL = AT_ONCE // 2


def new() -> ReadScheduler[str]:
    return ReadScheduler(at_once=AT_ONCE, rate=RATE)


def test_reads_are_immediate_while_the_bucket_lasts() -> None:
    turns = new()
    assert (turns.allowance_for("a", AT_ONCE - 1, 0.0), turns.next_due) == (AT_ONCE - 1, None)
    assert turns.allowance_for("b", SLICE_SIZE, 0.0) == SLICE_SIZE  # partial reads until empty
    assert turns.allowance_for("c", 1, 0.0) == 0
    assert "c" in turns
    assert "b" not in turns
    assert turns.next_due == SLICE_SIZE / RATE
    turns = new()
    assert turns.allowance_for("a", AT_ONCE, 0.0) == AT_ONCE
    assert turns.allowance_for("b", 1, 0.0) == 0
    turns = new()
    assert turns.allowance_for("a", AT_ONCE - 1, 0.0) == AT_ONCE - 1
    assert turns.allowance_for("a", 1, 0.0) == 1
    assert turns.allowance_for("a", 10, 10 / RATE) == 10  # what was refilled meanwhile
    assert turns.next_due is None
    assert turns.allowance_for("a", AT_ONCE + 1, 100.0) == AT_ONCE - HANDFUL
    assert turns.allowance_for("b", 1, 200.0) == 0  # waiting connections have precedence
    turns = new()
    turns.allowance_for("a", 2 * AT_ONCE, 0.0)
    went = 0
    while turns.next(100.0) is not None:
        turns.enqueue("a")
        went += 1
    assert went * SLICE_SIZE == BURST_SIZE
    turns.remove("a")
    assert turns.allowance_for("b", 2 * AT_ONCE, 200.0) == AT_ONCE - HANDFUL  # the rest is reserved


def test_fast_credit_is_spent_refilled_and_returned() -> None:
    turns = new()
    assert turns.fast_credit == HANDFUL
    turns.fast_credit -= HANDFUL  # as a channel does
    assert turns.allowance_for("a", AT_ONCE - 2 * HANDFUL, 0.0) == 0
    assert turns.fast_credit == HANDFUL  # and nothing else
    turns.fast_credit -= 10
    assert turns.allowance_for("a", HANDFUL - 10, 0.0) == HANDFUL - 10
    assert turns.fast_credit == 0
    assert turns.allowance_for("a", 1, 100.0) == 1
    assert turns.fast_credit == HANDFUL - 1
    turns.charge(1, 200.0)
    assert turns.fast_credit == HANDFUL
    turns.fast_credit -= HANDFUL
    assert turns.allowance_for("a", 2 * AT_ONCE, 300.0) == AT_ONCE - HANDFUL  # never more at once than `AT_ONCE`
    turns = new()
    assert turns.fast_credit == HANDFUL
    for peer in "abcde":
        turns.enqueue(peer)
    assert turns.fast_credit == 0
    assert [turns.next(0.0) for _ in range(5)] == [*"abcd", None]  # `AT_ONCE` in slices
    assert turns.next(1 / RATE) == "e"  # one byte is enough


@pytest.mark.parametrize("how", ["take", "charge", "wait"])
def test_no_fast_credit_while_a_connection_waits(how: str) -> None:
    turns = new()
    if how == "take":
        turns.allowance_for("a", 2 * AT_ONCE, 0.0)
    elif how == "charge":
        turns.charge(AT_ONCE + 1, 0.0)
    else:
        turns.enqueue("a")
    assert turns.fast_credit == 0
    assert turns.allowance_for("b", 1, 0.0) == 0


def test_waiting_readers_take_turns_after_extra_charges() -> None:
    turns = new()
    for name in "abc":
        turns.allowance_for(name, 2 * AT_ONCE, 0.0)
    assert turns.next(1.0) == "a"
    turns.enqueue("a")
    turns.remove("b")
    turns.remove("absent")
    assert (turns.next(1.0), turns.next(1.0)) == ("c", "a")
    turns = ReadScheduler[str](at_once=4096, rate=16_384.0)
    assert turns.allowance_for("a", 100, 0.0) == 100
    turns.charge(3996 + 8192, 0.0)
    turns.enqueue("a")
    assert turns.next_due == 0.5
    assert turns.next(0.5) is None
    assert turns.next(0.51) == "a"


@given(st.lists(st.tuples(st.integers(1, 5 * AT_ONCE), st.floats(0, 0.01)), max_size=30))
def test_every_reader_finishes_within_the_rate(arrivals: list[tuple[int, float]]) -> None:
    turns, left, now, read = ReadScheduler[int](at_once=AT_ONCE, rate=RATE), dict[int, int](), 0.0, 0
    for peer, (size, later) in enumerate(arrivals):
        now += later
        taken = turns.allowance_for(peer, size, now)
        read += taken
        if taken < size:
            left[peer] = size - taken
        assert (peer in turns) is (peer in left)
    while left:
        due = turns.next_due
        assert due is not None
        now = max(now, due + 1e-9)
        went = turns.next(now)
        assert went is not None
        read += min(SLICE_SIZE, left[went])
        left[went] -= SLICE_SIZE
        if left[went] > 0:
            turns.enqueue(went)
        else:
            del left[went]
        assert read <= AT_ONCE + SLICE_SIZE + now * RATE
    assert turns.next_due is None
