"""Runs of the health checks, and their results for the dashboard and for `/metrics` of every server of a home.

The dashboard runs the checks and stores the results in a file, which the other servers of the home read.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from svc_proto.basics.metrics import MetricFamily, MetricKind
from svc_proto.commands import WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_json_state
from svc_proto.engine.flow import Flow, Task, run_operation
from svc_proto.engine.sync import Condition

__all__ = ["HEALTH_FILE", "HealthCheckRun", "HealthMonitor"]

HealthCheckRun = Callable[["Engine"], Flow[list[dict[str, object]]]]  # results as `svc doctor --json` has them
HEALTH_FILE = "health.json"  # in the state folder
RESULTS_TTL = 20.0  # s for which the page gets the same results
FIRST_RUN = 60.0  # s after the start, when the servers have started
RUN_INTERVAL = 300.0  # s between two runs without a request
STALE = 2 * RUN_INTERVAL  # s after which the results of another server count no more
ANSWER_TIMEOUT = 4.0  # s that a request waits for new results; then it gets the earlier ones


class HealthMonitor:
    """Results of the health checks. If given the checks, it runs them every five minutes and on request.

    The results of a run are stored for the other servers.
    """

    def __init__(self, check: HealthCheckRun | None = None) -> None:
        """Create the monitor. Without a check it has the results that the dashboard stores."""
        self._check = check
        self._started_at = -RESULTS_TTL  # monotonic
        self._runs = False
        self._task: Task | None = None
        self.results: Sequence[Mapping[str, object]] = ()
        self.checked_at: float | None = None  # epoch seconds

    def bind(self, engine: Engine) -> None:
        """Store the engine, and create the timer and the condition for the end of a run."""
        self._engine = engine
        self._timer = engine.timers.timer(self._on_timer)
        self._ended = Condition(engine)

    def start(self) -> None:
        """Schedule the first run of the checks; do nothing without a check."""
        if self._check is not None:
            self._timer.set(self._engine.now.mono + FIRST_RUN)

    def stop(self) -> None:
        """Cancel the timer, and a run of the checks in progress."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def metric_families(self) -> tuple[MetricFamily, ...]:
        """Return a gauge of the checks of the last run, by code and severity: 1 if the check fails, else 0."""
        values = tuple(
            ((str(each.get("code")), str(each.get("severity"))), float(each.get("ok") is not True))
            for each in self.results
        )
        text = "Whether this check of svc doctor fails: 1, else 0."
        return (MetricFamily("svc_health_problem", MetricKind.GAUGE, text, ("code", "severity"), values),)

    def load(self) -> Flow[None]:
        """Read the results that another server has stored, if they are newer; drop results that are stale."""
        stored = yield from read_json_state(self._engine, HEALTH_FILE)
        at = stored.number("checked_at")
        if at is not None and self._age(at) < STALE and at > (self.checked_at or 0.0):
            self.results, self.checked_at = stored.objects("checks"), at
        elif self.checked_at is not None and self._age(self.checked_at) >= STALE:
            self.results, self.checked_at = (), None

    def refresh(self) -> Flow[None]:
        """Start a run, unless one is in progress or began less than `RESULTS_TTL` ago; wait for the end of a run.

        The wait takes at most `ANSWER_TIMEOUT`. Without a check, do nothing.
        """
        self._run_checks()
        if self._runs:
            yield from self._ended.wait(self._engine.now.mono + ANSWER_TIMEOUT)

    def _age(self, at: float) -> float:
        return abs(self._engine.now.wall - at)

    def _on_timer(self) -> None:
        self._timer.set(self._engine.now.mono + RUN_INTERVAL)
        self._run_checks()

    def _run_checks(self) -> None:
        now = self._engine.now.mono
        if self._check is not None and not self._runs and now - self._started_at >= RESULTS_TTL:
            self._started_at, self._runs = now, True
            self._task = self._engine.spawn(self._run(self._check(self._engine)))

    def _run(self, check: Flow[list[dict[str, object]]]) -> Flow[None]:
        engine = self._engine
        try:
            self.results = yield from check
            self.checked_at = engine.now.wall
        finally:
            self._runs = False
            self._ended.notify_all()
        text = json.dumps({"checked_at": self.checked_at, "checks": self.results})
        yield from run_operation(engine, WriteConfig(engine.new_op(), HEALTH_FILE, text))  # a failure changes nothing
