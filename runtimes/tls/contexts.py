"""TLS contexts for servers and clients, and the limits on handshakes.

A core is informed of an accepted connection only after its handshake. So the runtime, not the core, limits handshakes:
in time by `HANDSHAKE_TIMEOUT`, in number by `MAX_HANDSHAKES` for each listener, whose oldest one then ends.
"""

from __future__ import annotations

import os
import ssl
import stat
from contextlib import suppress
from pathlib import Path

from svc_proto.basics.certificate_pins import pin_of
from svc_proto.basics.entropy import secrets_equal
from svc_proto.facts import HTTP1, HTTP2

__all__ = [
    "HANDSHAKE_TIMEOUT",
    "MAX_HANDSHAKES",
    "PinnedTrust",
    "ServerContext",
    "TlsFileError",
    "client_context",
    "context_for_certificates",
    "server_context",
]

HANDSHAKE_TIMEOUT = 10.0  # s from accept to the end of the TLS handshake; then the connection is dropped
MAX_HANDSHAKES = 512  # handshakes in progress on one listener; the oldest is dropped for a new one
SERVER_ALPN = [HTTP2, HTTP1]  # for servers; clients set ALPN in `Connect`
# For TLS 1.2; all suites of 1.3 are acceptable. RFC 9113 section 9.2.2 forbids HTTP/2 with the others.
SERVER_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


class TlsFileError(Exception):
    """A certificate or key file cannot be used; the text names the file and the reason."""


class ServerContext(ssl.SSLContext):
    """A server's context with the paths of its certificate and key. Made by `server_context`."""

    cert: str | Path
    key: str | Path | None

    def reload(self) -> ServerContext:
        """Return a new context made of the files' present contents. Blocks. Raises `TlsFileError`."""
        return server_context(self.cert, self.key)

    def pin(self) -> str:
        """Return the pin of the key that clients see, taken from a handshake in memory, not from the files."""
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        trusting = _trusting(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        client = trusting.wrap_bio(back, there)
        server = self.wrap_bio(there, back, server_side=True)
        for end in (client, server, client):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
        return pin_of(client.getpeercert(binary_form=True) or b"")


def server_context(cert: str | Path, key: str | Path | None = None) -> ServerContext:
    """Build a server context from a PEM certificate chain and its key (in the same file when `key` is None).

    Raises `TlsFileError`.
    """
    for path in (cert, key):
        if path is not None:
            _check_readable(path)
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.cert, context.key = cert, key
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except (ssl.SSLError, ValueError, OSError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise TlsFileError(f"cannot use certificate {cert} with key {key or cert}: {reason}") from error
    _common(context).set_alpn_protocols(SERVER_ALPN)
    context.set_ciphers(SERVER_CIPHERS)
    return context


def client_context(cafile: str | Path | None = None) -> ssl.SSLContext:
    """Build a context that verifies servers against the system's trust, or against one PEM file.

    Raises `TlsFileError`.
    """
    try:
        context = ssl.create_default_context(cafile=None if cafile is None else str(cafile))
    except (ssl.SSLError, OSError) as error:
        raise TlsFileError(f"cannot use {cafile}: {error}") from error
    return _common(context)


def context_for_certificates(*certificates: str | Path) -> ssl.SSLContext:
    """Build a client's context that trusts the given certificates as anchors, whatever their issuer.

    It does not check host names. Raise `TlsFileError` if a file cannot be used.
    """
    context = client_context(certificates[0])
    for certificate in certificates[1:]:
        try:
            context.load_verify_locations(certificate)
        except OSError as error:  # includes `SSLError`
            raise TlsFileError(f"cannot use {certificate}: {error}") from error
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class PinnedTrust:
    """A client's trust with pinned keys: a server with an expected pin must have that key.

    Without an expected pin the system's trust decides, and `seen` returns the server's pin afterwards (wire core 10.8).
    """

    def __init__(self) -> None:
        self._expected: dict[tuple[str, int], str] = {}
        self._seen: dict[tuple[str, int], str] = {}
        self._checking: ssl.SSLContext | None = None
        self._pinning: ssl.SSLContext | None = None

    def expect(self, host: str, port: int, pin: str | None) -> None:
        """Set the pin that a server must have; None restores the system's trust."""
        if pin is None:
            self._expected.pop((host, port), None)
        else:
            self._expected[host, port] = pin

    def seen(self, host: str, port: int) -> str | None:
        """Return the pin of the last accepted connection to a server; None if there was none."""
        return self._seen.get((host, port))

    def context(self, host: str, port: int) -> ssl.SSLContext:
        """Return the context for a handshake with a server. Raises `TlsFileError`."""
        if (host, port) not in self._expected:
            self._checking = self._checking or client_context()
            return self._checking
        if self._pinning is None:
            # no verification here: the key is compared before a byte is sent
            self._pinning = _trusting(_common(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)))
        return self._pinning

    def accepts(self, host: str, port: int, certificate: bytes | None) -> bool:
        """Report whether a server with this DER certificate is accepted, and store its pin if so.

        A server without a readable certificate is accepted only if no pin is expected; then nothing is stored.
        """
        try:
            pin = pin_of(certificate or b"")
        except ValueError:
            return (host, port) not in self._expected
        expected = self._expected.get((host, port))
        if expected is not None and not secrets_equal(expected, pin):
            return False
        self._seen[host, port] = pin
        return True


def _common(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def _check_readable(path: str | Path) -> None:
    """Raise `TlsFileError` with the path unless it is a regular file that can be read; errors of OpenSSL lack it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            regular = stat.S_ISREG(os.fstat(fd).st_mode)
        finally:
            os.close(fd)
    except OSError as error:
        raise TlsFileError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TlsFileError("cannot read a file whose name has a NUL in it") from error
    if not regular:
        raise TlsFileError(f"cannot read {path}: not a file")


def _trusting(context: ssl.SSLContext) -> ssl.SSLContext:
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _no_password() -> str:
    raise ValueError("the key is protected by a password")
