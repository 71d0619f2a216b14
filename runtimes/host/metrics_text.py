"""OpenMetrics text of a core's metrics, rendered by prometheus-client, optionally with metrics of the process."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

from svc_proto.basics.metrics import HISTOGRAM_BOUNDS, HistogramSnapshot, MetricFamily, MetricKind

if TYPE_CHECKING:
    from prometheus_client import Metric

__all__ = ["metrics_text"]

EDGES = (*map(str, HISTOGRAM_BOUNDS), "+Inf")


def metrics_text(families: Iterable[MetricFamily], *, of_process: bool = True) -> bytes:
    """Return the metrics as OpenMetrics text.

    With `of_process`, on Linux, memory, processor time and descriptors of this process are added.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector  # noqa: PLC0415, RUF100 - loaded when first needed
    from prometheus_client.openmetrics.exposition import ALLOWUTF8, generate_latest  # noqa: PLC0415, RUF100 - as above

    registry = CollectorRegistry(auto_describe=False)
    if of_process:
        ProcessCollector(registry=registry)
    registry.register(_ValueCollector(families))
    # Our names are valid in each escaping; with this one the library does not check them character by character.
    text: bytes = generate_latest(registry, escaping=ALLOWUTF8)
    return text


class _ValueCollector:
    """prometheus-client collector for metrics with known values."""

    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return [_metric(family) for family in self._families]


def _metric(family: MetricFamily) -> Metric:
    from prometheus_client.core import (  # noqa: PLC0415, RUF100 - loaded when first needed
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    name, kind, text, labels, values = family
    if kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, text, labels=labels)
        for which, spread in values:
            assert isinstance(spread, HistogramSnapshot)
            buckets = [(edge, float(count)) for edge, count in zip(EDGES, accumulate(spread.counts), strict=True)]
            histogram.add_metric(which, buckets, spread.total)
        return histogram
    metric = (CounterMetricFamily if kind is MetricKind.COUNTER else GaugeMetricFamily)(name, text, labels=labels)
    for which, value in values:
        assert not isinstance(value, HistogramSnapshot)
        metric.add_metric(which, value)
    return metric
