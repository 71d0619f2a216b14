"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # its own, which other tests call by name
    "entropy.CODE_LENGTH": 6,
    "pcm.FULL_SCALE": 32_767,
    "pcm.MAX_LEVELS": 64,
    "quoting.MAX_QUOTED": 200,
    "validate.MAX_DIGITS": 19,
    "validate.MAX_SECONDS": 10 * 365 * 86_400.0,
    "visible.MOST_SHOWN": 200,
    # its own, of which no other test knows the number
    "strict_json.FREE": 16 * 1024,
    "strict_json.MAX_ESCAPES": 1_500_000,
    "strict_json.MAX_NAME_SHOWN": 40,
    "strict_json.MAX_STRINGS": 150_000,
    "strict_json.MAX_WORK": 40_000_000,
    "strict_json._BYTE_COST": 30,
    "strict_json._COST": {
        b"{": 300,
        b"}": 100,
        b"[": 50,
        b"]": 50,
        b":": 400,
        b",": 30,
        b".": 400,
        b"e": 400,
        b"E": 400,
    },
    "timers.SWEEP_FROM": 64,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("basics", name) == value
