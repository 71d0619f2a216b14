"""Garbage collection of a server, without long pauses for objects that stay.

A collection stops all threads. With 300,000 sessions a collection of all objects takes half a second. So the objects
from the start are frozen: no later collection visits them. For some minutes after the start a node of a cluster reads
its sessions. In this time each full collection is early, so that it is short, and freezes the objects that it has found
alive. Frozen objects are freed when their last reference is removed, except for those in reference cycles.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["LOAD_TIME", "start_collections"]

LOAD_TIME = 300.0  # s after the start, several times as long as the reading of 300,000 sessions takes
EARLY = 1  # collection of the second generation before a full one; Python's default is 10


def start_collections(clock: Callable[[], float] = time.monotonic) -> None:
    """Freeze the present objects and enable garbage collection, with short collections for `LOAD_TIME`."""
    until = clock() + LOAD_TIME
    young, middle, old = gc.get_threshold()

    def on_collection(phase: str, info: Mapping[str, Any]) -> None:
        if phase != "stop" or info["generation"] < len(gc.get_threshold()) - 1:
            return
        if clock() < until:
            gc.freeze()
        else:
            gc.callbacks.remove(on_collection)
            gc.set_threshold(young, middle, old)

    gc.callbacks.append(on_collection)
    gc.set_threshold(young, middle, EARLY)
    gc.freeze()
    gc.enable()
