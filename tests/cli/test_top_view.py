import pytest
from attrs import evolve

from svc_proto.basics.moment import Moment
from svc_proto.cli.top_view import explain_missing, once_rows, sparkline, stats_rows
from svc_proto.schema.openmetrics import MetricSamples
from svc_proto.service_clients.server_stats import NAMES, MetricsReading, ServerStats, StatsHistory

NOTHING = StatsHistory().add(MetricsReading(Moment(0.0, 1e9), {}))
ALL = evolve(NOTHING, **dict.fromkeys(NAMES[1:], 1.0))


def row(title: str, now: ServerStats) -> tuple[str, str]:
    """Return the value and the side note of the row with this title."""
    return {what: (value, beside) for what, value, beside in once_rows(now)}[title]


def test_missing_values_are_dashes() -> None:
    assert {value for _, value, _ in once_rows(NOTHING)} == {"-"}
    assert row("Commands", NOTHING) == ("-", "- under way, - fail")
    assert row("Loop lag", NOTHING) == ("-", "")


def test_all_rows() -> None:
    assert once_rows(ALL) == [
        ("Phones", "1", "1 paired"),
        ("Sockets", "1", "1 descriptors open"),
        ("Requests", "1/s", "1/s fail"),
        ("Commands", "60/min", "1 under way, 60/min fail"),
        ("Turns", "1", "60/min end"),
        ("Tokens", "1/s", "1/s pieces of text"),
        ("Memory", "1 B", "1 B for strangers"),
        ("Processor", "100 %", "of one core"),
        ("Loop lag", "1 s", "none above 1 s"),
        ("Store", "1 s", "for an answer"),
    ]


@pytest.mark.parametrize(
    ("title", "name", "value", "text"),
    [
        ("Phones", "phones", 0, "0"),
        ("Sockets", "sockets", 12345, "12,345"),
        ("Requests", "requests", 0.0512, "0.051/s"),
        ("Requests", "requests", 123.4, "123/s"),
        ("Commands", "commands", 0.00123, "0.074/min"),
        ("Memory", "memory", 1023, "1023 B"),
        ("Memory", "memory", 1024, "1 KB"),
        ("Memory", "memory", 5.3e7, "50.5 MB"),
        ("Memory", "memory", 3.3e9, "3.1 GB"),
        ("Processor", "processor", 0.0042, "0.42 %"),
        ("Loop lag", "lag", 0.000234, "0.23 ms"),
        ("Loop lag", "lag", 0.999, "1,000 ms"),
        ("Loop lag", "lag", 30.0, "30 s"),
    ],
)
def test_numbers(title: str, name: str, value: float, text: str) -> None:
    assert row(title, evolve(ALL, **{name: float(value)}))[0] == text


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([None], " "),
        ([0.0, 0.0], "▁▁"),
        ([0.0, 0.125, None, 0.5, 1.0], "▁▂ ▅█"),
        ([9.0, 7.0, 6.0, 5.0, 4.0, 3.0], "█▇▆▅▄"),  # the last five
    ],
)
def test_bars(values: list[float | None], drawn: str) -> None:
    assert sparkline(values, 5) == drawn


def test_bars_of_the_history() -> None:
    history = StatsHistory(every=1.0, span=10.0)
    looks = [MetricsReading(Moment(float(at), 1e9), {"relay": MetricSamples(f"svc_phones {at}")}) for at in (1, 2, 4)]
    *_, now = map(history.add, looks)
    first, second, *_ = stats_rows(history, now, 2)
    assert (first.title, first.value, first.beside, first.bars) == ("Phones", "4", "- paired", "▅█")
    assert second.bars == "  "


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (0, "the relay does not answer"),
        (401, "the relay does not show its metrics (401): set SVC_METRICS_TOKEN as its settings have it"),
        (403, "the relay does not show its metrics (403): set SVC_METRICS_TOKEN as its settings have it"),
        (503, "the relay has no metrics: its host needs the package prometheus-client"),
        (200, "the relay answers 200 at /metrics"),
    ],
)
def test_reasons_for_missing_values(status: int, said: str) -> None:
    assert explain_missing([("relay", status), ("api", 0)]) == said
    assert explain_missing([("phone", status)]).startswith("the phone")
