"""User of the process at the other end of a loopback TCP connection, by Linux's `sock_diag` (sock_diag(7)).

The kernel answers for the socket itself, so no header and no address can imitate another user.
"""

import os
import socket
import struct
import sys
from pathlib import Path

from svc_proto.facts import Address

__all__ = ["PeerUserLookup", "can_look_up_users"]

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1
ALL_STATES = 0xFFFFFFFF
NO_COOKIE = 0xFFFFFFFF  # INET_DIAG_NOCOOKIE
ANSWER_SIZE = 4096  # bytes; an answer about one socket has about 150
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence number, port
_QUESTION = struct.Struct("=BBBBI")  # inet_diag_req_v2: family, protocol, extensions, padding, states
_PORTS = struct.Struct("!HH")
_REST = struct.Struct("=III")  # of inet_diag_sockid: interface, cookie
_OWNER = struct.Struct("=II")  # of inet_diag_msg: uid, inode
_OWNER_OFFSET = 4 + 48 + 12  # bytes: state, inet_diag_sockid, then expiry and both queues
_HOST_ROOT_MAP = "0 0 4294967295"  # /proc/self/uid_map of the host's own user namespace
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def can_look_up_users() -> bool:
    """Report whether this system offers the look-up: a Netlink socket for `sock_diag` can be opened."""
    lookup = PeerUserLookup()
    try:
        return lookup.is_available
    finally:
        lookup.close()


class PeerUserLookup:
    """Lookup of the user at the other end of a connection, by a Netlink socket: the kernel answers in about 10 µs."""

    def __init__(self) -> None:
        self._trusted = _trusted_users()
        self._socket: socket.socket | None = None
        self._number = 0
        if sys.platform == "linux":
            try:
                self._socket = socket.socket(
                    socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, NETLINK_SOCK_DIAG
                )
            except OSError:  # the host's sandbox forbids it
                self._socket = None

    @property
    def is_available(self) -> bool:
        """Report whether the netlink socket could be opened."""
        return self._socket is not None

    def is_own_user(self, peer: Address, local: Address) -> bool | None:
        """Report whether our own user or root has the other end of a connection.

        None for a peer address that is not loopback, or without a netlink socket. The host's root counts, a
        container's does not. False is also the answer for a socket that no process has open any more, and after an
        error of the kernel's answer.
        """
        if self._socket is None or not (peer.host.startswith("127.") or peer.host == "::1"):
            return None
        owner = self._owner(peer, local)
        return owner is not None and owner in self._trusted

    def close(self) -> None:
        """Close the netlink socket."""
        if self._socket is not None:
            self._socket.close()

    def _owner(self, peer: Address, local: Address) -> int | None:
        assert self._socket is not None
        family = socket.AF_INET6 if ":" in peer.host else socket.AF_INET
        self._number += 1
        try:
            ends = [socket.inet_pton(family, end.host).ljust(16, b"\0") for end in (peer, local)]
            body = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, ALL_STATES) + _PORTS.pack(peer.port, local.port)
            body += b"".join(ends) + _REST.pack(0, NO_COOKIE, NO_COOKIE)
            head = _HEADER.pack(_HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, self._number, 0)
            self._socket.send(head + body)
            while True:
                answer = self._socket.recv(ANSWER_SIZE)
                _, kind, _, number, _ = _HEADER.unpack_from(answer)
                if number == self._number:
                    break
            if kind != SOCK_DIAG_BY_FAMILY:  # an error: there is no such socket in this network namespace
                return None
            uid, inode = _OWNER.unpack_from(answer, _HEADER.size + _OWNER_OFFSET)
        except (OSError, struct.error):
            return None
        return int(uid) if inode else None  # for a closed socket the kernel reports user 0 and no inode


def _trusted_users() -> frozenset[int]:
    """Return the ids of the trusted users: our own, and root if it is the host's root.

    The root of a container is not trusted, since a port forwarder may run as it. Without user ids the set is empty.
    """
    if not hasattr(os, "geteuid"):
        return frozenset()
    try:
        is_host = Path("/proc/self/uid_map").read_text(encoding="ascii").split() == _HOST_ROOT_MAP.split()
    except OSError:
        is_host = False
    in_container = any(map(os.path.exists, _CONTAINER_MARKS))
    return frozenset({os.geteuid()} | ({0} if is_host and not in_container else set()))
