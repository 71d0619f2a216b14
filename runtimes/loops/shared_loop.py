"""A loop that runs inside the selector of another loop, while that one waits."""

from __future__ import annotations

from selectors import DefaultSelector, SelectorKey
from typing import Protocol

from runtimes.loops.loop import Source
from runtimes.loops.threads_loop import ThreadsLoop

__all__ = ["SharedSelector", "SharedLoop"]


class EventLike(Protocol):
    """An event of the outer loop."""

    def set(self) -> object:
        """Set the event."""

    async def wait(self) -> object:
        """Wait until the event is set."""


class SharedSelector(DefaultSelector):
    """Selector of the outer loop; a wait in it runs the loop `ours` until the outer loop has work."""

    ours: SharedLoop | None = None
    asked = False  # the outer loop has work

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Implement `selectors.BaseSelector.select`: run `ours`, then return the outer loop's ready descriptors."""
        if self.ours is None:
            return super().select(timeout)
        self.asked = timeout is not None
        self.ours.wait(timeout)
        return super().select(0.0)


class SharedLoop(ThreadsLoop):
    """A `ThreadsLoop` that runs while the outer loop waits; the outer loop's selector is one of its sources.

    `over` is an event of the outer loop that may be set outside of its tasks.
    """

    def __init__(self, theirs: SharedSelector, over: EventLike) -> None:
        super().__init__()
        self._over = over
        self._bug: Exception | None = None
        self._theirs = theirs
        self.watch_read(_OuterSelectorSource(theirs))
        theirs.ours = self

    async def serve(self) -> None:
        """Wait until `finish`; raise an exception that escaped from a callback, which is a bug."""
        await self._over.wait()
        if self._bug is not None:
            raise self._bug

    def end(self) -> None:
        """Detach from the outer selector and close the poller."""
        self._theirs.ours = None
        super().end()

    def finish(self) -> None:
        """Implement `Loop.finish`."""
        super().finish()
        self._over.set()

    def wait(self, longest: float | None) -> None:
        """Run this loop until the outer one has work, for at most `longest` seconds (no limit if None)."""
        theirs = self._theirs
        try:
            self.run_once(0.0 if self._soon else longest)
            while not theirs.asked:
                self.run_once()
        except Exception as error:  # noqa: BLE001, RUF100 - raised by `serve`
            self._bug = error
            self._over.set()


class _OuterSelectorSource(Source):
    """The outer loop's selector as a source of this loop."""

    sock: SharedSelector
    __slots__ = ()

    def on_readable(self) -> None:
        """Mark that a descriptor of the outer loop is ready."""
        self.sock.asked = True
