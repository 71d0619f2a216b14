"""Pool of worker processes for tests with many simulations, without coverage measurement."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.pool import Pool

import pytest

MEASURING = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")  # coverage.py, "Measuring sub-processes"


@contextmanager
def unmeasured_pool(first: Callable[[], object] | None = None) -> Iterator[Pool]:
    """Yield a pool of processes without coverage measurement, each initialized by a call of `first`, if given."""
    with pytest.MonkeyPatch.context() as patch:
        for name in MEASURING:
            patch.delenv(name, raising=False)
        pool = multiprocessing.get_context("spawn").Pool(initializer=first)
    with pool:
        yield pool
