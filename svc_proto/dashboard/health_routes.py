"""Health of this host for the page: the results of the registry of `svc doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.monitoring.health_monitor import HealthMonitor

if TYPE_CHECKING:
    from svc_proto.dashboard.openapi_types import HostCheckJson, HostHealthJson

__all__ = ["routes"]


def routes(health: HealthMonitor) -> list[Route]:
    """Return the route of `GET /api/health`: `{"checked_at", "checks"}`, as `svc doctor --json` has the checks."""

    def show(request: Request) -> Flow[JsonResponse[HostHealthJson]]:
        yield from health.refresh()
        checks = cast("list[HostCheckJson]", [*health.results])  # the file of the results is our own
        return json_response(200, {"checked_at": health.checked_at, "checks": checks}, (PRIVATE,))

    return [Route(method="GET", pattern="/api/health", access=DashboardAccess.OWNER, handler=show, body_limit=0)]
