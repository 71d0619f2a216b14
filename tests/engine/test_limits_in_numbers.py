"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # wire core 0.2, wire terminal-voice 1.6, decision 10
    "router.BODY_LIMIT": 2 * 1024 * 1024,
    "child.HANGUP_PATIENCE": 1.0,
    "stream.FILE_STEP": 1024 * 1024,
    # its own, which other tests call by name
    "readers.MAX_UNREAD": 64 * 1024,
    "readers.OVERHEAD": 64,
    "readers.SILENCE": 300.0,
    "reload.RELOAD_WITHIN": 10.0,
    # its own, of which no other test knows the number
    "child.MAX_OUTPUT": 1024 * 1024,
    "client_channel.MAX_ANSWER": 8 * 1024 * 1024,
    "core.MAX_REMEMBERED": 64,
    "core.STOP_MARGIN": 0.25,
    "answers.BODILESS": (204, 304),
    "stream.PIECE": 64 * 1024,
    "answers.SPILL": 16 * 1024,
    "door.CROWD": 64,
    "door.GIVE_BACK_AFTER": 1.0,
    "door.HEAD": 1024,
    "door.HEAD_IN_A_CROWD": 32 * 1024,
    "door.WORTH_IT": 8 * 1024 * 1024,
    "http2_channel.HEADS": 8,
    "http2_channel.LANE": 16 * 1024,
    "message.CODES": {
        408: "request_timeout",
        413: "body_too_large",
        431: "head_too_large",
        501: "not_implemented",
        505: "version_not_supported",
    },
    "stream.MOST_FOR_STEP": 86_400.0,
    "stream.PATIENCE": 60.0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("engine", name) == value
