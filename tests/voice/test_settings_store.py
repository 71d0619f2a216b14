from typing import Any

import pytest
from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.profiles import ConfigProfile
from svc_proto.voice.provider_registry import PROVIDERS
from svc_proto.voice.settings import OUTPUT, PromotionSettings, RealtimeSettings, SettingsScope
from svc_proto.voice.settings_store import (
    OUTPUT_SECTION,
    REALTIME_SECTION,
    SettingsSection,
    SettingsStore,
    checked_change,
    merge_settings,
    profile_values,
    resolve_settings,
    split_shared_values,
)
from tests.voice.harness import CONFIG, OWN, VoiceHarness
from tests.voice.table_rows import read_tables

TABLES = read_tables("settings_store")
KNOWN = ("stub", "xai_tts")
SCOPE = SettingsScope(profile="work")
FAMILIES: tuple[SettingsSection[Any], ...] = (OUTPUT_SECTION, REALTIME_SECTION)


@pytest.mark.parametrize(("file", "expected"), TABLES["sections"])
def test_a_section(file: dict[str, object], expected: dict[str, object]) -> None:
    family: SettingsSection[Any] = REALTIME_SECTION if "realtime_voice" in file else OUTPUT_SECTION
    assert family.from_file(file) == expected


def test_the_environment() -> None:
    variables = {
        "RELAY_VOICE_OUTPUT_PROVIDER": "grok",
        "RELAY_VOICE_OUTPUT_OPTIMIZE_LATENCY": "0",
        "RELAY_VOICE_OUTPUT_ENABLED": "perhaps",
        "RELAY_REALTIME_VOICE_SAMPLE_RATE": "16000",
    }
    assert OUTPUT_SECTION.from_environment(variables) == {"provider": "xai_tts", "optimize_streaming_latency": 0}
    assert REALTIME_SECTION.from_environment(variables) == {"sample_rate": 16_000}


@pytest.mark.parametrize(("said", "of_output", "of_realtime"), TABLES["profiles"])
def test_settings_of_a_profile(said: Any, of_output: object, of_realtime: object) -> None:
    profile = ConfigProfile(scope=SCOPE, path="/p", data=JsonObject(said))
    assert [profile_values(family, profile) for family in FAMILIES] == [of_output, of_realtime]


@pytest.mark.parametrize(("local", "base", "over", "expected"), TABLES["layers"])
def test_layers(local: bool, base: dict[str, Any], over: dict[str, Any], expected: list[object]) -> None:
    found = resolve_settings(OUTPUT_SECTION, base, over, SCOPE, local=local)
    assert [found.provider, found.model, found.voice, found.sample_rate, found.scope] == [*expected, SCOPE]


@pytest.mark.parametrize(("file", "variables", "kept"), TABLES["environment"])
def test_the_environment_over_the_file(
    file: dict[str, object], variables: dict[str, object], kept: dict[str, object]
) -> None:
    assert merge_settings(file, variables) == {**kept, **variables}


def test_a_provider_without_the_usual_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = evolve(PROVIDERS["stub"], id="odd", sample_rates=(16_000, 48_000))
    monkeypatch.setitem(PROVIDERS, "odd", odd)
    found = resolve_settings(OUTPUT_SECTION, {"provider": "odd"}, {}, SCOPE, local=False)
    assert found.sample_rate == 16_000


def test_realtime() -> None:
    base = {"promotion_enabled": False, "promote_after_ms": 5, "run_retention_days": 3}
    found = resolve_settings(REALTIME_SECTION, base, {"spoken_handoff": False}, SCOPE, local=False)
    assert found == RealtimeSettings(
        scope=SCOPE,
        promotion=PromotionSettings(enabled=False, promote_after_ms=5, spoken_handoff=False),
        run_retention_days=3,
    )


@pytest.mark.parametrize(("said", "change", "whole"), TABLES["changes"])
def test_provider_change_splits_shared_values(said: Any, change: dict[str, object], whole: object) -> None:
    assert split_shared_values(OUTPUT_SECTION, {"voice_output": said}, change) == whole


def test_a_change_is_checked() -> None:
    body = {"profile": "work", "provider": "grok", "sample_rate": "16000"}
    assert checked_change(OUTPUT, body, KNOWN) == {"provider": "xai_tts", "sample_rate": 16_000}


@pytest.mark.parametrize(
    ("body", "word"),
    [({"profile": "work"}, "nothing"), ({"x" * 100: 1}, "x" * 40 + ";"), ({"provider": "local"}, "one of")],
)
def test_invalid_changes_are_refused(body: dict[str, object], word: str) -> None:
    with pytest.raises(Refused, match=word) as caught:
        checked_change(OUTPUT, body, KNOWN)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (b"[broken", "is not YAML"),
        (b"- a list", "is not YAML"),
        (b"voice: \xff\n", "is not UTF-8"),
        (None, "could not be read"),
    ],
)
def test_unwritable_file_is_refused(found: bytes | None, words: str) -> None:
    problem = refused(found)
    assert (problem.status, problem.code) == (404, "not_writable")
    assert words in problem.message


def test_unknown_profile_is_refused() -> None:
    problem = refused(b"", "work")
    assert (problem.status, problem.code, problem.message) == (404, "not_found", "there is no such profile")


def refused(found: bytes | None, profile: str | None = None) -> Refused:
    """Return the refusal of a change to the relay's own file, which may be unreadable, or to a profile's.

    Require that the next change succeeds.
    """

    def speaks() -> Flow[bool]:
        raise AssertionError("no caller needs it")

    rig = VoiceHarness()
    rig.disk.put(OWN, found or b"")
    if found is None:
        rig.disk.denied.add(OWN)
    store = SettingsStore(rig.engine, CONFIG, speaks)
    with pytest.raises(Refused) as caught:
        rig.spawn(store.change(OUTPUT_SECTION, profile, {"voice": "rex"}))
    rig.disk.denied.clear()
    rig.disk.put(OWN, b"")
    assert rig.spawn(store.change(OUTPUT_SECTION, None, {"voice": "rex"})) == [OWN]
    return caught.value
