"""Access to the dashboard: the policies of its routes, and the checks of requests for the owner's routes."""

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from collections import deque
from enum import Enum
from math import ceil

from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.sign_in import SignInRegistry, SignInSession, cookie_token
from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import (
    OTHER_USER_TEXT,
    TrustedProxies,
    is_foreign_page,
    is_from_this_host,
    is_local,
    is_of_other_user,
    is_trusted_host_name,
)
from svc_proto.engine.security_headers import page_security_headers
from svc_proto.machines.auth_rate_limiter import WINDOW, AuthRateLimiter
from svc_proto.wire.events import Headers

__all__ = ["FIELDS", "CROSS_SITE_TEXT", "DashboardAccess", "DashboardAuthorizer"]

CHALLENGE = ((b"www-authenticate", b'Basic realm="svc-relay dashboard", charset="UTF-8"'),)  # RFC 7617
CROSS_SITE_TEXT = (
    "another web site may not call the dashboard; a proxy in front of it has to pass Host with its port on"
)
TOO_MANY = "too many wrong passwords: try again later"
MAX_FAILURES_IN_SUM = 60  # wrong passwords of all addresses within a minute; then none is checked
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    b"manifest-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    b"trusted-types svc-relay-worker"
)
FIELDS = (
    *page_security_headers(POLICY),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""Header fields of every answer. Only the page's own scripts run, and none of them can turn text into markup."""


class DashboardAccess(Enum):
    """Access policy of a dashboard route: which clients it admits."""

    OWNER = "owner"  # the owner
    MONITOR = "monitor"  # programs of this host, or the monitor's token: see `openapi.monitor`
    PUBLIC = "public"  # every client
    SIGN_IN = "sign-in"  # clients that may sign in: every one, if there is a password
    TICKET = "ticket"  # the holder of an unused ticket


class DashboardAuthorizer:
    """Authorizer of requests for the owner's routes; it also limits wrong passwords."""

    def __init__(self, config: DashboardConfig) -> None:
        self.sign_ins = SignInRegistry(config.password)
        self._local_access = config.local_access
        self._failures = deque[float](maxlen=MAX_FAILURES_IN_SUM)  # monotonic seconds
        self._names = config.names
        self._page = ("/", config.root_path)
        self._password = config.password.encode("utf-8")
        self.limiter = AuthRateLimiter()
        self._proxies = TrustedProxies(config.relay.trusted_proxies)

    def check(self, request: Request, now: Moment) -> SignInSession | None:
        """Check a request for an owner's route; return its session, or None if it is authorized in another way.

        Raises `Refused` 401, 403 or 429.
        """
        self.check_origin(request)
        if not self._password:
            return None
        session = self.sign_ins.find(cookie_token(request.headers))
        if session is None and not (self._local_access and is_local(request)):
            self._check_basic(request, now)
        return session

    def check_origin(self, request: Request) -> None:
        """Check that `Host` is an address or a local or configured name, and that no page of another origin calls.

        A link of another site to the page itself may be followed. Without a configured password, also check
        `is_from_this_host`. Raises `Refused` 403.
        """
        if not is_trusted_host_name(request.headers.get(b"host") or b"", self._names):
            raise Refused(403, "host_not_allowed", "the dashboard does not go by this name: see SVC_DASHBOARD_NAMES")
        if is_foreign_page(request) and not (request.path in self._page and _is_link(request)):
            raise Refused(403, "origin_not_allowed", CROSS_SITE_TEXT)
        if not self._password and not is_from_this_host(request):
            alone = "without a password the dashboard is for its own host only"
            text = OTHER_USER_TEXT if is_of_other_user(request) else alone
            raise Refused(403, "loopback_only", text)

    def address(self, request: Request) -> str:
        """Return the client's address for the rate limiter."""
        return self._proxies.client_address(request)

    def is_encrypted(self, request: Request) -> bool:
        """Report whether the client uses HTTPS, also where a trusted proxy ends it."""
        return request.secure or self._proxies.forwarded_https(request)

    def check_password(self, given: bytes, address: str, now: Moment) -> None:
        """Check a password, and count a wrong one.

        Raises `Refused` 401 for a wrong one; 429 at the limits, where even the right one is not checked.
        """
        self._check_limits(address, now)
        if not hmac.compare_digest(given, self._password):
            self.limiter.failure(address, now)
            self._failures.append(now.mono)
            raise Refused(401, "wrong_password", "this is not the password")
        self.limiter.success(address, now)

    def _check_limits(self, address: str, now: Moment) -> None:
        refused = self.limiter.refusal(address, now, "rate_limited", TOO_MANY)
        if refused is not None:
            raise refused
        failures = self._failures
        left = failures[0] + WINDOW - now.mono if len(failures) == MAX_FAILURES_IN_SUM else 0.0
        if left > 0.0:
            raise Refused(429, "rate_limited", TOO_MANY, headers=((b"retry-after", b"%d" % ceil(left)),))

    def _check_basic(self, request: Request, now: Moment) -> None:
        address, given = self.address(request), _password_of(request.headers)
        if given is None:
            self._check_limits(address, now)
            raise Refused(401, "password_needed", "the dashboard asks for a password", headers=CHALLENGE)
        try:
            self.check_password(given, address, now)
        except Refused as refused:
            if refused.status == 401:
                raise Refused(401, refused.code, refused.message, headers=CHALLENGE) from None
            raise


def _is_link(request: Request) -> bool:
    """Report whether a browser opens a page, such as by a link: `Sec-Fetch-Mode: navigate` without an `Origin`."""
    headers = request.headers
    mode, origin = headers.get(b"sec-fetch-mode"), headers.get(b"origin")
    return mode == b"navigate" and origin is None


def _password_of(headers: Headers) -> bytes | None:
    """Return the password of `Authorization: Basic`; the user name is ignored.

    None for another scheme or none; empty for malformed base64, or without a colon.
    """
    scheme, _, credentials = (headers.get(b"authorization") or b"").partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        return b64decode(credentials.strip(), validate=True).partition(b":")[2]
    except Base64Error:
        return b""
