"""TLS settings: contexts for both roles, and the one deadline that a runtime has of its own.

A core hears of an accepted connection only when its handshake is done, so a handshake that never ends is bounded here
and not by the core: in time by `HANDSHAKE_TIMEOUT`, in number by `MAX_HANDSHAKES`.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from svc_proto.client.pins import pin_of, same_pin

__all__ = [
    "HANDSHAKE_TIMEOUT",
    "MAX_HANDSHAKES",
    "PinnedTls",
    "TlsFileError",
    "client_context",
    "server_context",
]

HANDSHAKE_TIMEOUT = 10.0  # s, from accept to the end of the TLS handshake: drop
MAX_HANDSHAKES = 512  # handshakes under way on one core: the oldest is dropped for a new one
ALPN = ["http/1.1"]  # of a client; a server takes HTTP/2 as well, and finds out by the first bytes
SERVER_ALPN = ["h2", *ALPN]


class TlsFileError(Exception):
    """A certificate or key file cannot be used; the text names the file and why."""


def server_context(cert: str | Path, key: str | Path | None = None) -> ssl.SSLContext:
    """A context that serves with a PEM certificate chain and its key (in the same file when `key` is None)."""
    for path in (cert, key):
        if path is None:
            continue
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise TlsFileError(f"cannot read {path}: {error.strerror}") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except (ssl.SSLError, ValueError, OSError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise TlsFileError(f"cannot use certificate {cert} with key {key or cert}: {reason}") from error
    _common(context).set_alpn_protocols(SERVER_ALPN)
    return context


def client_context(cafile: str | Path | None = None) -> ssl.SSLContext:
    """A context that checks servers against the system's trust, or against one PEM file."""
    try:
        context = ssl.create_default_context(cafile=None if cafile is None else str(cafile))
    except (ssl.SSLError, OSError) as error:
        raise TlsFileError(f"cannot use {cafile}: {error}") from error
    return _common(context)


class PinnedTls:
    """A client's trust that remembers keys: a server whose pin is known needs that key, and nothing else.

    Without a pin the system's trust decides, and the pin is there to be asked for afterwards (wire core 10.8). Used on
    the loop's thread, and on workers between two connections.
    """

    def __init__(self) -> None:
        self._expected: dict[tuple[str, int], str] = {}
        self._seen: dict[tuple[str, int], str] = {}
        self._checking: ssl.SSLContext | None = None
        self._pinning: ssl.SSLContext | None = None

    def expect(self, host: str, port: int, pin: str | None) -> None:
        """The pin that this server has to have; None: whatever the system trusts."""
        if pin is None:
            self._expected.pop((host, port), None)
        else:
            self._expected[host, port] = pin

    def seen(self, host: str, port: int) -> str | None:
        """The pin of the last connection that was accepted."""
        return self._seen.get((host, port))

    def context(self, host: str, port: int) -> ssl.SSLContext:
        """What to shake hands with. Raises `TlsFileError`."""
        if (host, port) not in self._expected:
            self._checking = self._checking or client_context()
            return self._checking
        if self._pinning is None:
            self._pinning = _common(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            self._pinning.check_hostname = False
            self._pinning.verify_mode = ssl.CERT_NONE  # the key is compared instead, before a byte is sent
        return self._pinning

    def accepts(self, host: str, port: int, certificate: bytes | None) -> bool:
        """Whether a server that has shown this DER certificate may be talked to."""
        try:
            pin = pin_of(certificate or b"")
        except ValueError:
            return (host, port) not in self._expected
        expected = self._expected.get((host, port))
        if expected is not None and not same_pin(expected, pin):
            return False
        self._seen[host, port] = pin
        return True


def _common(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(ALPN)
    return context


def _no_password() -> str:
    raise ValueError("the key is protected by a password")
