"""Tests of the metrics text with an external parser, and of metric names in operators' rules and dashboards."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from runtimes.host.metrics_text import metrics_text
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.basics.metrics import EngineMetrics, Histogram, counter
from svc_proto.cli.health_checks import run_health_checks
from svc_proto.cli.health_facts import HostFacts
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.engine.core import Engine, Service
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig

FOLDER = Path(__file__).parents[3] / "docs/reference/monitoring"
BOARD = json.loads((FOLDER / "grafana.json").read_text())
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"]
NAME = re.compile(r"\b(?:svc|process)_[a-z_]+\b")
PROMTOOL = which("promtool")
UNKNOWN_ELSEWHERE = ("process_",)  # of Linux, see `metrics_text`


def exposition(*services: Service) -> str:
    """Return the metrics of the given new servers, each with one counted `GET /health`, in the text format."""
    text = ""
    for service in services:
        engine = Engine(service, entropy=bytes)
        engine.counts.answers["GET /health"][200] += 1
        text += metrics_text(service._monitor.metric_families()).decode()  # type: ignore[attr-defined]  # all three have one
    return text


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Return the names of all samples of relay, API server and dashboard."""
    board = Dashboard(DashboardConfig(), {"index.html": b""})
    board._monitor._health.results = [
        each.members() for each in run_health_checks(HostFacts(now=0, version="1", home="/h"))
    ]
    text = exposition(Relay(RelayConfig()), Api(ApiConfig()), board)
    return {line.partition("{")[0].partition(" ")[0] for line in text.splitlines() if not line.startswith("#")}


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in BOARD["templating"]["list"]:
        yield variable["name"], variable["query"]


EXPRESSIONS = [pytest.param(expr, id=f"{number} {of}") for number, (of, expr) in enumerate(expressions())]


def test_the_buckets_of_a_histogram_add_up() -> None:
    counts = EngineMetrics()
    counts.answers["GET /item/{name}"][200] += 3
    counts.waits["GET /item/{name}"].observe(0.02)
    text = metrics_text(counts.metric_families()).decode()
    found = {family.name: family for family in text_string_to_metric_families(text)}
    times = {
        sample.labels.get("le", sample.name[-5:]): sample.value
        for sample in found["svc_http_request_duration_seconds"].samples
    }
    edges = ("0.001", "0.01", "0.025", "+Inf", "count", "s_sum")
    assert [times[edge] for edge in edges] == [2, 2, 3, 3, 3, 0.02]


def test_empty_families_are_listed() -> None:
    text = metrics_text([Histogram().family("svc_z_seconds", "Of z."), counter("svc_none", "Of none.", {}, "of")])
    found = {family.name: len(family.samples) for family in text_string_to_metric_families(text.decode())}
    assert (found["svc_z_seconds"], found["svc_none"]) == (16, 0)


@pytest.mark.parametrize("service", [Relay(RelayConfig()), Api(ApiConfig()), Dashboard(DashboardConfig(), {})])
def test_metrics_of_each_server_parse_without_duplicates(service: Service) -> None:
    found = [family.name for family in text_string_to_metric_families(exposition(service))]
    assert len(found) == len({*found}) > 10


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_operator_expressions_use_existing_metrics(expr: str, names: set[str]) -> None:
    assert expr.count("(") == expr.count(")")
    wanted = [name for name in NAME.findall(expr) if not name.startswith(UNKNOWN_ELSEWHERE) or name in names]
    assert wanted or "up{" in expr or expr == "prometheus"
    assert {*wanted} <= names


def test_alert_rules_have_the_prometheus_form() -> None:
    for rule in RULES:
        assert (
            {"alert", "expr", "labels", "annotations"}
            <= rule.keys()
            <= {*("alert", "expr", "for", "labels", "annotations")}
        )
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "1m"))
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_accepts_rules_and_metrics() -> None:
    assert PROMTOOL is not None
    checked = subprocess.run([PROMTOOL, "check", "rules", FOLDER / "alerts.yaml"], capture_output=True, text=True)
    assert (checked.returncode, f"SUCCESS: {len(RULES)} rules found" in checked.stdout) == (0, True), checked.stderr
    for service in (Relay(RelayConfig()), Api(ApiConfig()), Dashboard(DashboardConfig(), {})):
        text = exposition(service)
        told = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True)
        # promtool reads the older form of the text, in which a counter's help has another name.
        assert {line.partition(" ")[2] for line in (told.stdout + told.stderr).splitlines()} == {"no help text"}


def test_the_dashboard_has_the_grafana_form() -> None:
    panels: list[dict[str, Any]] = BOARD["panels"]
    assert {"title", "uid", "schemaVersion", "templating", "time", "panels"} <= BOARD.keys()
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    for panel in panels:
        assert panel["type"] == "timeseries"
        assert [target["refId"] for target in panel["targets"]] == ["A", "B", "C", "D"][: len(panel["targets"])]


def test_rules_use_existing_outcomes() -> None:
    text = exposition(Relay(RelayConfig()), Api(ApiConfig()))
    for rule in RULES:
        for outcome in re.findall(r'outcome="([^"]+)"', rule["expr"]):
            assert f'outcome="{outcome}"' in text
