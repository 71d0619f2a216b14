"""Outgoing connections: resolution of names on a thread, attempts at the addresses in turn, TLS handshake if ordered.

The next address is tried when an attempt has failed or lasts longer than `ATTEMPT_DELAY` (RFC 8305 section 5). The
first established connection is used. The core limits the total time, by `Cancel`. A host that begins with a slash is
the path of a Unix socket; the port must be valid, but is no part of the address.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any

from runtimes.failures import HostError, failure_of
from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from runtimes.loops.loop import Source
from runtimes.net.listener import MAX_PORT, plain_address, set_socket_options
from runtimes.net.tcp_channel import TcpChannel
from runtimes.tls.contexts import PinnedTrust, TlsFileError, client_context
from runtimes.tls.tls_channel import TlsChannel
from svc_proto.basics.certificate_pins import PIN_CHANGED
from svc_proto.commands import Connect, Connected
from svc_proto.facts import Address, Failure, FailureKind

__all__ = ["ConnectService", "Resolver"]

ATTEMPT_DELAY = 0.25  # s between the starts of two parallel attempts, RFC 8305 section 8

Found = list[tuple[Any, ...]]
Resolver = Callable[[str, int], Found]  # same results as `socket.getaddrinfo`


def resolve_host(host: str, port: int) -> Found:
    """Return the addresses of a name in the system's order. Blocks. Raise `OSError` if the name cannot be resolved."""
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


class ConnectService:
    """Service that performs the `Connect` commands of a core."""

    def __init__(
        self,
        pump: Pump,
        workers: ThreadPool,
        *,
        tls: ssl.SSLContext | PinnedTrust | None = None,
        resolver: Resolver = resolve_host,
    ) -> None:
        self._pump = pump
        self._workers = workers
        self._tls = tls
        self._resolver = resolver
        pump.serve({Connect: self._connect})

    def _connect(self, command: Connect) -> None:
        if not 0 < command.port <= MAX_PORT:
            self._pump.refuse(command.op, FailureKind.INVALID, "no such port")
            return
        connecting = _Connecting(self._pump, command, self._trust)
        self._pump.begin(command.op, connecting.give_up)
        host, port = command.host, command.port
        if host.startswith("/"):
            connecting.found([(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", host)], None)
            return
        if ":" in host or host.replace(".", "").isdigit():
            try:  # a numeric address needs no thread
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            except (OSError, ValueError):
                found = []
            connecting.found(found, None)
            return
        self._workers.submit(lambda: self._resolver(host, port), connecting.found)

    def _trust(self) -> ssl.SSLContext | PinnedTrust:
        if self._tls is None:
            self._tls = client_context()
        return self._tls


class _Connecting:
    """State of one `Connect` in progress."""

    def __init__(self, pump: Pump, command: Connect, trust: Callable[[], ssl.SSLContext | PinnedTrust]) -> None:
        self._pump = pump
        self._command = command
        self._trust = trust
        self._pins: PinnedTrust | None = None
        self._addresses: deque[tuple[Any, ...]] = deque()
        self._attempts: list[_Attempt] = []
        self._last: Failure = Failure(FailureKind.UNREACHABLE, "name not resolved")
        self._timer = pump.own_timers.timer(self._next)
        self._shaking: TlsChannel | None = None
        self._over = False

    def give_up(self) -> None:
        """Stop, because the operation is cancelled or the process exits."""
        self._over = True
        self._drop_attempts()
        if self._shaking is not None:
            self._shaking.abandon()

    def found(self, addresses: Found | None, error: BaseException | None) -> None:
        """Start the attempts at the resolved addresses; without any, fail the operation."""
        if self._over:
            return
        if error is not None:
            self._last = failure_of(error)
        self._addresses.extend(addresses or [])
        self._next()

    def _next(self) -> None:
        """Start an attempt at the next address for which a socket can be created.

        If no address and no other attempt is left, fail the operation.
        """
        while self._addresses and not self._over:
            family, kind, proto, _, address = self._addresses.popleft()
            try:
                attempt = _Attempt(self, socket.socket(family, kind, proto))
            except OSError as error:
                self._last = failure_of(error)
                continue
            self._attempts.append(attempt)
            if self._addresses:
                self._timer.set(self._pump.owner.clock().mono + ATTEMPT_DELAY)
                self._pump.timer_added()
            attempt.begin(self._pump, address)
            return
        if not self._attempts and not self._over:
            self._fail(self._last)

    def ended(self, attempt: _Attempt, error: int) -> None:
        """Proceed with a connected attempt (`error` is 0) alone; close a failed one, and try the next address."""
        self._attempts.remove(attempt)
        if error:
            self._pump.loop.close(attempt)
            self._last = failure_of(OSError(error, os.strerror(error)))
            self._timer.cancel()
            self._next()
            return
        self._drop_attempts()
        self._pump.loop.unwatch_write(attempt)
        self._stand(attempt.sock)

    def _stand(self, waited: socket.socket) -> None:
        command, pump = self._command, self._pump
        sock = waited
        try:
            peer = sock.getpeername()
            if sock.family == socket.AF_UNIX:
                self._peer = Address(command.host, command.port)
            else:
                set_socket_options(sock)
                self._peer = plain_address(peer)
        except OSError as error:
            sock.close()
            self._fail(failure_of(error))
            return
        if not command.tls:
            self._open(TcpChannel(pump, sock, command.ch), None)
            return
        try:
            context = self._context(self._trust())
            channel = TlsChannel(
                pump, sock, command.ch, context, opening=self, server_hostname=command.host, alpn=command.alpn
            )
        except (ValueError, ssl.SSLError, TlsFileError) as error:
            sock.close()
            self._fail(failure_of(HostError(FailureKind.TLS, f"cannot begin: {type(error).__name__}")))
            return
        self._shaking = channel
        channel.open()

    def opened(self, channel: TlsChannel, alpn: str | None) -> None:
        """Open the channel after the TLS handshake; fail the operation if the server's key is not the pinned one."""
        command, pins = self._command, self._pins
        if pins is not None and not pins.accepts(command.host, command.port, channel.peer_certificate()):
            channel.abandon()
            self._fail(Failure(FailureKind.TLS, PIN_CHANGED))
            return
        self._open(channel, alpn)

    def failed(self, channel: TlsChannel, failure: Failure) -> None:
        """Fail the operation, because the TLS handshake has failed."""
        self._fail(failure)

    def _context(self, trust: ssl.SSLContext | PinnedTrust) -> ssl.SSLContext:
        if isinstance(trust, ssl.SSLContext):
            return trust
        self._pins = trust
        return trust.context(self._command.host, self._command.port)

    def _open(self, channel: TcpChannel, alpn: str | None) -> None:
        self._over = True
        self._shaking = None
        self._pump.channels[channel.ch] = channel
        self._pump.answer(self._command.op, Connected(self._peer, alpn))
        channel.start()

    def _fail(self, failure: Failure) -> None:
        self._over = True
        self._pump.fail(self._command.op, failure)

    def _drop_attempts(self) -> None:
        self._timer.cancel()
        self._addresses.clear()
        for attempt in self._attempts:
            self._pump.loop.close(attempt)
        self._attempts.clear()


class _Attempt(Source):
    """A socket that connects to one address."""

    sock: socket.socket
    __slots__ = ("_connecting",)

    def __init__(self, connecting: _Connecting, sock: socket.socket) -> None:
        super().__init__(sock)
        self._connecting = connecting

    def begin(self, pump: Pump, address: tuple[Any, ...]) -> None:
        """Start connecting to this address."""
        self.sock.setblocking(False)
        try:
            error = self.sock.connect_ex(address)
        except OSError:  # not an address of this family
            error = errno.EADDRNOTAVAIL
        if error in {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR}:
            pump.loop.watch_write(self)
        else:
            self._connecting.ended(self, error)

    def on_writable(self) -> None:
        """Report the end of the attempt, successful or not."""
        self._connecting.ended(self, self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
