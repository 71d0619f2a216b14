"""Tables of test values, one row per line.

    {provider: grok, voice: rex} -> {provider: xai_tts, voice: rex}

Cells are YAML, separated by arrows; an indented line continues the row before it.
"""

from typing import Any

import yaml


def rows(table: str) -> list[list[Any]]:
    """Return all rows, for `parametrize`."""
    lines = table.strip().replace("\n ", " ").splitlines()
    return [[yaml.safe_load(cell) for cell in line.split(" -> ")] for line in lines]
