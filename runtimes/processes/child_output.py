"""Output of a child as facts of a channel; nothing is read during a pause.

After the child's exit, the output that was written before is delivered, up to about `MAX_AFTER_EXIT` bytes. The output
then ends even if a background process still has it open.
"""

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
    """The reading end of a pipe, or a terminal; `flush` handles `on_writable`.

    `settled` is called when the child has exited and its output is over. `post` makes a call on the loop's thread.
    """

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
        self._ended = False  # the last byte and `ReadClosed` were delivered
        self._exited = False
        self._left = MAX_AFTER_EXIT
        self.over = False
        self.flush: Callable[[], None] | None = None  # set for a terminal

    def start(self) -> None:
        """Start reading, unless paused, ended or over."""
        if not (self._paused or self._ended or self.over):
            self._pump.loop.watch_read(self)

    def pause(self) -> None:
        """Stop reading."""
        self._paused = True
        self._pump.loop.unwatch_read(self)

    def resume(self) -> None:
        """Resume reading."""
        if not self._paused:
            return
        self._paused = False
        if self._exited:
            self._post(self._drain)  # later, because the core is being called now
        else:
            self.start()

    def exited(self) -> None:
        """Deliver the remaining output of a child that has exited."""
        self._exited = True
        self._drain()

    def close(self) -> None:
        """Close the descriptor without a report."""
        self.over = True
        self._pump.loop.close(self)

    def on_readable(self) -> None:
        """Read the available bytes, up to 64 KiB, and report them, and the end if it follows.

        The loop calls again for more.
        """
        data, end, empty = self._read_available()
        if data:
            self._left -= len(data) if self._exited else 0
            self._pump.feed(Received(self.ch, data))
        if self.over or self._paused:
            return  # an end is read again after the pause
        if end:
            self._ended = True
            self._pump.loop.unwatch_read(self)
            self._pump.feed(ReadClosed(self.ch))
            if self._exited and not self.over:
                self._check_finished()
        elif self._exited and (empty or self._left <= 0):
            self._check_finished()

    def on_writable(self) -> None:
        """Write queued input to the terminal, whose descriptor is shared with the output."""
        if self.flush is not None:
            self.flush()

    def _drain(self) -> None:
        while not (self._paused or self._ended or self.over):
            self.on_readable()
        if self._ended and not self.over:
            self._check_finished()

    def _read_available(self) -> tuple[bytes, bool, bool]:
        """Return bytes, whether the end follows, and whether a read found no more. A terminal gives 4 KiB a read."""
        parts: list[bytes] = []
        size, end, empty = 0, False, False
        # A smaller read would leave a rest in the kernel, which then fetches nothing more.
        while size <= READ_SIZE - CHUNK_SIZE:
            part = self._read(READ_SIZE - size)
            if not part and self._terminal and (self._exited or part is not None):
                part = self._read(READ_SIZE - size)  # waits for the kernel's worker, which may still move output
            if not part:
                empty, end = part is None, part is not None
                break
            size += len(part)
            parts.append(escaped(part) if self._escape else part)  # the kernel fills the terminal's buffer meanwhile
            if not self._terminal:
                break
        return (parts[0] if len(parts) == 1 else b"".join(parts)), end, empty

    def _read(self, size: int) -> bytes | None:
        """Return up to `size` bytes; an empty value at the end, and None where no more are available now."""
        try:
            return os.read(self.sock.fileno(), size)
        except BlockingIOError:
            return None
        except OSError:  # EIO: no process has the terminal open any more, pty(7)
            return b""

    def _check_finished(self) -> None:
        self.over = True
        self._pump.loop.unwatch_read(self)
        self._settled()
