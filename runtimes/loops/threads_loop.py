"""threads: epoll for sockets, or what there is in its place, and the host's worker threads for the rest.

It is also the pattern for other event loops (docs/howto/run-on-your-own-loop.md); it needs only the core's packages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from runtimes.host.host import Host, Program
from runtimes.loops.loop import Source
from runtimes.loops.poller import READ, WRITE, new_poller
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

__all__ = ["ThreadsLoop", "run"]

MAX_EVENTS = 64  # descriptors that one question of the kernel tells of


def run(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
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
    """The orders of `runtimes.loops.loop.Loop`: what is watched, one time to wake, and whether it is over."""

    host: Host
    tells_once = False

    def __init__(self) -> None:
        self.polling = new_poller()
        self.finished = False
        self._sources: dict[int, Source] = {}  # what is watched, by descriptor
        self._gone: set[int] = set()  # what is not watched any more, since the kernel was last asked
        self._wake = math.inf
        self._soon: list[Source] = []

    def run(self) -> None:
        """Wait and call, until `finish`."""
        self.run_once(0.0)
        while not self.finished:
            self.run_once()

    def run_once(self, longest: float | None = None) -> None:
        """Wait until something is ready or due, that many seconds at most, then call for all of it."""
        if self._wake < math.inf:
            left = self._wake - time.monotonic()
            if longest is None or left < longest:
                longest = max(0.0, left)
        sources, gone = self._sources, self._gone
        gone.clear()
        for fd, events in self.polling.poll(longest, MAX_EVENTS):
            if (
                fd in gone
            ):  # since a callback before this one; its number may be another's by now, who is told next time
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
                if source.sock.fileno() >= 0:  # nobody has closed it meanwhile
                    source.on_writable()

    def end(self) -> None:
        """Dispose of what it is made of."""
        self.polling.close()

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

    def call_soon(self, source: Source) -> None:
        """See `Loop`. The kernel, which says yes nearly always, is not asked."""
        self._soon.append(source)

    def close(self, source: Source) -> None:
        """See `Loop`."""
        self._watch(source, read=False, write=False)
        source.sock.close()

    def set_wake_time(self, when: float) -> None:
        """See `Loop`."""
        self._wake = when

    def finish(self) -> None:
        """See `Loop`."""
        self.finished = True

    def _watch(self, source: Source, *, read: bool, write: bool) -> None:
        if source.want_read is read and source.want_write is write:
            return  # each joined write asks for what is so already
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
