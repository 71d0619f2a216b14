"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

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
    # its own, which other tests call by name
    "auth.MAX_CACHED": 1_000,
    "auth.MAX_PROBES": 64,
    "event_log.MAX_WAITING": 1024 * 1024,
    "event_log.WRITE_AT": 64 * 1024,
    "event_log.MAX_LOG": 32 * 1024 * 1024,
    "event_log.MAX_COPY": 64 * 1024 * 1024,
    "provider_link.MAX_BYTES": 16 * 1024 * 1024,
    "provider_link.MAX_EVENTS": 4096,
    "providers.local.MAX_LISTENERS": 2,
    "providers.local.MAX_WAITING": 16,
    "providers.wav_stream.MAX_HEAD": 4_096,
    "session.MAX_DELTA": 32 * 1024,
    "session.MAX_EARLY": 64,
    "session_table.MAX_OF_ONE": 64,
    "session_table.MAX_SESSIONS": 128,
    "socket.RECHECK": 60.0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("voice", name) == value
