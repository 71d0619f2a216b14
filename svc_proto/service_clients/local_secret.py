"""Local secret, by which a server recognizes programs of its own user among the clients on its host.

A relay whose policy needs the secret creates a new one after its start and stores it in its state folder, readable by
its user only (mode 0600). Programs of that user show the secret in a header.
"""

import hmac
import re
from collections.abc import Callable

from svc_proto.commands import ReadConfig, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.request_origin import is_loopback_name
from svc_proto.facts import Failure
from svc_proto.wire.events import Headers

__all__ = [
    "HEADER",
    "LOCAL_SECRET",
    "OPERATOR",
    "SIZE",
    "create_secret",
    "operator_headers",
    "read_secret",
    "secret_headers",
    "forwarded_secret_headers",
    "has_secret",
]

LOCAL_SECRET = "local-secret"  # in the state folder: hexadecimal, without a line end
HEADER = b"x-svc-local-secret"
OPERATOR = (b"x-svc-operator", b"1")  # the request is for the operator of this host, and for no device
SIZE = 32  # bytes of entropy
READ_TIMEOUT = 1.0  # s
_SECRET = re.compile(f"[0-9a-f]{{{2 * SIZE}}}")


def create_secret(
    engine: Engine, name: str = LOCAL_SECRET, text: Callable[[str], str] = str
) -> Flow[tuple[bytes, Failure | None]]:
    """Create a secret and store `text(secret)`; return the secret with the failure to store it, if any."""
    secret = engine.entropy(SIZE).hex()
    written = yield from run_operation(engine, WriteConfig(engine.new_op(), name, text(secret)))
    return secret.encode("ascii"), written


def read_secret(engine: Engine, name: str = LOCAL_SECRET) -> Flow[str]:
    """Return the stored secret; empty if it is missing or not readable."""
    text = yield from run_operation(engine, ReadConfig(engine.new_op(), name), within=READ_TIMEOUT)
    return "" if isinstance(text, Failure) else text


def secret_headers(engine: Engine) -> Flow[tuple[tuple[bytes, bytes], ...]]:
    """Return the header field for a request to the relay on this host; none without a valid stored secret."""
    text = yield from read_secret(engine)
    return ((HEADER, text.encode("ascii")),) if _SECRET.fullmatch(text) else ()


def operator_headers(engine: Engine, url: str, *, secret: bool = True) -> Flow[tuple[tuple[bytes, bytes], ...]]:
    """Return the header fields that mark a request to the API at this URL as the operator's; none unless on loopback.

    Without `secret` the local secret is left out.
    """
    if not is_loopback_name(url.encode("utf-8")):
        return ()
    return (OPERATOR, *((yield from secret_headers(engine)) if secret else ()))


def forwarded_secret_headers(headers: Headers) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header field with the local secret of a caller, to forward it; none without one."""
    shown = headers.get(HEADER)
    return () if shown is None else ((HEADER, shown),)


def has_secret(headers: Headers, secret: bytes, name: bytes = HEADER) -> bool:
    """Report whether a request shows the secret."""
    return hmac.compare_digest(headers.get(name) or b"", secret)
