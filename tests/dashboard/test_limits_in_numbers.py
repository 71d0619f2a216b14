"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest
from attrs import evolve

from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.limits import value_of

LIMITS = {
    # wire core 9
    "checks.MAX_PREFIX": 64,
    "upstream.MOST_SHOWN": 200,
    # wire api 2.5
    "agent_calls.LARGEST_TURN": 10_000_000,
    # its own, of which no other test knows the number
    "phone_calls.MAX_TAG": 64,
    "service.LIMITS": evolve(DEFAULT_LIMITS, max_connections=512),
    "service.QR_WITHIN": 5.0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("dashboard", name) == value
