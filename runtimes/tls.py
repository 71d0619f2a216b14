"""TLS settings: contexts for both roles, and the one deadline that a runtime has of its own.

A core hears of an accepted connection only when its handshake is done, so a handshake that never ends is bounded here
and not by the core: in time by `HANDSHAKE_TIMEOUT`, in number by `MAX_HANDSHAKES`.
"""

from __future__ import annotations

import ssl
from pathlib import Path

__all__ = ["HANDSHAKE_TIMEOUT", "MAX_HANDSHAKES", "TlsFileError", "client_context", "server_context"]

HANDSHAKE_TIMEOUT = 10.0  # s, from accept to the end of the TLS handshake: drop
MAX_HANDSHAKES = 512  # handshakes under way on one core: the oldest is dropped for a new one
ALPN = ["http/1.1"]


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
    return _common(context)


def client_context(cafile: str | Path | None = None) -> ssl.SSLContext:
    """A context that checks servers against the system's trust, or against one PEM file."""
    try:
        context = ssl.create_default_context(cafile=None if cafile is None else str(cafile))
    except (ssl.SSLError, OSError) as error:
        raise TlsFileError(f"cannot use {cafile}: {error}") from error
    return _common(context)


def _common(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(ALPN)
    return context


def _no_password() -> str:
    raise ValueError("the key is protected by a password")
