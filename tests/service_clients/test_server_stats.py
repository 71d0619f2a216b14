from collections.abc import Mapping
from math import isclose

import pytest

from svc_proto.basics.moment import Moment
from svc_proto.schema.openmetrics import MetricSamples
from svc_proto.service_clients.server_stats import NAMES, MetricsReading, ServerStats, StatsHistory

WALL = 1_700_000_000.0
PROCESS = "process_start_time_seconds 100\nprocess_resident_memory_bytes 5e7\nprocess_open_fds 20\n"


def reading(mono: float, **servers: str) -> MetricsReading:
    return MetricsReading(Moment(mono, WALL + mono), {role: MetricSamples(text) for role, text in servers.items()})


def look(before: str, after: str, seconds: float = 10.0) -> ServerStats:
    """Return the statistics between two readings of a relay."""
    history = StatsHistory()
    history.add(reading(0, relay=before))
    return history.add(reading(seconds, relay=after))


def test_first_reading_has_no_rates() -> None:
    text = 'svc_phones 2\nsvc_sessions 3\nsvc_sockets{channel="client"} 4\nsvc_sockets{channel="tui"} 1\n'
    text += 'svc_http_requests_total{route="/health",status="200"} 9\nsvc_bridge_commands_waiting 1\n'
    text += "svc_strangers_held_bytes 7\nsvc_loop_lag_seconds_count 3\nsvc_store_duration_seconds_count 2\n" + PROCESS
    found = StatsHistory().add(reading(5, relay=text, api='svc_runs{state="queued"} 1\nsvc_runs{state="running"} 2\n'))
    known = {name: value for name, value in zip(NAMES, found.numbers(), strict=True) if value is not None}
    gauges = {"phones": 2, "sessions": 3, "sockets": 4, "waiting": 1, "turns": 3, "strangers": 7}
    assert known == gauges | {"at": WALL + 5, "memory": 5e7, "descriptors": 20}


@pytest.mark.parametrize(
    ("name", "before", "after", "rate"),
    [
        ("requests", 'svc_http_requests_total{route="/a",status="200"} 5', None, 2.0),
        ("requests", 'svc_http_requests_total{route="/metrics",status="200"} 5', None, 0.0),
        ("errors", 'svc_http_requests_total{route="/a",status="499"} 5', None, 0.0),
        ("errors", 'svc_http_requests_total{route="/a",status="500"} 5', None, 2.0),
        ("commands", 'svc_bridge_commands_total{outcome="success"} 5', None, 2.0),
        ("failed", 'svc_bridge_commands_total{outcome="success"} 5', None, 0.0),
        ("failed", 'svc_bridge_commands_total{outcome="confirmation"} 5', None, 0.0),
        ("failed", 'svc_bridge_commands_total{outcome="no status"} 5', None, 0.0),
        ("failed", 'svc_bridge_commands_total{outcome="thirty seconds"} 5', None, 2.0),
        ("ended", 'svc_turns_total{outcome="failed"} 5', None, 2.0),
        ("deltas", "svc_deltas_total 5", None, 2.0),
        ("tokens", 'svc_tokens_total{direction="input"} 5', None, 2.0),
        ("processor", "process_start_time_seconds 1\nprocess_cpu_seconds_total 5", None, 2.0),
        ("deltas", "svc_deltas_total 5", "svc_deltas_total 5", 0.0),
        ("deltas", "svc_deltas_total 50", "svc_deltas_total 30", 3.0),  # restarted
        ("deltas", "svc_other 1", "svc_deltas_total 30", 3.0),  # a new counter starts at zero
        ("deltas", "svc_deltas_total 5", "svc_other 1", None),
        ("errors", "svc_other 1", "svc_other 1", None),
        ("failed", "svc_other 1", "svc_other 1", None),
    ],
)
def test_rates(name: str, before: str, after: str | None, rate: float | None) -> None:
    """Compute the growth of counters per second; without `after` the counter grows by 20 in 10 s.

    A counter that is smaller than before was restarted at zero.
    """
    head, _, value = before.rpartition(" ")
    found = getattr(look(before, f"{head} {int(value) + 20}" if after is None else after), name)
    assert found == rate


@pytest.mark.parametrize(("seconds", "rate"), [(0.0, None), (0.5, 8.0), (1.0, 4.0)])
def test_simultaneous_readings_have_no_rates(seconds: float, rate: float | None) -> None:
    assert look("svc_deltas_total 5", "svc_deltas_total 9", seconds=seconds).deltas == rate


def test_a_process_of_two_servers_counts_once() -> None:
    history = StatsHistory()
    other = PROCESS.replace(" 100", " 200")
    for cpu, at in ((1.0, 0.0), (3.0, 20.0)):
        text = f"{PROCESS}process_cpu_seconds_total {cpu}\n"
        history.add(reading(at, relay=text, api=text))
    history.add(reading(40.0, relay=f"{PROCESS}process_cpu_seconds_total 4\n", api=other))
    assert history.of("processor") == [None, 0.1, 0.05]
    assert history.of("memory") == [5e7, 5e7, 1e8]
    assert history.of("descriptors") == [20, 20, 40]


def named(history: StatsHistory) -> list[Mapping[str, float | None]]:
    return [dict(zip(NAMES, row, strict=True)) for row in history.rows()]


def lags(*passed: int, total: float) -> str:
    """Return a histogram of lags with cumulative counts for 1 ms, 5 ms, 30 s and infinity."""
    rows = [
        f'svc_loop_lag_seconds_bucket{{le="{bound}"}} {count}'
        for bound, count in zip(("0.001", "0.005", "30.0", "+Inf"), passed, strict=True)
    ]
    return "\n".join([*rows, f"svc_loop_lag_seconds_count {passed[-1]}", f"svc_loop_lag_seconds_sum {total}"])


@pytest.mark.parametrize(
    ("after", "mean", "latest"),
    [
        (lags(6, 6, 6, 6, total=0.5), None, None),  # no lag in between
        (lags(8, 8, 8, 8, total=0.502), 0.001, 0.001),
        (lags(7, 8, 8, 8, total=0.506), 0.003, 0.005),
        (lags(7, 7, 8, 8, total=8.5), 4.0, 30.0),
        (lags(7, 7, 7, 8, total=40.5), 20.0, 30.0),  # longer than the last bound
    ],
)
def test_lag(after: str, mean: float | None, latest: float | None) -> None:
    found = look(lags(6, 6, 6, 6, total=0.5), after)
    assert found.latest == latest
    assert found.lag is mean or (mean is not None and found.lag is not None and isclose(found.lag, mean))


def test_the_store() -> None:
    before = "svc_store_duration_seconds_sum 1\nsvc_store_duration_seconds_count 10"
    assert look(before, "svc_store_duration_seconds_sum 2\nsvc_store_duration_seconds_count 14").store == 0.25
    assert look(before, before).store is None


def test_readings_are_stored_each_fifteen_seconds_for_an_hour() -> None:
    history = StatsHistory()
    for at in range(0, 4000, 5):  # a page polls more often
        history.add(reading(at, relay=f"svc_deltas_total {at}"))
    kept = named(history)
    assert len(kept) == 240
    assert [kept[0]["at"], kept[1]["at"], kept[-1]["at"]] == [WALL + 405, WALL + 420, WALL + 3990]
    assert {each["deltas"] for each in kept} == {1.0}
    assert history.of("deltas") == [1.0] * 240


@pytest.mark.parametrize(("seconds", "kept"), [(13.4, 1), (13.5, 2)])
def test_slightly_early_reading_is_stored(seconds: float, kept: int) -> None:
    history = StatsHistory()
    history.add(reading(0))
    history.add(reading(seconds))
    assert len(history.rows()) == kept


def test_unavailable_server_leaves_a_gap() -> None:
    history = StatsHistory()
    for at, servers in enumerate(({"relay": "svc_deltas_total 5"}, {}, {"relay": "svc_deltas_total 9"})):
        history.add(reading(15.0 * at, **servers))
    assert history.of("deltas") == [None, None, None]
    assert history.add(reading(46, relay="svc_deltas_total 24")).deltas == pytest.approx(15 / 16)


def test_outdated_reading_has_no_rates_and_is_not_stored() -> None:
    history = StatsHistory()
    history.add(reading(20, relay="svc_deltas_total 50"))
    assert history.add(reading(18, relay="svc_deltas_total 40")).deltas is None
    assert len(history.rows()) == 1


def test_numbers_have_four_digits() -> None:
    found = look("svc_x 1", "svc_phones 123456\nsvc_x 1").numbers()
    assert (found[0], found[NAMES.index("phones")]) == (WALL + 10, 123500.0)
