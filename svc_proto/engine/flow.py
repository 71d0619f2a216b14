"""Flows: work that waits, written as generators.

A flow asks by `yield from engine.ask(...)` and goes on with the typed answer. Rules:

- A wait has a deadline, an owner whose death cancels it, and exactly one answer.
- Between two `yield from` nothing else runs. After each, check again what may have changed.
- A flow holds a plan, never state that others need: that lives in a machine.
- A failed operation is an answer (`Failure`), not an exception. A flow may raise `Refused` to its owner.
- `finally` blocks may emit commands (release a file), but must not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from attrs import frozen

from svc_proto.commands import Cancel, Operation
from svc_proto.facts import Failure, FailureKind, OperationId

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["Flow", "Task", "TaskState", "Wait", "ask", "sleep", "wait"]

T = TypeVar("T")


@frozen
class Wait:
    """What a flow yields: the ticket it waits for and the monotonic second at which it gives up."""

    ticket: OperationId
    until: float
    operation: Operation[Any] | None = None


Flow: TypeAlias = Generator[Wait, object, T]
TIMED_OUT = Failure(FailureKind.TIMED_OUT, "no answer in time")


def ask(engine: Engine, operation: Operation[T], *, within: float = 30.0) -> Flow[T | Failure]:
    """Order an operation and wait at most `within` seconds for its answer."""
    engine.emit(operation)
    answer = yield Wait(operation.op, engine.now.mono + within, operation)
    return cast("T | Failure", answer)  # the engine has checked it


def wait(ticket: OperationId, until: float) -> Flow[object]:
    """Wait until someone calls `engine.resume(ticket, value)`; a `Failure` at the monotonic time `until`."""
    return (yield Wait(ticket, until))


def sleep(engine: Engine, seconds: float) -> Flow[None]:
    """Let time pass."""
    yield Wait(engine.new_op(), engine.now.mono + seconds)


class TaskState(Enum):
    """Life of a task; DONE is final."""

    READY = "ready"
    WAITING = "waiting"
    DONE = "done"


class Task:
    """One running flow. Made by `Engine.spawn`; `cancel()` is what its owner calls when it dies."""

    __slots__ = ("_engine", "_flow", "_on_done", "_on_error", "_timer", "_wait", "name", "state")

    def __init__(
        self,
        engine: Engine,
        flow: Flow[Any],
        *,
        name: str,
        on_done: Callable[[Any], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._engine = engine
        self._flow = flow
        self._on_done = on_done
        self._on_error = on_error
        self._timer = engine.timers.timer(f"flow {name}", self._give_up)
        self._wait: Wait | None = None
        self.name = name
        self.state = TaskState.READY

    def step(self, answer: object) -> None:
        """Run the flow up to its next wait with the answer to the last one (None to start it)."""
        self._wait = None
        self.state = TaskState.READY
        try:
            wanted = self._flow.send(answer)
        except StopIteration as end:
            self._finish()
            self._on_done(end.value)
        except Exception as error:
            self._finish()
            self._on_error(error)
        else:
            self._wait = wanted
            self.state = TaskState.WAITING
            self._timer.set(wanted.until)
            self._engine.park(wanted.ticket, self)

    def accepts(self, result: object) -> bool:
        """Whether `result` is of the type that the operation waited for promises."""
        operation = self._wait.operation if self._wait is not None else None
        return operation is None or operation.accepts(result)

    def resume(self, answer: object) -> None:
        """Called by the engine with the answer to the current wait."""
        self._timer.cancel()
        self.step(answer)

    def cancel(self) -> None:
        """The owner is gone: stop here, run `finally` blocks, give up what was asked. Harmless when done."""
        if self.state is TaskState.DONE:
            return
        self._abandon()
        self._finish()
        self._flow.close()

    def _give_up(self) -> None:
        self._abandon()
        self.step(TIMED_OUT)

    def _abandon(self) -> None:
        waited, self._wait = self._wait, None
        if waited is None:
            return
        self._engine.unpark(waited.ticket, waited.operation)
        if waited.operation is not None:
            self._engine.emit(Cancel(waited.ticket))

    def _finish(self) -> None:
        self.state = TaskState.DONE
        self._timer.cancel()
        self._engine.retire(self)
