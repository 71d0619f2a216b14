"""Our own loop, in the place where another one waits: in the selector that it is given."""

from __future__ import annotations

from selectors import DefaultSelector, SelectorKey
from typing import Protocol

from runtimes.loops.loop import Source
from runtimes.loops.threads_loop import ThreadsLoop

__all__ = ["SharedSelector", "SharedLoop"]


class EventLike(Protocol):
    """An event of the other loop."""

    def set(self) -> object:
        """It has happened."""

    async def wait(self) -> object:
        """Until it has."""


class SharedSelector(DefaultSelector):
    """What another loop waits in: there `ours` does what is ours, until the other has something to do."""

    ours: SharedLoop | None = None
    asked = False  # it has

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """What is theirs; see `selectors`."""
        if self.ours is None:
            return super().select(timeout)
        self.asked = timeout is not None
        self.ours.wait(timeout)
        return super().select(0.0)


class SharedLoop(ThreadsLoop):
    """What `ThreadsLoop` is, while another loop waits, whose own selector is one more source of ours.

    `over` is an event of that loop, which may be set outside of its tasks.
    """

    def __init__(self, theirs: SharedSelector, over: EventLike) -> None:
        super().__init__()
        self._over = over
        self._bug: Exception | None = None
        self._theirs = theirs
        self.watch_read(_OuterSelectorSource(theirs))
        theirs.ours = self

    async def serve(self) -> None:
        """Until `finish`; raises what escaped from a callback, which is a bug."""
        await self._over.wait()
        if self._bug is not None:
            raise self._bug

    def end(self) -> None:
        """Dispose of what is ours."""
        self._theirs.ours = None
        super().end()

    def finish(self) -> None:
        """See `Loop`."""
        super().finish()
        self._over.set()

    def wait(self, longest: float | None) -> None:
        """Do what is ours for that many seconds at most, until the other loop has something to do."""
        theirs = self._theirs
        try:
            self.run_once(0.0 if self._soon else longest)
            while not theirs.asked:
                self.run_once()
        except Exception as error:  # noqa: BLE001, RUF100 - kept for `serve` to raise
            self._bug = error
            self._over.set()


class _OuterSelectorSource(Source):
    """Their selector in ours."""

    sock: SharedSelector
    __slots__ = ()

    def on_readable(self) -> None:
        """One of their own descriptors is ready."""
        self.sock.asked = True
