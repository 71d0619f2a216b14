"""Limits of this room that documents name, as the numbers that stand there: one compared with itself is not tested."""

from __future__ import annotations

import pytest

from tests.documented import value_of

LIMITS = {
    # wire core 9
    "checks.MAX_PREFIX": 64,
    "upstream.MOST_SHOWN": 200,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_the_limits_of_this_room_are_those_of_the_documents(name: str, value: float) -> None:
    assert value_of("dashboard", name) == value
