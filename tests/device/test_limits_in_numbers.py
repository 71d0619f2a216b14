"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # spec "Limits"
    "safety.bounds.MIN_IDLE_MINUTES": 5,
    "safety.bounds.MAX_IDLE_MINUTES": 120,
    "safety.activity.MAX_ACTIVITIES": 100,
    # wire bridge 1.3, 3.4, 5.5, 5.7, 5.8
    "phone.STATUS_EVERY": 30.0,
    "performer.UPLOAD_WITHIN": 15.0,
    "safety.bounds.DEFAULT_TIMEOUT": 25.0,
    "safety.bounds.MIN_TIMEOUT": 10.0,
    "safety.bounds.MAX_TIMEOUT": 60.0,
    "safety.bounds.DEFAULT_IDLE_MINUTES": 30,
    "safety.activity.MAX_METHOD": 24,
    "safety.activity.MAX_SUMMARY": 80,
    "safety.activity.MAX_RESULT": 140,
    # wire core 1.6
    "phone.OPEN_WITHIN": 15.0,
    "phone.SIGN_IN_WITHIN": 15.0,
    "phone.BLOCKED_PAUSE": 300.0,
    # its own, which other tests call by name
    "safety.blocklist.MAX_BLOCKED": 1_000,
    "safety.gate.MAX_UPLOADS": 64,
    "safety.verbs.MAX_VERBS": 200,
    # its own, of which no other test knows the number
    "arguments.MAX_NAME": 100,
    "fetching.DOWNLOAD_WITHIN": 120.0,
    "performer.LONGEST_PATH": 100,
    "performer.MOST_REMEMBERED": 1024,
    "phone.FIRST_PAUSE": 1.0,
    "phone.LONGEST_BLOCK": 3600.0,
    "phone.LONGEST_PAUSE": 30.0,
    "phone.LONGEST_REASON": 200,
    "screen.LARGEST": 16_384,
    "screen.LONGEST_LOOK": 3.0,
    "preferences.MIB": 1024 * 1024,
    "safety.rules._MAX_QUOTE": 200,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("device", name) == value
