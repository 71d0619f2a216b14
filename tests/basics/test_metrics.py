"""Counters and histograms, and their display."""

import pytest

from svc_proto.basics import metrics


def shown(counts: metrics.EngineMetrics, name: str) -> metrics.MetricFamily:
    (family,) = [family for family in counts.metric_families() if family.name == name]
    return family


@pytest.mark.parametrize(("seconds", "place"), [(0.0, 0), (0.001, 0), (0.0011, 1), (0.05, 4), (30.0, 12), (31.0, 13)])
def test_histogram_buckets(seconds: float, place: int) -> None:
    histogram = metrics.Histogram()
    histogram.observe(seconds)
    assert histogram.snapshot() == metrics.HistogramSnapshot(
        tuple(int(each == place) for each in range(len(metrics.HISTOGRAM_BOUNDS) + 1)), seconds
    )


def test_responses_without_a_wait_count_as_zero_seconds() -> None:
    counts = metrics.EngineMetrics()
    counts.answers["GET /ping"][200] += 2
    counts.answers["GET /ping"][504] += 1
    counts.waits["GET /ping"].observe(31.0)
    counts.answers[metrics.UNMATCHED_LABEL][404] += 1
    requests = shown(counts, "svc_http_requests")
    assert (requests.kind, requests.labels) == (metrics.MetricKind.COUNTER, ("method", "route", "status"))
    assert requests.values == (
        (("GET", "/ping", "200"), 2.0),
        (("GET", "/ping", "504"), 1.0),
        (("other", "none", "404"), 1.0),
    )
    times = shown(counts, "svc_http_request_duration_seconds")
    assert (times.kind, times.labels) == (metrics.MetricKind.HISTOGRAM, ("method", "route"))
    assert times.values == (
        (("GET", "/ping"), metrics.HistogramSnapshot((2, *([0] * 12), 1), 31.0)),
        (("other", "none"), metrics.HistogramSnapshot((1, *([0] * 13)), 0.0)),
    )


def test_a_family_without_labels_has_one_value() -> None:
    assert metrics.counter("svc_x", "Of x.", 3) == metrics.MetricFamily(
        "svc_x", metrics.MetricKind.COUNTER, "Of x.", (), (((), 3.0),)
    )
    assert metrics.gauge("svc_y", "Of y.", {"a": 1}, "of") == metrics.MetricFamily(
        "svc_y", metrics.MetricKind.GAUGE, "Of y.", ("of",), ((("a",), 1.0),)
    )
    assert metrics.Histogram().family("svc_z", "Of z.").values == (((), metrics.HistogramSnapshot((0,) * 14, 0.0)),)


def test_the_store_the_loop_and_deviations_from_json() -> None:
    counts = metrics.EngineMetrics()
    counts.store.observe(0.2)
    counts.store_failures += 1
    counts.lateness.observe(0.002)
    assert shown(counts, "svc_store_duration_seconds").values[0][1] == counts.store.snapshot()
    assert shown(counts, "svc_store_failures").values == (((), 1.0),)
    assert shown(counts, "svc_loop_lag_seconds").values[0][1] == counts.lateness.snapshot()
    assert shown(counts, "svc_json_deviations").values == ()
    counts.json_deviations["mcp", "lone surrogate"] += 2
    family = shown(counts, "svc_json_deviations")
    assert (family.labels, family.values) == (("source", "deviation"), ((("mcp", "lone surrogate"), 2.0),))
