"""Flows: work that waits, written as generators.

A flow asks by `yield from ask(engine, ...)` and goes on with the typed answer. Rules:

- A wait has a deadline, an owner whose death cancels it, and exactly one answer.
- Between two `yield from` nothing else runs. After each, check again what may have changed.
- A flow holds a plan, never state that others need: that lives in a machine.
- A flow may be cancelled by what it does itself (it ends the process, say): it then stops at its next wait.
- A failed operation is an answer (`Failure`), not an exception. A flow may raise `Refused` to its owner.
- `finally` blocks may emit commands (release a file), but must not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import Cancel, Operation, Query
from svc_proto.facts import Failure, FailureKind, OperationId

if TYPE_CHECKING:
    from svc_proto.basics.timers import Timer
    from svc_proto.engine.core import Engine

__all__ = ["Flow", "Deferred", "Task", "WaitRequest", "run_operation", "sleep", "wait"]

T = TypeVar("T")


@fast_frozen
class WaitRequest:
    """What a flow yields: the ticket it waits for and the monotonic second at which it gives up."""

    ticket: OperationId
    until: float
    operation: Operation[Any] | None = None


Flow: TypeAlias = Generator[WaitRequest, object, T]
TIMED_OUT = Failure(FailureKind.TIMED_OUT, "no answer in time")


def run_operation(engine: Engine, operation: Operation[T], *, within: float = 30.0) -> Flow[T | Failure]:
    """Order an operation and wait at most `within` seconds for its answer."""
    engine.emit(operation)
    asked = engine.now.mono
    answer = yield WaitRequest(operation.op, asked + within, operation)
    if type(operation) is Query:
        engine.counts.store.observe(engine.now.mono - asked)
        engine.counts.store_failures += isinstance(answer, Failure)
    return cast("T | Failure", answer)  # the engine has checked it


def wait(ticket: OperationId, until: float) -> Flow[object]:
    """Wait until someone calls `engine.resume(ticket, value)`; a `Failure` at the monotonic time `until`."""
    return (yield WaitRequest(ticket, until))


def sleep(engine: Engine, seconds: float) -> Flow[None]:
    """Let time pass."""
    yield WaitRequest(engine.new_op(), engine.now.mono + seconds)


class Deferred:
    """What waits for one call, and needs no flow: a handler returns it in place of its answer, which `to_result` makes.

    Whoever keeps it keeps its deadline, too.
    """

    __slots__ = ("_take",)

    is_running = False  # as of a task: it does nothing by itself

    def __init__(self) -> None:
        self._take: Callable[[Any], object] | None = None

    def then(self, take: Callable[[Any], object]) -> None:
        """Have the answer, when it comes."""
        self._take = take

    def resolve(self, outcome: object) -> bool:
        """This is what it waited for; False if nobody waits for it any more."""
        take, self._take = self._take, None
        if take is None:
            return False
        try:
            made = self.to_result(outcome)
        except Exception as error:  # whoever gives it is not to blame
            made = error
        take(made)
        return True

    def to_result(self, outcome: Any) -> object:
        """What an outcome comes to; what this raises is given in its place."""
        return outcome

    def cancel(self) -> None:
        """The owner is gone. Harmless when it was answered."""
        self._take = None


class Task:
    """One running flow. Made by `Engine.spawn`; `cancel()` is what its owner calls when it dies.

    One that was cancelled while it ran is done, too: what it asks for next is given up, and nobody is told of its end.
    """

    __slots__ = ("_engine", "_flow", "_on_done", "_on_error", "_timer", "_wait", "done")

    def __init__(
        self,
        engine: Engine,
        flow: Flow[Any],
        *,
        on_done: Callable[[Any], object],
        on_error: Callable[[Exception], object],
    ) -> None:
        self._engine = engine
        self._flow = flow
        self._on_done = on_done
        self._on_error = on_error
        self._timer: Timer | None = None  # one that only waits for what comes for certain needs none
        self._wait: WaitRequest | None = None  # what it waits for, unless it runs or is done
        self.done = False

    @property
    def is_running(self) -> bool:
        """Whether it runs at this very moment, on its own behalf."""
        return self._wait is None and not self.done

    def accepts(self, result: object) -> bool:
        """Whether `result` is of the type that the operation waited for promises."""
        operation = self._wait.operation if self._wait is not None else None
        return operation is None or operation.accepts(result)

    def resume(self, answer: object) -> None:
        """Called by the engine with the answer to the current wait."""
        if self._timer is not None:
            self._timer.cancel()
        self._wait = None
        self.advance(answer)

    def cancel(self) -> None:
        """The owner is gone: stop here, run `finally` blocks, give up what was asked. Harmless when done."""
        self._retire()
        if self._wait is not None:
            self._stop()

    def advance(self, answer: object) -> None:
        """Run the flow up to its next wait, or its first."""
        try:
            wanted = self._flow.send(answer)
        except StopIteration as end:
            self._end(self._on_done, end.value)
        except Exception as error:
            self._end(self._on_error, error)
        else:
            self._wait = wanted
            if self.done:
                self._stop()
                return
            if wanted.until < inf:
                if self._timer is None:
                    self._timer = self._engine.timers.timer(self._give_up)
                self._timer.set(wanted.until)
            self._engine.parked[wanted.ticket] = self

    def _end(self, tell: Callable[[Any], object], outcome: object) -> None:
        cancelled = self.done
        self._retire()
        if not cancelled:
            try:
                tell(outcome)
            except Exception as error:  # whoever resumed us is not to blame for our owner
                self._engine.log_bug(error)
        elif isinstance(outcome, Exception) and not isinstance(outcome, Refused):
            self._engine.log_bug(outcome)

    def _give_up(self) -> None:
        self._abandon()
        self.resume(TIMED_OUT)

    def _retire(self) -> None:
        self.done = True
        self._engine.tasks.pop(self, None)
        if self._timer is not None:
            self._timer.retire()

    def _stop(self) -> None:
        self._abandon()
        try:
            self._flow.close()
        except Exception as error:  # a `finally` block of it: the owner has more to clean up
            self._engine.log_bug(error)

    def _abandon(self) -> None:
        waited, self._wait = cast("WaitRequest", self._wait), None
        engine, ticket = self._engine, waited.ticket
        engine.parked.pop(ticket, None)
        if waited.operation is not None:
            engine.abandoned[ticket] = waited.operation
            engine.emit(Cancel(ticket))
