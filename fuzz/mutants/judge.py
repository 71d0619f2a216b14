"""Judgement of a mutant by tests, mypy and simulations."""

import os
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import NamedTemporaryFile

from attrs import define, evolve, field, frozen

from fuzz.mutants.collected_tests import CollectedTests, NeedsFreshProcessError
from fuzz.mutants.mutators import Mutant
from fuzz.mutants.source_tree import SourceTree
from fuzz.mutants.trial_process import FailsWithoutMutantError, TrialRequest, alone

# in the names of simulator tests, of simulations, and of tests with rules for all modules
STORIES = ("sim", "test_constants", "test_core_classes")
FAR = 4.0  # factor of the time limit for the many tests of packages and whole programs


class MutantResult(StrEnum):
    """Result of a mutant: which check failed, or that the mutant survived or is equal."""

    OWN = "killed by its own file"
    PACKAGE = "killed by its package"
    TYPES = "refused by its types"
    IMPORTER = "killed by an importing package"
    SCENARIO = "killed by a scenario"
    SURVIVED = "survived"
    EQUAL = "equal"


@frozen
class Verdict:
    """A mutant with its result, and the test or message that gave the result."""

    mutant: Mutant
    fate: MutantResult
    by: str = ""  # the test that failed, or the message of mypy


@define
class Judge:
    """Runner of tests and mypy for mutants of a tree, until one of them fails."""

    tree: SourceTree
    scratch: str  # a folder for bytecode and temporary files
    limit: float = 300.0  # s of a trial
    narrow: bool = False  # whether only own tests, those of its package, and mypy run
    shown: bool = False  # whether the output of pytest is shown
    collected: CollectedTests | None = None  # used first, where a fork is enough
    _sound: set[str] = field(factory=set)

    def judge(self, mutant: Mutant) -> Verdict:
        """Run tests and mypy in steps until one of them fails; return the verdict.

        Without `collected`, a failing test is repeated without the mutant: raise `FailsWithoutMutantError` if it fails
        again. `collected` leaves such tests out.
        """
        module = mutant.module
        text = mutant.text(self.tree.path(module).read_bytes())
        for fate, paths in (
            (MutantResult.OWN, self.tree.own_tests(module)),
            (MutantResult.PACKAGE, self.tree.package_tests(module)),
        ):
            if by := self._noticed(module, text, paths, self.limit):
                return Verdict(mutant, fate, by)
        if by := self._refused_by_types(module, text):
            return Verdict(mutant, MutantResult.TYPES, by)
        if not self.narrow:
            if by := self._noticed(module, text, self.tree.importer_tests(module), FAR * self.limit):
                return Verdict(mutant, MutantResult.IMPORTER, by)
            if by := self._noticed(module, text, self.tree.scenario_tests(), FAR * self.limit, STORIES):
                return Verdict(mutant, MutantResult.SCENARIO, by)
        return Verdict(mutant, MutantResult.SURVIVED)

    def _noticed(
        self, module: str, text: bytes, paths: Sequence[Path], limit: float, words: Sequence[str] = ()
    ) -> str | None:
        request = TrialRequest(module, text, [str(path.relative_to(self.tree.root)) for path in paths], limit, words)
        if self.collected is not None:
            try:
                return self.collected.run_trial(request)
            except NeedsFreshProcessError as unable:
                return self._alone(unable.request) if unable.request.tests else None
        by = self._alone(request) if paths else None
        if by is not None:
            named = by.startswith(("tests/", "fuzz/"))
            self._confirm(evolve(request, text=None, tests=[by.partition("::")[0] if named else request.tests[0]]))
        return by

    def _alone(self, request: TrialRequest) -> str | None:
        return alone(self.tree, request, self.scratch, shown=self.shown)

    def _refused_by_types(self, module: str, text: bytes) -> str:
        path = str(self.tree.path(module))
        with NamedTemporaryFile(suffix=".py") as shadow:
            shadow.write(text)
            shadow.flush()
            words = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--shadow-file", path, shadow.name, path]
            said = subprocess.run(words, cwd=self.tree.root, capture_output=True, text=True, check=False)
        return said.stdout.partition("\n")[0] if said.returncode == 1 else ""

    def _confirm(self, request: TrialRequest) -> None:
        (test,) = request.tests
        if test not in self._sound:
            by = self._alone(request)
            if by is not None:
                raise FailsWithoutMutantError(f"fails without a mutant, too: {by}")
            self._sound.add(test)
