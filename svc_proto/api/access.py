"""Access to the API: access policies of routes, API keys, web origins, and CORS header fields (wire api 2.2, 2.4)."""

import hmac
import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import assert_never

from attrs import field, frozen

from svc_proto.api.config import ANY_ORIGIN
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.moment import Moment
from svc_proto.engine.message import ANONYMOUS, AnonymousType, Request
from svc_proto.engine.request_origin import is_local, is_loopback_address, is_of_other_user, is_trusted_host_name
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.wire.events import Headers

__all__ = [
    "BRANDED",
    "EXPOSED_HEADERS",
    "MAIN_KEY_PRINCIPAL",
    "SESSION_ID",
    "SESSION_KEY",
    "TOOL_PROGRESS",
    "ApiAccess",
    "Cors",
    "KeyGuessLimiter",
    "authorize",
    "find_branded_header",
    "has_bearer",
    "preflight_headers",
]

MAIN_KEY_PRINCIPAL = "main key"  # principal of requests with the main key; others are hashes of keys
SESSION_ID = "Session-Id"  # continues a stored session, wire api 5.3
SESSION_KEY = "Session-Key"  # scopes the long-term memory
TOOL_PROGRESS = "Tool-Progress"  # requests the named events of wire api 5.3 in a stream of chunks
SECURITY_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-xss-protection", b"0"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
# RFC 6797 section 7.2: "MUST NOT include the STS header field in HTTP responses conveyed over non-secure transport".
TLS_SECURITY_HEADERS = (*SECURITY_HEADERS, (b"strict-transport-security", b"max-age=31536000"))  # s, one year
VARY = (b"vary", b"Origin")
ALLOWED_HEADERS = (
    b"Authorization",
    b"Content-Type",
    b"Idempotency-Key",
)  # of requests of pages, besides those that they request
MAX_ASKED_HEADERS = 100  # requested names of a preflight; further ones are not allowed
READABLE = ("Session-Id", "Session-Key", "Run-Id", "Run-Streaming", "Stream-Mode", "Completed", "Partial", "Error")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")  # RFC 9110 section 5.6.2, in lower case


class ApiAccess(Enum):
    """Access policy of a route: which clients the API server admits."""

    PUBLIC = "public"  # every client
    MONITOR = "monitor"  # programs of this host, or the monitor's token: see `openapi.monitor`
    LOCAL_OR_KEY = "local or key"  # programs of this host, else as KEY
    KEY = "key"  # the main key or a pairing's own, if the server has a key; else every client
    MANAGE = "manage"  # as KEY, but a pairing's own key only if its session has the right `manage`, else 403
    MAIN_KEY = "main key"  # the main key only; the request outlives a change of the key
    OWNER = "owner"  # the main key only; a change of the key ends the request


def authorize(
    access: ApiAccess, request: Request, key: str, names: tuple[str, ...], device: Callable[[str], str | None]
) -> AnonymousType | str | None:
    """Apply an access policy; return the principal, or `ANONYMOUS` for a client without one.

    Raises `Refused` 401 for a missing or wrong key. On a server without a key it raises 403 for a session header, and
    for a host name that is not of this host. `PUBLIC`, and `LOCAL_OR_KEY` for a program of this host, check none of
    these. None is the principal of the main key, and of a program of this host that needs no key, unless it runs as
    another user.
    `names` are further host names of this host. `device` maps the API key of a pairing to its principal, or to None.
    `MONITOR` is checked elsewhere and is a `LocalProtocolError` here.
    """
    match access:
        case ApiAccess.PUBLIC:
            return ANONYMOUS
        case ApiAccess.MONITOR:
            raise LocalProtocolError("a monitor has a gate of its own")
        case ApiAccess.LOCAL_OR_KEY if is_local(request):
            return None
        case ApiAccess.KEY | ApiAccess.MANAGE | ApiAccess.LOCAL_OR_KEY if key:
            return _check_bearer(request.headers, key, device)
        case ApiAccess.MAIN_KEY | ApiAccess.OWNER if key:
            return _check_bearer(request.headers, key, lambda other: None)
        case ApiAccess.KEY | ApiAccess.MANAGE | ApiAccess.LOCAL_OR_KEY | ApiAccess.MAIN_KEY | ApiAccess.OWNER:
            _check_keyless(request, names)
            own = is_loopback_address(request.peer.host) and not is_of_other_user(request)
            return None if own else ANONYMOUS
        case _:
            assert_never(access)


def has_bearer(headers: Headers, key: str) -> bool:
    """Report whether the request carries this key as bearer token."""
    return hmac.compare_digest(_bearer(headers), key.encode("utf-8"))


class KeyGuessLimiter:
    """Rate limiter of wrong API keys by client address. A request without an `Authorization` header is not counted."""

    def __init__(self, limiter: AuthRateLimiter) -> None:
        self.limiter = limiter

    def record_success(self, request: Request, now: Moment) -> None:
        """Clear the failures of the address after a right key; a block remains."""
        self.limiter.success(request.peer.host, now)

    def record_failure(self, request: Request, now: Moment) -> Refused | None:
        """Count a wrong key and return None; for a blocked address, return the 429 that replaces the 401 instead.

        A request without an `Authorization` header is ignored: None.
        """
        if request.headers.get(b"authorization") is None:
            return None
        address = request.peer.host
        text = "Too many wrong API keys: try again later"
        refused = self.limiter.refusal(address, now, "rate_limit_exceeded", text)
        if refused is None:
            self.limiter.failure(address, now)
        return refused


def find_branded_header(headers: Headers, name: str) -> str | None:
    """Return the value of the header `name` with the prefix of any brand before it; None if absent.

    `name` is `SESSION_ID`, `SESSION_KEY` or `TOOL_PROGRESS`.
    """
    for field_name in _SPELLINGS[name]:
        value = headers.get(field_name)
        if value is not None:
            return value.decode("latin-1").strip()
    return None


def preflight_headers(request: Request) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header fields of the answer to a preflight request, without the origin (Fetch standard).

    Allowed are the names in `ALLOWED_HEADERS`, and of the valid header names that the page requests the first 100.
    """
    headers = request.headers
    asked = [name for name in headers.tokens(b"access-control-request-headers") if _TOKEN.fullmatch(name)]
    known = {name.lower() for name in ALLOWED_HEADERS}
    more = [name for name in dict.fromkeys(asked[:MAX_ASKED_HEADERS]) if name not in known]
    fields = [
        (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE, OPTIONS"),
        (b"access-control-allow-headers", b", ".join((*ALLOWED_HEADERS, *more))),
        (b"access-control-max-age", b"600"),  # s
    ]
    if headers.tokens(b"access-control-request-private-network") == [b"true"]:
        fields.append((b"access-control-allow-private-network", b"true"))
    return tuple(fields)


@frozen
class Cors:
    """Web origins that may call: none, some, all of a scheme (`moz-extension://*`), or all (`*`)."""

    origins: Sequence[str]
    _allowed: frozenset[bytes] = field(init=False)
    _schemes: tuple[bytes, ...] = field(init=False)

    @_allowed.default
    def _encode(self) -> frozenset[bytes]:
        return frozenset(origin.encode("utf-8") for origin in self.origins)

    @_schemes.default
    def _encode_schemes(self) -> tuple[bytes, ...]:
        return tuple(origin[:-1].encode("utf-8") for origin in self.origins if origin.endswith("://*"))

    def allows(self, headers: Headers) -> bool:
        """Report whether the request has no origin, or an allowed one."""
        origin = headers.get(b"origin")
        return origin is None or ANY_ORIGIN in self.origins or self._is_listed(origin)

    def _is_listed(self, origin: bytes) -> bool:
        return origin in self._allowed or origin.startswith(self._schemes)

    def fields(self, headers: Headers, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Return the security and CORS header fields of an answer or a stream. `secure`: it is sent over TLS."""
        common = TLS_SECURITY_HEADERS if secure else SECURITY_HEADERS
        if not self.origins:
            return common
        if ANY_ORIGIN in self.origins:
            return (*common, (b"access-control-allow-origin", b"*"), EXPOSE)
        origin = headers.get(b"origin")
        if origin is None or not self._is_listed(origin):
            return (*common, VARY)
        return (*common, VARY, (b"access-control-allow-origin", origin), EXPOSE)


_SPELLINGS = {
    name: tuple(f"{brand.header_prefix}{name}".lower().encode("ascii") for brand in BRANDS.values())
    for name in (SESSION_ID, SESSION_KEY, TOOL_PROGRESS)
}
BRANDED = tuple(spelling for spellings in _SPELLINGS.values() for spelling in spellings)
# header fields of answers that pages may read
EXPOSE = (
    b"access-control-expose-headers",
    ", ".join(
        (
            *(f"{brand.header_prefix}{name}" for brand in BRANDS.values() for name in READABLE),
            *("Mcp-Session-Id", "Retry-After", "WWW-Authenticate"),
        )
    ).encode("ascii"),
)
# Names of `Cors.fields`.
EXPOSED_HEADERS = (
    *(name for name, _ in (*TLS_SECURITY_HEADERS, VARY, EXPOSE)),
    b"access-control-allow-origin",
)


def _check_bearer(headers: Headers, key: str, device: Callable[[str], str | None]) -> str | None:
    if has_bearer(headers, key):
        return None
    token = _bearer(headers)
    holder = device(token.decode("latin-1")) if token else None
    if holder is None:
        raise Refused(401, "invalid_api_key", "Invalid API key")
    return holder


def _bearer(headers: Headers) -> bytes:
    # Wire api 2.2: one space, token trimmed, constant-time compare on bytes. The scheme is of any case: RFC 9110 11.1.
    scheme, _, token = (headers.get(b"authorization") or b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" and token[:1] != b" " else b""


def _check_keyless(request: Request, names: tuple[str, ...]) -> None:
    for name in (SESSION_ID, SESSION_KEY):
        if find_branded_header(request.headers, name) is not None:
            text = f"the {name} header needs a server with an API key: set API_SERVER_KEY"
            raise Refused(403, "", text)
    host = request.headers.get(b"host")
    if host is not None and not is_trusted_host_name(host, names):
        # A page whose name resolves to this host (DNS rebinding) can read answers without an `Origin` header.
        text = "without an API key this server answers to addresses and local names only: set API_SERVER_KEY"
        raise Refused(403, "host_not_allowed", text)
