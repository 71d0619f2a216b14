"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # its own, which other tests call by name
    "builtin.MAX_SHOWN": 4_000,
    "deltas.MAX_CALLS": 32,
    "deltas.MAX_TEXT": 1024 * 1024,
    "prompt.MAX_SKILLS_SHOWN": 50,
    "skills.MAX_FILE": 256 * 1024,
    "skills.MAX_FOLDERS": 500,
    "skills.MAX_SKILLS": 200,
    "toolbox.MAX_OUTPUT": 64 * 1024,
    "toolbox.MAX_PREVIEW": 120,
    "waiting.LONG": 86_400.0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("agent", name) == value
