"""Modules of a package by subpackage, the tests of each, and a sample of all mutants."""

import re
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain, count
from pathlib import Path

from attrs import frozen

from fuzz.mutants.mutators import Mutant, MutationKind, mutants_of

SLOW = ("stateful", "bad_input")  # in the names of test files: they run last


@frozen
class SourceTree:
    """Package with its tests in the same layout: `tests/relay/test_access.py` has the tests of `relay/access.py`."""

    root: Path
    package: str = "svc_proto"

    def modules(self) -> list[str]:
        """Return the names of all modules but `__init__`, below the package."""
        paths = (self.root / self.package).rglob("*.py")
        names = (path.relative_to(self.root / self.package).with_suffix("").parts for path in paths)
        return sorted(".".join(parts) for parts in names if parts[-1] != "__init__")

    def path(self, module: str) -> Path:
        """Return the path of a module."""
        return self.root.joinpath(self.package, *module.split(".")).with_suffix(".py")

    def mutants(self, module: str) -> list[Mutant]:
        """Return all mutants of a module."""
        return mutants_of(module, self.path(module).read_bytes())

    def sample(self, size: int, seed: int) -> list[Mutant]:
        """Return a sample of mutants, as equally spread over subpackages and kinds as possible.

        A larger sample starts with the smaller one of the same seed.
        """
        packages: dict[str, dict[MutationKind, list[Mutant]]] = {}
        for module in self.modules():
            cells = packages.setdefault(_package_of(module), {kind: [] for kind in MutationKind})
            for mutant in self.mutants(module):
                cells[mutant.kind].append(mutant)
        for cell in chain.from_iterable(cells.values() for cells in packages.values()):
            cell.sort(key=lambda each: sha256(f"{seed} {each.id}".encode()).digest())
        return list(_rounds([list(cells.values()) for cells in packages.values()], size, seed))

    # --- tests, in the order of their chance to fail ---

    def own_tests(self, module: str) -> list[Path]:
        """Return a list with the path of the module's test file, which may not exist."""
        *folders, name = module.split(".")
        return [self.root.joinpath("tests", *folders, f"test_{name}.py")]

    def package_tests(self, module: str) -> list[Path]:
        """Return the test files of the subpackage, without the module's own."""
        own = set(self.own_tests(module))
        return self._sorted(module, {path for path in self._tests_of(_package_of(module)) if path not in own})

    def importer_tests(self, module: str) -> list[Path]:
        """Return the test files of the other subpackages whose modules mention the subpackage of this module."""
        package = _package_of(module)
        wanted = f"{self.package}.{package or module}"
        others = {_package_of(each) for each in self.modules() if wanted in self.path(each).read_text()} - {package}
        return self._sorted(module, set(chain.from_iterable(self._tests_of(each) for each in others)))

    def users(self, module: str) -> list[Path]:
        """Return the paths of the module, and of the modules that import from it."""
        folder, _, name = f"{self.package}.{module}".rpartition(".")
        imports = re.compile(rf"^ *(from {folder}\.{name} import|from {folder} import .*\b{name}\b)", re.MULTILINE)
        return [path for path in map(self.path, self.modules()) if imports.search(path.read_text())] + [
            self.path(module)
        ]

    def rule_tests(self) -> list[Path]:
        """Return those that exist of two test files with rules for all modules, which name none of them."""
        return self._existing("tests/test_constants.py", "tests/test_core_classes.py")

    def scenario_tests(self) -> list[Path]:
        """Return the paths of `rule_tests`, and those that exist of the tests on the loops and the simulations."""
        return self.rule_tests() + self._existing("tests/loops", "fuzz/mutants/simulation_sample.py")

    def tests(self) -> list[Path]:
        """Return the test files of all modules and subpackages, and `scenario_tests`."""
        packages = {_package_of(module) for module in self.modules()}
        return (
            sorted(path for package in packages for path in self._tests_of(package) if path.exists())
            + self.scenario_tests()
        )

    def _existing(self, *paths: str) -> list[Path]:
        return [self.root / path for path in paths if (self.root / path).exists()]

    def _tests_of(self, package: str) -> list[Path]:
        if package:
            return list((self.root / "tests" / package).rglob("test_*.py"))
        return list(chain.from_iterable(self.own_tests(module) for module in self.modules() if "." not in module))

    def _sorted(self, module: str, paths: set[Path]) -> list[Path]:
        mentioned, family = f"{self.package}.{module} ", f"test_{module.rpartition('.')[2]}"

        def distance(path: Path) -> tuple[bool, bool, bool, Path]:
            slow = any(word in path.name for word in SLOW)
            return slow, mentioned not in path.read_text(), not path.name.startswith(family), path

        return sorted(paths, key=distance)


def _package_of(module: str) -> str:
    return module.split(".")[0] if "." in module else ""


def _rounds(packages: list[list[list[Mutant]]], size: int, seed: int) -> Iterator[Mutant]:
    left = min(size, sum(len(cell) for cells in packages for cell in cells))
    for turn in count(seed):
        for number, cells in enumerate(packages):
            if not left:
                return
            at = (turn + number) % len(cells)
            cell = next((cell for cell in cells[at:] + cells[:at] if cell), None)
            if cell is not None:
                yield cell.pop(0)
                left -= 1
