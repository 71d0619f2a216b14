"""Backpressure: a pause above the high-water mark, and resumption at the low-water mark."""

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
