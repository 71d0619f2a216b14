"""Route of the audit log: the newest events, for programs of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import invalid
from svc_proto.commands import Query
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.facts import Failure
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.ports import RelayPort
from svc_proto.store_requests import ListAuditEvents

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import AuditEventJson, AuditEventsJson

__all__ = ["routes"]

DEFAULT_EVENTS = 100
MAX_LISTED_EVENTS = 1_000  # of one answer; `svc audit` reads all events of the store


def routes(relay: RelayPort) -> list[Route]:
    """Return the route of the audit log."""

    def list_events(request: Request) -> Flow[JsonResponse[AuditEventsJson]]:
        limit = _parse_limit(request.query.get("limit"))
        engine = relay.engine
        found = yield from run_operation(engine, Query(engine.new_op(), ListAuditEvents(limit)))
        if isinstance(found, Failure):
            raise Refused(503, "store_unavailable", "the audit log cannot be read")
        events: list[AuditEventJson] = [
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

    return [Route(method="GET", pattern="/audit", access=RelayAccess.LOOPBACK, handler=list_events)]


def _parse_limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_EVENTS
    if not (text.isascii() and text.isdecimal() and int(text[:9])):
        raise invalid("limit", f"a whole number from 1 to {MAX_LISTED_EVENTS}")
    return min(int(text[:9]), MAX_LISTED_EVENTS)
