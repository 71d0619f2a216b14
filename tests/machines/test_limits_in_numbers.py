"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # spec "Limits"
    "route_choice.PROBE_WITHIN": 4.0,
    "route_choice.REACHABLE_FOR": 60.0,
    "sessions.DEFAULT_TTL": 30 * 86_400.0,
    "sessions.MIN_PREFIX": 4,
    "session.PREFIX_LENGTH": 8,
    "pairing.CODE_LIFETIME": 600.0,
    "limiter.MAX_FAILURES": 5,
    "limiter.WINDOW": 60.0,
    "limiter.BLOCK_FOR": 300.0,
    "bridge.RESPONSE_TIMEOUT": 30.0,
    "bridge.MAX_RECORDS": 100,
    "inbox.MAX_NOTIFICATIONS": 100,
    # wire bridge 4.2
    "bridge.MAX_SUMMARY": 500,
    # wire core 0.1, 7.1, 7.3
    "sessions.TOKEN_LENGTH": 36,
    "inbox.IMAGE_LIMIT": 25 * 1024 * 1024,
    "inbox.STALE_AFTER": 300.0,
    "inbox.DEFAULT_LIMIT": 20,
    # wire api 6.2
    "chatrun.KEEP_ENDED": 3600.0,
    # wire terminal-voice 1.4, 1.5, 2.3
    "terminal.MAX_TERMINALS": 4,
    "terminal.FLUSH_AFTER": 0.016,
    "terminal.FLUSH_AT": 4096,
    "terminal.MAX_REPLAY": 64 * 1024,
    "lines.MAX_LINE": 32 * 1024 * 1024,
    # wire terminal-voice 4.6, 4.8, decision 30
    "voice_session.UNATTENDED": 120.0,
    "voice_session.RESUME_WINDOW": 30.0,
    "voice_session.RING_EVENTS": 2000,
    "voice_session.RING_BYTES": 4 * 1024 * 1024,
    # its own, which other tests call by name
    "confirmations.MAX_OPEN": 32,
    "inbox.MAX_NOTIFICATION": 16 * 1024,
    "pairing.MAX_ENDPOINTS": 64,
    "phones.MAX_STATUS": 65_536,
    "qr.MAX_INVITE": 65_536,
    "voice_session.AWAY_EVENTS": 1000,
    # its own, of which no other test knows the number
    "bridge.MAX_PARAMS": 8_192,
    "bridge.MAX_PENDING": 1_000,
    "chatrun.MAX_ENDED": 1_000,
    "chatrun.MAX_QUEUED": 1_000,
    "limiter.MAX_ADDRESSES": 10_000,
    "pairing.MAX_CODES": 1_000,
    "qr.MIN_SECRET": 16,
    "sessions.MAX_OF_A_SERVICE": 300_000,
    "sessions.MAX_SESSIONS": 10_000,
    "sessions._TOKEN_TRIES": 8,
    "strangers.ONE_READ": 64 * 1024,
    "voice_session.AWAY_BYTES": 2 * 1024 * 1024,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("machines", name) == value
