"""Where a caller has found the relay: what OAuth calls the issuer, and where `/mcp` is for him.

It is read off his request, since a relay goes by several names; he that lies about it lies to himself. Over plain HTTP
from elsewhere there is no such place: tokens would be read on the way (RFC 6749 section 1.6).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import is_from_this_host

if TYPE_CHECKING:
    from svc_proto.relay.service import Relay

__all__ = ["MCP_PATH", "METADATA", "challenge_headers", "issuer_url"]

MCP_PATH = "/mcp"
METADATA = "/.well-known/oauth-protected-resource"
_HOST = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


def issuer_url(relay: Relay, request: Request) -> str | None:
    """Our address without a slash at its end, such as `https://home.example/relay`; None where secrets are not safe."""
    host = request.headers.get(b"host") or b""
    if not _HOST.fullmatch(host) or not relay.proxies.is_confidential(request):
        return None
    tls = request.secure or relay.proxies.forwarded_https(request)
    prefix = "" if is_from_this_host(request) else relay.config.root_path
    return f"{'https' if tls else 'http'}://{host.decode('ascii').lower()}{prefix}"


def challenge_headers(relay: Relay, request: Request, status: int) -> tuple[tuple[bytes, bytes], ...]:
    """How a refusal at `/mcp` names the way in (RFC 6750 section 3, RFC 9728 section 5.1); nothing, if that is shut."""
    place = issuer_url(relay, request)
    if place is None:
        return ()
    words = [f'resource_metadata="{place}{METADATA}{MCP_PATH}"']
    if status == 403:
        words[:0] = ['error="insufficient_scope"', 'scope="bridge"']
    elif request.headers.get(b"authorization") is not None:
        words[:0] = ['error="invalid_token"']
    return ((b"www-authenticate", f"Bearer {', '.join(words)}".encode("ascii")),)
