"""Tables of test values, one row per line.

    {provider: grok, voice: rex} -> {provider: xai_tts, voice: rex}

Cells are YAML, separated by arrows; an indented line continues the row before it. A file `*.rows` has several tables:
the name of each stands before its indented rows.
"""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

FOLDER = Path(__file__).parent


def rows(table: str) -> list[list[Any]]:
    """Return all rows, for `parametrize`."""
    lines = table.strip().replace("\n ", " ").splitlines()
    return [[yaml.safe_load(cell) for cell in line.split(" -> ")] for line in lines]


def read_tables(name: str) -> dict[str, list[list[Any]]]:
    """Return the rows of each table in a file below `tests/voice`, by the name of the table."""
    parts = re.split(r"^(\S.*)\n", (FOLDER / f"{name}.rows").read_text("utf-8"), flags=re.MULTILINE)
    return {title: rows(dedent(body)) for title, body in zip(parts[1::2], parts[2::2], strict=True)}
