"""Limits of this room that documents name, as the numbers that stand there: one compared with itself is not tested."""

from __future__ import annotations

import pytest

from tests.documented import value_of

LIMITS = {
    # wire core 1.6, 1.8, 0.2
    "client_socket.AUTH_TIMEOUT": 30.0,
    "profiles.RESCAN_EVERY": 30.0,
    # wire terminal-voice 1.4, 2.3, 3.3
    "shells.REPLAY_LINES": 200,
    "tui.TERM_PATIENCE": 2.0,
    "voice_upload.MAX_UPLOAD": 25 * 1024 * 1024,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_the_limits_of_this_room_are_those_of_the_documents(name: str, value: float) -> None:
    assert value_of("relay", name) == value
