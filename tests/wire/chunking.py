"""Cuts of byte streams: no decoder's result may depend on them."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

Cuts = list[int]


def cuts() -> st.SearchStrategy[Cuts]:
    """Return a strategy for piece sizes, used in turn: one byte at a time, all at once, and anything between."""
    return st.just([1]) | st.just([1_000_000]) | st.lists(st.integers(1, 40), min_size=1, max_size=8)


def cut(data: bytes, sizes: Cuts) -> Iterator[bytes]:
    """Yield the data in pieces of these sizes, which are repeated."""
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        yield data[at : at + size]
        at += size
        turn += 1
