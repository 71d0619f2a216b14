"""The option object. What vendors offer, and how long it is kept: tests/relay/routes/test_voice_settings.py."""

from __future__ import annotations

import pytest

from svc_proto.voice.contract import ProviderInfo
from svc_proto.voice.options import STATIC, Offer, compatible_voices, provider_object
from svc_proto.voice.providers.discovery import Discovered, OfferedVoice
from svc_proto.voice.registry import Registry

REGISTRY = Registry()


@pytest.mark.parametrize("info", REGISTRY.all(), ids=lambda info: info.id)
def test_the_first_15_keys_are_always_there(info: ProviderInfo) -> None:
    bare = provider_object(info)
    assert len(bare) == 15
    whole = provider_object(info, Offer(info, None, STATIC))
    assert list(whole)[:15] == list(bare)
    assert len(whole) == 23
    assert set(whole["recommended_voices"]) <= set(info.voices)  # type: ignore[call-overload]
    assert all(value is not None for value in whole.values())


def test_the_agents_own_member() -> None:
    info = REGISTRY.find("openai_realtime")
    assert info is not None
    assert provider_object(info, native=True)["supports_tool_use"] is True
    assert provider_object(info, native=False)["supports_tool_use"] is False


def test_what_is_found_of_a_vendor_without_tables() -> None:
    info = REGISTRY.find("elevenlabs_tts")
    assert info is not None
    found = Discovered(source="elevenlabs_api", voices=(OfferedVoice("a", "Ann"), OfferedVoice("b", "Bob")))
    answer = provider_object(info, Offer(info, found, STATIC))
    assert answer["voice_labels"] == {"a": "Ann", "b": "Bob"}
    assert answer["voice_groups"] == [
        {
            "id": "elevenlabs_builtin",
            "label": "Built-in",
            "values": ["a", "b"],
            "source": "elevenlabs_api",
            "recommended": [],
            "custom": False,
        }
    ]
    assert answer["model_voice_compatibility"] == {}


@pytest.mark.parametrize(
    ("provider", "model", "voices"),
    [
        ("openai_tts", "tts-1", 9),
        ("openai_tts", "gpt-4o-mini-tts", 13),
        ("openai_tts", "unheard", None),
        ("xai_tts", "xai-tts", 5),
        ("stub", "stub-tone", None),
        ("local", "espeak-ng", None),
    ],
)
def test_which_voices_go_with_a_model(provider: str, model: str, voices: int | None) -> None:
    info = REGISTRY.find(provider)
    assert info is not None
    found = compatible_voices(info, None, model)
    assert (None if found is None else len(found)) == voices
