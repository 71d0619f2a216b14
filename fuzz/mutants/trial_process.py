"""Trial of a mutant: pytest in a process that starts with the changed module.

An import hook replaces the source of the module; programs that a test starts use the original source. Nothing is
written into the tree: compiled files and temporary folders of Python and pytest are stored elsewhere.
"""

import multiprocessing
import os
import resource
import sys
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

import pytest
from attrs import frozen
from hypothesis import HealthCheck, Phase, settings

from fuzz.mutants.source_tree import SourceTree

MEMORY = 4 << 30  # bytes of address space: limits a mutant that allocates without end
OPTIONS = ["-x", "-q", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider"]
FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["pytest", "hypothesis.stateful", "h11", "h2.connection", "wsproto"])


class FailsWithoutMutantError(Exception):
    """A test fails without the mutant as well, so it proves nothing; or the tests cannot be collected."""


@frozen
class TrialRequest:
    """A request to run tests, with the mutant of a module or without one."""

    module: str
    text: bytes | None  # source of the module; None: unchanged
    tests: Sequence[str]  # files and folders in the tree, or one test
    limit: float  # s
    words: Sequence[str] = ()  # a test runs if its name has one of them, or if there are none
    only: AbstractSet[str] | None = None  # the tests to run; None: all

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of pytest that select the tests."""
        named = ("-k", " or ".join(self.words)) if self.words else ()
        return [*named, *self.tests]


def alone(tree: SourceTree, request: TrialRequest, scratch: str, *, shown: bool) -> str | None:
    """Run a trial in a fresh process; return the failing test or how the process ended, or None if all tests pass.

    `scratch` is a folder for bytecode and temporary files.
    """
    return answer_of(_run, tree, request, scratch, shown, limit=request.limit)


def answer_of(target: Callable[..., None], *arguments: object, limit: float) -> str | None:
    """Run `target` in a process of its own; return what it sends on the connection, its first argument.

    If it sends nothing, return why: the time limit of `limit` seconds, or the end of the process.
    """
    ours, theirs = FORKSERVER.Pipe(duplex=False)
    process = FORKSERVER.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        answer: str | None = ours.recv() if ours.poll(limit) else "the time limit"
    except EOFError:
        answer = "the end of the process"
    process.kill()
    process.join()
    return answer


def begin(tree: SourceTree, scratch: str, *, shown: bool = False) -> None:
    """Prepare a process in which tests run: folder, environment, memory limit and place of its files.

    Bytecode and the temporary folders of tests are stored in `scratch`. In its default place, pytest would also delete
    the folders of earlier runs, which can take minutes. Unless `shown`, the process prints nothing.
    """
    os.chdir(tree.root)
    os.environ.update(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", HYPOTHESIS_PROFILE="ci", PYTEST_DEBUG_TEMPROOT=scratch)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.dont_write_bytecode, sys.pycache_prefix = False, scratch
    sys.path.insert(0, str(tree.root))
    if not shown:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)


def change(tree: SourceTree, module: str, text: bytes) -> None:
    """Replace the source of a module that is not imported yet, in this process."""
    name = f"{tree.package}.{module}"
    assert name not in sys.modules
    sys.meta_path.insert(0, _InFront(name, tree.path(module), text))


def _run(answer: Connection, tree: SourceTree, request: TrialRequest, scratch: str, shown: bool) -> None:
    begin(tree, scratch, shown=shown)
    if request.text is not None:
        change(tree, request.module, request.text)
    notes = FirstFailurePlugin(request.only)
    code = pytest.main([*OPTIONS, *request.arguments], [notes])
    content = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    answer.send(None if content else notes.failed or f"pytest: {code}")


class FirstFailurePlugin:
    """Pytest plugin that records the first failure.

    Hypothesis does not shrink failing examples, since one failure is enough. Slow generation of examples is no failure.
    """

    def __init__(self, only: AbstractSet[str] | None = None) -> None:
        self.failed = ""
        self._only = only

    def pytest_configure(self) -> None:
        """Load the Hypothesis profile before any decorator runs."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings(), phases=phases, suppress_health_check=list(HealthCheck))
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """If `only` was given, remove the tests that are not in it."""
        if self._only is not None:
            items[:] = [item for item in items if item.nodeid in self._only]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test that failed, if it is the first failure."""
        self._note(report.failed, report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported, if it is the first failure."""
        self._note(report.failed, report.nodeid)

    def _note(self, failed: bool, test: str) -> None:
        self.failed = self.failed or (test if failed else "")


class _InFront(MetaPathFinder, Loader):
    """Import hook that replaces the source of one module."""

    def __init__(self, name: str, path: Path, text: bytes) -> None:
        self._name = name
        self._path = path
        self._text = text

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self._path, loader=self) if fullname == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._text, str(self._path), "exec", dont_inherit=True), vars(module))
