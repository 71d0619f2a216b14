"""threads: a selector of the standard library for sockets, and the host's worker threads for the rest.

It is also the pattern of a loop of your own (docs/embedding/runtime.md), and needs nothing but the core's own packages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector

from runtimes.host import Host, Program
from runtimes.loop import Source
from runtimes.waker import Handle
from svc_proto.commands import Exit

__all__ = ["ThreadsLoop", "run"]


def run(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    loop = ThreadsLoop()
    loop.host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
    try:
        loop.host.start()
        loop.run()
    finally:
        loop.host.close()
        loop.end()
    return loop.host.outcomes


class ThreadsLoop:
    """The orders of `runtimes.loop.Loop`: what is watched, one time to wake, and whether it is over."""

    host: Host
    tells_once = False

    def __init__(self) -> None:
        self._selector = DefaultSelector()
        self._wake = math.inf
        self._finished = False

    def run(self) -> None:
        """Wait and call, until `finish`."""
        while not self._finished:
            due = None if self._wake == math.inf else max(0.0, self._wake - time.monotonic())
            for key, events in self._selector.select(due):
                source: Source = key.data
                if events & EVENT_READ and source.want_read:  # a callback before this one may have closed it
                    source.on_readable()
                if events & EVENT_WRITE and source.want_write:
                    source.on_writable()
            if time.monotonic() >= self._wake:
                self._wake = math.inf
                self.host.on_timer()

    def end(self) -> None:
        """Dispose of what it is made of."""
        self._selector.close()

    def watch_read(self, source: Source) -> None:
        """See `Loop`."""
        self._watch(source, read=True, write=source.want_write)

    def unwatch_read(self, source: Source) -> None:
        """See `Loop`."""
        self._watch(source, read=False, write=source.want_write)

    def watch_write(self, source: Source) -> None:
        """See `Loop`."""
        self._watch(source, read=source.want_read, write=True)

    def unwatch_write(self, source: Source) -> None:
        """See `Loop`."""
        self._watch(source, read=source.want_read, write=False)

    soon = watch_write

    def close(self, source: Source) -> None:
        """See `Loop`."""
        self._watch(source, read=False, write=False)
        source.sock.close()

    def wake_at(self, when: float) -> None:
        """See `Loop`."""
        self._wake = when

    def finish(self) -> None:
        """See `Loop`."""
        self._finished = True

    def _watch(self, source: Source, *, read: bool, write: bool) -> None:
        before = source.want_read or source.want_write
        source.want_read, source.want_write = read, write
        events = EVENT_READ * read | EVENT_WRITE * write
        if events and before:
            self._selector.modify(source.sock, events, source)
        elif events:
            self._selector.register(source.sock, events, source)
        elif before:
            self._selector.unregister(source.sock)
