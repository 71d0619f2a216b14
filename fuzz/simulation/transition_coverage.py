"""Coverage of the product's `(state, trigger) -> state` tables: rows that were used, and rows that never were.

`start_counting` replaces each table of the core by a counting dict, in every module that has it.
"""

import importlib
import pkgutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeAlias

import svc_proto

Rows: TypeAlias = Mapping[str, int]
"""How often each row was walked. A row is named `module.TABLE: state, trigger`."""

_walked: Counter[str] = Counter()


class _CountingTable(dict[tuple[Enum, Enum], Any]):
    """Table that counts the lookups of its rows."""

    def __init__(self, name: str, rows: Mapping[tuple[Enum, Enum], Any]) -> None:
        super().__init__(rows)
        self.names = {key: _row(name, key) for key in rows}

    def __getitem__(self, key: tuple[Enum, Enum]) -> Any:
        following = super().__getitem__(key)
        _walked[self.names[key]] += 1
        return following


def start_counting() -> None:
    """Replace each table of the core by a counting one, permanently in this process."""
    for name, table, holders in _tables():
        if not isinstance(table, _CountingTable):
            watched = _CountingTable(name, table)
            for holder, attribute in holders:
                setattr(holder, attribute, watched)


def drain_counts() -> dict[str, int]:
    """Return the counts since the last call; empty in a process that does not count."""
    rows = dict(sorted(_walked.items()))
    _walked.clear()
    return rows


def all_rows() -> tuple[str, ...]:
    """Return every row of every table of the core."""
    return tuple(_row(name, key) for name, table, _ in _tables() for key in table)


def untaken(walked: Rows) -> tuple[str, ...]:
    """Return the rows of all tables that `walked` does not count."""
    return tuple(row for row in all_rows() if not walked.get(row))


def format_report(walked: Rows) -> str:
    """Return a report: the number of used rows in all; for each table that of its own, followed by its unused rows."""
    missing = dict.fromkeys(untaken(walked))
    lines = [f"rows walked: {len(all_rows()) - len(missing)} of {len(all_rows())}"]
    for name, table, _ in _tables():
        never = [row.partition(": ")[2] for key in table if (row := _row(name, key)) in missing]
        lines.append(f"  {name:<44} {len(table) - len(never):>3} of {len(table):>3}")
        lines += [f"      never: {row}" for row in never]
    return "\n".join(lines)


def _row(name: str, key: tuple[Enum, Enum]) -> str:
    state, trigger = key
    return f"{name}: {state.name}, {trigger.name}"


def _tables() -> Iterator[tuple[str, Mapping[tuple[Enum, Enum], Any], list[tuple[Any, str]]]]:
    found: dict[int, tuple[Mapping[tuple[Enum, Enum], Any], list[tuple[Any, str]]]] = {}
    for name in _modules():
        for attribute, value in vars(sys.modules[name]).items():
            if isinstance(value, dict) and value and all(map(_is_key, value)):
                found.setdefault(id(value), (value, []))[1].append((sys.modules[name], attribute))
    for table, holders in found.values():
        # The defining module of a table is the one that defines its states.
        state, _ = next(iter(table))
        module, attribute = next((each for each in holders if each[0].__name__ == type(state).__module__), holders[0])
        yield f"{module.__name__.removeprefix('svc_proto.')}.{attribute}", table, holders


def _is_key(key: object) -> bool:
    return isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, Enum) for part in key)


def _modules() -> list[str]:
    names = [module.name for module in pkgutil.walk_packages(svc_proto.__path__, "svc_proto.")]
    for name in names:
        importlib.import_module(name)
    return names
