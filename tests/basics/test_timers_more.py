from __future__ import annotations

from math import inf

from svc_proto.basics.timers import SWEEP_FROM, Timers


def nothing() -> None:
    pass


def test_cancelled_timers_do_not_pile_up() -> None:
    timers = Timers()
    kept = timers.timer(nothing)
    kept.set(1000.0)
    for number in range(10 * SWEEP_FROM):
        timer = timers.timer(nothing)
        timer.set(500.0 + number)
        timer.cancel()
    assert len(timers._heap) <= SWEEP_FROM
    assert timers.next() == 1000.0


def test_a_sweep_keeps_set_timers() -> None:
    timers = Timers()
    many = [timers.timer(nothing) for _ in range(2 * SWEEP_FROM)]
    for number, timer in enumerate(many):
        timer.set(2000.0 - number)
        timer.set(1000.0 - number)
    many[3].cancel()
    many[5].set(5000.0)
    for _ in range(SWEEP_FROM * 3):
        timers.timer(nothing).set(9000.0)
    many[3].set(7.0)
    fired = []
    while (due := timers.pop_due(8000.0)) is not None:
        fired.append(due.when)
        due.fire()
    rest = [1000.0 - number for number in range(2 * SWEEP_FROM) if number not in (3, 5)]
    assert fired == sorted([*rest, 5000.0, 7.0])


def test_an_early_call_fires_no_timer() -> None:
    timers = Timers()
    assert timers.first == inf
    timer = timers.timer(nothing)
    timer.set(5.0)
    timer.set(9.0)
    assert timers.first == 5.0
    assert timers.pop_due(5.0) is None
    assert timers.first == 9.0
