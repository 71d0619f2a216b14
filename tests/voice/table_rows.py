"""Tables of values, a row a line:

    {provider: grok, voice: rex} -> {provider: xai_tts, voice: rex}

Cells are YAML, parted by arrows; what is indented goes on with the row before it.
"""

from __future__ import annotations

from typing import Any

import yaml


def rows(table: str) -> list[list[Any]]:
    """All of them, for `parametrize`."""
    lines = table.strip().replace("\n ", " ").splitlines()
    return [[yaml.safe_load(cell) for cell in line.split(" -> ")] for line in lines]
