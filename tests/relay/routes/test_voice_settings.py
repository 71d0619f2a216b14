"""Config, options and validate of the three families (wire terminal-voice 4.3 to 4.5, 5, 6.1)."""

from __future__ import annotations

import pytest

from svc_proto.commands import Compute, WriteConfig
from svc_proto.engine.router import BODY_LIMIT
from tests.relay.routes.voice_world import (
    AGENT,
    AGENT_FILE,
    BASES,
    FIRST_15,
    LAB,
    OUTPUT,
    RELAY_FILE,
    SECTIONS,
    WORK,
    get,
    patch,
    put_yaml,
    strict,
    text_of,
    voice_book,
)

# --- show -----------------------------------------------------------------------------------------------------------


def test_speech_output_by_default() -> None:
    book, _ = voice_book(variables={"OPENAI_API_KEY": "a secret"})
    found = get(book, f"{OUTPUT}/config")
    strict(found)
    providers = found.pop("providers")
    assert found == {
        "success": True,
        "enabled": True,
        "protocol": "svc.voice.output.v0",
        "config_path": RELAY_FILE,
        "default_provider": "xai_tts",
        "default_model": "xai-tts",
        "default_voice": "eve",
        "sample_rate": 24000,
        "language": "en",
        "codec": "pcm",
        "optimize_streaming_latency": 1,
        "text_normalization": False,
        "fallback_enabled": True,
        "auto_speech_tags": False,
        "fallback_provider": "legacy_svc_tts",
        "auth": {
            "xai_env": False,
            "xai_env_names": [],
            "xai_oauth": False,
            "xai_oauth_source": None,
            "openai_env": True,
            "openai_env_names": ["OPENAI_API_KEY"],
            "elevenlabs_env": False,
            "elevenlabs_env_names": [],
        },
        "profile": None,
        "config_scope": "relay",
        "fallback_to_global": False,
    }
    assert [each["id"] for each in providers] == ["elevenlabs_tts", "local", "openai_tts", "stub", "xai_tts"]
    assert all(list(each) == FIRST_15 for each in providers)


def test_the_lab_by_default() -> None:
    book, _ = voice_book()
    found = get(book, f"{LAB}/config")
    strict(found)
    ids = [each["id"] for each in found["providers"]]
    assert ids == sorted(ids)
    assert set(ids) >= {"elevenlabs_tts", "openai_realtime", "openai_tts", "stub", "xai_realtime", "xai_tts"}
    chosen = [found[name] for name in ("default_provider", "default_model", "default_voice", "sample_rate")]
    assert chosen == ["xai_realtime", "grok-voice-latest", "eve", 24000]
    assert (found["protocol"], found["auth"]["xai_oauth_paths"]) == ("svc.voice.realtime.v0", [])


def test_the_agent_by_default() -> None:
    book, _ = voice_book(variables={"GROK_API_KEY": "a secret"})
    found = get(book, f"{AGENT}/config")
    strict(found)
    assert (found["available"], found["experimental"], found["mode"]) == (True, True, "realtime_agent")
    assert found["protocol"] == "svc.voice.realtime_agent.v0"
    assert found["stable_engine"] == "svc_voice_output"
    assert found["tool_surface"] == ["svc_run_task", "svc_get_status", "svc_cancel", "svc_confirm"]
    assert len(found["limits"]) == 3
    assert found["promotion"] == {
        "enabled": True,
        "promote_after_ms": 6000,
        "background_default_mode": "promote",
        "spoken_handoff": True,
        "progress_spoken_after_ms": 0,
        "progress_repeat_ms": 30000,
        "result_delivery": "speak_verbatim",
        "max_background_runs": 1,
    }
    native = {each["id"]: each["supports_realtime_agent_native"] for each in found["providers"]}
    assert [name for name in native if native[name]] == ["openai_realtime", "xai_realtime"]
    (openai,) = [each for each in found["providers"] if each["id"] == "openai_realtime"]
    assert openai["supports_realtime"]
    assert openai["supports_speech_to_speech"]
    assert openai["supports_tool_use"]
    assert found["auth"]["xai_env_names"] == ["GROK_API_KEY"]
    assert (found["auth"]["xai_oauth_configured"], found["auth"]["openai_env"]) == (False, False)


@pytest.mark.parametrize(
    ("said", "keys", "available"),
    [({}, {}, False), ({"provider": "stub"}, {}, True), ({"enabled": False, "provider": "stub"}, {}, False)],
)
def test_whether_the_agent_can_be_used(said: object, keys: dict[str, str], available: bool) -> None:
    book, _ = voice_book({RELAY_FILE: put_yaml({"realtime_voice": said})}, variables=keys)
    assert get(book, f"{AGENT}/config")["available"] is available


def test_the_words_of_the_other_brand() -> None:
    from svc_proto.basics.brand import HERMES

    book, _ = voice_book(brand=HERMES)
    assert get(book, f"{OUTPUT}/config")["fallback_provider"] == "legacy_hermes_tts"
    found = get(book, f"{AGENT}/config")
    assert found["protocol"] == "hermes.voice.realtime_agent.v0"
    assert found["stable_engine"] == "hermes_voice_output"
    assert found["tool_surface"][0] == "hermes_run_task"


def test_this_host_is_the_default_where_it_can_speak() -> None:
    book, puppets = voice_book()
    puppets.local = True
    for base in BASES:
        assert get(book, f"{base}/config")["default_provider"] == "local"


# --- change ---------------------------------------------------------------------------------------------------------

COMMENTED = """\
# mine
model: x  # the best
voice_output:
  # the voice
  voice: "eve"  # quoted
  enabled: true
tts:
  provider: xai
"""


def test_a_change_of_the_relays_own_settings() -> None:
    book, _ = voice_book({RELAY_FILE: COMMENTED})
    answer = patch(book, f"{OUTPUT}/config", {"voice": "rex", "provider": "grok", "sample_rate": "16000"})
    assert answer.status == 200, answer
    assert answer.json["updated"] == ["provider", "sample_rate", "voice"]
    assert answer.json["config_path"] == RELAY_FILE
    assert (answer.json["default_voice"], answer.json["default_provider"]) == ("rex", "xai_tts")
    assert answer.json["sample_rate"] == 16000
    assert book.files[RELAY_FILE].decode() == COMMENTED.replace('"eve"', '"rex"').replace(
        "  enabled: true\n", "  enabled: true\n  provider: xai_tts\n  sample_rate: 16000\n"
    )
    assert get(book, f"{OUTPUT}/config")["default_voice"] == "rex"


@pytest.mark.parametrize(
    ("base", "said", "change", "voice", "model"),
    [
        (OUTPUT, {"provider": "xai", "voice": "sal", "model": "xai-tts"}, {}, "alloy", "gpt-4o-mini-tts"),
        (OUTPUT, {"provider": "xai", "voice_id": "sal", "openai": {"voice": "nova"}}, {}, "nova", "gpt-4o-mini-tts"),
        (LAB, {"provider": "openai_tts", "voice": "ash", "model": "tts-1"}, {}, "ash", "gpt-realtime-2.1"),
    ],
)
def test_a_voice_belongs_to_a_provider(
    base: str, said: dict[str, object], change: dict[str, object], voice: str, model: str
) -> None:
    """Whoever changes the provider alone does not speak in a voice that only the last one had."""
    book, _ = voice_book({RELAY_FILE: put_yaml({SECTIONS[base]: said})})
    answer = patch(book, f"{base}/config", {"provider": "openai", **change})
    assert (answer.json["default_voice"], answer.json["default_model"]) == (voice, model)
    assert answer.json["updated"] == sorted(["provider", *change])


def test_a_file_that_is_not_there_is_made() -> None:
    book, _ = voice_book()
    assert patch(book, f"{LAB}/config", {"enabled": "off"}).status == 200
    assert book.files[RELAY_FILE] == b"realtime_voice:\n  enabled: false\n"


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("query", "name"), [("?profile=work", None), ("", "work")])
def test_a_change_of_a_profile(base: str, query: str, name: str | None) -> None:
    book, _ = voice_book({WORK: "# theirs\nmodel: y\n"})
    answer = patch(book, f"{base}/config{query}", {"provider": "stub", "profile": name})
    assert answer.status == 200, answer
    scoped = [answer.json[key] for key in ("profile", "config_scope", "fallback_to_global", "config_path")]
    assert scoped == ["work", "profile", False, WORK]
    assert (answer.json["default_provider"], answer.json["default_voice"]) == ("stub", "sine")
    assert answer.json["updated"] == ["provider"]
    assert book.files[WORK].decode() == f"# theirs\nmodel: y\n{SECTIONS[base]}:\n  provider: stub\n"
    assert RELAY_FILE not in book.files


@pytest.mark.parametrize(
    ("said", "change", "section"),
    [
        ({}, {"language": "de"}, "  provider: openai_tts\n  model: tts-1\n  voice: nova\n  language: de\n"),
        ({}, {"provider": "stub"}, "  provider: stub\n"),
        ({"voice_output": {"codec": "wav"}}, {"language": "de"}, "  codec: wav\n  language: de\n"),
    ],
)
def test_a_change_of_what_stands_in_tts(said: dict[str, object], change: dict[str, object], section: str) -> None:
    """`tts:` counts only where there is no `voice_output:` (wire 3.2): whoever makes one takes along what was shown."""
    tts = {"provider": "openai", "openai": {"model": "tts-1", "voice": "nova"}}
    book, _ = voice_book({WORK: put_yaml({"tts": tts, **said})})
    answer = patch(book, f"{OUTPUT}/config?profile=work", change)
    assert answer.json["updated"] == sorted(change)
    assert book.files[WORK].decode().partition("voice_output:\n")[2] == section


def test_what_only_the_agent_has() -> None:
    book, _ = voice_book()
    change = {"promotion_enabled": True, "promote_after_ms": 0, "result_delivery": "visual_only", "spoken_handoff": 0}
    answer = patch(book, f"{AGENT}/config", change)
    assert answer.status == 200, answer
    promotion = answer.json["promotion"]
    assert (promotion["promote_after_ms"], promotion["result_delivery"]) == (0, "visual_only")
    assert (promotion["spoken_handoff"], promotion["enabled"]) == (False, True)
    answer = patch(book, f"{AGENT}/config", {"promotion_enabled": "off", "max_background_runs": 4})
    assert (answer.json["promotion"]["enabled"], answer.json["promotion"]["max_background_runs"]) == (False, 4)
    assert "known" in text_of(patch(book, f"{LAB}/config", change), 400)


BAD: list[tuple[object, str]] = [
    (b"", "JSON object"),
    (b"{", "JSON"),
    ([], "object"),
    ({}, "nothing"),
    ({"url": "http://evil"}, "url"),
    ({"enabled": 2}, "enabled"),
    ({"provider": "nobody"}, "provider"),
    ({"voice": "a\nb"}, "voice"),
    ({"sample_rate": True}, "sample_rate"),
    ({"profile": 5, "enabled": True}, "profile"),
]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("body", "word"), BAD)
def test_bad_changes(base: str, body: object, word: str) -> None:
    book, _ = voice_book({RELAY_FILE: COMMENTED})
    assert word in text_of(patch(book, f"{base}/config", body), 400)
    assert book.files[RELAY_FILE].decode() == COMMENTED


@pytest.mark.parametrize(
    ("base", "change", "word"),
    [
        (OUTPUT, {"provider": "openai_realtime"}, "provider"),
        (OUTPUT, {"codec": "ogg"}, "codec"),
        (LAB, {"language": "en"}, "language"),
        (AGENT, {"provider": "openai_tts"}, "provider"),
        (AGENT, {"promote_after_ms": 120_001}, "promote_after_ms"),
        (AGENT, {"run_retention_days": 1}, "run_retention_days"),
    ],
)
def test_bad_changes_of_one_family(base: str, change: object, word: str) -> None:
    assert word in text_of(patch(voice_book()[0], f"{base}/config", change), 400)


@pytest.mark.parametrize("profile", ["nobody", "..", "a%2Fb"])
def test_a_profile_that_is_not_there(profile: str) -> None:
    book, _ = voice_book({AGENT_FILE: "model: x\n"})
    text_of(patch(book, f"{OUTPUT}/config?profile={profile}", {"enabled": True}), 404)
    assert book.files == {AGENT_FILE: b"model: x\n"}


@pytest.mark.parametrize("step", [WriteConfig, Compute])
def test_a_file_that_cannot_be_written(step: type[object]) -> None:
    book, _ = voice_book({WORK: "model: y\n"})
    token = book.pair().token
    book.refuse = (step,)
    answer = book.request("PATCH", f"{OUTPUT}/config?profile=work", {"enabled": True}, token=token)
    assert "configuration file" in text_of(answer, 404)
    assert book.files[WORK] == b"model: y\n"


def test_a_file_that_is_no_text() -> None:
    book, _ = voice_book()
    book.files[RELAY_FILE] = b"\xff\xfe"
    assert "UTF-8" in text_of(patch(book, f"{OUTPUT}/config", {"enabled": True}), 404)
    del book.files[RELAY_FILE]
    book.disk.folder("/home/svc-relay/config.yaml")
    assert "read" in text_of(patch(book, f"{OUTPUT}/config", {"enabled": True}), 404)


def test_changes_wait_for_each_other() -> None:
    book, _ = voice_book()
    token = book.pair().token
    book.hold = (WriteConfig,)
    first = book.call("PATCH", f"{OUTPUT}/config", {"voice": "rex"}, token=token)
    second = book.call("PATCH", f"{LAB}/config", {"voice": "leo"}, token=token)
    assert len(book.held) == 1
    book.hold = ()
    book.release()
    assert (first.result.status, second.result.status) == (200, 200)
    assert book.files[RELAY_FILE] == b"voice_output:\n  voice: rex\nrealtime_voice:\n  voice: leo\n"


def test_an_api_bearer_changes_the_relays_settings_and_no_profile() -> None:
    book, _ = voice_book({WORK: "model: y\n"})
    book.upstream = lambda head: (200, b"{}")
    path = f"{OUTPUT}/config"
    assert book.request("PATCH", path, {"voice": "rex"}, token="key").status == 200
    assert "session" in text_of(book.request("PATCH", f"{path}?profile=work", {"voice": "rex"}, token="key"), 403)
    assert "session" in text_of(book.request("PATCH", path, {"voice": "x", "profile": "work"}, token="key"), 403)
    assert book.files[WORK] == b"model: y\n"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/voice/nothing", b"", 404),
        ("GET", "/voice/output/session", b"", 405),
        ("DELETE", "/voice/realtime/config", b"", 405),
        ("PATCH", "/voice/output/config", b"x" * (BODY_LIMIT + 1), 413),
        ("POST", "/voice/realtime-agent/session", b"x" * (BODY_LIMIT + 1), 413),
    ],
)
def test_what_no_handler_sees_is_refused_in_text_as_well(method: str, path: str, body: bytes, status: int) -> None:
    """Wire terminal-voice 3: JSON is the way of `/voice/config`, `/transcribe` and `/synthesize` alone."""
    book, _ = voice_book()
    answer = book.request(method, path, body, token=book.pair().token)
    assert "{" not in text_of(answer, status)
