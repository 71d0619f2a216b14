"""Whose key, and under which name."""

from __future__ import annotations

import pytest

from svc_proto.voice.providers.access import VendorAccess
from tests.peers.vendor import Sound
from tests.peers.xai import XaiPeer
from tests.voice.providers.studio import Studio, problem

SOUND = bytes(100)


@pytest.mark.parametrize(
    "provider", ["openai", "xai", "elevenlabs", "groq", "mistral", "deepinfra", "openai_realtime", "xai_realtime"]
)
def test_a_missing_key_is_named(provider: str) -> None:
    variable = f"{provider.partition('_')[0].upper()}_API_KEY"
    studio = Studio(None, **{variable: ""})
    error = problem(lambda: (studio.render if "_" in provider else studio.transcribe)(provider))
    assert (error.variable, str(error)) == (variable, f"{variable} not set")


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
