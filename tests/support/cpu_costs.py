"""pytest plugin for processor time: `--costs` prints that of each folder, and of the most expensive files and tests.

The time includes finished child processes and fixtures.
"""

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent
SHOWN = 40  # tests


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--costs", action="store_true", help="print the processor time of each folder and of the most expensive tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--costs"):
        config.pluginmanager.register(CpuCostPlugin(), "costs")


class CpuCostPlugin:
    """Sums of processor time by test, in seconds; workers measure, and the collecting process adds up their reports."""

    def __init__(self) -> None:
        self._last = _spent()
        self._costs: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _spent()
        report.__dict__["cpu"] = now - self._last  # travels with the report
        self._last = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._costs[report.nodeid] += report.__dict__.get("cpu", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        files: Counter[str] = Counter()
        folders: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for test, seconds in self._costs.items():
            file = test.partition("::")[0]
            folder = Path(file).parent.as_posix()
            files[file] += seconds
            folders[folder] += seconds
            counts[folder] += 1
        terminalreporter.section(f"costs: {self._costs.total():.1f} s of the processor")
        for folder, seconds in folders.most_common():
            terminalreporter.line(f"{seconds:8.1f} s  {counts[folder]:6} tests  {folder}")
        for what in (files, self._costs):
            terminalreporter.line("")
            for name, seconds in what.most_common(SHOWN):
                terminalreporter.line(f"{seconds:8.2f} s  {name}")


def _spent() -> float:
    return sum(os.times()[:4])
