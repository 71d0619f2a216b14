import pytest

from svc_proto.voice.provider_registry import PROVIDERS, canonical_id


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
        ("xai-tts", "xai_tts", "xai_tts"),
        ("Another-One", "another_one", "another_one"),
    ],
)
def test_spellings(name: str, tts: str, realtime: str) -> None:
    assert (canonical_id(name, "tts"), canonical_id(name, "realtime")) == (tts, realtime)
