"""What a child writes, as facts of a channel: held back by a pause, and delivered to the end after it has exited.

The end is not that nobody holds the other end any more: a process in the background may do so for hours. It is when
the child has exited and nothing is left that it can have written before.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from runtimes.host.pump import Pump
from runtimes.loops.loop import Descriptor, Source
from runtimes.net.tcp_channel import READ_SIZE
from svc_proto.basics.strict_json import escaped
from svc_proto.facts import ChannelId, ReadClosed, Received

__all__ = ["MAX_AFTER_EXIT", "ChildOutput"]

CHUNK_SIZE = 4096  # bytes that a terminal holds for its reader, N_TTY_BUF_SIZE of Linux
MAX_AFTER_EXIT = 1024 * 1024  # bytes read after the exit: more than a terminal or a pipe holds (pipe-max-size, proc(5))


class ChildOutput(Source):
    """The reading end of a pipe, or a terminal, whose `on_writable` is for another to serve.

    `settled` is called when all is delivered and the child has exited. `post` makes a call on the loop's thread.
    """

    __slots__ = (
        "_ended",
        "_escape",
        "_exited",
        "_left",
        "_paused",
        "_post",
        "_pump",
        "_settled",
        "_terminal",
        "ch",
        "flush",
        "over",
    )

    def __init__(
        self,
        pump: Pump,
        ch: ChannelId,
        fd: int,
        *,
        terminal: bool,
        escape: bool = False,
        settled: Callable[[], None],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(Descriptor(fd))
        self._pump = pump
        self.ch = ch
        self._terminal = terminal
        self._escape = escape
        self._settled = settled
        self._post = post
        self._paused = False
        self._ended = False  # the last byte was delivered, and so was `ReadClosed`
        self._exited = False
        self._left = MAX_AFTER_EXIT
        self.over = False
        self.flush: Callable[[], None] | None = None  # set for a terminal

    def start(self) -> None:
        """Read, unless told otherwise."""
        if not (self._paused or self._ended or self.over):
            self._pump.loop.watch_read(self)

    def pause(self) -> None:
        """Read no more."""
        self._paused = True
        self._pump.loop.unwatch_read(self)

    def resume(self) -> None:
        """Read again."""
        if not self._paused:
            return
        self._paused = False
        if self._exited:
            self._post(self._drain)  # not now: the core is at work
        else:
            self.start()

    def exited(self) -> None:
        """The child is gone: deliver what it left."""
        self._exited = True
        self._drain()

    def close(self) -> None:
        """Close the descriptor; nothing more is told."""
        self.over = True
        self._pump.loop.close(self)

    def on_readable(self) -> None:
        """Read what is there, up to 64 KiB; the loop calls again while there is more."""
        data, end, empty = self._read_available()
        if data:
            self._left -= len(data) if self._exited else 0
            self._pump.feed(Received(self.ch, data))
        if self.over or self._paused:
            return  # an end that was seen is seen again
        if end:
            self._ended = True
            self._pump.loop.unwatch_read(self)
            self._pump.feed(ReadClosed(self.ch))
            if self._exited and not self.over:
                self._check_finished()
        elif self._exited and (empty or self._left <= 0):
            self._check_finished()

    def on_writable(self) -> None:
        """The terminal takes input again."""
        if self.flush is not None:
            self.flush()

    def _drain(self) -> None:
        while not (self._paused or self._ended or self.over):
            self.on_readable()
        if self._ended and not self.over:
            self._check_finished()

    def _read_available(self) -> tuple[bytes, bool, bool]:
        """Bytes, whether the end follows, and whether nothing more is there now. A terminal gives 4 KiB at a time."""
        parts: list[bytes] = []
        size, end, empty = 0, False, False
        fd = self.sock.fileno()
        while (
            size <= READ_SIZE - CHUNK_SIZE
        ):  # a smaller read leaves a rest behind, and the kernel fetches none meanwhile
            try:
                part = os.read(fd, READ_SIZE - size)
            except BlockingIOError:
                empty = True
                break
            except OSError:  # EIO: nobody has the terminal open any more, pty(7)
                part = b""
            if not part:
                end = True
                break
            size += len(part)
            parts.append(escaped(part) if self._escape else part)  # meanwhile the kernel fills the terminal
            if not self._terminal:
                break
        return (parts[0] if len(parts) == 1 else b"".join(parts)), end, empty

    def _check_finished(self) -> None:
        self.over = True
        self._pump.loop.unwatch_read(self)
        self._settled()
