"""The health of the host on the page and in /metrics: when the checks run, and what is served meanwhile."""

from typing import Any

from attrs import define, evolve

from svc_proto.cli.health_checks import run_health_checks
from svc_proto.cli.health_facts import HostFacts, ModelFacts
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from tests.loops.dashboard_client import FILES, PORT
from tests.loops.environment import ServedProgram
from tests.loops.simulated_environment import SimulatedEnvironment

WELL = HostFacts(now=0.0, version="1.0.0", home="/h", model=ModelFacts(base_url="http://m/v1", name="m"))
DEAD = evolve(WELL, model=ModelFacts(base_url="http://m/v1", name="m", problem="connection refused"))


@define
class Host:
    """Host whose health checks take `seconds`, or raise if `fails` is set."""

    facts: HostFacts = WELL
    seconds: float = 0.0
    runs: int = 0
    fails: bool = False

    def check(self, engine: Engine) -> Flow[list[dict[str, object]]]:
        self.runs += 1
        if self.fails:
            raise ValueError("a bug of a check")
        if self.seconds:
            yield from sleep(engine, self.seconds)
        return [each.members() for each in run_health_checks(self.facts)]


class Board(ServedProgram):
    def __init__(self, world: SimulatedEnvironment, host: Host | None) -> None:
        def make(port: int, home: str) -> Dashboard:
            return Dashboard(DashboardConfig(port=port), FILES, health=None if host is None else host.check)

        super().__init__(world, world.start_service("dashboard", make, port=PORT))

    def problems(self) -> list[str]:
        found: dict[str, Any] = self.request("GET", "/api/health").json
        return [each["code"] for each in found["checks"] if not each["ok"]]

    def scraped(self) -> list[str]:
        text = self.request("GET", "/metrics").body.decode()
        return [line for line in text.splitlines() if line.startswith("svc_health_problem{") and line.endswith(" 1.0")]


def test_the_page_gets_all_checks_with_their_remedies(virtual: SimulatedEnvironment) -> None:
    host = Host(DEAD)
    board = Board(virtual, host)
    answer = board.request("GET", "/api/health")
    assert answer.headers.get(b"cache-control") == b"no-store"
    (problem,) = [each for each in answer.json["checks"] if not each["ok"]]
    assert problem["code"] == "model_unreachable"
    assert problem["found"] == "the model's server at http://m/v1 cannot be reached: connection refused"
    assert problem["remedy"] == "start the model's server, or run svc model"
    assert answer.json["checked_at"] > 0
    host.facts = WELL
    assert (board.problems(), host.runs) == (["model_unreachable"], 1)  # the results are used again
    virtual.pass_time(20)
    assert (board.problems(), host.runs) == ([], 2)


def test_slow_checks_run_once_and_do_not_hold_the_page(virtual: SimulatedEnvironment) -> None:
    host = Host(DEAD, seconds=30.0)
    board = Board(virtual, host)
    began = virtual.clock()
    assert board.request("GET", "/api/health").json == {"checked_at": None, "checks": []}
    assert 3.9 < virtual.clock() - began < 5
    virtual.pass_time(27)
    assert (board.problems(), host.runs) == (["model_unreachable"], 2)  # the earlier results, while new ones are made
    board.server.stop()  # also cancels the run


def test_the_page_gets_the_results_when_the_checks_end(virtual: SimulatedEnvironment) -> None:
    board = Board(virtual, Host(DEAD, seconds=1.0))
    began = virtual.clock()
    assert board.problems() == ["model_unreachable"]
    assert virtual.clock() - began < 2


def test_metrics_have_the_results_of_the_timer(virtual: SimulatedEnvironment) -> None:
    host = Host(DEAD)
    board = Board(virtual, host)
    assert (board.scraped(), host.runs) == ([], 0)
    virtual.pass_time(61)
    assert board.scraped() == ['svc_health_problem{code="model_unreachable",severity="error"} 1.0']
    host.facts = WELL
    virtual.pass_time(290)
    assert host.runs == 1
    virtual.pass_time(20)
    assert (board.scraped(), host.runs) == ([], 2)


def test_failing_or_missing_checks_show_nothing(virtual: SimulatedEnvironment) -> None:
    host = Host(fails=True)
    virtual.expected_errors |= {"bug"}
    board = Board(virtual, host)
    assert board.request("GET", "/api/health").json["checks"] == []
    assert host.runs == 1
    assert [line.event for line in board.server.logs].count("bug") == 1
    host.fails, host.facts = False, DEAD
    virtual.pass_time(20)
    assert board.problems() == ["model_unreachable"]  # the next run is as if none had failed
    virtual.close()
    virtual = SimulatedEnvironment()
    board = Board(virtual, None)
    assert board.request("GET", "/api/health").json == {"checked_at": None, "checks": []}
    virtual.pass_time(61)
    assert board.scraped() == []
