"""Routes by which the phone's app finds the dashboard and signs in: status, sign-in, tickets, signed-in clients.

Status, providers, sign-in and sign-out need no session. Without an API server, status, providers, sign-in and tickets
answer 404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.basics.errors import Refused
from svc_proto.commands import Level
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.ports import ApiServerPort, SignInPort
from svc_proto.dashboard.sign_in import SESSION_TTL, TICKET_TTL, SignInSession, cookie_token
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.dashboard.validation import parse_body
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Handler, Route

if TYPE_CHECKING:
    from svc_proto.dashboard import openapi_types as types

__all__ = ["PROFILE", "routes"]

PROFILE = "default"  # the one profile that the API server runs
PROVIDER: types.SignInProviderJson = {"name": "basic", "display_name": "Password", "supports_password": True}
HEALTH_TIMEOUT = 1.0  # s
HEALTH_CACHE = 2.0  # s for which an answer of the API server counts
OWNER: types.OwnerJson = {"user_id": "owner", "email": "", "display_name": "Owner", "org_id": "", "provider": "basic"}
MAX_BODY = 8 * 1024  # bytes


class AppSignInPort(SignInPort, ApiServerPort, Protocol):
    """Members of the dashboard that the sign-in of the phone's app uses."""


def routes(dashboard: AppSignInPort) -> list[Route]:
    """Return the routes of the app's sign-in."""
    view = _SignInRoutes(dashboard)
    rows: list[tuple[str, str, DashboardAccess, Handler]] = [
        ("GET", "/api/status", DashboardAccess.SIGN_IN, view.status),
        ("GET", "/api/auth/providers", DashboardAccess.SIGN_IN, view.providers),
        ("POST", "/auth/password-login", DashboardAccess.SIGN_IN, view.sign_in),
        ("POST", "/auth/logout", DashboardAccess.SIGN_IN, view.sign_out),
        ("GET", "/api/auth/me", DashboardAccess.OWNER, view.me),
        ("POST", "/api/auth/ws-ticket", DashboardAccess.OWNER, view.ticket),
        ("GET", "/api/auth/sessions", DashboardAccess.OWNER, view.sessions),
        ("DELETE", "/api/auth/sessions/{id}", DashboardAccess.OWNER, view.revoke),
    ]
    return [
        Route(method=method, pattern=pattern, access=access, handler=handler, body_limit=MAX_BODY)
        for method, pattern, access, handler in rows
    ]


class _SignInRoutes:
    def __init__(self, dashboard: AppSignInPort) -> None:
        self._dashboard = dashboard
        self._healthy_until = 0.0  # monotonic seconds

    def status(self, request: Request) -> Flow[JsonResponse[types.AppStatusJson]]:
        """Describe the dashboard to clients that look for one.

        Raises `Refused` 503 if the API server does not answer `/health` with 200, and 404 if none is configured. A good
        answer counts for `HEALTH_CACHE`.
        """
        yield from self._check_api()
        gated = bool(self._dashboard.config.password)
        body: types.AppStatusJson = {
            "status": "ok",
            "version": self._dashboard.config.version,
            "auth_required": gated,
            "auth_providers": [PROVIDER] if gated else [],
            "auth_flows": [],
            "profiles": [PROFILE],
            "gateway_mode": "single",
            "gateways": [],
            "components": {"api": {"status": "ok", "ok": True}},
        }
        return json_response(200, body, (PRIVATE,))

    def providers(self, request: Request) -> JsonResponse[types.ProvidersJson]:
        """List the ways to sign in: none without a password."""
        self._dashboard.require_api()
        gated = bool(self._dashboard.config.password)
        return json_response(200, {"providers": [PROVIDER] if gated else []}, (PRIVATE,))

    def sign_in(self, request: Request) -> Flow[JsonResponse[types.SignedInJson]]:
        """Check a password, and set the cookie of a new session; the user name is ignored."""
        dashboard, body = self._dashboard, parse_body(request)
        dashboard.require_api()
        if body.text("provider") not in ("", "basic") or not dashboard.config.password:
            raise Refused(404, "not_found", "there is no such way to sign in")
        cookie = yield from dashboard.sign_in(request, body.text("password"))
        return json_response(200, {"ok": True, "next": "/"}, (PRIVATE, cookie))

    def sign_out(self, request: Request) -> Flow[JsonResponse[types.OkJson]]:
        """End the session of the client, and clear its cookie."""
        sign_ins = self._dashboard.gate.sign_ins
        session = sign_ins.find(cookie_token(request.headers))
        request.credential_id = ""
        if session is not None:
            yield from sign_ins.revoke(session.id)
        return json_response(200, {"ok": True}, (PRIVATE, self._dashboard.cookie(request, "", 0.0)))

    def me(self, request: Request) -> JsonResponse[types.OwnerJson]:
        """Describe the owner; a client with a session gets its cookie again, for another `SESSION_TTL`."""
        session = self._session(request)
        if session is None:
            return json_response(200, OWNER, (PRIVATE,))
        cookie = self._dashboard.cookie(request, cookie_token(request.headers), SESSION_TTL)
        return json_response(200, {**OWNER, "expires_at": int(session.expires_at)}, (PRIVATE, cookie))

    def ticket(self, request: Request) -> JsonResponse[types.TicketJson]:
        """Return a ticket for one WebSocket."""
        self._dashboard.require_api()
        ticket = self._dashboard.gate.sign_ins.new_ticket(self._session(request))
        return json_response(200, {"ticket": ticket, "ttl_seconds": int(TICKET_TTL)}, (PRIVATE,))

    def sessions(self, request: Request) -> JsonResponse[types.SignInsJson]:
        """List the sign-in sessions by the recorded time of their last use, the latest first."""
        own = self._session(request)
        rows: list[types.SignInJson] = [
            {
                "id": session.id,
                "agent": session.agent,
                "address": session.address,
                "created_at": session.created_at,
                "used_at": session.used_at,
                "expires_at": session.expires_at,
                "current": session == own,
            }
            for session in self._dashboard.gate.sign_ins
        ]
        return json_response(200, {"sessions": rows}, (PRIVATE,))

    def revoke(self, request: Request) -> Flow[JsonResponse[types.OkJson]]:
        """End a session, with its requests and WebSockets."""
        identity = request.params["id"]
        if not (yield from self._dashboard.gate.sign_ins.revoke(identity)):
            raise Refused(404, "not_found", "no client is signed in under this id")
        self._dashboard.engine.log(Level.INFO, "sign-in revoked", session=identity[:16])
        return json_response(200, {"ok": True}, (PRIVATE,))

    # --- helpers ---

    def _session(self, request: Request) -> SignInSession | None:
        return self._dashboard.gate.sign_ins.get(request.credential_id)

    def _check_api(self) -> Flow[None]:
        engine, api = self._dashboard.engine, self._dashboard.require_api()
        if engine.now.mono < self._healthy_until:
            return
        try:
            answer = yield from api.result_of(api.peer.request(engine, "GET", "/health", within=HEALTH_TIMEOUT))
        except Refused as refused:
            raise Refused(503, "unreachable", refused.message) from None
        if answer.status != 200:
            raise Refused(503, "unreachable", f"the API server answers {answer.status}")
        self._healthy_until = engine.now.mono + HEALTH_CACHE
