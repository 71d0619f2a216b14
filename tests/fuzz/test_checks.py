"""Tests of the checks: each one passes, a failed one reports both values, and each round of worlds runs each check."""

from collections import Counter

import pytest
from click.testing import CliRunner

from fuzz.simulation.checks.all_checks import ALL_CHECKS, ROUND, select_checks
from fuzz.simulation.checks.check_context import CheckContext
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.run import main
from fuzz.simulation.scenario_runner import ScenarioFailure, ScenarioReport, run_script
from fuzz.simulation.script import Script
from fuzz.simulation.script_generator import generate_script
from svc_proto.relay.websocket.client_connection import ClientConnection

SHORT = 6  # steps: two devices are paired
KINDS = [*dict.fromkeys(ALL_CHECKS)]


def gone_through(name: str, seed: int) -> ScenarioReport | ScenarioFailure:
    return run_script(Script(seed, generate_script(seed).steps[:SHORT], (name,)))


@pytest.mark.full  # the simulations of each suite run all of them
@pytest.mark.parametrize("name", [kind.__name__ for kind in KINDS])
def test_check_passes(name: str) -> None:
    outcome = gone_through(name, 1)
    assert isinstance(outcome, ScenarioReport), str(outcome)
    assert outcome.counts[f"audits: {name}"] == 1


def test_check_names_are_unique() -> None:
    assert len({kind.__name__ for kind in KINDS}) == len(KINDS)
    assert all(kind.__doc__ for kind in KINDS)


def test_failed_check_reports_actual_and_expected_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def evict(self: ClientConnection, reason: str) -> None:
        self.close_children()
        self.send_error(reason, "session_ended")
        self.socket.close(1000, reason)

    monkeypatch.setattr(ClientConnection, "close_for", evict)
    outcome = gone_through("session_end", 3)
    assert isinstance(outcome, ScenarioFailure)
    assert outcome.invariant is Invariant.AS_PREDICTED
    assert "told is" in outcome.detail
    assert "and it is" in outcome.detail
    assert "lifecycle.py" in outcome.place or "check_context.py" in outcome.place


def test_each_round_runs_each_check() -> None:
    for first in (0, 7 * ROUND):
        worlds = [select_checks(Script(seed, ())) for seed in range(first, first + ROUND)]
        assert Counter(kind for checks in worlds for kind in checks) == Counter(ALL_CHECKS)


def test_checks_can_be_selected_by_name() -> None:
    asked = Script(3, (), ("restart", "session_end"))
    assert [kind.__name__ for kind in select_checks(asked)] == ["session_end", "restart"]
    assert Script.from_json(asked.to_json()) == asked
    result = CliRunner().invoke(main, ["--seeds", "1", "--jobs", "1", "--check", "restart"])
    assert result.exit_code == 0, result.output
    assert "1 x audits: restart" in result.stdout
    assert result.stdout.count("audits: ") == 1
    assert CliRunner().invoke(main, ["--check", "nowhere"]).exit_code == 2


def test_difference_has_only_unequal_parts() -> None:
    told = CheckContext.difference({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]})
    assert told == {"b": [(1, 2)]}
    assert CheckContext.difference([1], [1, 2]) == [1]
