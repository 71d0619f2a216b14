"""Selection of tests and loops, by the tables of docs/explanation/testing-strategy.md."""

from collections.abc import Collection, Iterable
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Generic, TypeVar

import pytest
from _pytest.mark import ParameterSet
from attrs import frozen

HERE = Path(__file__).parent.parent
PAGE = HERE.parent / "docs/explanation/testing-strategy.md"
PLAIN = "asyncio"  # where any real loop is enough
FULL_ONLY = frozenset({"bench", "browser", "clients", "conformance", "examples", "fuzz", "servers"})
LOOP_FIXTURES = ("runtime", "any_loop")
HowT = TypeVar("HowT", bound=Enum)


class ScenarioEnvironments(Enum):
    """Environments in which a test of `tests.loops` runs in the full suite; values are words of the page's table."""

    ALL = "every loop, threads, simulator"
    EVERY = "every loop, simulator"
    ONE = "asyncio, simulator"
    SIM = "simulator"


class AsNodes(Enum):
    """Choice of when a simulator test also runs with three nodes in the full suite.

    A test without a row always does, and each of its connections goes to the next node.
    """

    NAMED = "if `--loop nodes` is given"
    NEVER = "never"


@frozen
class PlanRow(Generic[HowT]):
    """Row of a table: tests, as `module` or `module::test*`, and how they run; the first row that fits counts."""

    stories: tuple[str, ...]
    how: HowT


def _rows(head: str, kind: type[HowT]) -> list[PlanRow[HowT]]:
    """Parse the table of the page with this head. Raise ValueError if a cell is no value of `kind`."""
    _, _, table = PAGE.read_text().partition(f"| Stories | {head} | Why |\n|---|---|---|\n")
    rows: list[PlanRow[HowT]] = []
    for line in table.partition("\n\n")[0].splitlines():
        stories, how, _ = line.removeprefix("| ").split(" | ")
        rows.append(PlanRow(tuple(story.strip("`") for story in stories.split(", ")), kind(how)))
    return rows


PLAN = _rows("Worlds", ScenarioEnvironments)
NODES = _rows("Of three nodes", AsNodes)


def row_of(module: str, test: str) -> PlanRow[ScenarioEnvironments] | None:
    """Return the first row of the plan that fits a test, or None."""
    return _first(PLAN, module, test)


def nodes_row_of(module: str, test: str) -> PlanRow[AsNodes] | None:
    """Return the first row of `NODES` that fits a test, or None."""
    return _first(NODES, module, test)


def _first(rows: list[PlanRow[HowT]], module: str, test: str) -> PlanRow[HowT] | None:
    names = (module, f"{module}::{test}")
    return next((row for row in rows if any(fnmatchcase(name, each) for each in row.stories for name in names)), None)


def short_loop(folder: str, module: str, test: str) -> str:
    """Return the loop of a test in the short suite.

    It is `sim` for a test of `tests.loops` whose row plans the simulator alone, else asyncio.
    """
    row = row_of(module, test) if folder == "tests.loops" else None
    return "sim" if row is not None and row.how is ScenarioEnvironments.SIM else PLAIN


def is_in_short_suite(item: pytest.Item, named: Collection[Path] = ()) -> bool:
    """Report whether `make test` runs a test; `named` are files and folders of the command line.

    A named folder of `FULL_ONLY` is not left out. For a named file, the markers of its tests do not count either.
    """
    if item.path not in named and not _is_short(item, named):
        return False
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return True
    loops = [item.callspec.params[name] for name in LOOP_FIXTURES if name in item.callspec.params]
    package, _, module = item.module.__name__.rpartition(".")
    return all(loop == short_loop(package, module, item.originalname) for loop in loops)


def _is_short(item: pytest.Item, named: Collection[Path]) -> bool:
    if item.get_closest_marker("full") or item.get_closest_marker("needs"):
        return False
    folder = item.nodeid.removeprefix("tests/").partition("/")[0]
    is_named = any(HERE / folder in (path, *path.parents) for path in named)
    return folder not in FULL_ONLY or is_named or item.get_closest_marker("short") is not None


def some(values: Iterable[object], every: int = 3) -> list[ParameterSet]:
    """Return the values as pytest parameters, of which the short suite runs the first of each `every` values."""
    return [pytest.param(value, marks=() if at % every == 0 else pytest.mark.full) for at, value in enumerate(values)]
