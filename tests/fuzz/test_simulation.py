"""The simulation: its worlds hold, repeat themselves, and its reports say how to see a failure again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fuzz.invariants import Invariant
from fuzz.run import Failure, Report, Total, main, play, play_seed, replay_command
from fuzz.script import FAULTS, Deed, Script, Step, draw, shrink
from svc_proto.machines.pairing import PairingCodes
from tests.fuzz.conftest import unmeasured_pool

SEEDS = range(300)
LEAST = 60.0  # virtual s of each world


@pytest.mark.timeout(600)
def test_the_worlds_of_300_seeds_hold() -> None:
    total = Total()
    failures: list[Failure] = []
    with unmeasured_pool() as pool:
        for outcome in pool.imap_unordered(play_seed, SEEDS, chunksize=4):
            if isinstance(outcome, Failure):
                failures.append(outcome)
            else:
                assert outcome.seconds >= LEAST
                total.add(outcome)
    assert not failures, "\n".join(
        f"{failure.invariant.name}: {failure.detail}; replay: {replay_command(failure.script.seed)}"
        for failure in failures
    )
    assert total.worlds == len(SEEDS)
    assert total.faults > 1_000
    assert total.counts["reached a phone"] > 500
    assert total.counts["turns told"] > 500


def test_a_world_repeats_itself() -> None:
    first, again, other = play(draw(11)), play(draw(11)), play(draw(12))
    assert isinstance(first, Report)
    assert first == again
    assert first != other


def test_every_deed_is_drawn() -> None:
    drawn = {step.deed for seed in range(200) for step in draw(seed).steps}
    assert drawn == set(Deed)


def test_some_worlds_have_no_faults() -> None:
    faults = [draw(seed).faults for seed in range(100)]
    assert 10 < faults.count(0) < 60


def test_a_script_is_text() -> None:
    script = draw(3)
    assert Script.from_json(script.to_json()) == script


def test_any_step_can_be_left_out() -> None:
    script = draw(5)
    for start in (0, 1, 2, 3):
        fewer = Script(script.seed, script.steps[start::4])
        assert isinstance(play(fewer), Report)


def test_a_failure_is_made_smaller() -> None:
    script = draw(1)
    culprit = next(step for step in script.steps if step.deed is Deed.COMMAND)
    small = shrink(script, lambda smaller: culprit in smaller.steps)
    assert small.steps == (culprit,)


def test_faults_go_first() -> None:
    steps = (Step(1.0, Deed.COMMAND), Step(2.0, Deed.CUT), Step(3.0, Deed.COMMAND), Step(4.0, Deed.KILL))
    small = shrink(Script(1, steps), lambda smaller: True, tries=3)
    assert not any(step.deed in FAULTS for step in small.steps)


def test_a_failing_seed_is_named_and_saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(PairingCodes, "consume", lambda self, code, now: None)
    result = CliRunner().invoke(main, ["--seed", "0", "--jobs", "1", "--tries", "20", "--crashes", str(tmp_path)])
    assert result.exit_code == 1
    assert "RECOVERY" in result.output or "LIVE" in result.output
    assert "replay: python -m fuzz.run --seed 0" in result.output
    (saved,) = tmp_path.iterdir()
    assert f"--script {saved}" in result.output
    assert CliRunner().invoke(main, ["--script", str(saved), "--tries", "0", "--crashes", str(tmp_path)]).exit_code == 1


def test_what_holds_is_counted() -> None:
    result = CliRunner().invoke(main, ["--seeds", "2", "--first", "20", "--jobs", "1"])
    assert result.exit_code == 0
    assert result.output.startswith("2 worlds, ")
    assert "virtual hours" in result.output
    assert "events in" in result.output


def test_every_invariant_names_what_it_guards() -> None:
    assert all(len(invariant.value) > 20 for invariant in Invariant)
