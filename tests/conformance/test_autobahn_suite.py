"""Tests of the verdicts from reports of Autobahn's chapters, without its runner."""

import json
from pathlib import Path

import pytest

from tests.conformance import autobahn_suite, external_tools
from tests.conformance.autobahn_suite import judge

OK, LATE, INFORMATIONAL = ("OK", "OK"), ("FAILED", "UNCLEAN"), ("INFORMATIONAL", "INFORMATIONAL")


class Runner:
    """Fake runner with scripted results of each case, run by run."""

    def __init__(self, told: dict[str, list[tuple[str, str]]]) -> None:
        self.told = told
        self.runs: list[list[str]] = []

    def __call__(self, python: str | None, port: int, report: Path, cases: list[str]) -> None:
        self.runs.append(cases)
        report.mkdir(parents=True, exist_ok=True)
        named = [case for case in self.told if any(case == one or case.startswith(one.rstrip("*")) for one in cases)]
        found = {case: self.told[case].pop(0) for case in named}
        verdicts = {case: {"behavior": behaviour, "behaviorClose": close} for case, (behaviour, close) in found.items()}
        (report / "index.json").write_text(json.dumps({"svc": verdicts}))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runner:
    runner = Runner(
        {"1.1": [OK, OK], "1.2": [INFORMATIONAL], "12.1.1": [LATE, OK], "12.1.2": [LATE, ("NON-STRICT", "OK")]}
    )
    monkeypatch.setattr(external_tools, "FOLDER", tmp_path)
    monkeypatch.setattr(autobahn_suite, "CHAPTERS", (1, "12.1"))
    monkeypatch.setattr(autobahn_suite, "CASES", 4)
    monkeypatch.setattr(external_tools, "program", lambda *names: names[0])
    monkeypatch.setattr(autobahn_suite, "_run", runner)
    return runner


def test_failed_cases_are_run_again(run: Runner) -> None:
    result = judge(1, "autobahn-trio", "on trio")
    assert run.runs == [["1.*"], ["12.1.*"], ["12.1.1", "12.1.2"]]
    assert result.passed == 3
    assert result.failed == {"12.1.2": "NON-STRICT, close OK"}
    assert result.repeated == ["12.1.1", "12.1.2"]
    assert "3 of 4 passed, 1 failed, run twice: 12.1.1 12.1.2" in result.lines()[0]


def test_an_interrupted_run_is_resumed(run: Runner, tmp_path: Path) -> None:
    run("", 1, tmp_path / "autobahn-trio" / "1", ["1.*"])
    run.runs.clear()
    assert judge(1, "autobahn-trio", "on trio", resume=True).passed == 3
    assert run.runs == [["12.1.*"], ["12.1.1", "12.1.2"]]


def test_a_missing_case_is_a_failure(run: Runner) -> None:
    del run.told["1.2"]
    assert judge(1, "autobahn-trio", "on trio").failed["all"] == "3 cases were run, not 4"


def test_without_python_2_kosoku_runs_the_basic_cases(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*names: str) -> str:
        raise external_tools.Unavailable("it is not installed")

    monkeypatch.setattr(external_tools, "program", missing)
    monkeypatch.setattr(autobahn_suite, "BASIC", (1,))
    monkeypatch.setattr(autobahn_suite, "BASIC_CASES", 2)
    result = judge(1, "autobahn-trio", "on trio")
    assert run.runs == [["1.*"]]
    assert (result.passed, result.failed) == (2, {})
