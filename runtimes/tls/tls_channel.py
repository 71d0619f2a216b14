"""A channel with TLS over `ssl.MemoryBIO`: the same code for every loop and both roles.

Records must leave in the order in which they were made. So plaintext waits in the outbox and is encrypted only when
everything before it has left. `Sent` counts plaintext; its last byte is reported once all its records have left.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from runtimes.failures import failure_of, short_reason
from runtimes.host.pump import Pump
from runtimes.net.file_body import FileBody
from runtimes.net.tcp_channel import READ_SIZE, TcpChannel
from svc_proto.facts import ChannelId, Failure, FailureKind, Received

__all__ = ["HandshakeHandler", "TlsChannel"]

# The ALPN list belongs to a context, which several loops may share; a connection keeps the list of its start.
_OFFERING = threading.Lock()
CHUNK_SIZE = 64 * 1024  # plaintext bytes encrypted at once


class HandshakeHandler(Protocol):
    """Handler of the outcome of a handshake."""

    def opened(self, channel: TlsChannel, alpn: str | None) -> None:
        """Start the channel: the handshake is done."""

    def failed(self, channel: TlsChannel, failure: Failure) -> None:
        """Handle a failed handshake; the socket is closed already."""


class TlsChannel(TcpChannel):
    """A connected TCP socket with TLS."""

    __slots__ = (
        "_encrypted",
        "_ended",
        "_error",
        "_in",
        "_notified",
        "_opening",
        "_out",
        "_plain",
        "_tls",
        "_unreported_plain",
    )

    def __init__(
        self,
        pump: Pump,
        sock: socket.socket,
        ch: ChannelId,
        context: ssl.SSLContext,
        *,
        opening: HandshakeHandler,
        server_hostname: str | None = None,
        alpn: Sequence[str] | None = None,
    ) -> None:
        super().__init__(pump, sock, ch)
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        with _OFFERING:
            if alpn is not None:
                context.set_alpn_protocols(list(alpn))
            self._tls = context.wrap_bio(
                self._in, self._out, server_side=server_hostname is None, server_hostname=server_hostname
            )
        self._opening: HandshakeHandler | None = opening
        self._encrypted: deque[memoryview] = deque()
        self._unreported_plain = 0
        self._notified = False  # close_notify was written
        self._plain: list[bytes] = []  # decrypted, not reported yet
        self._ended = False  # the peer's close_notify has arrived
        self._error: Exception | None = None

    def peer_certificate(self) -> bytes | None:
        """Return the DER certificate that the peer has shown, or None."""
        return self._tls.getpeercert(binary_form=True)

    # --- the handshake -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start the handshake."""
        self.pump.loop.watch_read(self)
        self._shake()

    def _shake(self) -> None:
        opening = self._opening
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._push()
            return
        except (ssl.SSLError, ValueError) as error:
            self._push()  # sends the alert
            self._give_up(failure_of(error))
            return
        self._push()
        if self.gone or opening is None:
            return
        self._opening = None
        self.pump.loop.unwatch_read(self)
        opening.opened(self, self._tls.selected_alpn_protocol())

    def _give_up(self, failure: Failure) -> None:
        opening = self._opening
        self._opening = None
        self.abandon()
        if opening is not None:
            opening.failed(self, failure)

    # --- reading -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start reading: first bytes that arrived with the handshake or before a pause, then from the socket."""
        if self._paused or self.gone or self.read_closed:
            return
        self._decrypt()
        super().start()

    def on_readable(self) -> None:
        """Read from the socket once, then continue the handshake, or decrypt and report the bytes.

        An end without close_notify closes the channel.
        """
        try:
            data = self.sock.recv(READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.end(short_reason(error))
            return
        if not data:
            self.end("TLS: the connection ended without close_notify")
            return
        self._in.write(data)
        if self._opening is not None:
            self._shake()
        else:
            self._decrypt()

    def _decrypt(self) -> None:
        self._read_plain()
        self._push()
        if self._plain and not self.gone:
            data = b"".join(self._plain)
            self._plain.clear()
            self.pump.feed(Received(self.ch, data))
        if self.gone:
            return
        if self._error is not None:
            self.end(short_reason(self._error))
        elif self._ended and not self._paused and not self.read_closed:
            self.read_end()

    def _read_plain(self) -> None:
        """Decrypt all received records, and note their end or error."""
        if self._ended or self._error is not None:
            return
        try:
            while chunk := self._tls.read(READ_SIZE):
                self._plain.append(chunk)
            self._ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._ended = True
        except (ssl.SSLError, ValueError) as error:
            self._error = error

    # --- writing -------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the queued records, then, after the handshake, the queued plaintext."""
        if not self._push():
            return
        if self._opening is None:
            super().flush()
        else:
            self.pump.loop.unwatch_write(self)

    def write(self, data: bytes | memoryview) -> int:
        """Encrypt bytes and pass the records to the kernel; return how much plaintext was taken."""
        taken = 0
        while taken < len(data) and self._push():
            part = data[taken : taken + CHUNK_SIZE]
            if not self._encrypt(part):
                break
            taken += len(part)
            self._unreported_plain += len(part)
        self._push()
        return taken

    def check_finished(self) -> bool:
        """Report whether all records have left."""
        return not self._encrypted

    def shut(self) -> None:
        """Send close_notify after the queued records, then close the write half as `TcpChannel.shut` does."""
        if not self._notified:
            self._notified = True
            self._read_plain()  # otherwise `unwrap` would fail on data that a pause has left unread
            try:
                self._tls.unwrap()  # writes close_notify, then tries to read the peer's, which may come later
            except ssl.SSLWantReadError:
                pass
            except (ssl.SSLError, ValueError) as error:
                self.end(short_reason(error))
                return
        if self._push():
            super().shut()

    def body_step(self, body: FileBody, done: Callable[[int, BaseException | None], None]) -> None:
        """Read the next part of a file on a worker, encrypt it on the loop's thread, then call `done(size, error)`."""

        def read(n: int, error: BaseException | None) -> None:
            if error is None and not self.gone and not body.over and self._encrypt(body.chunk):
                self._unreported_plain += n
                self._push()
            body.chunk = b""
            done(n, error)

        body.step_read(read)

    def body_blocked(self) -> bool:
        """Return False: a step reads the file, and never waits for the socket."""
        return False

    def body_sent(self, n: int) -> None:
        """Do nothing: `_push` reports the bytes when their records leave."""

    def _encrypt(self, data: bytes | memoryview) -> bool:
        try:
            self._tls.write(data)
        except (ssl.SSLError, ValueError) as error:
            self.end(short_reason(error))
            return False
        return True

    def _push(self) -> bool:
        """Pass encrypted records to the kernel; return True if none is left.

        Plaintext is reported while its records leave, its last byte after the last record.
        """
        taken = 0
        if self._out.pending:
            self._encrypted.append(memoryview(self._out.read()))
        while self._encrypted and not self.gone:
            record = self._encrypted[0]
            try:
                n = self.sock.send(record)
            except (BlockingIOError, InterruptedError):
                n = 0
            except OSError as error:
                self.end(short_reason(error))
                return False
            taken += n
            if n < len(record):
                self._encrypted[0] = record[n:]
                self.wait_writable()
                self._report_sent(min(taken, self._unreported_plain - 1))
                return False
            self._encrypted.popleft()
        if self.gone:
            return False
        self._report_sent(self._unreported_plain)
        return not self.gone

    def _report_sent(self, n: int) -> None:
        if n > 0:
            self._unreported_plain -= n
            self.pump.sent(self, n)

    # --- ends ----------------------------------------------------------------------------------------------------

    def end(self, reason: str, *, reset: bool = False) -> None:
        """Close the channel as `TcpChannel.end` does; during the handshake report a failed handshake instead."""
        if self._opening is not None:
            self._give_up(Failure(FailureKind.TLS, reason or "closed during the handshake"))
            return
        super().end(reason, reset=reset)
