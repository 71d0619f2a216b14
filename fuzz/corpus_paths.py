"""Paths of the fuzzers' corpora and findings."""

from pathlib import Path

HERE = Path(__file__).parent
CRASHES = HERE / "crashes"  # inputs and scripts with a violation; not in the repository
FOUND = HERE / "found"  # inputs with new coverage; not in the repository
# Targets that read the same kind of input as another target, and share its seeds and words.
SHARED = {"fast_path": "http1", "relay": "http1", "call": "answer", "frames": "websocket"}


def corpus(name: str) -> Path:
    """Return the folder with the seeds of a target."""
    return HERE / "corpus" / SHARED.get(name, name)


def dictionary(name: str) -> Path:
    """Return the path of the dictionary of a target."""
    return HERE / "dictionaries" / f"{SHARED.get(name, name)}.dict"
