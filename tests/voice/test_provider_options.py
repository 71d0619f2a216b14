import pytest

from svc_proto.engine.flow import Flow
from svc_proto.voice.provider_interface import ProviderInfo
from svc_proto.voice.provider_options import (
    ProviderCatalog,
    ProviderCatalogs,
    check_choice,
    compatible_voices,
    provider_object,
)
from svc_proto.voice.provider_registry import PROVIDERS
from svc_proto.voice.providers.discovery import DiscoveryResult, ProviderVoice
from svc_proto.voice.settings import OutputSettings
from tests.support.playbook import make_flow
from tests.voice.harness import VoiceHarness
from tests.voice.table_rows import rows

GROUPS = """
[{id: elevenlabs_builtin, label: Built-in, values: [a, b], source: elevenlabs_api, recommended: [], custom: false}]
"""


@pytest.mark.parametrize("info", PROVIDERS.values(), ids=lambda info: info.id)
def test_the_first_15_keys_are_always_there(info: ProviderInfo) -> None:
    bare = provider_object(info)
    assert len(bare) == 15
    whole = provider_object(info, ProviderCatalog(info))
    assert list(whole)[:15] == list(bare)
    assert len(whole) == 23
    assert set(whole["recommended_voices"]) <= set(info.voices)
    assert all(value is not None for value in whole.values())


def test_discovered_voices() -> None:
    info = PROVIDERS["elevenlabs_tts"]
    found = DiscoveryResult(source="elevenlabs_api", voices=(ProviderVoice("a", "Ann"), ProviderVoice("b", "Bob")))
    answer = provider_object(info, ProviderCatalog(info, found))
    assert answer["voice_labels"] == {"a": "Ann", "b": "Bob"}
    assert [[answer["voice_groups"]]] == rows(GROUPS)
    assert answer["model_voice_compatibility"] == {}


VOICES = """
openai_tts tts-1 -> 9
openai_tts gpt-4o-mini-tts -> 13
openai_tts unheard -> null
xai_tts xai-tts -> 5
stub stub-tone -> null
"""


@pytest.mark.parametrize(("of", "voices"), rows(VOICES))
def test_compatible_voices_of_a_model(of: str, voices: int | None) -> None:
    provider, model = of.split()
    found = compatible_voices(ProviderCatalog(PROVIDERS[provider]), model)
    assert (None if found is None else len(found)) == voices


def answer_discovery(rig: VoiceHarness) -> list[str]:
    """Let every provider offer one voice; return a list that records the provider of each request."""
    asked: list[str] = []

    def discover(provider: str) -> Flow[DiscoveryResult]:
        asked.append(provider)
        return make_flow(DiscoveryResult(source="elevenlabs_api", voices=(ProviderVoice("a", "Ann"),)))

    rig.voice.providers.discover = discover  # type: ignore[assignment,method-assign]  # a vendor that answers
    return asked


def test_discovery_is_cached_for_ten_minutes(rig: VoiceHarness) -> None:
    """Check that a catalogue is cached for 600 s (wire terminal-voice 4.4)."""
    info, asked = PROVIDERS["elevenlabs_tts"], answer_discovery(rig)
    options, told = ProviderCatalogs(rig.voice), list[object]()
    for pause in (0.0, 0.0, 599.0, 1.0):
        rig.after(pause)
        told += [offer.dynamic.get("cache") for offer in (options.cached(info), *rig.spawn(options.fetch(info)))]
    assert told == [None, None, "hit", "hit", "hit", "hit", None, None]
    assert asked == ["elevenlabs_tts"] * 2


def test_changed_key_repeats_the_discovery(rig: VoiceHarness) -> None:
    info, asked = PROVIDERS["elevenlabs_tts"], answer_discovery(rig)
    options = ProviderCatalogs(rig.voice)
    for key, count in (("one", 1), ("one", 1), ("two", 2), ("one", 2)):
        rig.write(f"{rig.voice.config.service_home}/.env", f"ELEVENLABS_API_KEY={key}\n")
        list(rig.spawn(rig.voice.refresh_keys()))
        list(rig.spawn(options.fetch(info)))
        assert len(asked) == count


CHECKS = """
{} -> {}
{model: x} -> {model_known: warning}
{model: ""} -> {model_present: error}
{voice: ""} -> {voice_present: error}
{voice: zed} -> {voice_compatible: error}
{model: x, voice: zed} -> {model_known: warning, voice_known: warning}
{sample_rate: 8000} -> {sample_rate_known: error}
{language: de} -> {language_known: warning}
"""


def found(info: ProviderInfo, **changes: object) -> dict[str, str]:
    """Return the status of each check of a choice that has the first value of each option, except for `changes`."""
    lists = {"model": info.models, "voice": info.voices, "sample_rate": info.sample_rates}
    first = {name: next(iter(values), "") for name, values in lists.items()}
    choice = OutputSettings(**{**first, "language": "en", **changes})  # type: ignore[arg-type]  # a table's row
    return {check["id"]: check["status"] for check in check_choice(ProviderCatalog(info), choice)}


@pytest.mark.parametrize(("changes", "expected"), rows(CHECKS))
def test_each_check(changes: dict[str, object], expected: object) -> None:
    checks = found(PROVIDERS["xai_tts"], **changes)
    assert len(checks) == 4
    assert {name: status for name, status in checks.items() if status != "ok"} == expected


def test_unlisted_choices_are_not_checked() -> None:
    for info in PROVIDERS.values():
        assert set(found(info).values()) == {"ok"}, info.id
    bare = ProviderInfo(id="bare", name="", description="")
    assert found(bare) == {"model_known": "warning", "voice_present": "error"}
    for checks in (found(PROVIDERS["xai_realtime"]), found(PROVIDERS["xai_tts"], language="")):
        assert "language_known" not in checks
