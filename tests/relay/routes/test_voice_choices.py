"""Options of the three families, and checks of a choice (wire terminal-voice 4.4, 4.5, 5, 6.1)."""

from __future__ import annotations

import pytest
import yaml

from svc_proto.voice.contract import ProviderError
from svc_proto.voice.providers.discovery import Discovered, OfferedVoice
from tests.relay.routes.voice_dialogue import Routes, dialogues, play
from tests.relay.routes.voice_world import AGENT, BASES, FIRST_15, OUTPUT, get, strict, text_of, voice_book

FOUND = Discovered(
    source="xai_api",
    voices=(OfferedVoice("eve", "Eve!"), OfferedVoice("mine", "My voice", custom=True)),
    models=("xai-tts-2",),
    model_labels={"xai-tts-2": "Second"},
    languages=("de",),
    language_labels={"de": "German"},
)
STUB = """
success: true
mode: voice_output
protocol: svc.voice.output.options.v0
schema_version: 1
provider_id: stub
default_provider: xai_tts
default_model: xai-tts
default_voice: eve
sample_rate: 24000
language: en
profile: null
config_scope: relay
fallback_to_global: false
dynamic: {attempted: false, status: static, source: provider_info}
"""
DIALOGUES = """
what the vendor offers is added
    key XAI_API_KEY k
    offers
    GET output/providers/xai/options -> 200
        -> dynamic = {"attempted": true, "status": "ok", "source": "xai_api", "voice_count": 2, "custom_voice_count": 1,
        -> "model_count": 1}
        -> ; provider.voices = ["eve", "ara", "rex", "sal", "leo", "mine"]; provider.models = ["xai-tts", "xai-tts-2"]
        -> ; provider.languages = ["en", "de"]; provider.model_labels = {"xai-tts-2": "Second"}
        -> ; provider.language_labels = {"de": "German"}; provider.voice_labels.eve = "Eve!"
        -> ; provider.voice_labels.mine = "My voice"; provider.recommended_voices = ["eve", "ara", "sal"]
        -> ; provider.model_voice_compatibility = {"xai-tts": ["eve", "ara", "rex", "sal", "leo", "mine"]}
        -> ; provider.voice_groups.*.id = ["xai_builtin", "xai_custom"]
        -> ; provider.voice_groups.*.custom = [false, true]; provider.voice_groups.0.values.4 = "leo"
        -> ; provider.voice_groups.0.values.5 = "no 5"; provider.voice_groups.1.values = ["mine"]
        -> ; provider.voice_metadata.mine = {"source": "xai_api", "custom": true, "recommended": false,
        -> "experimental": false, "requires_manual_id": false, "label": "My voice"}
what was found is kept for a while
    options_kept 600
    text env "XAI_API_KEY=first"
    offers
    GET output/providers/xai_tts/options -> 200 dynamic.cache = "no cache"
    GET output/providers/xai_tts/options -> 200 dynamic.cache = "hit"; dynamic.cache_ttl_seconds = 600
    asked 1
    text env "XAI_API_KEY=another account"
    GET output/providers/xai_tts/options -> 200 dynamic.cache = "no cache"
        -> ; dynamic.cache_ttl_seconds = "no cache_ttl_seconds"
    asked 2
what was found is not kept
    options_kept 0
    text env "XAI_API_KEY=first"
    offers
    GET output/providers/xai_tts/options -> 200 dynamic.cache = "no cache"
    GET output/providers/xai_tts/options -> 200 dynamic.cache = "no cache"
    asked 2
a vendor that cannot be asked
    GET output/providers/xai_tts/options -> 200 provider.voices = ["eve", "ara", "rex", "sal", "leo"]
        -> ; dynamic = {"attempted": false, "source": "provider_info", "status": "auth_missing",
        -> "message": "XAI_API_KEY not set"}
        -> ; provider.voice_groups.*.id = ["xai_builtin"]; provider.voice_groups.0.source = "xai_docs"
        -> ; provider.voice_groups.0.recommended = ["eve", "ara", "sal"]
    in_trouble xAI answered with 500
    GET output/providers/xai_tts/options -> 200 dynamic = {"attempted": true, "status": "error",
        -> "source": "provider_info", "message": "xAI answered with 500"}
the example
    POST output/providers/xai_tts/validate {"voice": "zed", "sample_rate": 16000} -> 200
        -> checks.*.id = ["model_known", "voice_compatible", "sample_rate_known", "language_known"]
        -> ; checks.*.status = ["ok", "error", "error", "ok"]; valid = false; summary = "invalid"
        -> ; checks.1.message = "the model xai-tts has no voice zed"
        -> ; checks.2.message = "16000 Hz is not one of 24000"; dynamic.status = "static"
a voice that may be somebody's own
    POST output/providers/elevenlabs/validate {"voice": "custom"} -> 200 checks.1.id = "voice_known"; valid = true
        -> ; checks.1.status = "warning"; summary = "ok"; checks.*.id has "language_known"
all that is set
    POST output/providers/stub/validate -> 200 checks.*.status = ["ok", "ok", "ok", "ok"]; valid = true
        -> ; checks.*.id = ["model_known", "voice_known", "sample_rate_known", "language_known"]
a family without languages
    POST realtime/providers/xai/validate {"sample_rate": "24000"} -> 200 valid = true
        -> ; checks.*.id = ["model_known", "voice_known", "sample_rate_known"]; checks.2.status = "ok"
    POST realtime-agent/providers/stub/validate {"voice": "x", "language": "de"} -> 200 checks.1.status = "warning"
        -> ; checks.*.id = ["model_known", "voice_known", "sample_rate_known"]; valid = true
voices that were found are known
    key XAI_API_KEY k
    offers
    POST output/providers/xai_tts/validate {"voice": "mine"} -> 200 checks.1.id = "voice_compatible"
        -> ; checks.1.status = "error"
    GET output/providers/xai_tts/options -> 200
    POST output/providers/xai_tts/validate {"voice": "mine"} -> 200 checks.1.id = "voice_known"
        -> ; checks.1.status = "ok"; dynamic.cache = "hit"
    asked 1
what is not said comes from the settings
    file work {voice_output: {provider: openai, openai: {voice: nova}, sample_rate: 8000}}
    POST output/providers/openai_tts/validate {"profile": "work"} -> 200 voice = "nova"; sample_rate = 8000
    POST output/providers/stub/validate?profile=work {} -> 200 voice = "sine"; sample_rate = 16000
a rate that the provider has is that of the settings
    POST output/providers/stub/validate {} -> 200 sample_rate = 24000
    POST output/session {"provider": "stub"} -> 200 sample_rate = 24000
    POST output/providers/elevenlabs_tts/validate {} -> 200 sample_rate = 24000
    POST output/session {"provider": "elevenlabs_tts"} -> 200 sample_rate = 24000
bad choices
    POST output/providers/stub/validate { -> 400
    POST output/providers/stub/validate [] -> 400
    POST output/providers/stub/validate {"sample_rate": "many"} -> 400
    POST output/providers/stub/validate {"model": 5} -> 400
    POST output/providers/stub/validate {"profile": {}} -> 400
"""


class Stage(Routes):
    def offers(self) -> None:
        """What the vendor has."""
        self.found = FOUND

    def in_trouble(self, words: str, more: str = "") -> None:
        """From now on it cannot be asked."""

        def discover(provider_id: str) -> object:
            raise ProviderError(f"{words} {more}")

        self.puppets.discover = discover  # type: ignore[assignment,method-assign]  # a vendor in trouble


@pytest.mark.parametrize(("title", "lines"), dialogues(DIALOGUES).items())
def test_a_dialogue(title: str, lines: list[str]) -> None:
    play(lines, Stage())


def test_the_options_of_the_tables() -> None:
    found = get(voice_book()[0], f"{OUTPUT}/providers/stub/options")
    strict(found)
    provider = found.pop("provider")
    assert found == yaml.safe_load(STUB)
    assert list(provider)[:15] == FIRST_15
    assert (provider["models"], provider["voices"]) == (["stub-tone"], ["sine"])


THERE = """
output: local, xai_tts, stub, -openai_realtime, -nobody
realtime: xai, local, -stub, -xai_tts
realtime-agent: stub, local, openai-realtime, -elevenlabs, -%0a%07
"""


@pytest.mark.parametrize(
    ("base", "name"), [(base, name) for base, names in yaml.safe_load(THERE).items() for name in names.split(", ")]
)
def test_whose_options_there_are(base: str, name: str) -> None:
    book, _ = voice_book(variables={"OPENAI_API_KEY": "k", "XAI_API_KEY": "k"})
    token, path = book.pair().token, f"/voice/{base}/providers/{name.removeprefix('-')}"
    options = book.request("GET", f"{path}/options", token=token)
    checked = book.request("POST", f"{path}/validate", {}, token=token)
    if name.startswith("-"):
        assert text_of(options, 400) == text_of(checked, 400)
        return
    assert (options.status, checked.status) == (200, 200)
    assert ("language" in options.json, "language" in checked.json) == (base == "output",) * 2
    assert ("tool_surface" in options.json) == (f"/voice/{base}" == AGENT)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("installed", [True, False])
def test_what_is_the_default_has_options(base: str, installed: bool) -> None:
    """Where a session is made with it, a client can ask what there is to choose."""
    default = "local" if installed else "xai_tts" if base == OUTPUT else "xai_realtime"
    place = base.removeprefix("/voice/")
    lines = [
        *(["local"] if installed else []),
        f'GET {place}/config -> 200 default_provider = "{default}"',
        f'GET {place}/providers/{default}/options -> 200 provider.id = "{default}"',
        f"POST {place}/providers/{default}/validate {{}} -> 200 valid = true",
        f'POST {place}/session {{}} -> 200 provider = "{default}"',
    ]
    play(lines)


def test_no_secret_is_told() -> None:
    book, puppets = voice_book(variables={"XAI_API_KEY": "very secret"})
    book.secrets.add("very secret")
    puppets.found = FOUND
    for base in BASES:
        for path in ("config", "providers/xai/options"):
            answer = book.request("GET", f"{base}/{path}", token=book.pair().token)
            assert b"very secret" not in answer.body
    assert book.leaks() == []
