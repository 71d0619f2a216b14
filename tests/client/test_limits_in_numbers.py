"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # spec "Limits"
    "doctor.PROBE_WITHIN": 4.0,
    # wire core 0.1, 0.4, 1.6, 10.1, 10.6
    "spans.NEVER": 0,
    "report.FULLY_MASKED": 8,
    "operator.PROBE_WITHIN": 1.0,
    "operator.REGISTER_WITHIN": 2.0,
    "shown.PIN_SHOWN": 12,
    # wire terminal-voice 1.3, 3.3, 6.4, 6.5, 9
    "shell.ATTACH_WITHIN": 30.0,
    "voice.MAX_RECORDING": 25 * 1024 * 1024,
    "talk.CHUNK": 6400,
    "talk.TURN_WITHIN": 300.0,
    # its own, of which no other test knows the number
    "chat.PREVIEW": 120,
    "chore.INTERRUPTED": 130,
    "desk.STORE_WITHIN": 10.0,
    "exec_output.KEPT": 64,
    "exec_output.MAX_ENDS": 9,
    "exec_output.MAX_TYPED": 4_000,
    "mesh.WITHIN": 1.5,
    "problem.MISUSED": 2,
    "remote.LIST_WITHIN": 10.0,
    "remote.PHONE_WITHIN": 60.0,
    "remote.PIECE": 4 * 1024 * 1024,
    "talk.MAX_NEWS": 10_000,
    "talk.MAX_SECONDS": 120.0,
    "talk.MAX_TYPED": 100,
    "talk.OPEN_WITHIN": 75.0,
    "talk.RECORDER_RATE": 16_000,
    "talk_ends.MAX_BYTES": 4 * 5_000,
    "talk_ends.PLAYED_WITHIN": 900.0,
    "voice.LISTEN_WITHIN": 900.0,
    "voice.SPEAK_WITHIN": 180.0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("client", name) == value
