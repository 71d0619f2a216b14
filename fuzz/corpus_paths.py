"""Where the fuzzers keep things."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
CRASHES = HERE / "crashes"  # inputs and scripts in which something does not hold; not in the repository
FOUND = HERE / "found"  # inputs that got further than the corpus; not in the repository


def corpus(name: str) -> Path:
    """The folder with the seeds of a target."""
    return HERE / "corpus" / name


def dictionary(name: str) -> Path:
    """The words that inputs of a target are made of."""
    return HERE / "dictionaries" / f"{name}.dict"
