import json

import pytest

from svc_proto.commands import WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.monitoring.health_monitor import HEALTH_FILE, RESULTS_TTL, HealthMonitor
from tests.api.harness import ApiHarness
from tests.relay.harness import HOME, START, RelayHarness

FILE = f"{HOME}/{HEALTH_FILE}"
PROBLEM = {"code": "disk_full", "severity": "error", "ok": False}
FINE = {"code": "backup_old", "severity": "warning", "ok": True}
FAILS = 'svc_health_problem{code="disk_full",severity="error"} 1.0'
PASSES = 'svc_health_problem{code="backup_old",severity="warning"} 0.0'


def stored(at: float) -> str:
    return json.dumps({"checked_at": at, "checks": [PROBLEM, FINE]})


def health(book: RelayHarness | ApiHarness) -> list[str]:
    text = book.request("GET", "/metrics").body.decode()
    return [line for line in text.splitlines() if line.startswith("svc_health_problem{")]


def test_the_api_serves_the_results_that_other_servers_store() -> None:
    book = ApiHarness(files={FILE: stored(START.wall)})
    assert health(book) == [FAILS, PASSES]
    book.after(599.0)
    assert health(book) == [FAILS, PASSES]
    book.after(1.0)  # no server has run the checks for ten minutes
    assert health(book) == []
    book.disk.put(FILE, stored(START.wall + 600.0).encode())
    assert health(book) == [FAILS, PASSES]


def test_stored_results_that_are_of_no_use_are_ignored() -> None:
    for text in ("", "{", "[]", "{}", '{"checked_at": "now"}', stored(START.wall - 600.0), stored(START.wall + 600.0)):
        assert health(ApiHarness(files={FILE: text})) == []


def new_monitor(book: ApiHarness) -> HealthMonitor:
    """Return a monitor whose only check passes after a second."""

    def check(engine: Engine) -> Flow[list[dict[str, object]]]:
        yield from sleep(engine, 1.0)
        return [FINE]

    monitor = HealthMonitor(check)
    monitor.bind(book.engine)
    return monitor


def test_results_of_this_server_that_are_not_stored_stay_until_there_are_newer_ones() -> None:
    book = ApiHarness(files={FILE: stored(START.wall + 31.0)})
    monitor = new_monitor(book)
    book.after(30.0)
    book.refuse = (WriteConfig,)
    book.spawn(monitor.refresh())
    book.after(1.0)
    book.spawn(monitor.load())
    assert (monitor.results, monitor.checked_at) == ([FINE], START.wall + 31.0)


@pytest.mark.parametrize(("pause", "checked_at"), [(RESULTS_TTL - 0.125, 1.0), (RESULTS_TTL, RESULTS_TTL + 1.0)])
def test_a_request_runs_the_checks_unless_the_results_are_new(pause: float, checked_at: float) -> None:
    book = ApiHarness()
    monitor = new_monitor(book)
    waiting = book.spawn(monitor.refresh())
    assert waiting == []
    book.after(1.0)
    assert (waiting, health(book)) == ([None], [PASSES])
    book.after(pause - 1.0)
    book.spawn(monitor.refresh())
    book.after(1.0)
    assert monitor.checked_at == START.wall + checked_at


def test_a_run_that_fails_ends_and_the_next_one_gives_results() -> None:
    book = ApiHarness()
    failures = [OSError("the check fails")]

    def check(engine: Engine) -> Flow[list[dict[str, object]]]:
        yield from sleep(engine, 1.0)
        if failures:
            raise failures.pop()
        return [FINE]

    monitor = HealthMonitor(check)
    monitor.bind(book.engine)
    waiting = book.spawn(monitor.refresh())
    book.after(1.0)
    assert (waiting, monitor.results) == ([None], ())
    book.after(RESULTS_TTL)
    book.spawn(monitor.refresh())
    book.after(1.0)
    assert monitor.results == [FINE]


def test_a_relay_serves_them_too() -> None:
    assert health(RelayHarness(files={FILE: stored(START.wall)})) == [FAILS, PASSES]
