from __future__ import annotations

import pytest

from svc_proto.voice.provider_interface import SUPPORTS
from svc_proto.voice.provider_registry import PROVIDERS, canonical_id, is_renderer

FLAGS = {
    "elevenlabs_tts": {"tts", "expression"},
    "local": {"tts", "stt"},  # beside the table: this host's own engines
    "openai_realtime": {"tts", "realtime", "expression"},
    "openai_tts": {"tts", "expression"},
    "stub": {"tts", "stt", "speech_to_speech", "expression"},
    "xai_realtime": {"tts", "tool_use", "realtime", "interruption", "expression"},
    "xai_tts": {"tts", "expression"},
}
RATES = {
    "elevenlabs_tts": (16000, 22050, 24000, 44100, 48000),
    "openai_realtime": (24000,),
    "openai_tts": (24000,),
    "stub": (16000, 24000, 48000),
    "xai_realtime": (24000,),
    "xai_tts": (24000,),
}


def test_the_table() -> None:
    ids = list(PROVIDERS)
    assert ids == sorted(FLAGS)
    for info in PROVIDERS.values():
        assert info.supports == FLAGS[info.id], info.id
        assert info.supports <= set(SUPPORTS)
        assert RATES.get(info.id, info.sample_rates) == info.sample_rates
        assert info.models
        assert info.voices
        assert info.name
        assert info.description


def test_kinds_of_providers() -> None:
    """Check which providers converse themselves, which are rendered, and which turn text into speech."""
    for id_, info in PROVIDERS.items():
        native, rendered = id_ in ("openai_realtime", "xai_realtime"), id_ in ("local", "stub")
        assert (info.native, info.rendered, is_renderer(info)) == (native, rendered, not native), id_


def test_voice_tables_are_consistent() -> None:
    for info in PROVIDERS.values():
        assert set(info.recommended) <= set(info.voices), info.id
        assert bool(info.source) is (info.id.startswith(("openai", "xai"))), info.id
        for model, voices in info.voices_of.items():
            assert model in info.models
            assert set(voices) < set(info.voices)
            assert len(voices) == 9


@pytest.mark.parametrize(
    ("name", "tts", "realtime"),
    [
        ("xai", "xai_tts", "xai_realtime"),
        ("grok", "xai_tts", "xai_realtime"),
        ("OpenAI ", "openai_tts", "openai_realtime"),
        ("elevenlabs", "elevenlabs_tts", "elevenlabs_tts"),
        ("stub", "stub", "stub"),
        ("xai-tts", "xai_tts", "xai_tts"),
        ("openai_realtime", "openai_realtime", "openai_realtime"),
        ("Another-One", "another_one", "another_one"),
    ],
)
def test_spellings(name: str, tts: str, realtime: str) -> None:
    assert (canonical_id(name, "tts"), canonical_id(name, "realtime")) == (tts, realtime)
