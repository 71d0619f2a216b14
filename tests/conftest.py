"""How the suite runs: on which loops, Hypothesis profiles, signals, and a second try for what needs the machine.

A test or fixture that takes `runtime` runs on each loop, and one that takes `any_loop` in the simulator (`sim`), too.
`--loop` chooses them: what `--runtime` of the programs takes, or `sim`; by default all that are installed.

HYPOTHESIS_PROFILE is `default` for people, `ci` for runs that must repeat exactly. With RERUNS=1, as CI has it, a test
of real sockets, processes or browsers that fails is tried once more, since the machine may have been too busy for it.
Both tries are told, and what failed first is shown. What runs in virtual time, or without a loop, has one try.
"""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from runtimes.run import RUNTIMES, RuntimeMissingError, find_runtime

settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Under nohup, or behind a shell's `&`, these are ignored, and every program that a test starts would inherit that.
for number, handler in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

RERUNS = int(os.environ.get("RERUNS") or 0)
NEED_THE_MACHINE = {"bench", "browser", "clients", "loops", "runtimes", "servers"}  # folders beside this file
HERE = Path(__file__).parent
SIMULATOR = "sim"
ALIAS = "anyio"  # of asyncio


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--loop`."""
    parser.addoption(
        "--loop", action="append", metavar="NAME", help="Run on this loop (package.module:function); repeat."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse loops that are none."""
    for name in config.getoption("loop") or ():
        try:
            _ = name == SIMULATOR or find_runtime(name)
        except RuntimeMissingError as error:
            raise pytest.UsageError(f"--loop: {error}") from error


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run on each loop what takes the name of one."""
    installed = [name for name, ours in RUNTIMES.items() if name != ALIAS and find_spec(ours.package) is not None]
    chosen = metafunc.config.getoption("loop") or [*installed, SIMULATOR]
    if "runtime" in metafunc.fixturenames:
        metafunc.parametrize("runtime", [name for name in chosen if name != SIMULATOR], scope="module")
    if "any_loop" in metafunc.fixturenames:
        metafunc.parametrize("any_loop", chosen, scope="module")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests may be tried again."""
    for item in items:
        if RERUNS and needs_the_machine(item):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, reruns_delay=2))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the first try of what was tried again."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"tried again: {report.nodeid}")
        terminalreporter.line(report.longreprtext)


def needs_the_machine(item: pytest.Item) -> bool:
    """Whether a test depends on more than its arguments: on the loops, programs and clocks of this host."""
    folder, *_ = item.path.relative_to(HERE).parts
    made_of = getattr(item, "callspec", None)  # of a test with parameters
    return folder in NEED_THE_MACHINE and not (made_of and SIMULATOR in made_of.params.values())
