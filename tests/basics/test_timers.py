import weakref
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.basics.timers import SWEEP_FROM, Timer, Timers


def nothing() -> None:
    pass


class Owner:
    fired = 0

    def fire(self) -> None:
        self.fired += 1


def test_a_timer_is_due_and_fires_once() -> None:
    timers, fired = Timers(), list[str]()
    timer = timers.timer(lambda: fired.append("idle"))
    assert timers.next() is None
    assert timers.pop_due(1e9) is None
    timer.set(5.0)
    assert timers.next() == 5.0
    assert timers.pop_due(4.9) is None
    due = timers.pop_due(5.0)
    assert due is timer
    assert fired == []
    due.fire()
    assert fired == ["idle"]
    assert (timer.when, timers.next()) == (None, None)
    timer.set(7.0)
    assert timers.next() == 7.0


def test_schedule_sets_or_removes_the_deadline() -> None:
    timers = Timers()
    timer = timers.timer(nothing)
    timer.schedule(5.0)
    assert timers.next() == 5.0
    timer.schedule(None)
    assert (timer.when, timers.next()) == (None, None)


def test_a_cancelled_timer_may_be_set_after_a_sweep() -> None:
    timers = Timers()
    timer = timers.timer(nothing)
    timer.set(5.0)
    timer.cancel()
    timers.sweep()
    timer.set(9.0)
    assert timers.next() == 9.0


def test_only_the_latest_setting_of_a_timer_counts() -> None:
    timers = Timers()
    assert timers.first == inf
    timer = timers.timer(nothing)
    for deadline in (5.0, 8.0, 9.0):
        timer.set(deadline)
    assert timers.first == 5.0
    assert timers.pop_due(5.0) is None  # an early call fires no timer, and moves a postponed one
    assert (timers.first, timers.next()) == (9.0, 9.0)
    timer.set(2.0)  # an advanced one is moved at once
    assert timers.next() == 2.0


def test_equal_deadlines_fire_in_order_of_filing() -> None:
    timers, fired = Timers(), list[str]()
    for name in ("a", "b", "c"):
        timers.timer(lambda name=name: fired.append(name)).set(1.0)  # type: ignore[misc]  # mypy: default in lambda
    while (due := timers.pop_due(1.0)) is not None:
        due.fire()
    assert fired == ["a", "b", "c"]


def test_owner_of_a_timer() -> None:
    timers, fired = Timers(), list[str]()
    assert timers.timer(fired.clear).owner is fired
    assert timers.timer(nothing).owner is None
    plain = Owner()
    timer = timers.timer(plain.fire)
    assert timer.owner is plain
    timer.set(1.0)
    timer.fire()
    assert plain.fired == 1


def test_a_retired_timer_releases_its_owner() -> None:
    timers, owner = Timers(), Owner()
    timer = timers.timer(owner.fire)
    timer.set(5.0)
    gone = weakref.ref(owner)
    del owner
    assert gone() is not None
    timer.retire()
    assert gone() is None  # although an entry of the heap still holds the timer
    assert (timer.owner, timers.next()) == (None, None)
    timer.set(7.0)  # too late for any effect
    due = timers.pop_due(7.0)
    assert due is timer
    due.fire()


steps = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 20))


@settings(max_examples=50)
@given(st.lists(steps, max_size=40))
def test_against_a_plain_list(script: list[tuple[int, int | None]]) -> None:
    timers = Timers()
    mine: list[Timer] = [timers.timer(nothing) for _ in range(4)]
    for number, when in script:
        if when is None:
            mine[number].cancel()
        elif number == 3:  # the fourth stands for the passage of time
            while (due := timers.pop_due(float(when))) is not None:
                assert due.when is not None
                assert due.when <= when
                due.fire()
            assert all(timer.when is None or timer.when > when for timer in mine)
        else:
            mine[number].set(float(when))
        assert timers.next() == min((timer.when for timer in mine if timer.when is not None), default=None)


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
