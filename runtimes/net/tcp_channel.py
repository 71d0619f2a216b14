"""Channel of one TCP socket: received bytes as facts, a limited outbox, files sent past the core, half-closing.

A `Send` is written at once if the outbox is empty, and the rest waits in the outbox until the socket is writable. Only
a small `Send` right after another waits a moment, so that several leave in one write.
"""

import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from runtimes.failures import short_reason
from runtimes.host.pump import Pump
from runtimes.loops.loop import Source
from runtimes.net.file_body import FileBody
from runtimes.net.outbox import OUTBOX_LIMIT
from svc_proto.facts import ChannelId, ReadClosed, Received

__all__ = ["READ_SIZE", "TcpChannel"]

READ_SIZE = 64 * 1024  # most bytes of one read
COALESCE_DELAY = 0.0003  # s after a write in which a further small one waits until the end of the loop's iteration
COALESCE_SIZE = 16 * 1024  # largest `Send`, in bytes, that is joined with others
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER for zero seconds: close() sends RST

Item: TypeAlias = bytes | memoryview | FileBody


class TcpChannel(Source):
    """A connected TCP or Unix socket; a `TlsChannel` adds TLS."""

    sock: socket.socket
    __slots__ = (
        "_body_running",
        "_fin",
        "_late",
        "_outbox",
        "_paused",
        "_queued",
        "_wrote_at",
        "ch",
        "gone",
        "pump",
        "read_closed",
        "unreported",
        "write_closed",
    )

    def __init__(self, pump: Pump, sock: socket.socket, ch: ChannelId) -> None:
        super().__init__(sock)
        self.pump = pump
        self.ch = ch
        self.unreported = 0
        self.gone = False
        self.read_closed = False
        self.write_closed = False
        self._paused = False
        self._fin = False  # CloseWrite was ordered
        self._outbox: deque[Item] | None = None  # None while empty: an empty deque takes 600 bytes
        self._queued = 0
        self._body_running = False
        self._late = False  # queued bytes have not been passed to the kernel yet
        self._wrote_at = 0.0  # monotonic s

    def start(self) -> None:
        """Start reading, unless paused, closed or at the end; the core has been informed of the channel."""
        if not self._paused and not self.gone and not self.read_closed:
            self.pump.loop.watch_read(self)

    # --- reading -------------------------------------------------------------------------------------------------

    def on_readable(self) -> None:
        """Read from the socket once, and report the bytes or the end."""
        try:
            data = self.sock.recv(READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.end(short_reason(error))
            return
        if data:
            self.pump.feed(Received(self.ch, data))
        else:
            self.read_end()

    def read_end(self) -> None:
        """Report the peer's FIN to the core; close if the FIN of this side was sent."""
        self.read_closed = True
        self.pump.loop.unwatch_read(self)
        self.pump.feed(ReadClosed(self.ch))
        if self.write_closed:
            self.end("")

    def pause(self) -> None:
        """Implement `OpenChannel.pause`: stop reading the socket."""
        self._paused = True
        self.pump.loop.unwatch_read(self)

    def resume(self) -> None:
        """Implement `OpenChannel.resume`."""
        if self._paused:
            self._paused = False
            self.start()

    # --- writing -------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Write `data` after the bytes of earlier sends; drop it after `close_write`.

        Over `OUTBOX_LIMIT` unsent bytes, close the channel.
        """
        if self._fin or not data:
            return
        if self._outbox:
            self._enqueue(data)
            return
        now = self.pump.mono
        if now - self._wrote_at < COALESCE_DELAY and len(data) <= COALESCE_SIZE:
            self._late = True
            self._enqueue(data)
            if not self.gone:
                self.pump.loop.call_soon(self)
            return
        self._wrote_at = now
        n = self.write(data)
        if n < len(data) and not self.gone:
            self._enqueue(memoryview(data)[n:])
            self.wait_writable()

    def send_file(self, body: FileBody) -> None:
        """Write a range of a file after the bytes of earlier sends; after `close_write`, fail its operation."""
        if self._fin:
            body.fail_closed()
            return
        outbox = self._outbox = self._outbox or deque()
        outbox.append(body)
        if len(outbox) == 1:
            self.flush()

    def drop_file(self, body: FileBody) -> None:
        """Stop sending a file; what was queued after it is sent."""
        if self._outbox and body in self._outbox:
            self._outbox.remove(body)
        body.finish()
        if not self._body_running:
            self.wait_writable()  # data or a FIN may be queued after the file

    def close_write(self) -> None:
        """Send FIN after the bytes that are queued."""
        if self._fin:
            return
        self._fin = True
        if not self._outbox:
            self.shut()

    def on_writable(self) -> None:
        """Write queued bytes."""
        self.flush()

    def flush(self) -> None:
        """Write queued bytes and files until the kernel takes no more, then the FIN if it is due."""
        self._late = False
        while (outbox := self._outbox) and not self._body_running:
            item = outbox[0]
            if isinstance(item, FileBody):
                if not self._next_of(outbox, item):
                    return
                continue
            if len(outbox) > 1 and len(item) <= COALESCE_SIZE:
                item = outbox[0] = _joined(outbox)
            n = self.write(item)
            if self.gone:
                return
            self._queued -= n
            if n < len(item):
                outbox[0] = memoryview(item)[n:]
                self.wait_writable()
                return
            outbox.popleft()
        if not self.check_finished():
            return
        if not outbox:
            self._outbox = None
        self.pump.loop.unwatch_write(self)
        if self._fin and not outbox and not self.write_closed:
            self.shut()

    def write(self, data: bytes | memoryview) -> int:
        """Pass bytes to the kernel; return how many it took. After an error the channel is closed."""
        try:
            n = self.sock.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.end(short_reason(error))
            return 0
        self.pump.sent(self, n)
        return n

    def check_finished(self) -> bool:
        """Return True: without TLS the kernel has all bytes that `write` reported as taken."""
        return True

    def wait_writable(self) -> None:
        """Have `on_writable` called when the kernel takes bytes again."""
        if not self.gone:
            self.pump.loop.watch_write(self)

    def shut(self) -> None:
        """Close the write half: FIN follows the bytes in the kernel. After the peer's FIN, close the socket."""
        if self.read_closed:
            self.write_closed = True
            self.end("")
            return
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.end(short_reason(error))
            return
        self.write_closed = True

    # --- files ---------------------------------------------------------------------------------------------------

    def body_step(self, body: FileBody, done: Callable[[int, BaseException | None], None]) -> None:
        """Write the next part of a file on a worker, then call `done(bytes written, error)`."""
        body.step_sendfile(self.sock, done)

    def body_blocked(self) -> bool:
        """Return True: a step of a file that wrote nothing has to wait until the socket is writable."""
        return True

    def body_sent(self, n: int) -> None:
        """Report bytes of a file as sent, so that the core sees progress."""
        if n:
            self.pump.sent(self, n)

    def _next_of(self, outbox: deque[Item], body: FileBody) -> bool:
        """Start the next part of the file at the head of the outbox, or remove a file that is complete.

        Return True if the file was complete and the channel is still open.
        """
        if not body.left:
            outbox.popleft()
            body.answer()
            return not self.gone
        self._body_running = True
        self.pump.loop.unwatch_write(self)
        self.body_step(body, lambda n, error: self._stepped(body, n, error))
        return False

    def _stepped(self, body: FileBody, n: int, error: BaseException | None) -> None:
        self._body_running = False
        if self.gone:
            return
        if error is not None and not body.over:
            if self._outbox:
                self._outbox.popleft()
            body.fail(error)
        elif not body.over:
            body.advance(n)
            self.body_sent(n)
            if not n and self.body_blocked():
                self.wait_writable()
                return
        if not self.gone:
            self.flush()

    # --- ends ----------------------------------------------------------------------------------------------------

    def end(self, reason: str, *, reset: bool = False) -> None:
        """Close the socket, fail the files in the outbox, and report `Closed` to the core.

        With `reset`, the peer gets RST, unless FIN was sent before.
        """
        if self._late:
            self.flush()
        if self.gone:
            return
        bodies = self._release(reset=reset)
        for body in bodies:
            body.fail_closed()
        self.pump.closed(self, reason)

    def abandon(self) -> None:
        """Close the socket without a report."""
        if self._late:
            self.flush()
        if not self.gone:
            for body in self._release(reset=False):
                body.finish()

    def _release(self, *, reset: bool) -> list[FileBody]:
        self.gone = True
        if reset and not self.write_closed:  # after a FIN the kernel still delivers what it holds
            with suppress(OSError):  # the peer has closed already
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        bodies = [item for item in self._outbox or () if isinstance(item, FileBody)]
        self._outbox = None
        self.pump.loop.close(self)
        return bodies

    def _enqueue(self, data: bytes | memoryview) -> None:
        self._queued += len(data)
        if self._queued > OUTBOX_LIMIT:
            self.end(f"over {OUTBOX_LIMIT} unsent bytes", reset=True)
            return
        if self._outbox is None:
            self._outbox = deque()
        self._outbox.append(data)


def _joined(outbox: deque[Item]) -> bytes:
    """Remove and return the bytes at the head of an outbox, joined, up to about `COALESCE_SIZE`.

    An empty item takes their place in the outbox.
    """
    pieces: list[bytes | memoryview] = []
    size = 0
    while outbox and size < COALESCE_SIZE and not isinstance(item := outbox[0], FileBody):
        pieces.append(item)
        size += len(item)
        outbox.popleft()
    outbox.appendleft(b"")
    return b"".join(pieces)
