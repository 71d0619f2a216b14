"""How the suite runs: on which loops, Hypothesis profiles, signals, and a second try for what needs the machine.

A test or fixture that takes `runtime` runs on loops, and one that takes `any_loop` in the simulator (`sim`, and `nodes`
where a relay is three), too: in tests/loops on those that `tests.plan` has for it, elsewhere on all that are installed,
but `threads` in tests/runtimes alone. With `--full` it is all of them everywhere, and what only repeats is not left
out; `--loop` names others, as `--runtime` of the programs does, or `sim` or `nodes`.
With `--law` servers in the process of the tests are without their plain lanes (`fuzz.law`).

HYPOTHESIS_PROFILE is `default` for people, `ci` for runs that must repeat exactly. With RERUNS=1, as CI has it, a test
of real sockets, processes or browsers that fails is tried once more, since the machine may have been too busy for it.
Both tries are told, and what failed first is shown. What runs in virtual time, or without a loop, has one try.
"""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol  # as pytest-rerunfailures does: there is no public name for it
from hypothesis import settings

from runtimes.run import RUNTIMES, RuntimeMissingError, find_runtime
from svc_proto.basics.value import refuse_changes
from tests.plan import AsNodes, Where, nodes_row_of, row_of
from tests.sentences import hold_sentences

settings.register_profile("default", deadline=None, max_examples=30)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("full", parent=settings.get_profile("default"), max_examples=200)  # for --full
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

refuse_changes()  # of values, at run time too
hold_sentences()

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
NODES = "nodes"  # the same, where a relay is three
VIRTUAL = (SIMULATOR, NODES)
PLAIN = "asyncio"  # the one loop of what any real one will do for
ALIAS = "anyio"  # of it
INSTALLED = [name for name, ours in RUNTIMES.items() if name != ALIAS and find_spec(ours.package) is not None]
BARE = "threads"  # the host on a bare selector, for the stories that `Where.ALL` names and for the adapters' own tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--loop`, `--full` and `--law`."""
    parser.addoption(
        "--loop", action="append", metavar="NAME", help="Run on this loop (package.module:function); repeat."
    )
    parser.addoption("--full", action="store_true", help="Run every story on every loop, and what only repeats.")
    parser.addoption("--law", action="store_true", help="Turn the plain lanes off: everything has to be the same.")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse loops that are none; have the law alone if that is wanted."""
    if config.getoption("law"):
        from fuzz.law import obey

        obey()
    if config.getoption("full"):
        settings.load_profile("full")
    for name in config.getoption("loop") or ():
        try:
            _ = name in VIRTUAL or find_runtime(name)
        except RuntimeMissingError as error:
            raise pytest.UsageError(f"--loop: {error}") from error


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether a story is to be told at its greatest length."""
    return bool(pytestconfig.getoption("full"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run on each loop what takes the name of one."""
    if "runtime" in metafunc.fixturenames:
        loops = [name for name in loops_of(metafunc) if name not in VIRTUAL]
        metafunc.parametrize("runtime", loops or [PLAIN], scope="module")
    if "any_loop" in metafunc.fixturenames:
        metafunc.parametrize("any_loop", loops_of(metafunc), scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only repeats, or what there is not, and say which tests may be tried again."""
    for marker, asked in (("repetition", not config.getoption("full")), ("lane", config.getoption("law"))):
        if asked:
            config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(marker)])
            items[:] = [item for item in items if not item.get_closest_marker(marker)]
    for item in items:
        if RERUNS and needs_the_machine(item):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, reruns_delay=2))


def pytest_collection(session: pytest.Session) -> None:
    """Search for no garbage while millions of objects are made that stay; begin where no other worker begins."""
    gc.disable()
    if worker := getattr(session.config, "workerinput", None):
        import_share(session.config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def pytest_collection_finish() -> None:
    """Nor among them later; to look for what little of them is garbage already would cost a second."""
    gc.freeze()
    gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Where a worker of pytest-xdist runs: tell what is printed, one report of a test that passed in place of three.

    Each report is pickled, sent and read, which costs more than many a test does.
    """
    options = item.config.option
    if not hasattr(item.config, "workerinput") or item.get_closest_marker("flaky"):
        return None  # reports stay here, or are those of pytest-rerunfailures
    if getattr(options, "costs", False) or getattr(options, "xmlpath", None) or options.durations:
        return None  # each phase is of interest
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    passed = all(report.passed for report in reports)
    for report in reports:
        if report.when == "call" or not passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the first try of what was tried again."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"tried again: {report.nodeid}")
        terminalreporter.line(report.longreprtext)


def import_share(config: pytest.Config, number: int, count: int) -> None:
    """Import each `count`th file of tests, from `number` on, before all are collected.

    In a fresh clone pytest has to rewrite the asserts of each, which is two thirds of a collection. So each worker
    does it for some, and finds what the others have made of the rest.
    """
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    files = [file for path in named for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]
    for file in files[number::count]:
        with suppress(Exception, pytest.skip.Exception):  # it is told when the file is collected
            import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))


def loops_of(metafunc: pytest.Metafunc) -> list[str]:
    """The loops that a test is for, the simulator's last."""
    named: list[str] | None = metafunc.config.getoption("loop")
    folder, _, module = metafunc.module.__name__.rpartition(".")
    full: bool = metafunc.config.getoption("full")
    loops = named or _planned(folder, module, metafunc.function.__name__, full=full)
    if folder != "tests.loops":
        return [name for name in loops if name != NODES]
    row = nodes_row_of(module, metafunc.function.__name__)
    if row is not None and (row.how is AsNodes.NEVER or (row.how is AsNodes.LATER and not (named or full))):
        return [name for name in loops if name != NODES]
    return loops


def _planned(folder: str, module: str, test: str, *, full: bool) -> list[str]:
    planned = folder == "tests.loops" and not full
    row = row_of(module, test) if planned else None
    match row and row.how:
        case Where.SIM:
            return [*VIRTUAL]
        case Where.ONE:
            return [PLAIN, *VIRTUAL]
        case Where.ALL:
            return [*INSTALLED, *VIRTUAL]
        case _:
            bare = full or folder == "tests.runtimes"
            return [*(name for name in INSTALLED if bare or name != BARE), *VIRTUAL]


def needs_the_machine(item: pytest.Item) -> bool:
    """Whether a test depends on more than its arguments: on the loops, programs and clocks of this host."""
    folder, *_ = item.path.relative_to(HERE).parts
    made_of = getattr(item, "callspec", None)  # of a test with parameters
    return folder in NEED_THE_MACHINE and not (made_of and any(name in made_of.params.values() for name in VIRTUAL))
