"""Figures as values, printed as tables for people and written as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import asdict, field, frozen
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

__all__ = ["Column", "Row", "Table", "show", "write_json"]


@frozen
class Column:
    """A measured quantity. `key` names it in JSON, unit included; `digits` is for people."""

    key: str
    heading: str
    digits: int = 1


@frozen
class Row:
    """A contestant, or a variant of a measurement, and its figures; a missing key was not measured."""

    name: str
    values: dict[str, float]


@frozen
class Table:
    """Figures of one benchmark, a row for each contestant or variant. `notes` are needed to interpret the figures."""

    section: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = field(factory=tuple)


def show(table: Table, console: Console) -> None:
    """Print one table and its notes."""
    grid = RichTable(title=table.title, title_justify="left", title_style="bold")
    grid.add_column("", no_wrap=True)
    for column in table.columns:
        grid.add_column(column.heading, justify="right")
    for row in table.rows:
        grid.add_row(escape(row.name), *(_cell(row, column) for column in table.columns))
    console.print(grid)
    for note in table.notes:
        console.print(f"  {note}", markup=False, highlight=False, soft_wrap=True)
    console.print()


def write_json(tables: Iterable[Table], machine: dict[str, object], path: Path) -> None:
    """Write machine and tables to a JSON file, in full precision."""
    document = {"machine": machine, "tables": [asdict(table) for table in tables]}
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _cell(row: Row, column: Column) -> str:
    value = row.values.get(column.key)
    return "-" if value is None else f"{value:,.{column.digits}f}"
