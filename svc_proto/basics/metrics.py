"""What a core counts while it works, in plain values, and how they are shown: `MetricFamily` by `MetricFamily`.

Counting is part of every request, so it is an index and an addition. A request that is answered within one `handle`
took no time on the core's clock: nothing but its status is counted, and its place in the histogram follows. Series are
there only for what the program itself names (a route, a status): no peer makes more of them.
"""

from __future__ import annotations

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
)  # s; the last: bridge time-out
MAX_STATUS = 600  # of HTTP, all below
UNMATCHED_LABEL = "other none"  # the label of a request that has no route, whatever it asks for


class MetricKind(Enum):
    """What the numbers of a family are, in the words of OpenMetrics."""

    COUNTER = "counter"  # how often, since the start
    GAUGE = "gauge"  # how much, at the moment
    HISTOGRAM = "histogram"  # how long, since the start


class HistogramSnapshot(NamedTuple):
    """A histogram at one moment: for each of `HISTOGRAM_BOUNDS` how many passed none of those before it and not it, and
    last how many passed all; and their sum in seconds."""

    counts: tuple[int, ...]
    total: float


class MetricFamily(NamedTuple):
    """All series of one name: for the values of its labels a number, or a `HistogramSnapshot` where it is a
    histogram."""

    name: str  # as OpenMetrics has it: that of a counter without `_total`
    kind: MetricKind
    help: str  # for people, one line
    labels: tuple[str, ...]
    values: tuple[tuple[tuple[str, ...], float | HistogramSnapshot], ...]


class Histogram:
    """How long something took each time."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(HISTOGRAM_BOUNDS) + 1)
        self.total = 0.0  # s

    def observe(self, seconds: float) -> None:
        """It took so long."""
        self.counts[bisect_left(HISTOGRAM_BOUNDS, seconds)] += 1
        self.total += seconds

    def snapshot(self) -> HistogramSnapshot:
        """What it holds now."""
        return HistogramSnapshot(tuple(self.counts), self.total)

    def family(self, name: str, text: str) -> MetricFamily:
        """As a family without labels."""
        return MetricFamily(name, MetricKind.HISTOGRAM, text, (), (((), self.snapshot()),))


class EngineMetrics:
    """What one engine has counted. A request belongs to a label: `GET /health`, or `UNMATCHED_LABEL`."""

    __slots__ = ("answers", "lateness", "store", "store_failures", "waits")

    def __init__(self) -> None:
        self.answers: defaultdict[str, list[int]] = defaultdict(lambda: [0] * MAX_STATUS)  # by label and status
        self.waits: defaultdict[str, Histogram] = defaultdict(Histogram)  # by label: the answers that were not at once
        self.lateness = Histogram()  # of the loop: from a deadline to the call in which its timer fired
        self.store = Histogram()  # from a request to its answer
        self.store_failures = 0

    def metric_families(self) -> list[MetricFamily]:
        """What there is to show."""
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
        ]

    def _spread(self, label: str) -> HistogramSnapshot:
        waited = self.waits.get(label)
        counts, total = Histogram().snapshot() if waited is None else waited.snapshot()
        return HistogramSnapshot((counts[0] + sum(self.answers[label]) - sum(counts), *counts[1:]), total)


def counter(name: str, text: str, values: float | Mapping[str, float], label: str = "") -> MetricFamily:
    """A family that counts: one number, or one for each value of its label."""
    return _family(MetricKind.COUNTER, name, text, values, label)


def gauge(name: str, text: str, values: float | Mapping[str, float], label: str = "") -> MetricFamily:
    """The same for how much there is."""
    return _family(MetricKind.GAUGE, name, text, values, label)


def _family(kind: MetricKind, name: str, text: str, values: float | Mapping[str, float], label: str) -> MetricFamily:
    if isinstance(values, Mapping):
        return MetricFamily(name, kind, text, (label,), tuple(((of,), float(value)) for of, value in values.items()))
    return MetricFamily(name, kind, text, (), (((), float(values)),))
