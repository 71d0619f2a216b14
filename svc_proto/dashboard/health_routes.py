"""Health of this host for the page and for `/metrics`: the registry of `svc doctor`, run by a timer and for the page.

A scrape starts no run, since the requests of a run are counted in the metrics of the other servers. The program that
starts the dashboard gives it the check as a flow, since the observations need the host's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from svc_proto.basics.metrics import MetricFamily, MetricKind
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Route
from svc_proto.engine.sync import Condition

if TYPE_CHECKING:
    from svc_proto.cli.health_checks import HealthResult
    from svc_proto.engine.core import Engine

__all__ = ["HealthCheckRun", "HealthRoutes"]

HealthCheckRun = Callable[["Engine"], Flow["list[HealthResult]"]]
RESULTS_TTL = 20.0  # s for which the page gets the same results
FIRST_RUN = 60.0  # s after the start, when the servers have started
RUN_INTERVAL = 300.0  # s between two runs without a request
ANSWER_TIMEOUT = 4.0  # s that a request waits for new results; then it gets the earlier ones


class HealthRoutes:
    """Runs the health checks every five minutes and for the page, and serves their results."""

    def __init__(self, check: HealthCheckRun | None) -> None:
        """Create the routes. Without a check there are no results."""
        self._check = check
        self._results: Sequence[HealthResult] = ()
        self._checked_at: float | None = None  # epoch seconds
        self._started_at = -RESULTS_TTL  # monotonic
        self._runs = False
        self._task: Task | None = None

    def bind(self, engine: Engine) -> None:
        """Store the engine and create the timer."""
        self._engine = engine
        self._timer = engine.timers.timer(self._on_timer)
        self._ended = Condition(engine)

    def routes(self) -> list[Route]:
        """Return the route of `GET /api/health`: `{"checked_at", "checks"}`, as `svc doctor --json` has the checks."""
        return [
            Route(method="GET", pattern="/api/health", access=DashboardAccess.OWNER, handler=self._show, body_limit=0)
        ]

    def metric_families(self) -> tuple[MetricFamily, ...]:
        """Return a gauge of the problems of the last run by code and severity."""
        values = tuple(((each.check.code, each.check.severity.value), float(each.is_problem)) for each in self._results)
        text = "Whether this check of svc doctor fails: 1, else 0."
        return (MetricFamily("svc_health_problem", MetricKind.GAUGE, text, ("code", "severity"), values),)

    def start(self) -> None:
        """Schedule the first run."""
        if self._check is not None:
            self._timer.set(self._engine.now.mono + FIRST_RUN)

    def stop(self) -> None:
        """Cancel the timer, and a run of the checks in progress."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _on_timer(self) -> None:
        self._timer.set(self._engine.now.mono + RUN_INTERVAL)
        self._refresh()

    def _show(self, request: Request) -> Flow[Response]:
        self._refresh()
        if self._runs:
            yield from self._ended.wait(self._engine.now.mono + ANSWER_TIMEOUT)
        checks = [each.members() for each in self._results]
        return json_response(200, {"checked_at": self._checked_at, "checks": checks}, (PRIVATE,))

    def _refresh(self) -> None:
        now = self._engine.now.mono
        if self._check is not None and not self._runs and now - self._started_at >= RESULTS_TTL:
            self._started_at, self._runs = now, True
            self._task = self._engine.spawn(self._run(self._check(self._engine)))

    def _run(self, check: Flow[list[HealthResult]]) -> Flow[None]:
        try:
            self._results = yield from check
            self._checked_at = self._engine.now.wall
        finally:
            self._runs = False
            self._ended.notify_all()
