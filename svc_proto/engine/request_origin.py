"""Origin of a request: a program on this host, a page of another site, or a client behind a proxy.

A request is local if none of these signs is present:

| sign                                                         | possible origin                                      |
|--------------------------------------------------------------|------------------------------------------------------|
| a peer that is not 127.0.0.1, ::1 or ::ffff:127.0.0.1        | another host                                         |
| a peer that is a process of another user, by the kernel      | another user of this host; a client behind a proxy   |
| `Forwarded`, `Via`, `X-Real-IP`, `X-Forwarded-…`             | a client behind a proxy on this host                 |
| HTTP/1.0, or `Connection: upgrade` without an `Upgrade`      | the same: nginx, configured as its manual shows      |
| a `Host` that is no name of loopback                         | a page that points its own name here (DNS rebinding) |
| an `Origin`, or `Sec-Fetch-Site`, that is not the page's own | a page from this host or another, in its browser     |
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from attrs import field, frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.engine.message import Request
from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.wire.urls import parse_url

__all__ = [
    "OTHER_USER_TEXT",
    "TrustedProxies",
    "is_forwarded",
    "is_foreign_page",
    "is_from_this_host",
    "is_local",
    "is_loopback_address",
    "is_loopback_name",
    "is_of_other_user",
    "is_trusted_host_name",
]

BROWSER_HEADERS = frozenset({b"origin", b"sec-fetch-site"})
FORWARDED = (b"forwarded", b"via", b"x-real-ip")
FORWARDED_PREFIX = b"x-forwarded-"
# Names that no public name server resolves: RFC 6761, RFC 6762, RFC 8375, and those that ICANN withholds from the root.
PRIVATE_NAMES = (".localhost", ".local", ".home.arpa", ".internal", ".lan")
MAX_ADDRESS = 64  # characters of an address that a proxy reports
OTHER_USER_TEXT = (
    "this route is for programs of the server's own user on its host, and the kernel names another user for this "
    "connection: call it as that user; for a proxy or another user of the host, see RELAY_LOCAL_TRUST"
)
_IPV4 = re.compile(r"[0-9.]+")


def _parsed(texts: Iterable[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text, strict=False) for text in texts)


@frozen
class TrustedProxies:
    """Peers, by address or network, whose forwarding headers are trusted. Without any, no such header is trusted."""

    networks: tuple[IPv4Network | IPv6Network, ...] = field(converter=_parsed)

    def client_address(self, request: Request) -> str:
        """Return the client's address: that of the peer, unless the peer is a trusted proxy.

        Behind trusted proxies it is the last hop of `X-Forwarded-For` that is no trusted proxy, or the first hop if all
        are; without hops that of the peer.
        """
        address = request.peer.host
        for hop in reversed(request.headers.tokens(b"x-forwarded-for")):
            if not self._trusts(address):
                break
            address = _without_port(hop.decode("latin-1"))[:MAX_ADDRESS]
        return address

    def forwarded_https(self, request: Request) -> bool:
        """Report whether a trusted proxy states that it received the request over TLS.

        The first value of `X-Forwarded-Proto` counts: `https`, or `wss`, which some proxies write for a WebSocket.
        """
        declared = request.headers.tokens(b"x-forwarded-proto")
        return declared[:1] in ([b"https"], [b"wss"]) and self._trusts(request.peer.host)

    def is_confidential(self, request: Request) -> bool:
        """Report whether the request came over TLS, to us or to a trusted proxy, or stayed on this host.

        It stayed on this host if the peer's address is a loopback address and the request has no sign of a proxy.
        """
        if request.secure or self.forwarded_https(request):
            return True
        return is_loopback_address(request.peer.host) and not is_forwarded(request)

    def _trusts(self, host: str) -> bool:
        address = _address(host)
        return address is not None and any(address in network for network in self.networks)


def is_local(request: Request) -> bool:
    """Report whether the request comes from this host (`is_from_this_host`), and not from a page of another origin."""
    return is_from_this_host(request) and not is_foreign_page(request)


def is_from_this_host(request: Request) -> bool:
    """Report whether the request comes from an address in `LOOPBACK` and has no sign of a proxy or of another user.

    If it has a `Host`, that must be `localhost` or one of `LOOPBACK`. A browser with a page of any site counts, too.
    """
    host = request.headers.get(b"host")
    named = host is None or is_loopback_name(b"http://" + host)
    return named and request.peer.host in LOOPBACK and not is_of_other_user(request) and not is_forwarded(request)


def is_of_other_user(request: Request) -> bool:
    """Report whether the kernel was queried, and did not name our user or root as the owner of the peer's socket."""
    return request.own_user is False


def is_forwarded(request: Request) -> bool:
    """Report whether the request has a sign of a proxy.

    Signs are a forwarding header field, HTTP/1.0, and `Connection: upgrade` without `Upgrade`.
    """
    headers = request.headers
    if request.http_version == "1.0" or any(key in FORWARDED or key.startswith(FORWARDED_PREFIX) for key, _ in headers):
        return True
    return headers.get(b"upgrade") is None and b"upgrade" in headers.tokens(b"connection")


def is_browser_request(request: Request) -> bool:
    """Report whether the request has a header field by which browsers mark requests (`BROWSER_HEADERS`)."""
    return not BROWSER_HEADERS.isdisjoint(request.fields)


def is_foreign_page(request: Request) -> bool:
    """Report whether a page of another origin (other port, other site) makes the request.

    `Sec-Fetch-Site: same-origin` excludes that, since no page can write it (decision 144). Otherwise an `Origin` must
    match `Host`; without one, `Sec-Fetch-Site` must be absent or `none`.
    """
    headers = request.headers
    origin, declared = headers.get(b"origin"), headers.get(b"sec-fetch-site")
    if declared == b"same-origin":
        return False
    if origin is None:
        return declared not in (None, b"none")
    scheme, _, authority = origin.lower().partition(b"://")
    # Where TLS does not end here it may have ended at a proxy.
    schemes = (b"https",) if request.secure else (b"https", b"http")
    return scheme not in schemes or authority != (headers.get(b"host") or b"").lower()


def is_trusted_host_name(authority: bytes, names: tuple[str, ...] = ()) -> bool:
    """Report whether a `Host` is safe from DNS rebinding: an address, a local name, or one of `names`.

    Local are names without a dot, and those that end in one of `PRIVATE_NAMES`. A `Host` with a port is one of `names`
    only if they have it with that port.
    """
    host = authority.decode("latin-1").lower()
    name = host.partition(":")[0].removesuffix(".")
    private = "." not in name or _IPV4.fullmatch(name) is not None or name.endswith(PRIVATE_NAMES)
    return host.startswith("[") or (bool(name) and private) or name in names


def is_loopback_name(url: bytes) -> bool:
    """Report whether the host of a URL is `localhost` or in `LOOPBACK`; False for an invalid URL."""
    try:
        return parse_url(url.decode("latin-1")).host.lower() in (*LOOPBACK, "localhost")
    except RemoteProtocolError:
        return False


def is_loopback_address(host: str) -> bool:
    """Report whether an address is a loopback address: ::1 or one of 127/8, also as `::ffff:127.…`."""
    address = _address(host)
    return address is not None and address.is_loopback


def _without_port(hop: str) -> str:
    # Some proxies add the port, which differs for each connection: "192.0.2.1:5000", "[2001:db8::1]:5000".
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    host, _, port = hop.partition(":")
    return host if "." in host and port.isdecimal() else hop


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped
