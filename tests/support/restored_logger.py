"""Restores a logger that a test sets up, so that the tests after it in the same process find it unchanged."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restored_logger(name: str) -> Iterator[None]:
    """Restore the handlers, the level and the propagation of the logger `name` at the end."""
    logger = logging.getLogger(name)
    before = logger.handlers[:], logger.level, logger.propagate
    try:
        yield
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
