"""Access to the dashboard, checked for every request, the page's own files included.

Checks in this order. `Host` must be a name of this host. Otherwise a page that resolves its own name to this host (DNS
rebinding) would have the same origin. `Origin` and `Sec-Fetch-Site` must not name another site. Without a password the
client must run on this host, as for the relay's loopback-only routes. With one the client must send the password.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from enum import Enum

from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import (
    OTHER_USER_TEXT,
    TrustedProxies,
    is_foreign_page,
    is_from_this_host,
    is_of_other_user,
    is_trusted_host_name,
)
from svc_proto.engine.security_headers import page_security_headers
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.wire.events import Headers

__all__ = ["FIELDS", "CROSS_SITE_TEXT", "DashboardAccess", "DashboardAuthorizer"]

CHALLENGE = ((b"www-authenticate", b'Basic realm="svc-relay dashboard", charset="UTF-8"'),)  # RFC 7617
CROSS_SITE_TEXT = (
    "another web site may not call the dashboard; a proxy in front of it has to pass Host with its port on"
)
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
FIELDS = (
    *page_security_headers(POLICY),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""Header fields of every answer. Only the page's own scripts run, and none of them can turn text into markup."""


class DashboardAccess(Enum):
    """Access policies of the route table."""

    OWNER = "owner"  # the owner
    MONITOR = "monitor"  # programs of this host, or the monitor's token: see `openapi.monitor`
    PUBLIC = "public"  # every client


class DashboardAuthorizer:
    """Checks the access policy, and limits wrong passwords."""

    def __init__(self, config: DashboardConfig) -> None:
        self._names = config.names
        self._page = ("/", config.root_path)
        self._password = config.password.encode("utf-8")
        self.limiter = AuthRateLimiter()
        self._proxies = TrustedProxies(config.relay.trusted_proxies)

    def check(self, request: Request, now: Moment) -> None:
        """Check a request. Raises `Refused` 401, 403 or 429."""
        if not is_trusted_host_name(request.headers.get(b"host") or b"", self._names):
            raise Refused(403, "host_not_allowed", "the dashboard does not go by this name: see SVC_DASHBOARD_NAMES")
        if is_foreign_page(request) and not (request.path in self._page and _is_link(request)):
            raise Refused(403, "origin_not_allowed", CROSS_SITE_TEXT)
        if self._password:
            self._check_password(request, now)
        elif not is_from_this_host(request):
            alone = "without a password the dashboard is for its own host only"
            text = OTHER_USER_TEXT if is_of_other_user(request) else alone
            raise Refused(403, "loopback_only", text)

    def address(self, request: Request) -> str:
        """Return the client's address for the rate limiter."""
        return self._proxies.client_address(request)

    def _check_password(self, request: Request, now: Moment) -> None:
        address = self.address(request)
        refused = self.limiter.refusal(address, now, "rate_limited", "too many wrong passwords: try again later")
        if refused is not None:
            raise refused
        given = _password_of(request.headers)
        if given is None:
            raise Refused(401, "password_needed", "the dashboard asks for a password", headers=CHALLENGE)
        if not hmac.compare_digest(given, self._password):
            self.limiter.failure(address, now)
            raise Refused(401, "wrong_password", "this is not the password", headers=CHALLENGE)
        self.limiter.success(address, now)


def _is_link(request: Request) -> bool:
    """Report whether the request follows a link."""
    headers = request.headers
    mode, origin = headers.get(b"sec-fetch-mode"), headers.get(b"origin")
    return mode == b"navigate" and origin is None


def _password_of(headers: Headers) -> bytes | None:
    """Return the password of `Authorization: Basic`; the user name is ignored."""
    scheme, _, credentials = (headers.get(b"authorization") or b"").partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        return b64decode(credentials.strip(), validate=True).partition(b":")[2]
    except Base64Error:
        return b""
