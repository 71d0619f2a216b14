"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # its own, which other tests call by name
    "entropy.CODE_LENGTH": 6,
    "quoting.MAX_QUOTED": 200,
    "validate.MAX_SECONDS": 10 * 365 * 86_400.0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("basics", name) == value
