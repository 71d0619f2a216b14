"""Whose key, and under which name."""

from __future__ import annotations

import pytest

from svc_proto.voice.providers.access import VendorAccess
from tests.peers.vendor import Sound
from tests.peers.xai import XaiPeer
from tests.voice.providers.studio import Studio, problem

SOUND = bytes(100)


@pytest.mark.parametrize(
    ("provider", "variable", "unset"),
    [
        ("openai_tts", "OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("xai_tts", "XAI_API_KEY", "XAI_API_KEY"),
        ("elevenlabs_tts", "ELEVENLABS_API_KEY", "ELEVENLABS_API_KEY"),
        ("openai_realtime", "OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("xai_realtime", "XAI_API_KEY", "XAI_API_KEY"),
    ],
)
def test_a_missing_key_is_named(provider: str, variable: str, unset: str) -> None:
    studio = Studio(None, **{unset: ""})
    error = problem(lambda: studio.render(provider))
    assert error.variable == variable
    assert str(error) == f"{variable} not set"


def test_keys_are_looked_for_under_all_their_names() -> None:
    peer = XaiPeer([Sound(SOUND), Sound(SOUND)])
    Studio(peer, XAI_API_KEY="", GROK_API_KEY="grok-key").render("xai_tts")
    Studio(peer, VOICE_TOOLS_XAI_KEY="tools-key").render("xai_tts")
    assert [asked.headers.get(b"authorization") for asked in peer.seen] == [b"Bearer grok-key", b"Bearer tools-key"]


def test_a_key_that_no_header_can_carry() -> None:
    studio = Studio(OPENAI_API_KEY="two words")
    assert str(problem(lambda: studio.render("openai_tts"))) == (
        "the key of OpenAI has characters that no header can carry"
    )


def test_a_key_shows_nowhere() -> None:
    assert "hush" not in repr(VendorAccess("OpenAI", "https://api.example/v1", "hush"))
