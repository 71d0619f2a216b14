"""Metrics of a core in plain values, exported as `MetricFamily` values.

The labels of `EngineMetrics` are names of the program itself (a route, a status), so no peer can create more series.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

__all__ = [
    "HISTOGRAM_BOUNDS",
    "UNMATCHED_LABEL",
    "EngineMetrics",
    "MetricFamily",
    "Histogram",
    "MetricKind",
    "HistogramSnapshot",
    "counter",
    "gauge",
]

# Upper bounds in s; the last is the time limit of bridge commands.
HISTOGRAM_BOUNDS = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
MAX_STATUS = 600  # of HTTP, all below
UNMATCHED_LABEL = "other none"  # the label of all requests without a route


class MetricKind(Enum):
    """Type of a family, in the words of OpenMetrics."""

    COUNTER = "counter"  # events since the start
    GAUGE = "gauge"  # value at the moment
    HISTOGRAM = "histogram"  # durations since the start


class HistogramSnapshot(NamedTuple):
    """A histogram at one moment: counts by bucket, and the sum of all values in seconds.

    `counts[i]` is the number of values up to `HISTOGRAM_BOUNDS[i]` that are above the bound before. The last count is
    of the values above all bounds.
    """

    counts: tuple[int, ...]
    total: float


class MetricFamily(NamedTuple):
    """All series of one name: label values, with a number or a `HistogramSnapshot` for each."""

    name: str  # in OpenMetrics form: that of a counter without `_total`
    kind: MetricKind
    help: str  # for people, one line
    labels: tuple[str, ...]
    values: tuple[tuple[tuple[str, ...], float | HistogramSnapshot], ...]


class Histogram:
    """Counter of durations in buckets, with their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(HISTOGRAM_BOUNDS) + 1)
        self.total = 0.0  # s

    def observe(self, seconds: float) -> None:
        """Record a duration."""
        self.counts[bisect_left(HISTOGRAM_BOUNDS, seconds)] += 1
        self.total += seconds

    def snapshot(self) -> HistogramSnapshot:
        """Return the current counts."""
        return HistogramSnapshot(tuple(self.counts), self.total)

    def family(self, name: str, text: str) -> MetricFamily:
        """Return the histogram as a metric family of one series without labels."""
        return MetricFamily(name, MetricKind.HISTOGRAM, text, (), (((), self.snapshot()),))


class EngineMetrics:
    """Metrics of an engine. A request belongs to a label: `GET /health`, or `UNMATCHED_LABEL`."""

    __slots__ = ("answers", "json_deviations", "lateness", "store", "store_failures", "waits")

    def __init__(self) -> None:
        self.answers: defaultdict[str, list[int]] = defaultdict(lambda: [0] * MAX_STATUS)  # by label and status
        self.waits: defaultdict[str, Histogram] = defaultdict(Histogram)  # by label: responses that were not immediate
        self.json_deviations: defaultdict[tuple[str, str], int] = defaultdict(int)  # by kind of peer, and deviation
        self.lateness = Histogram()  # of the loop: from a deadline to the call in which its timer fired
        self.store = Histogram()  # from a request to its answer
        self.store_failures = 0

    def metric_families(self) -> list[MetricFamily]:
        """Return all metric families of the engine, with their present values."""
        labels = {label: tuple(label.split(" ", 1)) for label in self.answers}
        answers = tuple(
            ((*values, str(status)), float(count))
            for label, values in labels.items()
            for status, count in enumerate(self.answers[label])
            if count
        )
        which = ("method", "route")
        return [
            MetricFamily(
                "svc_http_requests", MetricKind.COUNTER, "Requests that were answered.", (*which, "status"), answers
            ),
            MetricFamily(
                "svc_http_request_duration_seconds",
                MetricKind.HISTOGRAM,
                "From the head of a request to that of its answer, as the core's clock has it.",
                which,
                tuple((values, self._spread(label)) for label, values in labels.items()),
            ),
            self.lateness.family("svc_loop_lag_seconds", "How late timers fired: the loop was busy, or slept."),
            self.store.family("svc_store_duration_seconds", "From a request to the store to its answer."),
            counter("svc_store_failures", "Requests that the store could not carry out.", self.store_failures),
            MetricFamily(
                "svc_json_deviations",
                MetricKind.COUNTER,
                "Texts of peers that were read although they deviate from JSON.",
                ("source", "deviation"),
                tuple((key, float(count)) for key, count in self.json_deviations.items()),
            ),
        ]

    def _spread(self, label: str) -> HistogramSnapshot:
        waited = self.waits.get(label)
        counts, total = Histogram().snapshot() if waited is None else waited.snapshot()
        return HistogramSnapshot((counts[0] + sum(self.answers[label]) - sum(counts), *counts[1:]), total)


def counter(name: str, text: str, values: float | Mapping[str, float], label: str = "") -> MetricFamily:
    """Return a counter family: one number, or one for each value of its label."""
    return _family(MetricKind.COUNTER, name, text, values, label)


def gauge(name: str, text: str, values: float | Mapping[str, float], label: str = "") -> MetricFamily:
    """Return a gauge family: one number, or one for each value of its label."""
    return _family(MetricKind.GAUGE, name, text, values, label)


def _family(kind: MetricKind, name: str, text: str, values: float | Mapping[str, float], label: str) -> MetricFamily:
    if isinstance(values, Mapping):
        return MetricFamily(name, kind, text, (label,), tuple(((of,), float(value)) for of, value in values.items()))
    return MetricFamily(name, kind, text, (), (((), float(values)),))
