"""For all tests of the simulation: processes of their own for many worlds, that nobody measures."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.pool import Pool

import pytest

MEASURING = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")  # coverage.py, "Measuring sub-processes"


@contextmanager
def unmeasured_pool(first: Callable[[], object] | None = None) -> Iterator[Pool]:
    """One process for each core, which begins with a call of `first`.

    Worlds are there to find bugs: what they cover proves nothing, and costs time.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in MEASURING:
            patch.delenv(name, raising=False)
        pool = multiprocessing.get_context("spawn").Pool(initializer=first)
    with pool:
        yield pool
