"""Options of the three families, and checks of a choice (wire terminal-voice 4.4, 4.5, 5, 6.1)."""

from __future__ import annotations

import pytest

from svc_proto.voice.contract import ProviderError
from svc_proto.voice.providers.discovery import Discovered, OfferedVoice
from svc_proto.voice_config import VoiceConfig
from tests.relay.routes.voice_world import (
    AGENT,
    AGENT_FILE,
    BASES,
    FIRST_15,
    LAB,
    OUTPUT,
    WORK,
    get,
    put_yaml,
    strict,
    text_of,
    validate,
    voice_book,
)
from tests.relay.world import Answer

STATIC = {"attempted": False, "status": "static", "source": "provider_info"}
FOUND = Discovered(
    source="xai_api",
    voices=(OfferedVoice("eve", "Eve!"), OfferedVoice("mine", "My voice", custom=True)),
    models=("xai-tts-2",),
    model_labels={"xai-tts-2": "Second"},
    languages=("de",),
    language_labels={"de": "German"},
)


def test_the_options_of_the_tables() -> None:
    book, _ = voice_book()
    found = get(book, f"{OUTPUT}/providers/stub/options")
    strict(found)
    provider = found.pop("provider")
    assert found == {
        "success": True,
        "mode": "voice_output",
        "protocol": "svc.voice.output.options.v0",
        "schema_version": 1,
        "provider_id": "stub",
        "default_provider": "xai_tts",
        "default_model": "xai-tts",
        "default_voice": "eve",
        "sample_rate": 24000,
        "language": "en",
        "profile": None,
        "config_scope": "relay",
        "fallback_to_global": False,
        "dynamic": STATIC,
    }
    assert list(provider)[:15] == FIRST_15
    assert (provider["models"], provider["voices"]) == (["stub-tone"], ["sine"])


def test_what_the_vendor_offers_is_added() -> None:
    book, puppets = voice_book(variables={"XAI_API_KEY": "k"})
    puppets.found = FOUND
    found = get(book, f"{OUTPUT}/providers/xai/options")
    strict(found)
    provider = found["provider"]
    assert found["dynamic"] == {
        "attempted": True,
        "status": "ok",
        "source": "xai_api",
        "voice_count": 2,
        "custom_voice_count": 1,
        "model_count": 1,
    }
    assert provider["voices"] == ["eve", "ara", "rex", "sal", "leo", "mine"]
    assert provider["models"] == ["xai-tts", "xai-tts-2"]
    assert provider["languages"] == ["en", "de"]
    assert (provider["model_labels"], provider["language_labels"]) == ({"xai-tts-2": "Second"}, {"de": "German"})
    assert (provider["voice_labels"]["eve"], provider["voice_labels"]["mine"]) == ("Eve!", "My voice")
    assert provider["recommended_voices"] == ["eve", "ara", "sal"]
    assert provider["model_voice_compatibility"] == {"xai-tts": provider["voices"]}
    assert [(group["id"], group["custom"], group["values"][-1]) for group in provider["voice_groups"]] == [
        ("xai_builtin", False, "leo"),
        ("xai_custom", True, "mine"),
    ]
    assert provider["voice_metadata"]["mine"] == {
        "source": "xai_api",
        "custom": True,
        "recommended": False,
        "experimental": False,
        "requires_manual_id": False,
        "label": "My voice",
    }


@pytest.mark.parametrize(
    ("lasts", "seconds", "key", "hit"),
    [(600, 599.0, "first", True), (600, 600.0, "first", False), (600, 0.0, "second", False), (0, 0.0, "first", False)],
)
def test_what_was_found_is_kept_for_a_while(lasts: int, seconds: float, key: str, hit: bool) -> None:
    """By the key: another one is another account."""
    config = VoiceConfig(home="/home/svc-relay", service_home="/home/svc", config_path=AGENT_FILE, options_cache=lasts)
    book, puppets = voice_book({"/home/svc/.env": "XAI_API_KEY=first"}, voice=config)
    puppets.found = FOUND
    path = f"{OUTPUT}/providers/xai_tts/options"
    get(book, path)
    book.after(seconds)
    book.files["/home/svc/.env"] = f"XAI_API_KEY={key}".encode()
    again = get(book, path)["dynamic"]
    assert (again.get("cache"), again.get("cache_ttl_seconds")) == (("hit", 600) if hit else (None, None))
    assert len(puppets.asked) == 2 - hit


def test_a_vendor_that_cannot_be_asked() -> None:
    book, puppets = voice_book()
    path = f"{OUTPUT}/providers/xai_tts/options"
    found = get(book, path)
    assert found["dynamic"] == {**STATIC, "status": "auth_missing", "message": "XAI_API_KEY not set"}
    assert found["provider"]["voices"] == ["eve", "ara", "rex", "sal", "leo"]
    (group,) = found["provider"]["voice_groups"]
    assert (group["id"], group["source"], group["recommended"]) == ("xai_builtin", "xai_docs", ["eve", "ara", "sal"])

    def discover(provider_id: str) -> object:
        raise ProviderError("xAI answered with 500")

    puppets.discover = discover  # type: ignore[assignment,method-assign]  # a vendor in trouble
    dynamic = get(book, path)["dynamic"]
    assert dynamic == {
        "attempted": True,
        "status": "error",
        "source": "provider_info",
        "message": "xAI answered with 500",
    }


@pytest.mark.parametrize(
    ("base", "provider", "there"),
    [
        (OUTPUT, "openai_realtime", False),
        (OUTPUT, "nobody", False),
        (OUTPUT, "local", True),
        (LAB, "stub", False),
        (LAB, "xai_tts", False),
        (LAB, "xai", True),
        (LAB, "local", True),
        (AGENT, "stub", True),
        (AGENT, "local", True),
        (AGENT, "elevenlabs", False),
        (AGENT, "openai-realtime", True),
        (AGENT, "%0a%07", False),
    ],
)
def test_whose_options_there_are(base: str, provider: str, there: bool) -> None:
    book, _ = voice_book(variables={"OPENAI_API_KEY": "k", "XAI_API_KEY": "k"})
    token = book.pair().token
    options = book.request("GET", f"{base}/providers/{provider}/options", token=token)
    checked = book.request("POST", f"{base}/providers/{provider}/validate", {}, token=token)
    if there:
        assert (options.status, checked.status) == (200, 200)
        assert ("language" in options.json, "language" in checked.json) == (base == OUTPUT,) * 2
        assert ("tool_surface" in options.json) == (base == AGENT)
    else:
        assert text_of(options, 400) == text_of(checked, 400)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("installed", [True, False])
def test_what_is_the_default_has_options(base: str, installed: bool) -> None:
    """Where a session is made with it, a client can ask what there is to choose."""
    book, puppets = voice_book()
    puppets.local = installed
    token = book.pair().token
    default = book.request("GET", f"{base}/config", token=token).json["default_provider"]
    assert default == ("local" if installed else "xai_tts" if base == OUTPUT else "xai_realtime")
    assert book.request("GET", f"{base}/providers/{default}/options", token=token).json["provider"]["id"] == default
    assert book.request("POST", f"{base}/providers/{default}/validate", {}, token=token).json["valid"] is True
    assert book.request("POST", f"{base}/session", {}, token=token).json["provider"] == default


# --- validate -------------------------------------------------------------------------------------------------------


def statuses(answer: Answer) -> dict[str, str]:
    return {check["id"]: check["status"] for check in answer.json["checks"]}


def test_the_example() -> None:
    book, _ = voice_book()
    answer = validate(book, f"{OUTPUT}/providers/xai_tts/validate", {"voice": "zed", "sample_rate": 16000})
    assert answer.status == 200
    checks = answer.json.pop("checks")
    assert [(check["id"], check["status"]) for check in checks] == [
        ("model_known", "ok"),
        ("voice_compatible", "error"),
        ("sample_rate_known", "error"),
        ("language_known", "ok"),
    ]
    assert all(check["message"] for check in checks)


@pytest.mark.parametrize(
    ("base", "provider", "body", "expected", "valid"),
    [
        (OUTPUT, "xai_tts", {"model": " "}, {"model_present": "error"}, False),
        (OUTPUT, "elevenlabs", {"voice": "custom"}, {"voice_known": "warning"}, True),
        (OUTPUT, "stub", None, {"model_known": "ok", "voice_known": "ok", "sample_rate_known": "ok"}, True),
        (LAB, "xai", {"sample_rate": "24000"}, {"sample_rate_known": "ok"}, True),
        (AGENT, "stub", {"voice": "x", "language": "de"}, {"voice_known": "warning"}, True),
    ],
)
def test_checks(base: str, provider: str, body: object, expected: dict[str, str], valid: bool) -> None:
    book, _ = voice_book()
    answer = validate(book, f"{base}/providers/{provider}/validate", body)
    assert answer.status == 200, answer
    assert expected.items() <= statuses(answer).items()
    assert (answer.json["valid"], answer.json["summary"]) == (valid, "ok" if valid else "invalid")
    assert ("language_known" in statuses(answer)) == (base == OUTPUT)
    assert answer.json["dynamic"] == STATIC


def test_voices_that_were_found_are_known() -> None:
    book, puppets = voice_book(variables={"XAI_API_KEY": "k"})
    puppets.found = FOUND
    path = f"{OUTPUT}/providers/xai_tts"
    assert statuses(validate(book, f"{path}/validate", {"voice": "mine"}))["voice_compatible"] == "error"
    get(book, f"{path}/options")
    answer = validate(book, f"{path}/validate", {"voice": "mine"})
    assert (statuses(answer)["voice_known"], answer.json["dynamic"]["cache"]) == ("ok", "hit")
    assert len(puppets.asked) == 1


def test_what_is_not_said_comes_from_the_settings() -> None:
    said = {"voice_output": {"provider": "openai", "openai": {"voice": "nova"}, "sample_rate": 8000}}
    book, _ = voice_book({WORK: put_yaml(said)})
    answer = validate(book, f"{OUTPUT}/providers/openai_tts/validate", {"profile": "work"})
    assert (answer.json["voice"], answer.json["sample_rate"]) == ("nova", 8000)
    answer = validate(book, f"{OUTPUT}/providers/stub/validate?profile=work", {})
    assert (answer.json["voice"], answer.json["sample_rate"]) == ("sine", 16000)


@pytest.mark.parametrize("provider", ["stub", "elevenlabs_tts", "openai_tts"])
def test_a_rate_that_the_provider_has_is_that_of_the_settings(provider: str) -> None:
    """Wire 4.5: what is missing comes from the settings; a session (4.6) would get the same."""
    book, _ = voice_book()
    token = book.pair().token
    said = validate(book, f"{OUTPUT}/providers/{provider}/validate", {})
    made = book.request("POST", f"{OUTPUT}/session", {"provider": provider}, token=token)
    assert said.json["sample_rate"] == made.json["sample_rate"] == 24000


@pytest.mark.parametrize("body", [b"{", [], {"sample_rate": "many"}, {"model": 5}, {"profile": {}}])
def test_bad_choices(body: object) -> None:
    text_of(validate(voice_book()[0], f"{OUTPUT}/providers/stub/validate", body), 400)


def test_no_secret_is_told() -> None:
    book, puppets = voice_book(variables={"XAI_API_KEY": "very secret"})
    book.secrets.add("very secret")
    puppets.found = FOUND
    for base in BASES:
        for path in ("config", "providers/xai/options"):
            answer = book.request("GET", f"{base}/{path}", token=book.pair().token)
            assert b"very secret" not in answer.body
    assert book.leaks() == []
