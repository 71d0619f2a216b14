"""Cuts of byte streams into pieces, for tests of incremental decoders."""

from collections.abc import Iterator

from hypothesis import strategies as st

Cuts = list[int]


def cuts() -> st.SearchStrategy[Cuts]:
    """Return a strategy for lists of piece sizes, among them [1] and one that leaves the data whole."""
    return st.just([1]) | st.just([1_000_000]) | st.lists(st.integers(1, 40), min_size=1, max_size=8)


def cut(data: bytes, sizes: Cuts) -> Iterator[bytes]:
    """Yield the data in pieces of these sizes; after the last size the first one follows again."""
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        yield data[at : at + size]
        at += size
        turn += 1
