from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.commands import Cancel, Compute, CreateBlob, DiscardBlob
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import TIMED_OUT, Deferred, Flow, Task, run_operation, sleep, wait
from svc_proto.facts import Done, OperationId
from tests.engine.toy_service import ToyPlaybook, open_book

ONE = OperationId(1)


class Owner:
    """Owner of flows on a playbook's engine, which records their exceptions, and their results by default."""

    def __init__(self, book: ToyPlaybook) -> None:
        self.engine: Engine = book.engine
        self.told: list[Any] = []
        self.task: Task | None = None

    def spawn(self, flow: Flow[Any], on_done: Callable[[Any], None] | None = None) -> Task:
        self.task = self.engine.spawn(flow, on_done=on_done or self.told.append, on_error=self.told.append)
        return self.task

    def cancel(self) -> None:
        assert self.task is not None
        self.task.cancel()


def owned() -> tuple[ToyPlaybook, Owner]:
    book = open_book()
    return book, Owner(book)


def test_a_flow_that_never_waits() -> None:
    _, owner = owned()

    def flow() -> Flow[int]:
        return 3
        yield  # type: ignore[unreachable]  # what makes it a flow

    assert owner.spawn(flow()).done
    assert owner.told == [3]


def test_sleeping_and_waiting() -> None:
    book, owner = owned()
    ticket = owner.engine.new_op()

    def flow() -> Flow[object]:
        yield from sleep(owner.engine, 3.0)
        assert task.is_running
        return (yield from wait(ticket, owner.engine.now.mono + 2.0))

    task = owner.spawn(flow())
    assert not owner.engine.resume(ticket, "too early")
    book.after(3.0) << []
    assert (task.is_running, task.done) == (False, False)
    assert task.accepts("anything")
    assert owner.engine.resume(ticket, "now")
    assert not owner.engine.resume(ticket, "again")
    assert (owner.told, task.is_running, task.done) == (["now"], False, True)
    book.after(100.0).drain_commands()


def test_a_wait_without_deadline() -> None:
    book, owner = owned()
    ticket = owner.engine.new_op()

    def flow() -> Flow[object]:
        first = yield from wait(ticket, inf)
        return first, (yield from wait(ticket, owner.engine.now.mono + 2.0))

    before = owner.engine.next_deadline()
    owner.spawn(flow())
    assert owner.engine.next_deadline() == before
    book.after(1e6).drain_commands()
    assert owner.engine.resume(ticket, "now")
    book.after(2.0).drain_commands()
    assert owner.told == [("now", TIMED_OUT)]


def test_a_late_answer_is_given_back() -> None:
    book, owner = owned()
    owner.spawn(run_operation(owner.engine, CreateBlob(owner.engine.new_op()), within=2.0))
    book.after(2.0) << [Cancel(ONE)]
    book >> Done(ONE, 7) << [DiscardBlob(7)]
    book >> Done(ONE, 7) << []
    nothing = Compute(owner.engine.new_op(), "x")  # there is nothing to give back
    book.act(lambda: owner.spawn(run_operation(owner.engine, nothing, within=2.0))) << [nothing]
    book.after(2.0) << [Cancel(nothing.op)]
    book >> Done(nothing.op, 7) << []


def test_cancelling_twice_and_when_done() -> None:
    book, owner = owned()
    owner.spawn(run_operation(owner.engine, CreateBlob(owner.engine.new_op())))
    owner.cancel()
    owner.cancel()
    book.after(100.0).drain_commands()
    assert owner.told == []


def test_bugs_in_a_finally_block_and_in_on_done_are_contained() -> None:
    book, owner = owned()

    def flow() -> Flow[None]:
        try:
            yield from sleep(owner.engine, 3.0)
        finally:
            raise RuntimeError("a secret")

    def angry(result: object) -> None:
        raise RuntimeError("a secret")

    owner.spawn(flow())
    owner.cancel()
    ticket = owner.engine.new_op()
    owner.spawn(wait(ticket, 1e9), on_done=angry)
    assert owner.engine.resume(ticket, None)
    book.after(0.0) << []
    assert owner.told == []


def test_errors_without_an_owner_are_logged() -> None:
    book, owner = owned()

    def flow(error: Exception) -> Flow[None]:
        yield from sleep(owner.engine, 1.0)
        raise error

    owner.engine.spawn(flow(RuntimeError("a secret")))
    owner.engine.spawn(sleep(owner.engine, 1.0))
    book.after(1.0) << []
    assert [log.fields["error"] for log in book.logs] == ["RuntimeError"]


@pytest.mark.parametrize("how", ["wait", "ask", "return", "refuse", "bug"])
def test_a_flow_that_cancels_itself(how: str) -> None:
    book, owner = owned()
    cleaned: list[str] = []

    def flow() -> Flow[None]:
        yield from sleep(owner.engine, 1.0)
        try:
            owner.cancel()
            assert not task.is_running
            if how == "wait":
                yield from sleep(owner.engine, 1.0)
            if how == "ask":
                yield from run_operation(owner.engine, CreateBlob(OperationId(50)))
            if how == "refuse":
                raise Refused(401, "x", "y")
            if how == "bug":
                raise RuntimeError("a secret")
        finally:
            cleaned.append(how)

    task = owner.spawn(flow())
    book.after(1.0) << ([CreateBlob(OperationId(50)), Cancel(OperationId(50))] if how == "ask" else [])
    assert (cleaned, owner.told, task.done) == ([how], [], True)
    assert len(book.logs) == (how == "bug")
    book.after(100.0).drain_commands()


class _Half(Deferred):
    def to_result(self, outcome: int) -> object:
        return 84 // outcome


def test_a_deferred_resolves_once() -> None:
    later, told = _Half(), list[object]()
    assert later.resolve(1) is False  # no flow waits yet
    later.then(told.append)
    assert (later.resolve(2), later.resolve(3)) == (True, False)
    later.then(told.append)
    assert later.resolve(0) is True
    later.then(told.append)
    later.cancel()
    assert later.resolve(4) is False
    half, error = told
    assert (half, type(error)) == (42, ZeroDivisionError)
    plain = Deferred()
    plain.then(told.append)
    plain.resolve("as it is")
    assert told[2] == "as it is"
