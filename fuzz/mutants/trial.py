"""A mutant before its judges: the module's own tests, those of its room, and, if asked, those of the rooms that use it.

What they miss is shown to mypy, which every change has to pass as well. Each try is a process of its own, in which an
import hook puts the changed text in front of the module. Nothing is written into the tree: what Python and pytest
compile is kept elsewhere.
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
OPTIONS = ["-x", "-q", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider"]


class Fate(StrEnum):
    """How it went."""

    OWN = "killed by its own file"
    ROOM = "killed by its room"
    NEIGHBOUR = "killed by a neighbour"
    TYPES = "refused by its types"
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
    wider: bool = False  # whether neighbours are asked
    shown: bool = False  # whether pytest may speak
    _sound: set[str] = field(factory=set)

    def judge(self, mutant: Mutant) -> Verdict:
        """Ask one after another until somebody notices. `UnsoundError` if somebody always complains."""
        module = mutant.module
        stages = [(Fate.OWN, self.tree.own_tests(module)), (Fate.ROOM, self.tree.room_tests(module))]
        if self.wider:
            stages.append((Fate.NEIGHBOUR, self.tree.neighbours_tests(module)))
        text = mutant.text(self.tree.path(module).read_bytes())
        for fate, paths in stages:
            tests = [str(path.relative_to(self.tree.root)) for path in paths]
            by = self.attempt(module, text, tests) if tests else None
            if by is not None:
                self._confirm(module, by.partition("::")[0] if by.startswith("tests") else tests[0])
                return Verdict(mutant, fate, by)
        refused = self._refused_by_types(module, text)
        return Verdict(mutant, Fate.TYPES, refused) if refused else Verdict(mutant, Fate.SURVIVED)

    def _refused_by_types(self, module: str, text: bytes) -> str:
        path = str(self.tree.path(module))
        with NamedTemporaryFile(suffix=".py") as shadow:
            shadow.write(text)
            shadow.flush()
            words = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--shadow-file", path, shadow.name, path]
            said = subprocess.run(words, cwd=self.tree.root, capture_output=True, text=True, check=False)
        return said.stdout.partition("\n")[0] if said.returncode == 1 else ""

    def _confirm(self, module: str, test: str) -> None:
        if test not in self._sound:
            by = self.attempt(module, None, [test])
            if by is not None:
                raise UnsoundError(f"fails without a mutant, too: {by}")
            self._sound.add(test)

    def attempt(self, module: str, text: bytes | None, tests: Sequence[str]) -> str | None:
        """Who complains, if anybody does."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(WARM)
        ours, theirs = context.Pipe(duplex=False)
        arguments = (theirs, self.tree, module, text, tests, self.compiled, self.shown)
        process = context.Process(target=_run_tests, args=arguments, daemon=True)
        process.start()
        theirs.close()
        try:
            answer: str | None = ours.recv() if ours.poll(self.limit) else "the time limit"
        except EOFError:
            answer = "the end of the process"
        process.kill()
        process.join()
        return answer


def _run_tests(
    answer: Connection, tree: Tree, module: str, text: bytes | None, tests: Sequence[str], compiled: str, shown: bool
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
    code = pytest.main([*OPTIONS, *tests], [notes])
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
