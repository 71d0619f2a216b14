"""Test of a server's garbage collection while sessions are read."""

import gc
from collections.abc import Iterator

import pytest

from servers.garbage_collection import EARLY, LOAD_TIME, GarbageCollection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    callbacks, threshold = list(gc.callbacks), gc.get_threshold()
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_objects_that_a_full_collection_finds_alive_are_frozen_while_sessions_are_read() -> None:
    now, threshold = [5.0], (700, 10, 9)
    gc.set_threshold(*threshold)
    collection = GarbageCollection(lambda: now[0])
    collection.start()
    now[0] += 60.0
    collection.start()  # by another program of this process
    assert gc.get_threshold() == (700, 10, EARLY)
    loaded: list[dict[int, list[int]]] = [{n: []} for n in range(1_000)]
    before = gc.get_freeze_count()
    now[0] += LOAD_TIME - 1.0
    gc.collect(1)
    assert gc.get_freeze_count() <= before
    gc.collect()
    assert gc.get_freeze_count() >= before + 2 * len(loaded)
    now[0] += 1.0
    frozen = gc.get_freeze_count()
    later: list[dict[int, list[int]]] = [{n: []} for n in range(1_000)]
    gc.collect()
    gc.collect()
    assert gc.get_freeze_count() <= frozen
    assert gc.get_threshold() == threshold
    assert later
