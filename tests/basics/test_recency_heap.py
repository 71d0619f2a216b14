"""Most-recent lookup, compared with the simplest implementation, and its cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics import recency_heap
from svc_proto.basics.recency_heap import RecencyHeap

STEPS = st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 3)), max_size=60)


@given(STEPS)
def test_latest_equals_a_plain_search(steps: list[tuple[int, int | None]]) -> None:
    kept, plain = RecencyHeap[int](), dict[int, tuple[float, int]]()
    for place, (key, since) in enumerate(steps):
        if since is None:
            kept.discard(key)
            plain.pop(key, None)
        else:
            kept.put(key, float(since))
            plain[key] = since, place
        assert kept.last == max(plain, key=plain.__getitem__, default=None)
        assert len(kept) == len(plain)
        assert all(kept.since(key) == since for key, (since, _) in plain.items())


def test_since_of_a_missing_key_raises_key_error() -> None:
    with pytest.raises(KeyError):
        RecencyHeap[str]().since("a")


def test_outdated_entries_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recency_heap, "_SLACK", 2)
    kept = RecencyHeap[int]()
    for at in range(1_000):
        kept.put(at % 3, float(at))
        assert len(kept._heap) <= 2 * 3 + 2
    assert kept.last == 999 % 3


def test_discarding_the_latest_is_cheap_among_many() -> None:
    kept = RecencyHeap[int]()
    for at in range(10_000):
        kept.put(at, float(at))
    for at in range(9_999, 9_899, -1):
        assert kept.last == at
        kept.discard(at)
    assert kept.last == 9_899
    assert len(kept._heap) == 9_900  # only the removed entries were visited
