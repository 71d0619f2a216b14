"""Which variables of the environment settings are read from: each is in some document."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent


class _Asked(dict[str, str]):
    """Nothing is set, and who asks for what is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override] # there is only the default
        self.names.add(name)
        return default


def undocumented(read: Callable[[Mapping[str, str]], object]) -> set[str]:
    """The variables that this asks for, and that no document names."""
    asked = _Asked()
    read(asked)
    assert len(asked.names) > 5
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return asked.names - {word for page in pages for word in re.findall(r"\b[A-Z][A-Z0-9_]+\b", page.read_text())}
