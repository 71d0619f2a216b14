"""Routes of the measurements of this host's servers, sampled by a timer, and of the health checks of `svc doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.schema.openmetrics import MetricSamples
from svc_proto.service_clients import server_stats
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient

if TYPE_CHECKING:
    from svc_proto.dashboard.openapi_types import HostCheckJson, HostHealthJson, ServerStatsJson
    from svc_proto.monitoring.health_monitor import HealthMonitor

__all__ = ["StatsCollector", "health_route"]


class StatsCollector:
    """Sampler of the servers' metrics, with the route that serves the samples."""

    def __init__(self, config: DashboardConfig) -> None:
        self._history = server_stats.StatsHistory()
        token, patience = config.metrics_token, config.patience
        # The relay gets this host's secret under the same condition as on behalf of the owner: a dashboard without a
        # password sends no secret.
        self._peers = {
            "relay": ServiceClient("relay", config.relay_url, token, patience, local=config.identifies_owner)
        }
        if config.api_url is not None:
            self._peers["api"] = ServiceClient("API server", config.api_url, token, patience)
        self._task: Task | None = None

    def bind(self, engine: Engine) -> None:
        """Store the engine and create the timer."""
        self._engine = engine
        self._timer = engine.timers.timer(self._on_timer)

    def routes(self) -> list[Route]:
        """Return the route of `GET /api/vitals`: `{"every", "span", "names", "rows", "now", "answers"}`.

        Times in seconds; `rows` are the stored samples, oldest first, and `now` is a sample taken for this answer,
        which is also stored if one is due. Each has a number or null for every name of `names` (`ServerStats`).
        `answers` reports for each server whether its metrics were received.
        """
        return [
            Route(method="GET", pattern="/api/vitals", access=DashboardAccess.OWNER, handler=self._show, body_limit=0)
        ]

    def start(self) -> None:
        """Schedule the next sample, in `SAMPLE_INTERVAL` seconds."""
        self._timer.set(self._engine.now.mono + server_stats.SAMPLE_INTERVAL)

    def stop(self) -> None:
        """Stop sampling."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _on_timer(self) -> None:
        self.start()
        if self._task is None:
            self._task = self._engine.spawn(self._poll(), on_done=self._on_stats)

    def _on_stats(self, found: object) -> None:
        self._task = None

    def _show(self, request: Request) -> Flow[JsonResponse[ServerStatsJson]]:
        now, servers = yield from self._poll()
        body: ServerStatsJson = {
            "every": server_stats.SAMPLE_INTERVAL,
            "span": server_stats.SPAN,
            "names": server_stats.NAMES,
            "rows": self._history.rows(),
            "now": now.numbers(),
            "answers": {role: role in servers for role in self._peers},
        }
        return json_response(200, body, (PRIVATE,))

    def _poll(self) -> Flow[tuple[server_stats.ServerStats, dict[str, MetricSamples]]]:
        engine, servers = self._engine, dict[str, MetricSamples]()
        begun = engine.now
        for role, peer in self._peers.items():
            try:
                answer = yield from peer.success(peer.request(engine, "GET", "/metrics", fields=()))
            except ServiceCallError:
                continue  # a gap in the charts; the other tabs show the error
            servers[role] = MetricSamples(answer.body.decode("utf-8", "replace"))
        return self._history.add(server_stats.MetricsReading(begun, servers)), servers


def health_route(health: HealthMonitor) -> Route:
    """Return the route of `GET /api/health`: `{"checked_at", "checks"}`, as `svc doctor --json` has the checks.

    If `health` has the checks, a request starts a run unless one is in progress or recent. If the run takes too long,
    the request gets the earlier results.
    """

    def show(request: Request) -> Flow[JsonResponse[HostHealthJson]]:
        yield from health.refresh()
        checks = cast("list[HostCheckJson]", [*health.results])  # the file of the results is our own
        return json_response(200, {"checked_at": health.checked_at, "checks": checks}, (PRIVATE,))

    return Route(method="GET", pattern="/api/health", access=DashboardAccess.OWNER, handler=show, body_limit=0)
