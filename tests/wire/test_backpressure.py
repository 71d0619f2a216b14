"""Backpressure: a pause above the high-water mark, and resumption at the low-water mark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from svc_proto.wire.backpressure import Backpressure


def test_pauses_once_above_high_and_resumes_once_at_low() -> None:
    credit = Backpressure(high=100, low=40)
    assert not credit.add_unsent(100)
    assert credit.add_unsent(1)
    assert credit.blocked
    assert not credit.add_unsent(50)  # paused already
    assert not credit.mark_sent(110)
    assert credit.unsent == 41
    assert credit.mark_sent(1)
    assert (credit.blocked, credit.unsent) == (False, 40)
    assert not credit.mark_sent(40)
    assert credit.unsent == 0


@given(st.lists(st.integers(0, 50), max_size=40))
def test_pause_and_resume_alternate(writes: list[int]) -> None:
    credit = Backpressure(high=60, low=20)
    paused = False
    for size in writes:
        if credit.add_unsent(size):
            assert not paused
            paused = True
        assert credit.blocked == paused
        if credit.mark_sent(min(credit.unsent, 25)):
            assert paused
            paused = False
        assert credit.blocked == paused
    if credit.mark_sent(credit.unsent):
        paused = False
    assert not paused
