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
    # its own, of which no other test knows the number
    "agent.chat_run.MAX_SHOWN": 200,
    "agent.instructions.MAX_FILE": 256 * 1024,
    "agent.native.LISTEN_WITHIN": 86_400.0,
    "agent.native.LOOK_AGAIN": 1.0,
    "agent.rendered.MAX_UTTERANCE": 8 * 1024 * 1024,
    "agent.run_mapping.MAX_ID": 200,
    "agent.run_mapping.MAX_MESSAGE": 500,
    "agent.runs.NAMED_WITHIN": 10.0,
    "agent.session.MAX_WORD": 256,
    "agent.tools.MAX_ARGUMENTS": 32 * 1024,
    "agent.tools.MAX_WORD": 256,
    "choice.LENGTHS": {"provider": 80, "model": 160, "voice": 160, "language": 24},
    "event_log.ANSWER_WITHIN": 60.0,
    "options.MAX_CACHED": 64,
    "pcm.FULL_SCALE": 32_767,
    "pcm.MAX_LEVELS": 1024,
    "providers.discovery.MAX_OFFERED": 2_000,
    "providers.elevenlabs.RATE": 24_000,
    "providers.elevenlabs.RATES": (8_000, 16_000, 22_050, 24_000, 44_100, 48_000),
    "providers.elevenlabs.SETTINGS": {
        "stability": (0.0, 1.0),
        "similarity_boost": (0.0, 1.0),
        "style": (0.0, 1.0),
        "speed": (0.7, 1.2),
    },
    "providers.local.ENCODING": 120.0,
    "providers.local.FASTEST": 2.0,
    "providers.local.KNOWN_FOR": 60.0,
    "providers.local.LISTENING": 600.0,
    "providers.local.MAX_AHEAD": 128 * 1024,
    "providers.local.MAX_FILE_SOUND": 40_000_000,
    "providers.local.PACES": {"slow": 0.8, "slower": 0.8, "relaxed": 0.9, "fast": 1.25, "faster": 1.25, "quick": 1.25},
    "providers.local.PATIENCE": 120.0,
    "providers.local.PIECE": 4_096,
    "providers.local.SILENCE": 30.0,
    "providers.local.SLOWEST": 0.5,
    "providers.one_shot.CONNECT": 60.0,
    "providers.one_shot.MAX_WAITING": 32 * 1024 * 1024,
    "providers.one_shot.SILENCE": 60.0,
    "providers.openai.FASTEST": 4.0,
    "providers.openai.RATE": 24_000,
    "providers.openai.SLOWEST": 0.25,
    "providers.problems.MAX_BODY": 64 * 1024,
    "providers.realtime.MAX_REMEMBERED": 512,
    "providers.vendor.LISTENING": 300.0,
    "providers.vendor.MAX_SOUND": 96_000_000,
    "providers.vendor.MAX_TRANSCRIPT": 200_000,
    "providers.vendor.WHOLE": 900.0,
    "providers.xai.MP3_RATE": 24_000,
    "providers.xai.RATES": (8_000, 16_000, 22_050, 24_000, 44_100, 48_000),
    "session.MAX_CANDIDATES": 4,
    "session.ROOM_WITHIN": 60.0,
    "session.SUPERSEDED": 4000,
    "session_table.MAX_OVER": 1024,
    "session_table.OVER_FOR": 3600.0,
    "session_table.SWEEP_EVERY": 3600.0,
    "speech.MAX_MODE": 80,
    "speech.MAX_TRANSCRIPT": 20_000,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("voice", name) == value
