import pytest

from svc_proto.voice.provider_registry import PROVIDERS
from svc_proto.voice.settings_views import AGENT_VIEW, LAB_VIEW, OUTPUT_VIEW, VoiceModeView

RENDERERS = ["elevenlabs_tts", "local", "openai_tts", "stub", "xai_tts"]
REALTIME = ["openai_realtime", "xai_realtime"]
AGENTS = ["local", "openai_realtime", "stub", "xai_realtime"]


@pytest.mark.parametrize(
    ("view", "allowed", "described"),
    [
        (OUTPUT_VIEW, RENDERERS, RENDERERS),
        (LAB_VIEW, [*RENDERERS, *REALTIME], ["local", *REALTIME]),
        (AGENT_VIEW, AGENTS, AGENTS),
    ],
)
def test_providers(view: VoiceModeView, allowed: list[str], described: list[str]) -> None:
    assert [info.id for info in view.allowed()] == sorted(allowed)
    assert [info.id for info in view.described()] == described


def test_only_the_agent_view_has_the_native_member() -> None:
    info = PROVIDERS["stub"]
    assert AGENT_VIEW.object(info)["supports_realtime_agent_native"] is False
    assert "supports_realtime_agent_native" not in LAB_VIEW.object(info)


@pytest.mark.parametrize(
    ("provider", "abilities"),
    [
        ("stub", "tts stt speech_to_speech expression"),
        ("xai_realtime", "tts tool_use realtime interruption expression"),
    ],
)
def test_abilities(provider: str, abilities: str) -> None:
    described = LAB_VIEW.object(PROVIDERS[provider])
    assert " ".join(name.removeprefix("supports_") for name, value in described.items() if value is True) == abilities
