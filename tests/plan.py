"""Which story runs where: the two tables of docs/testing.md, which say why.

What can differ between loops runs on each of them: sockets that half-close, break, back up or never read; TLS;
descriptors, children, signals, threads and files. What the core alone decides is the same bytes in and the same bytes
out wherever it runs, so it runs once, in the simulator. Between the two is what needs a real host, whichever its loop.
With `--full`, and on loops that are named by `--loop`, everything runs on each.

What the simulator tells of one relay, and of one API server, it tells of three nodes of each, too (`--loop nodes`), but
for the rows of `NODES`.

`threads` is the host, which all loops have, on a bare selector: it tells what its eight orders alone could make differ.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Generic, TypeVar

import pytest
from _pytest.mark import ParameterSet
from attrs import frozen

__all__ = ["NODES", "PLAN", "AsNodes", "Row", "Where", "nodes_row_of", "row_of", "some"]

PAGE = Path(__file__).parents[1] / "docs" / "testing.md"
HowT = TypeVar("HowT", bound=Enum)


class Where(Enum):
    """The worlds of a story; a story that only one kind of world can tell keeps to that kind."""

    ALL = "every loop, threads, simulator"
    EVERY = "every loop, simulator"
    ONE = "asyncio, simulator"
    SIM = "simulator"


class AsNodes(Enum):
    """How a story of the simulator is told of three nodes; without a row, with each connection at another of them."""

    KEPT = "always; a client keeps to the node that it found first"
    LATER = "with `--full`, or if it is named"
    NEVER = "never"


@frozen
class Row(Generic[HowT]):
    """Stories by name, `module` or `module::test*`; the first row that fits counts."""

    stories: tuple[str, ...]
    how: HowT


def _rows(head: str, kind: type[HowT]) -> list[Row[HowT]]:
    """The table of the page that has this head. ValueError if a row says what is no `kind`."""
    _, _, table = PAGE.read_text().partition(f"| Stories | {head} | Why |\n|---|---|---|\n")
    rows: list[Row[HowT]] = []
    for line in table.partition("\n\n")[0].splitlines():
        stories, how, _ = line.removeprefix("| ").split(" | ")
        rows.append(Row(tuple(story.strip("`") for story in stories.split(", ")), kind(how)))
    return rows


PLAN = _rows("Worlds", Where)
NODES = _rows("Of three nodes", AsNodes)


def row_of(module: str, test: str) -> Row[Where] | None:
    """The row of a story; None for one that is not planned, which runs wherever it can."""
    return _first(PLAN, module, test)


def nodes_row_of(module: str, test: str) -> Row[AsNodes] | None:
    """What is said of a story of three nodes, the first that fits."""
    return _first(NODES, module, test)


def _first(rows: list[Row[HowT]], module: str, test: str) -> Row[HowT] | None:
    names = (module, f"{module}::{test}")
    return next((row for row in rows if any(fnmatchcase(name, each) for each in row.stories for name in names)), None)


def some(seeds: range) -> list[ParameterSet]:
    """The first third of these parameters, and the others as what only repeats."""
    repetition = pytest.mark.repetition
    third = -(-len(seeds) // 3)
    return [pytest.param(seed, marks=() if at < third else repetition) for at, seed in enumerate(seeds)]
