"""For all tests of the simulation: processes of their own for many worlds, that nobody measures."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.pool import Pool

import pytest

__all__ = ["MEASURING", "unmeasured_pool"]

MEASURING = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")  # coverage.py, "Measuring sub-processes"


@contextmanager
def unmeasured_pool() -> Iterator[Pool]:
    """One process for each core. Worlds are there to find bugs: what they cover proves nothing, and costs time."""
    with pytest.MonkeyPatch.context() as patch:
        for name in MEASURING:
            patch.delenv(name, raising=False)
        pool = multiprocessing.get_context("spawn").Pool()
    with pool:
        yield pool
