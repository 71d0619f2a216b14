"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # wire core 1.6, 1.8, 0.2
    "client_socket.AUTH_TIMEOUT": 30.0,
    "profiles.RESCAN_EVERY": 30.0,
    # wire terminal-voice 1.4, 2.3, 3.3
    "shells.REPLAY_LINES": 200,
    "tui.TERM_PATIENCE": 2.0,
    "voice_upload.MAX_UPLOAD": 25 * 1024 * 1024,
    # wire terminal-voice 7
    "voice_access.PROBE_TIMEOUT": 5.0,
    "voice_access.CACHE_SECONDS": 60.0,
    # its own, which other tests call by name
    "media.MAX_DEPTH": 64,
    "routes.inbox.INBOX_BODY_LIMIT": 34 * 1024 * 1024,
    "routes.media.JSON_LIMIT": 34 * 1024 * 1024,
    "routes.voice_basic.MAX_BUSY": 64,
    "voice_access.MAX_CACHED": 1_000,
    "voice_access.MAX_PROBES": 64,
    "terminals.MAX_UNREAD": 1024 * 1024,
    "terminals.MAX_WAITING": 1024,
    "tui.MAX_UNREAD": 32 * 1024 * 1024,
    "tui.MAX_WAITING": 256,
    # its own, of which no other test knows the number
    "media.LAST_DATE": 253_402_300_799.0,
    "media.MAX_EXPIRED": 100,
    "media.SNIFFED": 16,
    "passing.MAX_LOOKING": 256,
    "passing.MAX_SOCKETS": 1_024,
    "profiles.MAX_PROFILES": 100,
    "routes.media.CREATED_WITHIN": 30.0,
    "routes.media.MULTIPART_EXTRA": 2 * 1024 * 1024,
    "routes.voice_settings.MAX_RATE": 10_000_000,
    "session_records.ERASE_AGAIN": 60.0,
    "session_records.STORE_PATIENCE": 31.0,
    "shells.MAX_BEGUN": 256,
    "shells.KILL_PATIENCE": 11.0,
    "tui.SHOWN": 400,
    "upload.DISK_PATIENCE": 120.0,
    "upload.SPARE": 64 * 1024 * 1024,
    "voice_upload.MULTIPART_EXTRA": 1024 * 1024,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("relay", name) == value
