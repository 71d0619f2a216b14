"""The dashboard as a service of an engine: monitoring, revocation, pairing, chat, and the reference phone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, cast

from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.commands import Compute, Level, Ready
from svc_proto.dashboard import (
    agent_proxy,
    app_audio,
    app_proxy,
    app_sign_in,
    gateway_proxy,
    oauth_consent_page,
    phone_proxy,
    relay_proxy,
    sign_in_page,
    static_files,
)
from svc_proto.dashboard.access import FIELDS, DashboardAccess, DashboardAuthorizer
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.joined_modules import join_modules
from svc_proto.dashboard.sign_in import COOKIE, SESSION_TTL
from svc_proto.dashboard.stats_routes import StatsCollector, health_route
from svc_proto.dashboard.upstream import PRIVATE, Upstream
from svc_proto.dashboard.validation import unprocessable
from svc_proto.engine.admission import AdmissionControl
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import ANONYMOUS, AnonymousType, JsonResponse, Request, Response, json_response
from svc_proto.engine.router import Route, Router
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.facts import Accepted, Failure
from svc_proto.monitoring.health_monitor import HealthCheckRun, HealthMonitor
from svc_proto.monitoring.monitoring_routes import MonitoringRoutes
from svc_proto.openapi.routes import OpenApiRoutes
from svc_proto.wire.events import RequestHead
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from svc_proto.dashboard.openapi_types import QrRowsJson
    from svc_proto.openapi.operation_doc import ApiDoc

__all__ = ["LIMITS", "Dashboard"]

# Browsers and phones of a few people, and one call of ours for each request. A file of 50 MB in base64 arrives as one
# message, which is forwarded in parts. Over HTTP/2 it is received whole, two at a time.
LIMITS = evolve(
    DEFAULT_LIMITS, max_connections=512, max_message=68 * 1024 * 1024, large_input=256 * 1024, large_inputs=2
)
NO_CHAT = "the dashboard was started without an API server, so there is no chat"
MAX_QR = 2_953  # bytes of the largest QR, ISO/IEC 18004
QR_TIMEOUT = 5.0  # s


class Dashboard:
    """The dashboard service. `files` are those of the page, by name; `health` runs the checks of this host."""

    engine: Engine

    def __init__(
        self,
        config: DashboardConfig,
        files: Mapping[str, bytes],
        *,
        limits: Limits = LIMITS,
        health: HealthCheckRun | None = None,
    ) -> None:
        files = join_modules(files)
        self.config = config
        self.limits = limits
        self.gate = DashboardAuthorizer(config)
        self.api_server = agent_proxy.find_api_server(self)
        monitor = HealthMonitor(health)
        self._monitor = MonitoringRoutes(
            config.metrics_token,
            self.gate.limiter,
            address=self.gate.address,
            store=False,
            health=monitor,
            version=config.version,
        )
        self._watch = StatsCollector(config)
        drawing = Route(
            method="POST", pattern="/api/qr", access=DashboardAccess.OWNER, handler=self._draw, body_limit=MAX_QR
        )
        calls = (relay_proxy, agent_proxy, phone_proxy, app_sign_in, gateway_proxy, app_proxy, app_audio, sign_in_page)
        rows = [
            *static_files.routes(files, config.root_path),
            *self._monitor.routes(DashboardAccess.MONITOR, DashboardAccess.PUBLIC),
            *OpenApiRoutes(
                lambda: _manual((*files,), config.root_path), lambda: self.router, config.root_path, config.version
            ).routes(DashboardAccess.OWNER),
            drawing,
            *self._watch.routes(),
            health_route(monitor),
            *(row for each in calls for row in each.routes(self)),
        ]
        self.router = Router(rows, config.root_path)

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Implement `Service.bind`: store the engine and bind the parts."""
        self.engine = engine
        self._admission = AdmissionControl(engine, self, self.limits)
        self._monitor.bind(engine, self._admission)
        self._watch.bind(engine)
        self.gate.sign_ins.bind(engine)

    def on_started(self) -> None:
        """Start a task: with a password, read the sign-ins; schedule samples, and checks if given; emit `Ready`."""
        self.engine.spawn(self._start())

    def _start(self) -> Flow[None]:
        config = self.config
        if config.password:
            yield from self.gate.sign_ins.load()
        self._watch.start()
        self._monitor.start()
        self.engine.log(
            Level.INFO,
            "ready",
            service="dashboard",
            port=config.port,
            password=bool(config.password),
            chat=config.api_url is not None,
        )
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> ServerChannel | None:
        """Return the channel that serves a connection; None if it is refused at a limit of connections."""
        return self._admission.admit(fact)

    def on_stopping(self) -> None:
        """Stop sampling and checking; calls under way need no cleanup."""
        self._watch.stop()
        self._monitor.stop()

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> AnonymousType | None:
        """Check the access policy of a route; set the request's credential if it has a session. Raises `Refused`.

        The result is `ANONYMOUS` for a public or sign-in route, else None. A wrong password is logged, unless the
        limits are reached.
        """
        if not isinstance(access, DashboardAccess):
            raise TypeError("the dashboard's routes name an Access")
        if access is DashboardAccess.PUBLIC:
            return ANONYMOUS
        if access is DashboardAccess.MONITOR:
            self._monitor.check(request)
            return None
        if access is DashboardAccess.SIGN_IN:
            self.gate.check_origin(request)
            return ANONYMOUS
        if access is DashboardAccess.TICKET:
            self.gate.check_origin(request)
            request.credential_id = self.gate.sign_ins.pop_ticket(request.query.get("ticket", ""))
            return None
        try:
            session = self.gate.check(request, self.engine.now)
        except Refused as refused:
            if refused.code == "wrong_password":  # refusals after the last permitted guess are not logged
                self.engine.log(Level.WARNING, "wrong password", address=self.gate.address(request))
            raise
        if session is not None:
            request.credential_id = session.token_hash
        return None

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Return `{"detail": …, "code": …}` (wire core 9).

        A browser that opens a page without a session is redirected to the sign-in page instead.
        """
        redirect = sign_in_page.redirect_to_sign_in(refused, head, self.config.root_path)
        if redirect is not None:
            return redirect
        detail = refused.extra.get("detail", refused.message)
        return json_response(refused.status, {"detail": detail, "code": refused.code}, (PRIVATE, *refused.headers))

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Return the security headers of a response without its own; the consent and sign-in pages may send forms."""
        of_forms = self.router.inner(head.target.partition("?")[0]) in (oauth_consent_page.PATH, sign_in_page.PATH)
        return oauth_consent_page.PAGE_FIELDS if of_forms else FIELDS

    def sign_in(self, request: Request, password: str) -> Flow[tuple[bytes, bytes]]:
        """Check a password; return the cookie of a new session. Raises `Refused` 401 or 429."""
        gate, engine, address = self.gate, self.engine, self.gate.address(request)
        try:
            gate.check_password(password.encode("utf-8"), address, engine.now)
        except Refused as refused:
            if refused.status == 401:
                engine.log(Level.WARNING, "wrong password", address=address)
            raise
        agent = (request.headers.get(b"user-agent") or b"").decode("latin-1")
        token, session = yield from gate.sign_ins.create(agent, address)
        engine.log(Level.INFO, "signed in", address=address, session=session.id)
        return self.cookie(request, token, SESSION_TTL)

    def cookie(self, request: Request, token: str, age: float) -> tuple[bytes, bytes]:
        """Return the header field that sets the cookie of a session for `age` seconds; 0: that clears it."""
        path = self.config.root_path or "/"
        secure = "; Secure" if self.gate.is_encrypted(request) else ""
        text = f"{COOKIE}={token}; Path={path}; Max-Age={int(age)}; HttpOnly; SameSite=Lax{secure}"
        return b"set-cookie", text.encode("ascii")

    def require_api(self) -> Upstream:
        """Return the API server. Raises `Refused` 404 if none is configured."""
        if self.api_server is None:
            raise Refused(404, "no_chat", NO_CHAT)
        return self.api_server

    # --- the QR of an invite ---

    def _draw(self, request: Request) -> Flow[JsonResponse[QrRowsJson]]:
        """Return the rows of a text's QR: `{"rows": ["1110…", …]}`, without a margin. Raises `Refused` 422."""
        try:
            text = request.body.decode("utf-8")
        except UnicodeDecodeError:
            text = ""
        if not text:
            raise unprocessable("string_type", "must be text in UTF-8", "body")
        rows = yield from run_operation(
            self.engine, Compute(self.engine.new_op(), "qr.rows", (text,)), within=QR_TIMEOUT
        )
        if isinstance(rows, Failure):
            raise unprocessable("value_error", "cannot be drawn as a QR", "body")
        return json_response(200, {"rows": cast("list[str]", rows)}, (PRIVATE,))


def _manual(files: Iterable[str], prefix: str) -> ApiDoc:
    from svc_proto.dashboard.openapi_operations import build_api_doc  # noqa: PLC0415, RUF100 - loaded at the first use

    return build_api_doc(files, prefix)
