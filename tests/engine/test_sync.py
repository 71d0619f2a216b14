"""Synchronization of flows: waiting for several, semaphores, wakeups and shields."""

from collections.abc import Callable

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import TIMED_OUT, Flow, sleep
from svc_proto.engine.sync import Condition, Lock, Semaphore, gather, shield
from svc_proto.facts import Started
from tests.engine.test_http_client import calling
from tests.support.playbook import FlowService, Playbook


def running(flow: Callable[[Engine], Flow[object]]) -> tuple[Playbook, FlowService]:
    book, caller = calling(flow)
    book >> Started() << []
    return book, caller


def after(engine: Engine, seconds: float, result: object) -> Flow[object]:
    yield from sleep(engine, seconds)
    if isinstance(result, Exception):
        raise result
    return result


def at_once(result: object) -> Flow[object]:
    yield from ()
    if isinstance(result, Exception):
        raise result
    return result


def test_results_come_in_the_order_given() -> None:
    book, caller = running(lambda engine: gather(engine, [after(engine, 3, "a"), at_once("b"), after(engine, 1, "c")]))
    book.after(2.0) << []
    assert caller.results == []
    book.after(1.0) << []
    assert caller.results == [["a", "b", "c"]]


def test_gather_of_flows_that_never_wait_or_wait_very_long() -> None:
    assert running(lambda engine: gather(engine, []))[1].results == [[]]
    assert running(lambda engine: gather(engine, [at_once(1)]))[1].results == [[1]]
    book, caller = running(lambda engine: gather(engine, [after(engine, 1e6, "a")]))
    book.after(1e6) << []
    assert caller.results == [["a"]]


def test_the_first_error_is_raised_after_all_have_ended() -> None:
    first, second = ValueError("first"), ValueError("second")
    book, caller = running(
        lambda engine: gather(engine, [after(engine, 3, first), at_once(second), after(engine, 4, "c")])
    )
    book.after(3.0) << []
    assert caller.errors == []
    book.after(1.0) << []
    assert caller.errors == [first]


def test_cancelling_gather_cancels_its_flows() -> None:
    ended: list[str] = []

    def flow(engine: Engine) -> Flow[object]:
        try:
            return (yield from after(engine, 5, "a"))
        finally:
            ended.append("a")

    book, caller = running(lambda engine: gather(engine, [flow(engine)]))
    caller.task.cancel()
    assert ended == ["a"]
    book.after(10.0) << []
    assert caller.results == []


# --- one at a time ---


class Visitors:
    """Three flows that each hold one lock for two seconds; `seen` lists their entries and exits in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def visit(self, engine: Engine, place: Lock, name: str) -> Flow[object]:
        yield from place.acquire()
        try:
            self.seen.append(f"{name} in")
            yield from sleep(engine, 2.0)
            self.seen.append(f"{name} out")
        finally:
            place.release()
        return name

    def all_at_once(self, engine: Engine) -> Flow[object]:
        place = Lock(engine)
        return (yield from gather(engine, [self.visit(engine, place, name) for name in "abc"]))


def test_a_lock_admits_one_flow_at_a_time_and_no_cancelled_one() -> None:
    visitors = Visitors()
    book, caller = running(visitors.all_at_once)
    book.after(6.0) << []
    assert caller.results == [["a", "b", "c"]]
    assert visitors.seen == ["a in", "a out", "b in", "b out", "c in", "c out"]
    visitors = Visitors()
    _, caller = running(visitors.all_at_once)
    caller.task.cancel()
    assert visitors.seen == ["a in"]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_cancelled_waiter_is_skipped(gone: int) -> None:
    visitors = Visitors()

    def flow(engine: Engine) -> Flow[object]:
        place = Lock(engine)
        tasks = [engine.spawn(visitors.visit(engine, place, name)) for name in "abc"]
        yield from sleep(engine, 1.0)
        tasks[gone].cancel()
        assert place.waiting == 1  # the cancelled one has left the queue, too
        yield from sleep(engine, 9.0)
        yield from place.acquire()  # it is free again
        place.release()
        return None

    book, caller = running(flow)
    book.after(10.0) << []
    assert caller.results == [None]
    assert [word for word in visitors.seen if word.endswith("out")] == [
        f"{name} out" for place, name in enumerate("abc") if place != gone
    ]


def test_a_crowd_that_waits_for_a_lock_takes_no_depth_of_calls() -> None:
    """Check that a flow that continues after its release does not run within the release of the one before it."""
    crowd = 3000  # flows, thrice the depth of calls that Python permits
    order: list[int] = []

    def flow(engine: Engine) -> Flow[object]:
        place = Lock(engine)

        def visit(number: int) -> Flow[None]:
            yield from place.acquire()
            place.release()
            order.append(number)
            yield from sleep(engine, 1.0)

        yield from place.acquire()
        for number in range(crowd):
            engine.spawn(visit(number))
        place.release()
        assert place.waiting == 0
        return place.try_acquire()

    _, caller = running(flow)
    assert caller.results == [True]
    assert order == [*range(crowd)]


def test_who_comes_back_waits_behind_the_others() -> None:
    seen: list[str] = []

    def flow(engine: Engine) -> Flow[object]:
        place = Lock(engine)

        def visit(name: str) -> Flow[None]:
            for _ in range(2):
                yield from place.acquire()
                seen.append(name)
                place.release()

        yield from place.acquire()
        for name in "ab":
            engine.spawn(visit(name))
        place.release()
        yield from ()
        return None

    running(flow)
    assert seen == [*"abab"]


def test_a_long_wait() -> None:
    def flow(engine: Engine) -> Flow[object]:
        place = Lock(engine)
        yield from place.acquire()

        def second() -> Flow[str]:
            yield from place.acquire()
            return "in"

        done: list[str] = []
        engine.spawn(second(), on_done=done.append)
        yield from sleep(engine, 1e6)
        place.release()
        return done

    book, caller = running(flow)
    book.after(1e6) << []
    assert caller.results == [["in"]]


def test_a_semaphore_of_two_and_a_timeout() -> None:
    def flow(engine: Engine) -> Flow[object]:
        places = Semaphore(engine, 2)
        assert [(yield from places.acquire()), (yield from places.acquire())] == [True, True]
        found = [(yield from places.acquire(3.0)), engine.now.mono, places.waiting]
        places.release()
        return [*found, (yield from places.acquire(3.0)), places.try_acquire()]

    book, caller = running(flow)
    began = book.now.mono
    book.after(2.9) << []
    assert caller.results == []
    book.after(0.2) << []
    assert caller.results == [[False, began + 3.0, 0, True, False]]


def test_a_condition_wakes_all_waiters() -> None:
    bells: list[Condition] = []

    def waiting(engine: Engine) -> Flow[object]:
        bells.append(Condition(engine))
        return (yield from gather(engine, [bells[0].wait(engine.now.mono + 5.0), bells[0].wait(engine.now.mono + 9.0)]))

    book, caller = running(waiting)
    book.after(5.0) << []  # the first has timed out
    book.act(lambda: bells[0].notify_all()) << []
    book.act(lambda: bells[0].notify_all()) << []
    assert caller.results == [[TIMED_OUT, None]]


@pytest.mark.parametrize("leaves", [False, True])
def test_a_shielded_flow_continues(leaves: bool) -> None:
    done: list[object] = []

    def work(engine: Engine) -> Flow[str]:
        yield from sleep(engine, 3.0)
        done.append("work")
        return "done"

    book, caller = running(lambda engine: shield(engine, work(engine), within=2.0 if leaves else 9.0))
    book.after(3.0) << []
    assert (done, caller.results) == (["work"], [TIMED_OUT if leaves else "done"])
    assert running(lambda engine: shield(engine, at_once("done"), within=9.0))[1].results == ["done"]
