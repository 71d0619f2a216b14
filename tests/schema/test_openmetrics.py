"""The reader of metrics text, compared with the library's parser; sums of samples; and invalid lines."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from runtimes.host.metrics_text import metrics_text
from svc_proto.basics.metrics import EngineMetrics, counter, gauge
from svc_proto.schema.openmetrics import MetricSamples

ODD = 'a"b\\c\nd {e="f"} , g'


def written() -> str:
    counts = EngineMetrics()
    counts.answers["GET /item/{name}"][200] += 3
    counts.answers["GET /item/{name}"][500] += 1
    counts.waits["GET /item/{name}"].observe(0.02)
    sockets = gauge("svc_sockets", "Sockets.", {"client": 2, ODD: 0.5}, "channel")
    return metrics_text([*counts.metric_families(), sockets, counter("svc_none", "None.", {}, "of")]).decode()


def test_samples_equal_those_of_the_library_parser() -> None:
    text = written()
    numbers = MetricSamples(text)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: (value,) for name, value in sample.labels.items()}
            assert numbers.total(sample.name, **labels) == sample.value, sample


def test_sums() -> None:
    numbers = MetricSamples(written())
    assert numbers.total("svc_http_requests_total") == 4
    assert numbers.total("svc_http_requests_total", status=("500", "503")) == 1
    assert numbers.total("svc_http_requests_total", status=("200",), method=("POST",)) == 0
    assert numbers.by("svc_http_requests_total", "status") == {"200": 3, "500": 1}
    assert numbers.by("svc_sockets", "channel") == {"client": 2, ODD: 0.5}
    assert numbers.by("svc_sockets", "status") == numbers.by("svc_nothing", "status") == {}
    assert numbers.total("svc_nothing") is None


@pytest.mark.parametrize("line", ["", "#", "# HELP svc_x x 1", "svc_x", "svc_x one", "svc_x nan", "svc_x +Inf", "{} 1"])
def test_invalid_lines_are_skipped(line: str) -> None:
    assert MetricSamples(f"{line}\nsvc_y 1\n").total("svc_x") is None
    assert MetricSamples(f"{line}\nsvc_y 1\n").total("svc_y") == 1
