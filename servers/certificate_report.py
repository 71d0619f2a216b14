"""Inspection of a server's certificate by a handshake in memory: end of its validity, and its names."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from contextlib import suppress

from runtimes.tls.contexts import TlsFileError, context_for_certificates, server_context

__all__ = ["inspect_certificate"]

DAY = 86_400.0  # s
STEPS = 4  # messages of a handshake in each direction, at most


def inspect_certificate(certificate: str, key: str) -> dict[str, object]:
    """Return path, problem, days until the end of validity, and names of a certificate and its key.

    An expired one has `days_left` -1, one with a problem 365; both have no names.
    """
    row: dict[str, object] = {"path": certificate, "problem": "", "days_left": 365.0, "names": []}
    try:
        found = _peer_certificate(certificate, key)
    except ssl.SSLCertVerificationError as error:
        if "expired" in error.verify_message:
            return {**row, "days_left": -1.0}
        return {**row, "problem": error.verify_message}
    except (TlsFileError, ssl.SSLError, OSError) as error:
        return {**row, "problem": str(error)}
    ends = ssl.cert_time_to_seconds(str(found["notAfter"])) if "notAfter" in found else time.time() + 365 * DAY
    names = [str(value) for kind, value in _pairs(found.get("subjectAltName")) if kind in ("DNS", "IP Address")]
    return {**row, "days_left": (ends - time.time()) / DAY, "names": names}


def _pairs(value: object) -> list[tuple[object, object]]:
    rows = value if isinstance(value, tuple) else ()
    return [(row[0], row[1]) for row in rows if isinstance(row, tuple) and len(row) == 2]


def _peer_certificate(certificate: str, key: str) -> Mapping[str, object]:
    server, client = server_context(certificate, key), context_for_certificates(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server)
    for _ in range(STEPS):
        for side in (here, there):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return here.getpeercert() or {}
