"""The settings as they are stored, and what follows from what is not said (wire terminal-voice 3.2).

How routes show and change them is in tests/relay/routes/test_voice_settings.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.members import Members
from svc_proto.voice.profiles import Profile
from svc_proto.voice.registry import PROVIDERS
from svc_proto.voice.settings import OUTPUT, OutputSettings, Promotion, RealtimeSettings, Scope
from svc_proto.voice.stored import (
    OUTPUT_FAMILY,
    REALTIME_FAMILY,
    SectionFamily,
    StoredSettings,
    checked_change,
    laid_over,
    merged,
    profile_values,
    with_its_own,
)
from tests.voice.plans import CONFIG, world_of

KNOWN = ("stub", "xai_tts")
SCOPE = Scope(profile="work")


def profile(**data: object) -> Profile:
    return Profile(name="work", scope="profile", fallback=False, path="/p", data=Members(data))


@pytest.mark.parametrize(
    ("family", "said", "expected"),
    [
        (OUTPUT_FAMILY, {}, {}),
        (OUTPUT_FAMILY, {"provider": "stub"}, {"provider": "stub"}),
        (OUTPUT_FAMILY, {"provider": "xai", "xai": {"voice_id": "leo"}}, {"provider": "xai_tts", "voice": "leo"}),
        (OUTPUT_FAMILY, {"provider": "xai", "xai_tts": {"voice": "leo"}}, {"provider": "xai_tts", "voice": "leo"}),
        (
            OUTPUT_FAMILY,
            {"provider": "xai", "xai": {"voice": "leo", "model_id": "m"}, "voice": "rex", "openai": {"voice": "x"}},
            {"provider": "xai_tts", "voice": "rex", "model": "m"},
        ),
        (OUTPUT_FAMILY, {"provider": "openai_tts", "openai": {"voice": "x"}}, {"provider": "openai_tts", "voice": "x"}),
        (OUTPUT_FAMILY, {"provider": "stub", 5: {"voice": "x"}}, {"provider": "stub"}),
        (OUTPUT_FAMILY, {"provider": 5, "voice": "rex", "unknown": 1}, {"voice": "rex"}),
        (
            REALTIME_FAMILY,
            {"provider": "grok", "promote_after_ms": "10"},
            {"provider": "xai_realtime", "promote_after_ms": 10},
        ),
        (
            REALTIME_FAMILY,
            {"run_retention_days": 0, "debug_audio_tap": "yes"},
            {"run_retention_days": 0, "debug_audio_tap": True},
        ),
    ],
)
def test_a_section(family: SectionFamily[Any], said: dict[object, object], expected: dict[str, object]) -> None:
    assert family.from_file({family.section: said}) == expected


@pytest.mark.parametrize("data", [{}, {"voice_output": None}, {"voice_output": "x"}, {"voice_output": []}])
def test_no_section(data: dict[str, object]) -> None:
    assert OUTPUT_FAMILY.from_file(data) == {}


def test_the_environment() -> None:
    variables = {
        "RELAY_VOICE_OUTPUT_PROVIDER": "grok",
        "RELAY_VOICE_OUTPUT_OPTIMIZE_LATENCY": "0",
        "RELAY_VOICE_OUTPUT_ENABLED": "perhaps",
        "RELAY_REALTIME_VOICE_SAMPLE_RATE": "16000",
    }
    assert OUTPUT_FAMILY.from_environment(variables) == {"provider": "xai_tts", "optimize_streaming_latency": 0}
    assert REALTIME_FAMILY.from_environment(variables) == {"sample_rate": 16_000}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"voice_output": {"voice": "rex"}, "tts": {"provider": "openai"}}, {"voice": "rex"}),
        (
            {"tts": {"provider": "xai", "xai": {"voice_id": "leo", "language": "de"}, "codec": "wav"}},
            {"provider": "xai_tts", "voice": "leo"},
        ),
        ({"tts": {"provider": "edge", "voice": "x"}}, {}),  # no renderer of ours
        ({"tts": {"provider": "openai_realtime"}}, {}),
        ({"tts": {"voice": "x"}}, {}),
        ({}, {}),
    ],
)
def test_what_a_profile_says_of_speech_output(data: dict[str, object], expected: dict[str, object]) -> None:
    assert profile_values(OUTPUT_FAMILY, profile(**data)) == expected


def test_what_a_profile_says_of_realtime() -> None:
    assert profile_values(REALTIME_FAMILY, profile(tts={"provider": "xai"})) == {}
    said = profile(realtime_voice={"voice": "rex"})
    assert profile_values(REALTIME_FAMILY, said) == {"voice": "rex"}


def output(base: dict[str, Any] | None = None, over: dict[str, Any] | None = None, *, local: bool = False) -> Any:
    found = merged(OUTPUT_FAMILY, base or {}, over or {}, SCOPE, local=local)
    assert found.scope is SCOPE
    return found.provider, found.model, found.voice, found.sample_rate


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        ({}, {}, ("xai_tts", "xai-tts", "eve", 24_000)),
        ({"provider": "stub"}, {}, ("stub", "stub-tone", "sine", 24_000)),
        ({"provider": "stub", "voice": "x"}, {}, ("stub", "stub-tone", "x", 24_000)),
        # A model and a voice belong to their provider.
        (
            {"provider": "stub", "voice": "x", "sample_rate": 8000},
            {"provider": "xai_tts"},
            ("xai_tts", "xai-tts", "eve", 24_000),
        ),
        ({"voice": "x"}, {"provider": "stub", "voice": "y"}, ("stub", "stub-tone", "y", 24_000)),
        ({"provider": "stub", "voice": "x"}, {"provider": "stub"}, ("stub", "stub-tone", "x", 24_000)),
        ({"provider": "stub", "voice": "x"}, {"sample_rate": 16_000}, ("stub", "stub-tone", "x", 16_000)),
        ({"provider": "nobody"}, {}, ("nobody", "xai-tts", "eve", 24_000)),
    ],
)
def test_layers(base: dict[str, Any], over: dict[str, Any], expected: tuple[object, ...]) -> None:
    assert output(base, over) == expected


@pytest.mark.parametrize(
    ("file", "variables", "expected"),
    [
        ({"provider": "stub", "voice": "x", "codec": "wav"}, {"provider": "xai_tts"}, {"codec": "wav"}),
        ({"provider": "stub", "voice": "x"}, {"provider": "stub"}, {"voice": "x"}),
        ({"provider": "stub", "voice": "x"}, {"codec": "wav"}, {"provider": "stub", "voice": "x"}),
        ({"voice": "x"}, {"provider": "stub"}, {"voice": "x"}),
        ({}, {}, {}),
    ],
)
def test_the_environment_over_the_file(
    file: dict[str, object], variables: dict[str, object], expected: dict[str, object]
) -> None:
    assert laid_over(file, variables) == {**expected, **variables}


def test_this_host_speaks_where_nobody_is_named() -> None:
    assert output(local=True)[0] == "local"
    assert output({"provider": "stub"}, local=True)[0] == "stub"


def test_this_host_speaks_the_language_that_is_set() -> None:
    assert output({"provider": "local", "language": "de"})[2] == "de"
    assert output({"language": "de", "voice": "en-gb"}, local=True)[2] == "en-gb"
    assert output({"provider": "stub", "language": "de"})[2] == "sine"


def test_a_provider_without_the_usual_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = evolve(PROVIDERS["stub"], id="odd", sample_rates=(16_000, 48_000))
    monkeypatch.setitem(PROVIDERS, "odd", odd)
    found = merged(OUTPUT_FAMILY, {"provider": "odd"}, {}, SCOPE, local=False)
    assert found.sample_rate == 16_000


def test_realtime() -> None:
    base = {"promotion_enabled": False, "promote_after_ms": 5, "run_retention_days": 3}
    found = merged(REALTIME_FAMILY, base, {"spoken_handoff": False}, SCOPE, local=False)
    assert found == RealtimeSettings(
        scope=SCOPE, promotion=Promotion(enabled=False, promote_after_ms=5, spoken_handoff=False), run_retention_days=3
    )


def test_defaults_of_the_document() -> None:
    assert merged(OUTPUT_FAMILY, {}, {}, Scope(), local=False) == OutputSettings()
    assert merged(REALTIME_FAMILY, {}, {}, Scope(), local=False) == RealtimeSettings()


# --- changes ---


@pytest.mark.parametrize(
    ("said", "change", "whole"),
    [
        ({"provider": "xai", "voice": "sal"}, {"codec": "wav"}, {"codec": "wav"}),
        ({"provider": "xai", "voice": "sal"}, {"provider": "nobody"}, {"provider": "nobody"}),
        ({"provider": "openai", "voice": "mine"}, {"provider": "openai_tts"}, {"provider": "openai_tts"}),
        ({"provider": 7, "voice": "mine"}, {"provider": "openai_tts"}, {"provider": "openai_tts"}),
        ({"voice": "mine"}, {"provider": "openai_tts"}, {"provider": "openai_tts"}),
        ({"provider": "xai", "voice": "ash"}, {"provider": "openai_tts"}, {"provider": "openai_tts"}),
        ({"provider": "xai", "voice": "sal"}, {"provider": "openai_tts"}, {"provider": "openai_tts", "voice": "alloy"}),
        (
            {"provider": "xai", "voice_id": "sal", "model": "x", "openai": {"voice": "nova"}},
            {"provider": "openai_tts"},
            {"provider": "openai_tts", "voice": "nova", "model": "gpt-4o-mini-tts"},
        ),
        (
            {"provider": "xai", "voice": "sal"},
            {"provider": "openai_tts", "voice": "echo"},
            {"provider": "openai_tts", "voice": "echo"},
        ),
    ],
)
def test_what_a_change_of_the_provider_takes_along(
    said: dict[str, object], change: dict[str, object], whole: dict[str, object]
) -> None:
    assert with_its_own(OUTPUT_FAMILY, {"voice_output": said}, change) == whole


def test_a_change_is_checked() -> None:
    body = {"profile": "work", "provider": "grok", "sample_rate": "16000"}
    assert checked_change(OUTPUT_FAMILY, OUTPUT, body, KNOWN) == {"provider": "xai_tts", "sample_rate": 16_000}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "nothing"),
        ({"profile": "work"}, "nothing"),
        ({"x" * 100: 1}, "x" * 40 + ";"),
        ({"provider": "local"}, "one of"),
    ],
)
def test_what_is_no_change(body: dict[str, object], word: str) -> None:
    with pytest.raises(Refused, match=word) as caught:
        checked_change(OUTPUT_FAMILY, OUTPUT, body, KNOWN)
    assert caught.value.status == 400


def refused(files: dict[str, object], found: Failure | bytes | None = None, profile: str | None = None) -> Refused:
    def plan(engine: Engine) -> Flow[Refused]:
        stored = StoredSettings(engine, CONFIG, _silent)
        with pytest.raises(Refused) as caught:
            yield from stored.change(OUTPUT_FAMILY, profile, {"voice": "rex"})
        return caught.value

    world = world_of(plan, files)
    if found is not None:
        world.files["/r/config.yaml"] = found
    return world.run()


def _silent() -> Flow[bool]:
    yield from ()
    return False


@pytest.mark.parametrize(
    ("files", "word"), [({"/r/config.yaml": "[broken"}, "not YAML"), ({"/r/config.yaml": "- a list"}, "not YAML")]
)
def test_a_file_that_cannot_be_changed(files: dict[str, object], word: str) -> None:
    problem = refused(files)
    assert (problem.status, problem.code) == (404, "not_writable")
    assert word in problem.message


@pytest.mark.parametrize(
    ("found", "word"), [(Failure(FailureKind.DENIED), "could not be read"), (b"voice: \xff\n", "not UTF-8")]
)
def test_a_file_that_cannot_be_read(found: Failure | bytes, word: str) -> None:
    problem = refused({}, found)
    assert (problem.status, problem.code) == (404, "not_writable")
    assert word in problem.message


def test_a_profile_that_is_not_there() -> None:
    problem = refused({}, profile="work")
    assert (problem.status, problem.code, problem.message) == (404, "not_found", "there is no such profile")


def test_where_the_relays_own_settings_are() -> None:
    def plan(engine: Engine) -> Flow[tuple[str, str]]:
        stored = StoredSettings(engine, CONFIG, _silent)
        yield from ()
        return stored.path_of(OUTPUT_FAMILY), stored.path_of(REALTIME_FAMILY)

    assert world_of(plan).run() == ("/r/config.yaml", "/r/config.yaml")
