"""Health, security settings, phones and their commands, audit log, and the WebSocket (wire core 8, bridge 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.basics.validate import boolean, invalid
from svc_proto.commands import Level, Query
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route, RouteKind
from svc_proto.facts import Failure
from svc_proto.machines.bridge_commands import parse_limit
from svc_proto.machines.phone_registry import split_selector
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.audit import RelayAudit
from svc_proto.relay.change_notifier import DEVICES
from svc_proto.relay.media.media_service import MediaService
from svc_proto.relay.ports import AccessPort, PhonesPort
from svc_proto.relay.websocket.client_connection import ClientConnection
from svc_proto.store_requests import ListAuditEvents
from svc_proto.version import PROTOCOL_VERSION

if TYPE_CHECKING:
    from svc_proto.schema import relay_types as types

__all__ = ["DEFAULT_EVENTS", "MAX_LISTED_EVENTS", "routes"]

CAPABILITIES = ("bridge", "media", "notifications", "profiles", "proactive", "relay_voice", "terminal")
DEFAULT_EVENTS = 100  # of the audit log
MAX_LISTED_EVENTS = 1_000  # of one answer; `svc audit` reads all events of the store


class RelayStatusPort(PhonesPort, AccessPort, Protocol):
    """Members of the relay that the routes of status and security settings use."""

    audit: RelayAudit
    started: Moment
    media: MediaService
    clients: dict[int, ClientConnection]
    profiles: list[types.ProfileJson]
    allow_insecure_api_bearer: bool

    def open_client(self, request: Request) -> ClientConnection:
        """Create the handler of a WebSocket request.

        Raise `Refused` 429 for a blocked address, unless the request has a valid token.
        """


def routes(relay: RelayStatusPort) -> list[Route]:
    """Return the routes of the WebSocket, the relay's status and security settings, the phones, and the audit log."""
    view, ws = _StatusRoutes(relay), RouteKind.WEBSOCKET
    return [
        Route(method="GET", pattern="/ws", access=RelayAccess.SOCKET, handler=view.socket, kind=ws, body_limit=0),
        Route(method="GET", pattern="/", access=RelayAccess.SOCKET, handler=view.socket, kind=ws, body_limit=0),
        Route(method="GET", pattern="/health", access=RelayAccess.PUBLIC, handler=view.health, body_limit=0),
        Route(method="GET", pattern="/relay/info", access=RelayAccess.LOOPBACK_OR_BEARER, handler=view.info),
        Route(method="GET", pattern="/relay/security", access=RelayAccess.LOOPBACK, handler=view.security),
        Route(method="PATCH", pattern="/relay/security", access=RelayAccess.LOOPBACK, handler=view.set_security),
        Route(method="GET", pattern="/bridge/status", access=RelayAccess.LOOPBACK, handler=view.bridge_status),
        Route(method="GET", pattern="/bridge/activity", access=RelayAccess.LOOPBACK, handler=view.bridge_activity),
        Route(method="GET", pattern="/bridge/devices", access=RelayAccess.LOOPBACK, handler=view.bridge_devices),
        Route(method="POST", pattern="/bridge/select-active", access=RelayAccess.LOOPBACK, handler=view.select_active),
        Route(method="GET", pattern="/audit", access=RelayAccess.LOOPBACK, handler=view.audit_events),
    ]


class _StatusRoutes:
    def __init__(self, relay: RelayStatusPort) -> None:
        self._relay = relay

    def socket(self, request: Request) -> ClientConnection:
        return self._relay.open_client(request)

    def health(self, request: Request) -> JsonResponse[types.HealthJson]:
        relay = self._relay
        return json_response(
            200,
            {
                "status": "ok",
                "version": relay.config.version,
                "clients": len(relay.clients),
                "sessions": relay.sessions.total,
            },
        )

    def info(self, request: Request) -> JsonResponse[types.InfoJson]:
        relay = self._relay
        count = relay.sessions.total
        return json_response(
            200,
            {
                "version": relay.config.version,
                "plugin_version": relay.config.version,
                "protocol_version": PROTOCOL_VERSION,
                "capabilities": list(CAPABILITIES),
                "profiles": [{"name": entry["name"], "relay_state": "enabled"} for entry in relay.profiles],
                "uptime_seconds": int(relay.engine.now.mono - relay.started.mono),
                "session_count": count,
                "paired_device_count": count,
                "pending_commands": relay.bridge.pending_count,
                "media_entry_count": len(relay.media.registry),
                "health": "ok",
                "public_route": relay.local_authorizer.has_public_route,
            },
        )

    def security(self, request: Request) -> JsonResponse[types.SecurityJson]:
        relay = self._relay
        return json_response(
            200,
            {
                "ok": True,
                "scope": "runtime",
                "allow_insecure_api_bearer": relay.allow_insecure_api_bearer,
                "trust_proxy_headers": bool(relay.config.trusted_proxies),
                "local_trust": relay.local_authorizer.policy.value,
                "public_route": relay.local_authorizer.has_public_route,
            },
        )

    def set_security(
        self, request: Request
    ) -> JsonResponse[types.SecurityJson] | Flow[JsonResponse[types.SecurityJson]]:
        body = request.json_object()
        if body.get("public_route") is False:
            return self._remove_public_route(request)
        value = boolean(body.get("allow_insecure_api_bearer"), "allow_insecure_api_bearer")
        self._relay.allow_insecure_api_bearer = value
        self._relay.audit.record("setting changed", request, allow_insecure_api_bearer=value)
        self._relay.engine.log(Level.INFO, "security changed", allow_insecure_api_bearer=value)
        return self.security(request)

    def _remove_public_route(self, request: Request) -> Flow[JsonResponse[types.SecurityJson]]:
        relay = self._relay
        yield from relay.local_authorizer.remove_public_route(relay.engine)
        relay.audit.record("setting changed", request, public_route=False)
        return self.security(request)

    def bridge_status(self, request: Request) -> JsonResponse[types.PhoneStatusJson]:
        relay = self._relay
        selector, _, _ = split_selector(request.query, {})
        relay.drop_lapsed_phones()
        return json_response(200, relay.phones.status_report(selector, relay.engine.now))

    def bridge_activity(self, request: Request) -> Flow[JsonResponse[types.ActivityJson]]:
        limit = parse_limit(request.query.get("limit"))
        return json_response(200, {"activity": (yield from self._relay.coordinator.activity(limit))})

    def bridge_devices(self, request: Request) -> JsonResponse[types.PhonesJson]:
        self._relay.drop_lapsed_phones()
        return json_response(200, self._relay.phones.devices_report(self._relay.engine.now))

    def select_active(self, request: Request) -> JsonResponse[types.SelectedPhoneJson]:
        selector, _, _ = split_selector(request.query, request.json_object())
        if selector is None:
            raise invalid("device", "the id, name or alias of a connected phone")
        self._relay.drop_lapsed_phones()
        selected = self._relay.phones.select_active(selector)
        self._relay.coordinator.phone_selected()
        self._relay.changes.notify(DEVICES)
        return json_response(200, selected)

    def audit_events(self, request: Request) -> Flow[JsonResponse[types.AuditEventsJson]]:
        limit, engine = _parse_audit_limit(request.query.get("limit")), self._relay.engine
        found = yield from run_operation(engine, Query(engine.new_op(), ListAuditEvents(limit)))
        if isinstance(found, Failure):
            raise Refused(503, "store_unavailable", "the audit log cannot be read")
        events: list[types.AuditEventJson] = [
            {
                "at": event.at,
                "event": event.event,
                "principal": event.principal,
                "address": event.address or None,
                "about": dict(event.about),
            }
            for event in found
        ]
        return json_response(200, {"events": events})


def _parse_audit_limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_EVENTS
    if not (text.isascii() and text.isdecimal() and int(text[:9])):
        raise invalid("limit", f"a whole number from 1 to {MAX_LISTED_EVENTS}")
    return min(int(text[:9]), MAX_LISTED_EVENTS)
