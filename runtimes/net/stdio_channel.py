"""Standard input and output of this process as one channel, accepted from the address `stdio`.

Pipes and terminals are polled like sockets. Descriptors that the kernel cannot poll (a file, the null device) never
block: they are read piece by piece between other work.
"""

import os
import stat
from collections.abc import Callable

from runtimes.failures import short_reason
from runtimes.host.pump import Pump
from runtimes.loops.loop import OneWaySource
from runtimes.net.outbox import OUTBOX_LIMIT, Outbox
from runtimes.net.tcp_channel import READ_SIZE
from svc_proto.facts import Accepted, Address, ChannelId, ReadClosed, Received

__all__ = ["STDIO", "StdioListener"]

STDIO = Address("stdio", 0)
Post = Callable[[Callable[[], None]], None]  # makes a call on the loop's thread, later


class StdioListener:
    """Acceptor of one channel, which reads and writes duplicates: the descriptors themselves stay open."""

    def __init__(self, pump: Pump, post: Post, *, fds: tuple[int, int] = (0, 1)) -> None:
        self._pump = pump
        self._post = post
        self._fds = fds
        self._closed = False

    def start(self) -> None:
        """Report the channel of standard input and output to the core as accepted, once, and start reading."""
        if self._closed:
            return
        self._closed = True
        pump = self._pump
        channel = _StdioChannel(pump, pump.next_accepted(), self._post, self._fds)
        pump.channels[channel.ch] = channel
        pump.feed(Accepted(channel.ch, STDIO, STDIO))
        channel.start()

    def close(self) -> None:
        """Stop accepting."""
        self._closed = True

    def abandon(self) -> None:
        """Stop accepting; the pump closes the channel if it is open."""
        self.close()


class _StdioChannel:
    def __init__(self, pump: Pump, ch: ChannelId, post: Post, fds: tuple[int, int]) -> None:
        self.pump = pump
        self.ch = ch
        self.unreported = 0
        self._post = post
        self._blocking = [(fd, os.get_blocking(fd)) for fd in fds]
        ours = [os.dup(fd) for fd in fds]
        self._input, self._output = OneWaySource(ours[0], self._read), OneWaySource(ours[1], self._flush)
        self._waitable, _ = map(_waitable, ours)
        self._outbox = Outbox(self._write)
        self._paused = False
        self._posted = False
        self._ended = False
        self._gone = False

    def start(self) -> None:
        """Start reading, unless paused, ended or closed."""
        if self._paused or self._ended or self._gone:
            return
        if self._waitable:
            self.pump.loop.watch_read(self._input)
        elif not self._posted:
            self._posted = True
            self._post(self._read_on)

    def pause(self) -> None:
        """Implement `OpenChannel.pause`: stop reading the standard input."""
        self._paused = True
        self.pump.loop.unwatch_read(self._input)

    def resume(self) -> None:
        """Implement `OpenChannel.resume`."""
        self._paused = False
        self.start()

    def send(self, data: bytes) -> None:
        """Write `data` after the bytes of earlier sends; over `OUTBOX_LIMIT` unsent bytes, close the channel."""
        if not self._outbox.send(data):
            self.end(f"over {OUTBOX_LIMIT} unsent bytes")
        elif self._outbox:
            self.pump.loop.watch_write(self._output)

    def close_write(self) -> None:
        """Do nothing: standard output ends only with the process."""

    def end(self, reason: str, *, reset: bool = False) -> None:
        """Close the duplicates of both descriptors and report `Closed` to the core."""
        if not self._gone:
            self.abandon()
            self.pump.closed(self, reason)

    def abandon(self) -> None:
        """Close the duplicates of both descriptors, restore the blocking mode of the originals; nothing is reported."""
        if self._gone:
            return
        self._gone = True
        self._outbox.close()
        for end in (self._input, self._output):
            self.pump.loop.close(end)
        for fd, blocking in self._blocking:
            os.set_blocking(fd, blocking)

    def _read_on(self) -> None:
        self._posted = False
        if not self._paused and not self._gone:
            self._read()
            self.start()

    def _read(self) -> None:
        try:
            data = os.read(self._input.sock.fileno(), READ_SIZE)
        except BlockingIOError:
            return
        except OSError:  # EIO of a terminal that was hung up
            data = b""
        if data:
            self.pump.feed(Received(self.ch, data))
            return
        self._ended = True
        self.pump.loop.unwatch_read(self._input)
        self.pump.feed(ReadClosed(self.ch))

    def _flush(self) -> None:
        if self._outbox.flush():
            self.pump.loop.unwatch_write(self._output)

    def _write(self, data: bytes | memoryview) -> int:
        try:
            n = os.write(self._output.sock.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.end(short_reason(error))
            return 0
        self.pump.sent(self, n)
        return n


def _waitable(fd: int) -> bool:
    """Report whether the kernel can poll a descriptor; such a descriptor becomes non-blocking."""
    mode = os.fstat(fd).st_mode
    waitable = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
    if waitable:
        os.set_blocking(fd, False)
    return waitable
