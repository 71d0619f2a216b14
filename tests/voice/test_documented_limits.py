"""Limits of this room that documents name, as the numbers that stand there: one compared with itself is not tested."""

from __future__ import annotations

import pytest

from tests.documented import value_of

LIMITS = {
    # spec "Limits"
    "text.MAX_TEXT": 5000,
    # wire terminal-voice 3.3, 4.1, 4.4, 4.7, 4.10
    "providers.vendor.MAX_UPLOAD": 25 * 1024 * 1024,
    "providers.discovery.MAX_NAME": 160,
    "providers.discovery.WITHIN": 5.0,
    "providers.discovery.MAX_PAGES": 20,
    "providers.vendor.PIECE": 4096,
    "providers.vendor.WITHIN": 60.0,
    "socket.MAX_MESSAGE": 2 * 1024 * 1024,
    "socket.PING_EVERY": 20.0,
    # wire terminal-voice 6.1, 6.2, 6.7, 6.11, 7, 9
    "event_log.KEEP_DAYS": 14,
    "agent.instructions.MAX_READ": 20,
    "agent.instructions.MAX_KEPT": 14,
    "agent.instructions.MAX_CONTENT": 1500,
    "agent.instructions.MAX_SOURCE": 80,
    "agent.instructions.MAX_PERSONA": 6000,
    "agent.chat_run.HISTORY_WITHIN": 5.0,
    "agent.chat_run.CONNECT_WITHIN": 10.0,
    "agent.tools.MAX_TASK": 5000,
    "provider_link.CONNECT_WITHIN": 60.0,
    "provider_link.PING_EVERY": 20.0,
    "auth.PROBE_TIMEOUT": 5.0,
    "auth.CACHE_SECONDS": 60.0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_the_limits_of_this_room_are_those_of_the_documents(name: str, value: float) -> None:
    assert value_of("voice", name) == value
