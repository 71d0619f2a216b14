"""Limits of this room that documents name, as the numbers that stand there: one compared with itself is not tested."""

from __future__ import annotations

import pytest

from tests.documented import value_of

LIMITS = {
    # wire core 0.2, wire terminal-voice 1.6, ARCHITECTURE decision 10
    "router.BODY_LIMIT": 2 * 1024 * 1024,
    "child.HANGUP_PATIENCE": 1.0,
    "stream.FILE_STEP": 1024 * 1024,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_the_limits_of_this_room_are_those_of_the_documents(name: str, value: float) -> None:
    assert value_of("engine", name) == value
