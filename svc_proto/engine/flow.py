"""Flows: waiting work, written as generators.

A flow calls `yield from run_operation(engine, ...)` and continues with the typed answer. Rules:

- A wait has a deadline, which may be infinite, an owner whose end cancels it, and exactly one answer.
- Between two `yield from` no other code runs. After each, check again what may have changed.
- A flow holds a plan, never state that others need: that belongs into a state machine.
- A flow may be cancelled by its own action (such as ending the process): it then stops at its next wait.
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
    """Value that a flow yields: the ticket and operation that it waits for, and the monotonic time of the timeout.

    A wait for a ticket alone has no operation.
    """

    ticket: OperationId
    until: float
    operation: Operation[Any] | None = None


Flow: TypeAlias = Generator[WaitRequest, object, T]
TIMED_OUT = Failure(FailureKind.TIMED_OUT, "no answer in time")


def run_operation(engine: Engine, operation: Operation[T], *, within: float = 30.0) -> Flow[T | Failure]:
    """Issue an operation and return its answer, which is a `Failure` if the operation failed.

    Without an answer after `within` seconds, the operation is cancelled and a `Failure` TIMED_OUT returned.
    """
    engine.emit(operation)
    started = engine.now.mono
    answer = yield WaitRequest(operation.op, started + within, operation)
    if type(operation) is Query:
        engine.counts.store.observe(engine.now.mono - started)
        engine.counts.store_failures += isinstance(answer, Failure)
    return cast("T | Failure", answer)  # checked by the engine


def wait(ticket: OperationId, until: float) -> Flow[object]:
    """Wait until `engine.resume(ticket, value)` is called and return the value.

    Return a `Failure` TIMED_OUT if that did not happen by the monotonic time `until`.
    """
    return (yield WaitRequest(ticket, until))


def sleep(engine: Engine, seconds: float) -> Flow[None]:
    """Wait for `seconds`."""
    yield WaitRequest(engine.new_op(), engine.now.mono + seconds)


class Deferred:
    """Result that is not known yet: a handler returns it instead of a response, and `resolve` supplies the response.

    The code that resolves it must also enforce a deadline.
    """

    __slots__ = ("_on_result",)

    is_running = False  # as in `Task`: it runs no code by itself

    def __init__(self) -> None:
        self._on_result: Callable[[Any], object] | None = None

    def then(self, on_result: Callable[[Any], object]) -> None:
        """Register the callback for the result."""
        self._on_result = on_result

    def resolve(self, outcome: object) -> bool:
        """Pass `to_result(outcome)`, or the exception that it raises, to the callback.

        Return False if there is no callback, or if it was called or dropped before.
        """
        on_result, self._on_result = self._on_result, None
        if on_result is None:
            return False
        try:
            result = self.to_result(outcome)
        except Exception as error:  # the code that resolves it is not at fault
            result = error
        on_result(result)
        return True

    def to_result(self, outcome: Any) -> object:
        """Convert an outcome into the result; by default, return it unchanged."""
        return outcome

    def cancel(self) -> None:
        """Drop the callback: the owner is gone. Harmless after the answer."""
        self._on_result = None


class Task:
    """A flow in progress, made by `Engine.spawn`; its owner calls `cancel()` when it ends.

    A task that is cancelled while it runs is stopped at its next wait, and no callback is called.
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
        self._timer: Timer | None = None  # made at the first wait that has a deadline
        self._wait: WaitRequest | None = None  # the current wait, unless the task runs or is done
        self.done = False

    @property
    def is_running(self) -> bool:
        """Report whether the flow's code is executing at this moment."""
        return self._wait is None and not self.done

    def accepts(self, result: object) -> bool:
        """Report whether `result` has the type of the awaited operation's answer; True if it awaits no operation."""
        operation = self._wait.operation if self._wait is not None else None
        return operation is None or operation.accepts(result)

    def resume(self, answer: object) -> None:
        """Continue with the answer to the current wait."""
        if self._timer is not None:
            self._timer.cancel()
        self._wait = None
        self.advance(answer)

    def cancel(self) -> None:
        """Stop the flow, run its `finally` blocks and cancel its operation. Harmless when done.

        A flow that runs at this moment is stopped at its next wait.
        """
        self._retire()
        if self._wait is not None:
            self._stop()

    def advance(self, answer: object) -> None:
        """Run the flow up to its next wait or end; at its end call `on_done` or `on_error`, unless it was cancelled."""
        try:
            wait_request = self._flow.send(answer)
        except StopIteration as end:
            self._end(self._on_done, end.value)
        except Exception as error:
            self._end(self._on_error, error)
        else:
            self._wait = wait_request
            if self.done:
                self._stop()
                return
            if wait_request.until < inf:
                if self._timer is None:
                    self._timer = self._engine.timers.timer(self._give_up)
                self._timer.set(wait_request.until)
            self._engine.parked[wait_request.ticket] = self

    def _end(self, on_end: Callable[[Any], object], outcome: object) -> None:
        cancelled = self.done
        self._retire()
        if not cancelled:
            try:
                on_end(outcome)
            except Exception as error:  # the code that resumed the flow is not at fault
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
        except Exception as error:  # from a `finally` block: the owner has more to clean up
            self._engine.log_bug(error)

    def _abandon(self) -> None:
        waited, self._wait = cast("WaitRequest", self._wait), None
        engine, ticket = self._engine, waited.ticket
        engine.parked.pop(ticket, None)
        if waited.operation is not None:
            engine.abandoned[ticket] = waited.operation
            engine.emit(Cancel(ticket))
