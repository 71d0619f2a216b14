"""A loop of the package's own: epoll (or the system's selector) for sockets, worker threads for blocking work.

It is also the pattern for other event loops (docs/howto/run-on-your-own-loop.md); it needs only the core's packages.
"""

import math
import time
from collections.abc import Sequence

from runtimes.host.host import Host, Program
from runtimes.loops.loop import Source
from runtimes.loops.poller import READ, WRITE, new_poller
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

__all__ = ["ThreadsLoop", "run"]

MAX_EVENTS = 64  # most descriptors that one poll returns


def run(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Run the programs on this loop; return the `Exit` of each core."""
    loop = ThreadsLoop()
    loop.host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
    try:
        loop.host.start()
        loop.run()
    finally:
        loop.host.close()
        loop.end()
    return loop.host.exit_codes


class ThreadsLoop:
    """Event loop of this package: implements `Loop` with a poller and one time to wake."""

    host: Host

    def __init__(self) -> None:
        self.polling = new_poller()
        self.finished = False
        self._sources: dict[int, Source] = {}  # watched sources by descriptor
        self._gone: set[int] = set()  # descriptors unwatched since the last poll
        self._wake = math.inf
        self._soon: list[Source] = []

    def run(self) -> None:
        """Poll and call the callbacks, until `finish`."""
        self.run_once(0.0)
        while not self.finished:
            self.run_once()

    def run_once(self, longest: float | None = None) -> None:
        """Poll until the time to wake at the latest, and for at most `longest` seconds, then make the due calls."""
        if self._wake < math.inf:
            left = self._wake - time.monotonic()
            if longest is None or left < longest:
                longest = max(0.0, left)
        sources, gone = self._sources, self._gone
        gone.clear()
        for fd, events in self.polling.poll(longest, MAX_EVENTS):
            # Unwatched by an earlier callback. The number may belong to a new source by now, which the next poll
            # reports.
            if fd in gone:
                continue
            source = sources[fd]
            if events & ~WRITE and source.want_read:
                source.on_readable()
            if events & ~READ and source.want_write:
                source.on_writable()
        if time.monotonic() >= self._wake:
            self._wake = math.inf
            self.host.on_timer()
        while self._soon:
            soon, self._soon = self._soon, []
            for source in soon:
                if source.sock.fileno() >= 0:  # not closed since
                    source.on_writable()

    def end(self) -> None:
        """Close the poller."""
        self.polling.close()

    def watch_read(self, source: Source) -> None:
        """Implement `Loop.watch_read`."""
        self._watch(source, read=True, write=source.want_write)

    def unwatch_read(self, source: Source) -> None:
        """Implement `Loop.unwatch_read`."""
        self._watch(source, read=False, write=source.want_write)

    def watch_write(self, source: Source) -> None:
        """Implement `Loop.watch_write`."""
        self._watch(source, read=source.want_read, write=True)

    def unwatch_write(self, source: Source) -> None:
        """Implement `Loop.unwatch_write`."""
        self._watch(source, read=source.want_read, write=False)

    def call_soon(self, source: Source) -> None:
        """Call `source.on_writable()` at the end of this or the next `run_once`, unless the source is closed then."""
        self._soon.append(source)

    def close(self, source: Source) -> None:
        """Implement `Loop.close`."""
        self._watch(source, read=False, write=False)
        source.sock.close()

    def set_wake_time(self, when: float) -> None:
        """Implement `Loop.set_wake_time`: store the time."""
        self._wake = when

    def finish(self) -> None:
        """Implement `Loop.finish`: set `finished`."""
        self.finished = True

    def _watch(self, source: Source, *, read: bool, write: bool) -> None:
        if source.want_read is read and source.want_write is write:
            return  # each joined write requests the present state again
        before = source.want_read or source.want_write
        source.want_read, source.want_write = read, write
        events, fd = READ * read | WRITE * write, source.sock.fileno()
        if events and before:
            self.polling.modify(fd, events)
        elif events:
            self.polling.register(fd, events)
            self._sources[fd] = source
        elif before:
            self.polling.unregister(fd)
            self._gone.add(fd)
            del self._sources[fd]
