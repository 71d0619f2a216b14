"""Proxy for the relay: a fixed set of calls to routes for its operator, without a bearer token (wire core 9).

Only commands to phones have one: see `phone_commands`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics import strict_json
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.errors import Refused
from svc_proto.commands import Level
from svc_proto.dashboard import oauth_consent_page
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.invite_candidates import find_candidates, pop_invite_request
from svc_proto.dashboard.phone_commands import PhoneCommands
from svc_proto.dashboard.ports import DashboardPort
from svc_proto.dashboard.upstream import PRIVATE, Upstream
from svc_proto.dashboard.validation import parse_body, parse_boolean, parse_integer, parse_prefix, pop_text
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, json_response
from svc_proto.engine.router import Handler, Route
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.wire.urls import encode_segment

if TYPE_CHECKING:
    from svc_proto.dashboard.openapi_types import PushJson

__all__ = ["PREFIXES", "routes"]

PREFIXES = tuple(f"/api/plugins/{brand.scheme}" for brand in BRANDS.values())
KINDS = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
NO_PUSH: PushJson = {
    "configured": False,
    "reason": "push delivery is not wired: phones are reached over their own WebSocket",
}


def routes(dashboard: DashboardPort) -> list[Route]:
    """Return the routes of the operator and of commands to phones, below each of `PREFIXES`, and the consent page's."""
    config = dashboard.config
    # This host's secret is sent only on behalf of an owner whom a password or the kernel has identified.
    relay = Upstream(RelayClient("relay", config.relay_url, patience=config.patience, local=config.identifies_owner))
    calls = _RelayProxy(dashboard, relay)
    rows: list[tuple[str, str, Handler]] = [
        ("GET", "/overview", calls.overview),
        ("GET", "/sessions", calls.sessions),
        ("DELETE", "/sessions/{prefix}", calls.revoke),
        ("PATCH", "/sessions/{prefix}", calls.change),
        ("GET", "/audit", calls.audit),
        ("GET", "/bridge-activity", calls.activity),
        ("GET", "/phones", calls.phones),
        ("GET", "/notifications", calls.notifications),
        ("GET", "/media", calls.media),
        ("GET", "/media/{token}", calls.picture),
        ("POST", "/media", calls.hand_out),
        ("GET", "/push", calls.push),
        ("POST", "/pairing", calls.pair),
    ]
    commands = PhoneCommands(dashboard)
    return [
        *(route for prefix in PREFIXES for route in commands.routes(prefix)),
        *oauth_consent_page.routes(dashboard, relay),
        *(
            Route(method=method, pattern=f"{prefix}{path}", access=DashboardAccess.OWNER, handler=handler)
            for prefix in PREFIXES
            for method, path, handler in rows
        ),
    ]


class _RelayProxy:
    def __init__(self, dashboard: DashboardPort, relay: Upstream) -> None:
        self._dashboard = dashboard
        self._relay = relay

    def overview(self, request: Request) -> Flow[Response]:
        return self._get("/relay/info")

    def sessions(self, request: Request) -> Flow[Response]:
        return self._get("/sessions")

    def revoke(self, request: Request) -> Flow[Response]:
        prefix = parse_prefix(request)
        answer = yield from self._relay.call(self._dashboard.engine, "DELETE", f"/sessions/{encode_segment(prefix)}")
        self._dashboard.engine.log(Level.INFO, "session revoked by the dashboard", session=prefix[:8])
        return answer

    def change(self, request: Request) -> Flow[Response]:
        """Change name, lifetime or grants of a session."""
        prefix = encode_segment(parse_prefix(request))
        return self._relay.call(self._dashboard.engine, "PATCH", f"/sessions/{prefix}", request.body)

    def audit(self, request: Request) -> Flow[Response]:
        limit = parse_integer(request, "limit")
        return self._get("/audit" if limit is None else f"/audit?limit={limit}")

    def activity(self, request: Request) -> Flow[Response]:
        limit = parse_integer(request, "limit")
        return self._get("/bridge/activity" if limit is None else f"/bridge/activity?limit={limit}")

    def media(self, request: Request) -> Flow[Response]:
        expired = parse_boolean(request, "include_expired")
        more = "" if expired is None else f"?include_expired={'true' if expired else 'false'}"
        return self._get(f"/media/inspect{more}")

    def phones(self, request: Request) -> Flow[Response]:
        return self._get("/bridge/devices")

    def notifications(self, request: Request) -> Flow[Response]:
        limit = parse_integer(request, "limit")
        return self._get("/notifications/recent" if limit is None else f"/notifications/recent?limit={limit}")

    def picture(self, request: Request) -> Flow[Response]:
        token = encode_segment(request.params["token"])
        return self._relay.picture(self._dashboard.engine, f"/media/inspect/{token}")

    def hand_out(self, request: Request) -> Flow[Response]:
        """Register the picture at `path` on this host at the relay.

        Raises `Refused` 415 if the name has no extension of `KINDS`.
        """
        path = pop_text(parse_body(request), "path") or ""
        name = path.rpartition("/")[2]
        kind = KINDS.get("".join(name.lower().rpartition(".")[1:]))
        if kind is None:
            raise Refused(415, "no_picture", "this file is no picture")
        sent = strict_json.dumps_bytes({"path": path, "content_type": kind, "file_name": name})
        return self._relay.call(self._dashboard.engine, "POST", "/media/register", sent)

    def push(self, request: Request) -> JsonResponse[PushJson]:
        return json_response(200, NO_PUSH, (PRIVATE,))

    def pair(self, request: Request) -> Flow[Response]:
        dashboard, body = self._dashboard, parse_body(request)
        engine, config = dashboard.engine, dashboard.config
        until = engine.now.mono + config.patience
        wish = pop_invite_request(body)
        if wish is not None:
            body["endpoints"] = yield from find_candidates(engine, config.relay, wish)
        sent = strict_json.dumps_bytes(body)
        return (yield from self._relay.call(engine, "POST", "/pairing/mint", sent, until=until))

    def _get(self, path: str) -> Flow[Response]:
        return self._relay.call(self._dashboard.engine, "GET", path)
