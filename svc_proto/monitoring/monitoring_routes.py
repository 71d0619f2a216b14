"""Monitoring routes of every server: `/metrics`, `/healthz` and `/readyz`, and their access policy.

| route    | for                                                                | answer                           |
|----------|--------------------------------------------------------------------|----------------------------------|
| /metrics | programs of this host; with a token set, only clients that show it | metrics in OpenMetrics format    |
| /healthz | any client                                                         | 200: the process runs            |
| /readyz  | any client                                                         | 200, or 503 with reasons         |
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.basics.metrics import MetricFamily, counter, gauge
from svc_proto.commands import Compute, Query
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import JsonResponse, Request, Response, json_response
from svc_proto.engine.request_origin import is_local
from svc_proto.engine.router import Route
from svc_proto.facts import Failure
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.monitoring.health_monitor import HealthMonitor
from svc_proto.store_requests import CheckStore
from svc_proto.version import VERSION
from svc_proto.wire.events import Headers

if TYPE_CHECKING:
    from svc_proto.engine.admission import AdmissionControl
    from svc_proto.schema.common_types import LivenessJson, ReadinessJson

__all__ = ["OPENMETRICS", "MonitoringRoutes"]

OPENMETRICS = b"application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT_TIMEOUT = 5.0  # s
STORE_TIMEOUT = 2.0  # s
KNOWN_TTL = 1.0  # s for which the store's answer is cached, so that frequent requests do not load the store
BEARER = ((b"www-authenticate", b"Bearer"),)
NO_STORE = ((b"cache-control", b"no-store"),)


class MonitoringRoutes:
    """Monitoring routes and their access policy."""

    def __init__(
        self,
        token: str,
        guesses: AuthRateLimiter,
        *,
        local: Callable[[Request], bool] = is_local,
        address: Callable[[Request], str] = lambda request: request.peer.host,
        store: bool = True,
        health: HealthMonitor | None = None,
        version: str = VERSION,
    ) -> None:
        """Create the routes. `guesses` is the service's own limiter, whose blocks are counted as well.

        `local` reports whether a request is from a program of this host. `address` returns the address that wrong
        tokens are counted for, in a limiter of this object. With `store`, `/readyz` checks the store. `health` has the
        results of the health checks, by default those that the dashboard stores. `version` is that of the metric
        `svc_build`.
        """
        self._version = version
        self._token = token.encode("utf-8")
        self._guesses = guesses
        self._limiter = AuthRateLimiter()
        self._local = local
        self._address = address
        self._store = store
        self._health = health or HealthMonitor()
        self._asked_at = -KNOWN_TTL
        self._reasons: list[str] = []

    def bind(
        self, engine: Engine, admission: AdmissionControl, more: Callable[[], Iterable[MetricFamily]] = tuple
    ) -> None:
        """Connect to the engine; `more` returns the service's own metrics."""
        self._engine = engine
        self._admission = admission
        self._more = more
        self._health.bind(engine)

    def start(self) -> None:
        """Schedule the health checks of the host, if this server runs them."""
        self._health.start()

    def stop(self) -> None:
        """Stop the health checks of the host."""
        self._health.stop()

    def routes(self, metrics: Enum, public_access: Enum) -> list[Route]:
        """Return the routes, with two policies of the service: one that calls `check`, and a public one."""
        return [
            Route(method="GET", pattern="/metrics", access=metrics, handler=self._metrics, body_limit=0),
            Route(method="GET", pattern="/healthz", access=public_access, handler=self._healthz, body_limit=0),
            Route(method="GET", pattern="/readyz", access=public_access, handler=self._readyz, body_limit=0),
        ]

    def metric_families(self) -> tuple[MetricFamily, ...]:
        """Return all metrics with their present values."""
        return (*self._engine.counts.metric_families(), *self._gauges(), *self._more(), *self._health.metric_families())

    def check(self, request: Request) -> None:
        """Raise `Refused` 401, 403 or 429 unless the client may read the metrics."""
        if not self._token:
            if not self._local(request):
                raise Refused(403, "loopback_only", "without SVC_METRICS_TOKEN metrics are for programs on this host")
            return
        now, address = self._engine.now, self._address(request)
        scheme, _, token = (request.headers.get(b"authorization") or b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
            return
        if token:
            refused = self._limiter.refusal(address, now, "rate_limited", "too many wrong tokens: try again later")
            if refused is not None:
                raise refused
            self._limiter.failure(address, now)
        raise Refused(401, "unauthorized", "metrics need Authorization: Bearer <SVC_METRICS_TOKEN>", headers=BEARER)

    # --- routes ---

    def _metrics(self, request: Request) -> Flow[Response]:
        engine = self._engine
        yield from self._health.load()
        work = Compute(engine.new_op(), "metrics.text", (self.metric_families(),))
        text = yield from run_operation(engine, work, within=TEXT_TIMEOUT)
        if not isinstance(text, bytes):
            raise Refused(503, "metrics_unavailable", "metrics need the package prometheus-client on this host")
        return Response(200, Headers(((b"content-type", OPENMETRICS), *NO_STORE)), text)

    def _healthz(self, request: Request) -> JsonResponse[LivenessJson]:
        return json_response(200, {"status": "ok"}, NO_STORE)

    def _readyz(self, request: Request) -> Flow[JsonResponse[ReadinessJson]]:
        engine = self._engine
        if self._store and engine.now.mono - self._asked_at >= KNOWN_TTL:
            self._asked_at = engine.now.mono
            found = yield from run_operation(engine, Query(engine.new_op(), CheckStore()), within=STORE_TIMEOUT)
            self._reasons = [f"store: {found.kind.value}"] if isinstance(found, Failure) else []
        reasons = ["stopping", *self._reasons] if engine.stopping else self._reasons
        answer: ReadinessJson = {"status": "not ready" if reasons else "ready", "reasons": reasons}
        return json_response(503 if reasons else 200, answer, NO_STORE)

    # --- present values ---

    def _gauges(self) -> list[MetricFamily]:
        engine, admission = self._engine, self._admission
        budget = admission.budget
        return [
            gauge("svc_build", "The version that runs; always 1.", {self._version: 1.0}, "version"),
            gauge("svc_connections", "Open channels: peers, calls of ours, children.", engine.channel_count),
            gauge("svc_flows", "Tasks that wait for an answer or for another task.", engine.flow_count),
            gauge("svc_strangers", "Connections whose peer is not authenticated.", budget.peers),
            gauge("svc_strangers_held_bytes", "Memory that is held for them.", budget.held),
            gauge(
                "svc_strangers_budget_bytes",
                "Memory that may be held for them.",
                admission.limits.unauthenticated_budget,
            ),
            gauge(
                "svc_strangers_in_line",
                "Those of them whose turn to be read has not come.",
                len(admission.read_scheduler),
            ),
            counter(
                "svc_limiter_blocks",
                "Addresses that were blocked for what they have guessed.",
                self._guesses.blocks + self._limiter.blocks,
            ),
        ]
