"""Clock and entropy for the tests of sessions."""

from collections.abc import Callable
from random import Random

from svc_proto.basics.moment import Moment

WALL = 1_795_000_000.0  # epoch seconds at which these tests begin


def at(seconds: float) -> Moment:
    """Return the moment `seconds` after the start of a test, on both clocks."""
    return Moment(seconds, WALL + seconds)


def source(seed: int = 1) -> Callable[[int], bytes]:
    """Return entropy that is the same on every run."""
    return Random(seed).randbytes
