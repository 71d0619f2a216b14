"""Listening sockets, bound before any loop runs, and accepting from them."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import ssl
import sys
from collections import deque
from typing import Any

from runtimes.failures import short_reason
from runtimes.host.pump import Pump
from runtimes.loops.loop import Source
from runtimes.net.peer_user import PeerUserLookup
from runtimes.net.tcp_channel import TcpChannel
from runtimes.tls.contexts import HANDSHAKE_TIMEOUT, MAX_HANDSHAKES
from runtimes.tls.tls_channel import TlsChannel
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.facts import Accepted, Address, ChannelId, Failure

__all__ = [
    "Acceptor",
    "MAX_PORT",
    "BindError",
    "Listener",
    "adopt_listener",
    "bind",
    "plain_address",
    "set_socket_options",
]

BACKLOG = 2048  # connections queued in the kernel; Linux limits this to net.core.somaxconn
MAX_PORT = 65535  # TCP
MAX_ACCEPTS_PER_CALL = 64  # connections accepted in one wake-up, so that a flood does not starve open channels
INHERITS_OPTIONS = sys.platform == "linux"  # accepted sockets have the TCP options of their listener, tcp(7)
UNSENT_LOW_WATER = 128 * 1024  # unsent bytes in the kernel above which a socket is not writable
RETRY_DELAY = 0.1  # s without accepting after descriptors ran out
LOG_INTERVAL = 60.0  # s between two warnings about that
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_MAPPED = "::ffff:"
_ANY = frozenset({"0.0.0.0", "::"})


class BindError(Exception):
    """An address or socket cannot be listened on; the text names it and the reason."""


@fast_frozen
class Listener:
    """A bound socket, which listens unless it is only reserved, and the TLS context of its connections, if any."""

    sock: socket.socket
    address: Address
    tls: ssl.SSLContext | None = None


def bind(
    host: str, port: int, *, tls: ssl.SSLContext | None = None, shared: bool = False, listen: bool = True
) -> Listener:
    """Listen on `host:port`; port 0 picks a free one, and `::` accepts IPv4 connections too. Raises `BindError`.

    With `shared`, other processes of the same service may listen on it too. Without `listen`, the address is only
    reserved for them.
    """
    if not 0 <= port <= MAX_PORT:  # the resolver would take it modulo 65536
        raise BindError(f"cannot listen on {host}:{port}: no such port")
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise BindError(f"cannot listen on {host}:{port}: the name is not known") from error
    first: OSError | None = None
    for family, kind, proto, _, address in found:
        try:
            sock = _bound(socket.socket(family, kind, proto), address, shared=shared, listen=listen)
        except OSError as caught:
            first = first or caught
        else:
            return Listener(sock, plain_address(sock.getsockname()), tls)
    raise BindError(f"cannot listen on {host}:{port}: {short_reason(first or OSError())}") from first


def adopt_listener(sock: socket.socket, *, tls: ssl.SSLContext | None = None) -> Listener:
    """Return a listener for a TCP socket that listens already. Raises `BindError`, and closes the socket, otherwise."""
    try:
        if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) or sock.family not in (
            socket.AF_INET,
            socket.AF_INET6,
        ):
            raise BindError(f"cannot listen on the socket {sock.fileno()}: it is none of TCP that listens")
        sock.setblocking(False)
        _set_inherited_options(sock)
        return Listener(sock, plain_address(sock.getsockname()), tls)
    except BaseException:
        sock.close()
        raise


def set_socket_options(sock: socket.socket) -> None:
    """Disable Nagle's algorithm, and limit unsent bytes to about `UNSENT_LOW_WATER` where the system has that option.

    Without the limit, the kernel buffers megabytes, then takes nothing for minutes while a slow peer reads them. That
    would look like a lack of progress.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_LOW_WATER)


def plain_address(name: tuple[object, ...]) -> Address:
    """Return a socket name as an address; an IPv4-mapped IPv6 address becomes an IPv4 address."""
    host = str(name[0])
    if host.startswith(_MAPPED) and "." in host:
        host = host[len(_MAPPED) :]
    return Address(host, int(str(name[1])))


def _set_inherited_options(listener: socket.socket) -> None:
    if INHERITS_OPTIONS:
        set_socket_options(listener)


def _bound(sock: socket.socket, address: tuple[Any, ...], *, shared: bool, listen: bool) -> socket.socket:
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
        sock.bind(address)
        _set_inherited_options(sock)
        if listen:
            sock.listen(BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


class Acceptor(Source):
    """Source that accepts connections of one listener and reports them to a core."""

    sock: socket.socket
    __slots__ = ("_closed", "_local", "_openings", "_pump", "_rest", "_started", "_users", "_warn_at", "tls")

    def __init__(self, pump: Pump, listener: Listener, users: PeerUserLookup | None = None) -> None:
        """Create the acceptor of a listener; `users` finds out whether a peer on this host is of our own user."""
        super().__init__(listener.sock)
        self._pump = pump
        self._users = users
        self.tls = listener.tls  # for connections accepted from now on
        self._closed = self._started = False
        # Of all connections; None if the listener takes those of every address.
        self._local = None if listener.address.host in _ANY else listener.address
        self._openings: deque[_Handshake] = deque()
        self._rest = pump.own_timers.timer(self.start)
        self._warn_at = 0.0  # earliest time of the next warning, monotonic s

    def start(self) -> None:
        """Start accepting, unless the listener is closed."""
        if not self._closed:
            self._started = True
            self._pump.loop.watch_read(self)

    def close(self) -> None:
        """Stop accepting and free the port.

        If accepting has started, up to 64 queued connections, which would be lost otherwise, are accepted before.
        """
        if self._started:
            self.on_readable()
        self._close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._rest.cancel()
        with contextlib.suppress(OSError):  # refuse from this instant, even where closing waits for a task to end
            self.sock.shutdown(socket.SHUT_RDWR)
        self._pump.loop.close(self)

    def abandon(self) -> None:
        """Close the listener and the handshakes in progress."""
        self._close()
        for opening in list(self._openings):
            opening.channel.abandon()
            opening.timer.cancel()
        self._openings.clear()

    def on_readable(self) -> None:
        """Accept up to 64 of the queued connections; pause if the host is short of descriptors or memory."""
        for _ in range(MAX_ACCEPTS_PER_CALL):
            if self._closed:
                return
            try:
                sock, peer = self.sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._exhausted(error)
                    return
                continue  # the peer closed before it was accepted
            self._admit(sock, peer)

    def _admit(self, sock: socket.socket, peer: tuple[object, ...]) -> None:
        try:
            sock.setblocking(False)
            if not INHERITS_OPTIONS:
                set_socket_options(sock)
            local = self._local or plain_address(sock.getsockname())
        except OSError:
            sock.close()
            return
        addresses = plain_address(peer), local
        own_user = None if self._users is None else self._users.is_own_user(*addresses)
        if self.tls is not None:
            if len(self._openings) >= MAX_HANDSHAKES:
                self._openings[0].time_out()
            opening = _Handshake(self, self._pump, sock, self.tls, addresses, own_user)
            self._openings.append(opening)
            opening.channel.open()
            return
        pump = self._pump
        channel = TcpChannel(pump, sock, pump.next_accepted())
        pump.channels[channel.ch] = channel
        pump.feed(Accepted(channel.ch, *addresses, own_user=own_user))
        channel.start()

    def on_handshake_done(self, opening: _Handshake) -> None:
        """Remove a handshake that has ended."""
        if opening in self._openings:
            self._openings.remove(opening)

    def _exhausted(self, error: OSError) -> None:
        pump = self._pump
        mono = pump.owner.clock().mono
        pump.loop.unwatch_read(self)
        if mono >= self._warn_at:  # retried ten times a second while the shortage lasts
            self._warn_at = mono + LOG_INTERVAL
            pump.log.log(logging.WARNING, "accept.exhausted", why=short_reason(error))
        self._rest.set(mono + RETRY_DELAY)
        pump.timer_added()


class _Handshake:
    """An accepted connection whose TLS handshake is in progress.

    The core receives the connection after success. A failure or timeout is only logged.
    """

    def __init__(
        self,
        acceptor: Acceptor,
        pump: Pump,
        sock: socket.socket,
        tls: ssl.SSLContext,
        addresses: tuple[Address, Address],
        own_user: bool | None,
    ) -> None:
        self._acceptor = acceptor
        self._pump = pump
        self._addresses = addresses
        self._own_user = own_user
        self.channel = TlsChannel(pump, sock, ChannelId(0), tls, opening=self)
        self.timer = pump.own_timers.timer(self.time_out)
        self.timer.set(pump.owner.clock().mono + HANDSHAKE_TIMEOUT)
        pump.timer_added()

    def time_out(self) -> None:
        self._finish("not done in time")
        self.channel.abandon()

    def opened(self, channel: TlsChannel, alpn: str | None) -> None:
        self.timer.cancel()
        self._acceptor.on_handshake_done(self)
        pump = self._pump
        channel.ch = pump.next_accepted()
        pump.channels[channel.ch] = channel
        pump.feed(Accepted(channel.ch, *self._addresses, tls=True, alpn=alpn, own_user=self._own_user))
        channel.start()

    def failed(self, channel: TlsChannel, failure: Failure) -> None:
        self._finish(failure.detail)

    def _finish(self, reason: str) -> None:
        self.timer.cancel()
        self._acceptor.on_handshake_done(self)
        self._pump.log.log(logging.DEBUG, "tls.handshake_failed", peer=self._addresses[0].host, why=reason)
