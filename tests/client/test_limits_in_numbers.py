"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # spec "Limits"
    "doctor.PROBE_WITHIN": 4.0,
    "voice.MAX_TEXT": 5000,
    # wire core 0.1, 0.4, 1.6, 10.1, 10.6
    "spans.NEVER": 0,
    "calls.MOST_SHOWN": 200,
    "link.SIGN_IN_WITHIN": 15.0,
    "report.FULLY_MASKED": 8,
    "operator.PROBE_WITHIN": 1.0,
    "operator.REGISTER_WITHIN": 2.0,
    "shown.PIN_SHOWN": 12,
    # wire terminal-voice 1.3, 3.3, 6.4, 6.5, 9
    "shell.ATTACH_WITHIN": 30.0,
    "voice.MAX_RECORDING": 25 * 1024 * 1024,
    "talk.CHUNK": 6400,
    "talk.TURN_WITHIN": 300.0,
    "talk_ends.MAX_LINE": 5000,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("client", name) == value
