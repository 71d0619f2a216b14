"""Health of this host for the page: the results of the registry of `svc doctor`."""

from __future__ import annotations

from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Route
from svc_proto.monitoring.health_monitor import HealthMonitor

__all__ = ["routes"]


def routes(health: HealthMonitor) -> list[Route]:
    """Return the route of `GET /api/health`: `{"checked_at", "checks"}`, as `svc doctor --json` has the checks."""

    def show(request: Request) -> Flow[Response]:
        yield from health.refresh()
        return json_response(200, {"checked_at": health.checked_at, "checks": health.results}, (PRIVATE,))

    return [Route(method="GET", pattern="/api/health", access=DashboardAccess.OWNER, handler=show, body_limit=0)]
