"""Threads for blocking work: limited in number, started when needed, daemons so that none delays the exit.

The standard executor joins its threads at interpreter exit, so a name look-up that hangs would hang the process. The
queue itself has no limit: a core limits how many operations it has in progress.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

__all__ = ["ThreadCall", "ThreadPool"]

DoneCallback = Callable[[Any, BaseException | None], None]


class ThreadCall:
    """A call for a thread, and the callback that gets its outcome on the loop's thread."""

    __slots__ = ("_done", "_error", "_result", "_withdrawn", "work")

    def __init__(self, work: Callable[[], object], done: DoneCallback) -> None:
        self.work = work
        self._done = done
        self._result: object = None
        self._error: BaseException | None = None
        self._withdrawn = False

    def withdraw(self) -> None:
        """Skip the call if it has not begun; `done` is called all the same."""
        self._withdrawn = True

    def begin(self) -> bool:
        """Report whether the work is to be done; if it was withdrawn, make that the error of the call."""
        if self._withdrawn:
            self._error = InterruptedError("withdrawn")
        return not self._withdrawn

    def run(self) -> None:
        """Do the work, on a worker thread."""
        if not self.begin():
            return
        try:
            self._result = self.work()
        except BaseException as error:  # noqa: BLE001, RUF100 - a worker must survive any exception
            self._error = error

    def set_result(self, result: object) -> None:
        """Set the result of a call that was done together with others; an exception is its failure."""
        if isinstance(result, BaseException):
            self._error = result
        else:
            self._result = result

    def finish(self) -> None:
        """Call `done` with the outcome, on the loop's thread."""
        self._done(self._result, self._error)


class ThreadPool:
    """Pool of up to `limit` threads; with a limit of one, calls run in the order of submission."""

    def __init__(self, name: str, limit: int, post: Callable[[Callable[[], None]], None]) -> None:
        self._name = name
        self._limit = limit
        self._post = post
        self._queue: SimpleQueue[ThreadCall | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._under_way = 0

    def submit(self, work: Callable[[], object], done: DoneCallback) -> ThreadCall:
        """Run `work` on a thread, then `done(result, error)` on the loop's thread, also after a failure.

        If the pool has no thread and the host can start none, `error` is a `RuntimeError`.
        """

        def deliver(result: object, error: BaseException | None) -> None:
            self._under_way -= 1
            done(result, error)

        job = ThreadCall(work, deliver)
        self._under_way += 1
        if len(self._threads) < min(self._limit, self._under_way):
            self._start_thread()
        if self._threads:
            self._queue.put(job)
        else:  # the host can start no thread
            job.set_result(RuntimeError("no thread"))
            self._post(job.finish)
        return job

    def close(self, patience: float) -> None:
        """Let the threads finish the queued calls and end; wait at most `patience` seconds for them."""
        for _ in self._threads:
            self._queue.put(None)
        deadline = time.monotonic() + patience
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _start_thread(self) -> None:
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        with contextlib.suppress(RuntimeError):  # the host is out of threads: the existing ones continue
            thread.start()
            self._threads.append(thread)

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            for done in self._carry_out(job):
                self._post(done.finish)

    def _carry_out(self, job: ThreadCall) -> Sequence[ThreadCall]:
        """Run a call on a worker and return it; a subclass may run waiting calls with it and return them, too."""
        job.run()
        return (job,)

    def _waiting(self, most: int) -> Iterator[ThreadCall]:
        """Yield up to `most` calls that are queued already."""
        with contextlib.suppress(Empty):
            for _ in range(most):
                if (job := self._queue.get_nowait()) is None:
                    self._queue.put(None)  # the end mark, which `_serve` needs
                    return
                yield job
