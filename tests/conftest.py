"""Selection of tests, event loops, Hypothesis profiles and signals for the whole suite.

Without an option the suite is the one of `make test`, and more tests of files and folders that the command line names
(`is_in_short_suite` of `tests.support.scenario_plan`). `--full` runs all tests on every loop that this plan names for
them, `--rest` only those that `make test` leaves out. A test that takes `runtime` or `any_loop` runs once for each of
its loops. `--loop` names other loops, with the names of the programs' `--runtime`, or `sim` (the simulator) or `nodes`
(the simulator with three nodes for each server). `--reference` turns the fast paths off in servers that run inside the
test process (`fuzz.reference_parsers`).

HYPOTHESIS_PROFILE is `default` for people, `full` with `--full`, `ci` for runs that must repeat exactly.
"""

import gc
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

import pytest
from _pytest.runner import runtestprotocol  # there is no public name for it
from hypothesis import HealthCheck, settings

from runtimes.run import RUNTIMES, RuntimeMissingError, find_runtime
from tests.support import scenario_plan
from tests.support.text_rules import hold_sentences

settings.register_profile(  # without checks that depend on the load of the machine
    "default", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("full", parent=settings.get_profile("default"), max_examples=200)  # for --full
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

hold_sentences()

# Under nohup, or a shell's `&`, these signals are ignored, and every program that a test starts would inherit that.
for number, handler in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

HERE = Path(__file__).parent
SIMULATOR = "sim"
NODES = "nodes"  # the simulator with three nodes for each server
VIRTUAL = (SIMULATOR, NODES)
ALIAS = "anyio"  # another name of `asyncio`
INSTALLED = [name for name, ours in RUNTIMES.items() if name != ALIAS and find_spec(ours.package) is not None]
# the host on a bare selector, for the stories that `ScenarioEnvironments.ALL` names and for the adapters' own tests
BARE = "threads"
CONTEXT = pytest.StashKey[str]()  # the folder of the current test, the context that coverage is recorded under
MEASURING = pytest.StashKey["Measuring"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--loop", action="append", metavar="NAME", help="Run on this loop (package.module:function); repeat."
    )
    parser.addoption("--full", action="store_true", help="Run all tests, each on every loop that the plan names.")
    parser.addoption("--rest", action="store_true", help="Run what --full runs and the suite without options does not.")
    parser.addoption("--reference", action="store_true", help="Turn the fast paths off; all results must be equal.")
    parser.addoption(
        "--unmeasured", action="append", metavar="FOLDER", default=[], help="Measure no coverage there; repeat."
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("reference"):
        from fuzz.reference_parsers import disable_fast_paths

        disable_fast_paths()
    if config.getoption("full") and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("full")
    for name in config.getoption("loop") or ():
        try:
            _ = name in VIRTUAL or find_runtime(name)
        except RuntimeMissingError as error:
            raise pytest.UsageError(f"--loop: {error}") from error


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("full"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "runtime" in metafunc.fixturenames:
        loops = [name for name in loops_of(metafunc) if name not in VIRTUAL]
        metafunc.parametrize("runtime", loops or [scenario_plan.PLAIN], scope="module")
    if "any_loop" in metafunc.fixturenames:
        metafunc.parametrize("any_loop", loops_of(metafunc), scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the suite that the options request."""
    full, rest = config.getoption("full"), config.getoption("rest")
    named = set[Path]() if rest else _named_paths(config)
    kept, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        wanted = full or config.getoption("loop") or rest != scenario_plan.is_in_short_suite(item, named)
        fits = not (config.getoption("reference") and item.get_closest_marker("fast_path"))
        (kept if wanted and fits else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        program, is_missing = marker.args
        if is_missing:
            pytest.skip(f"{program} is not installed")


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()
    if packages := getattr(session.config.option, "cov_source", None):
        import_packages(packages)
        session.config.stash[MEASURING] = measuring = Measuring()
        measuring.stop()  # the import of the tests would take twice the time
    if worker := getattr(session.config, "workerinput", None):
        import_share(session.config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Report a passed test with the report of its call alone, in a worker of pytest-xdist.

    Other tests, and runs that need all phases, are reported as usual.
    """
    name_coverage_context(item)
    options = item.config.option
    if not hasattr(item.config, "workerinput"):
        return None  # reports are not sent
    if getattr(options, "costs", False) or getattr(options, "xmlpath", None) or options.durations:
        return None  # each phase is of interest
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    passed = all(report.passed for report in reports)
    for report in reports:
        if report.when == "call" or not passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def name_coverage_context(item: pytest.Item) -> None:
    """Record coverage under the folder of the test, such as `tests/relay`.

    Property tests, tests with the marker `unmeasured` and folders named by `--unmeasured` are not measured.
    """
    folder = "/".join(item.nodeid.split("/")[:2]).partition("::")[0]
    stash, options = item.config.stash, item.config.option
    is_left_out = folder in options.unmeasured or any(map(item.get_closest_marker, ("hypothesis", "unmeasured")))
    context = "" if is_left_out else folder
    if not getattr(options, "cov_source", None) or stash.get(CONTEXT, None) == context:
        return
    stash[CONTEXT] = context
    stash[MEASURING].enter(context)


class Measuring:
    """Measurement of coverage in this process and in the programs that it starts, which can be stopped and resumed."""

    def __init__(self) -> None:
        from coverage import Coverage

        self._current = Coverage.current
        self._stopped: list[Coverage] = []
        self._variables: dict[str, str] = {}

    def enter(self, folder: str) -> None:
        """Attribute the coverage from now on to this folder of tests; measure nothing if it is empty."""
        if folder:
            os.environ.update(self._variables)
            while self._stopped:
                self._stopped.pop().start()
            if current := self._current():
                current.switch_context(folder)  # takes 10 ms
        else:
            self.stop()

    def stop(self) -> None:
        """Measure nothing until a measured folder is entered."""
        while current := self._current():
            current.stop()
            self._stopped.append(current)
        self._variables |= {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("COVERAGE_")}


def import_packages(names: Iterable[str]) -> None:
    """Import the modules of these packages; skip those that need a missing library, and `__main__`."""
    for name in names:
        package = import_module(name)
        for module in walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                with suppress(ImportError):  # the module needs a library that is not installed
                    import_module(module.name)


def import_share(config: pytest.Config, number: int, count: int) -> None:
    """Import each `count`th of the test files that the command line names, from index `number` on.

    So each worker of pytest-xdist rewrites the asserts of a share of the files.
    """
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    files = [file for path in named for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]
    for file in files[number::count]:
        with suppress(Exception, pytest.skip.Exception):  # collection reports the error
            import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))


def loops_of(metafunc: pytest.Metafunc) -> list[str]:
    """Return the names of the loops on which a test runs; one in the short suite."""
    config = metafunc.config
    folder, _, module = metafunc.module.__name__.rpartition(".")
    test = metafunc.function.__name__
    named: list[str] | None = config.getoption("loop")
    if not (named or config.getoption("full") or config.getoption("rest")):
        return [scenario_plan.short_loop(folder, module, test)]
    loops = named or _planned(folder, module, test)
    row = scenario_plan.nodes_row_of(module, test) if folder == "tests.loops" else None
    left_out = {scenario_plan.AsNodes.NEVER} if named else {scenario_plan.AsNodes.NEVER, scenario_plan.AsNodes.NAMED}
    if folder != "tests.loops" or (row is not None and row.how in left_out):
        return [name for name in loops if name != NODES]
    return loops


def _planned(folder: str, module: str, test: str) -> list[str]:
    row = scenario_plan.row_of(module, test) if folder == "tests.loops" else None
    match row and row.how:
        case scenario_plan.ScenarioEnvironments.SIM:
            return [*VIRTUAL]
        case scenario_plan.ScenarioEnvironments.ONE:
            return [scenario_plan.PLAIN, *VIRTUAL]
        case scenario_plan.ScenarioEnvironments.ALL:
            return [*INSTALLED, *VIRTUAL]
        case _:
            bare = folder == "tests.runtimes"
            return [*(name for name in INSTALLED if bare or name != BARE), *VIRTUAL]


def _named_paths(config: pytest.Config) -> set[Path]:
    """Return the files and folders below tests/ that the command line names."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return set()
    paths = [(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args]
    return {path for path in paths if path != HERE and path.is_relative_to(HERE)}
