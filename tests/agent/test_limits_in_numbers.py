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
    # its own, of which no other test knows the number
    "approvals.MAX_ALWAYS": 1_000,
    "approvals.MAX_PER_SESSION": 100,
    "approvals.MAX_SESSIONS": 1_000,
    "deltas.MAX_NAME": 200,
    "loop.MAX_CARRIED": 4 * 1024 * 1024,
    "memory.CAPS": {"memory": 2_200, "user": 1_375},
    "memory.MAX_SHOWN": 20,
    "pictures.MAX_PICTURES": 8 * 1024 * 1024,
    "skills.MAX_DESCRIPTION": 1_024,
    "skills.MAX_NAMES": 50,
    "tools.demo.MAX_SECONDS": 10,
    "tools.mcp.MAX_PICTURE": 4 * 1024 * 1024,
    "tools.mcp.MAX_PICTURES": 4,
    "tools.phone.SWIPE_PART": {"short": 15, "medium": 30, "long": 45},
    "upstream.RETRIED": (408, 409, 425, 429),
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("agent", name) == value
