"""Issuer URL of the relay for a client: the base of its OAuth endpoints and of `/mcp`.

The Host header gives the URL's host, since a relay has several names. A client of another host that does not use HTTPS
gets no issuer: tokens could be read in transit (RFC 6749 section 1.6).
"""

import re

from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import TrustedProxies, is_from_this_host

__all__ = ["MCP_PATH", "METADATA", "challenge_headers", "issuer_url"]

MCP_PATH = "/mcp"
METADATA = "/.well-known/oauth-protected-resource"
_HOST = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


def issuer_url(proxies: TrustedProxies, root_path: str, request: Request) -> str | None:
    """Return our URL without a final slash, such as `https://home.example/relay`.

    Return None for a connection that is not confidential, and for a missing or invalid Host header.

    `root_path` is the prefix under which a proxy serves the relay; it is left out for a request from this host.
    """
    host = request.headers.get(b"host") or b""
    if not _HOST.fullmatch(host) or not proxies.is_confidential(request):
        return None
    tls = request.secure or proxies.forwarded_https(request)
    prefix = "" if is_from_this_host(request) else root_path
    return f"{'https' if tls else 'http'}://{host.decode('ascii').lower()}{prefix}"


def challenge_headers(
    proxies: TrustedProxies, root_path: str, request: Request, status: int
) -> tuple[tuple[bytes, bytes], ...]:
    """Return the challenge of refusals at `/mcp` (RFC 6750 section 3, RFC 9728 section 5.1).

    It is empty if there is no issuer URL.
    """
    place = issuer_url(proxies, root_path, request)
    if place is None:
        return ()
    words = [f'resource_metadata="{place}{METADATA}{MCP_PATH}"']
    if status == 403:
        words[:0] = ['error="insufficient_scope"', 'scope="bridge"']
    elif request.headers.get(b"authorization") is not None:
        words[:0] = ['error="invalid_token"']
    return ((b"www-authenticate", f"Bearer {', '.join(words)}".encode("ascii")),)
