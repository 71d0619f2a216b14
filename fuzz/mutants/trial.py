"""A mutant before its judges: the module's own tests, those of its room, mypy, the rooms that use it, and stories.

Mypy comes before those that cost minutes, since every change has to pass it as well. Stories are what of `make test`
has whole programs in one process: the simulator's of `tests/loops`, and worlds. Each try is a process of its own, in
which an import hook puts the changed text in front of the module; programs that it would start know nothing of that.
Nothing is written into the tree: what Python and pytest compile is kept elsewhere.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import ModuleType

import pytest
from attrs import define, field, frozen
from hypothesis import Phase, settings

from fuzz.mutants.changes import Mutant
from fuzz.mutants.tree import Tree

__all__ = ["Fate", "Judge", "UnsoundError", "Verdict"]

MEMORY = 4 << 30  # bytes of address space: a mutant that grows without end ends here
WARM = ["pytest", "hypothesis.stateful", "h11", "h2.connection", "wsproto"]  # what all of them import
STORIES = ["-k", "sim or test_whole"]  # in the names of stories told by the simulator, of worlds, and of rules for all
FAR = 4.0  # as long as the near tests may rooms and stories take: they are many
OPTIONS = ["-x", "-q", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider"]


class Fate(StrEnum):
    """How it went."""

    OWN = "killed by its own file"
    ROOM = "killed by its room"
    TYPES = "refused by its types"
    NEIGHBOUR = "killed by a neighbour"
    STORY = "killed by a story"
    SURVIVED = "survived"
    EQUAL = "equal"


class UnsoundError(Exception):
    """A test fails without a mutant, too."""


@frozen
class Verdict:
    """Of one mutant."""

    mutant: Mutant
    fate: Fate
    by: str = ""  # the test that noticed, or what mypy says


@define
class Judge:
    """Tries mutants of a tree."""

    tree: Tree
    compiled: str  # a folder for what Python and pytest compile
    limit: float = 300.0  # s of a try
    narrow: bool = False  # whether neither neighbours nor stories are asked
    shown: bool = False  # whether pytest may speak
    _sound: set[str] = field(factory=set)

    def judge(self, mutant: Mutant) -> Verdict:
        """Ask one after another until somebody notices. `UnsoundError` if somebody always complains."""
        module = mutant.module
        text = mutant.text(self.tree.path(module).read_bytes())
        for fate, paths in ((Fate.OWN, self.tree.own_tests(module)), (Fate.ROOM, self.tree.room_tests(module))):
            if by := self._noticed(module, text, paths, self.limit):
                return Verdict(mutant, fate, by)
        if by := self._refused_by_types(module, text):
            return Verdict(mutant, Fate.TYPES, by)
        if not self.narrow:
            if by := self._noticed(module, text, self.tree.neighbours_tests(module), FAR * self.limit):
                return Verdict(mutant, Fate.NEIGHBOUR, by)
            if by := self._noticed(module, text, self.tree.stories(), FAR * self.limit, STORIES):
                return Verdict(mutant, Fate.STORY, by)
        return Verdict(mutant, Fate.SURVIVED)

    def _noticed(
        self, module: str, text: bytes, paths: Sequence[Path], limit: float, options: Sequence[str] = ()
    ) -> str | None:
        tests = [str(path.relative_to(self.tree.root)) for path in paths]
        by = self.attempt(module, text, [*options, *tests], limit) if tests else None
        if by is not None:
            named = by.startswith(("tests/", "fuzz/"))
            self._confirm(module, [*options, by.partition("::")[0] if named else tests[0]], limit)
        return by

    def _refused_by_types(self, module: str, text: bytes) -> str:
        path = str(self.tree.path(module))
        with NamedTemporaryFile(suffix=".py") as shadow:
            shadow.write(text)
            shadow.flush()
            words = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--shadow-file", path, shadow.name, path]
            said = subprocess.run(words, cwd=self.tree.root, capture_output=True, text=True, check=False)
        return said.stdout.partition("\n")[0] if said.returncode == 1 else ""

    def _confirm(self, module: str, asked: Sequence[str], limit: float) -> None:
        if asked[-1] not in self._sound:
            by = self.attempt(module, None, asked, limit)
            if by is not None:
                raise UnsoundError(f"fails without a mutant, too: {by}")
            self._sound.add(asked[-1])

    def attempt(self, module: str, text: bytes | None, asked: Sequence[str], limit: float | None = None) -> str | None:
        """Who complains, if anybody does, of what pytest is asked for."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(WARM)
        ours, theirs = context.Pipe(duplex=False)
        arguments = (theirs, self.tree, module, text, asked, self.compiled, self.shown)
        process = context.Process(target=_run_tests, args=arguments, daemon=True)
        process.start()
        theirs.close()
        try:
            answer: str | None = ours.recv() if ours.poll(self.limit if limit is None else limit) else "the time limit"
        except EOFError:
            answer = "the end of the process"
        process.kill()
        process.join()
        return answer


def _run_tests(
    answer: Connection, tree: Tree, module: str, text: bytes | None, asked: Sequence[str], compiled: str, shown: bool
) -> None:
    """In a process of its own."""
    name = f"{tree.package}.{module}"
    assert name not in sys.modules
    os.chdir(tree.root)
    os.environ.update(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", HYPOTHESIS_PROFILE="ci")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.dont_write_bytecode, sys.pycache_prefix = False, compiled
    sys.path.insert(0, str(tree.root))
    if text is not None:
        sys.meta_path.insert(0, _InFront(name, tree.path(module), text))
    if not shown:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
    notes = _Notes()
    code = pytest.main([*OPTIONS, *asked], [notes])
    answer.send(None if code == pytest.ExitCode.OK else notes.failed or f"pytest: {code}")


class _InFront(MetaPathFinder, Loader):
    """Finds one module, and gives a text of ours for it."""

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


class _Notes:
    """A plugin that notes what failed first. Examples that fail are not made smaller: one that fails is enough."""

    failed = ""

    def pytest_configure(self) -> None:
        settings.register_profile("mutants", parent=settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report.failed, report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report.failed, report.nodeid)

    def _note(self, failed: bool, test: str) -> None:
        self.failed = self.failed or (test if failed else "")
