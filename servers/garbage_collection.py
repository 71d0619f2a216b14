"""Garbage collection of a server, without long pauses for objects that stay.

A collection stops all threads. With 300,000 sessions a collection of all objects takes half a second. So the objects
from the start are frozen: no later collection visits them. For some minutes after the start, full collections are early
and freeze the objects that they find alive.
"""

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["EARLY", "LOAD_TIME", "GarbageCollection"]

LOAD_TIME = 300.0  # s after the start, several times as long as the reading of 300,000 sessions takes
EARLY = 1  # collection of the second generation before a full one; Python's default is 10
FULL = 2  # generation whose collection visits all objects that are not frozen


class GarbageCollection:
    """Set-up of this process's garbage collection, started by each of its programs when it is ready."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = 0.0  # when all sessions are read, at the latest
        self._usual: tuple[int, int, int] | None = None  # thresholds, while early ones are in force

    def start(self) -> None:
        """Freeze the present objects and enable garbage collection; for `LOAD_TIME` full collections are early."""
        self._until = self._clock() + LOAD_TIME
        if self._usual is None:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], EARLY)
            gc.callbacks.append(self._on_collection)
        gc.freeze()
        gc.enable()

    def _on_collection(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase != "stop" or info["generation"] != FULL or self._usual is None:
            return
        if self._clock() < self._until:
            gc.freeze()
        else:
            gc.callbacks.remove(self._on_collection)
            gc.set_threshold(*self._usual)
            self._usual = None
