"""The voice routes for settings, provider options and validation (wire terminal-voice 4.3 to 4.5, 5, 6.1)."""

import json

import pytest
import yaml

from svc_proto.commands import WriteConfig
from svc_proto.engine.router import BODY_LIMIT
from svc_proto.voice.providers.discovery import DiscoveryResult, ProviderVoice
from tests.relay.routes.voice_dialogue import Routes, dialogues, play
from tests.relay.routes.voice_harness import (
    BASES,
    FIRST_15,
    RELAY_FILE,
    SECTIONS,
    VoiceRoutesHarness,
    get,
    strict,
    text_of,
)

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
CHANGED = COMMENTED.replace('"eve"', '"rex"').replace(
    "  enabled: true\n", "  enabled: true\n  provider: xai_tts\n  sample_rate: 16000\n"
)
DEFAULTS = "default_provider: xai_tts, default_model: xai-tts, default_voice: eve, sample_rate: 24000, language: en"
SCOPE = "profile: null, config_scope: relay, fallback_to_global: false"
SPEECH = f"""
{{success: true, enabled: true, protocol: svc.voice.output.v0, config_path: {RELAY_FILE}, {DEFAULTS}, {SCOPE},
 codec: pcm, optimize_streaming_latency: 1, text_normalization: false, fallback_enabled: true, auto_speech_tags: false,
 fallback_provider: legacy_svc_tts, auth: {{xai_env: false, xai_env_names: [], xai_oauth: false, xai_oauth_source: null,
 openai_env: true, openai_env_names: [OPENAI_API_KEY], elevenlabs_env: false, elevenlabs_env_names: []}}}}
"""
FOUND = DiscoveryResult(
    source="xai_api",
    voices=(ProviderVoice("eve", "Eve!"), ProviderVoice("mine", "My voice", custom=True)),
    models=("xai-tts-2",),
    model_labels={"xai-tts-2": "Second"},
    languages=("de",),
    language_labels={"de": "German"},
)
DIALOGUES = f"""
the lab by default
    GET realtime/config -> 200 protocol = "svc.voice.realtime.v0"; auth.xai_oauth_paths = []
        -> ; default_provider = "xai_realtime"; default_model = "grok-voice-latest"; default_voice = "eve"
        -> ; sample_rate = 24000; providers.*.id = ["elevenlabs_tts", "local", "openai_realtime", "openai_tts", "stub",
        -> "xai_realtime", "xai_tts"]
the agent by default
    key GROK_API_KEY a-secret
    GET realtime-agent/config -> 200 available = true; experimental = true; mode = "realtime_agent"
        -> ; protocol = "svc.voice.realtime_agent.v0"; stable_engine = "svc_voice_output"
        -> ; tool_surface = ["svc_run_task", "svc_get_status", "svc_cancel", "svc_confirm"]
        -> ; limits.2 has "resume window"
        -> ; promotion = {{"enabled": true, "promote_after_ms": 6000, "background_default_mode": "promote",
        -> "spoken_handoff": true, "progress_spoken_after_ms": 0, "progress_repeat_ms": 30000,
        -> "result_delivery": "speak_verbatim", "max_background_runs": 1}}
        -> ; providers.*.id = ["elevenlabs_tts", "local", "openai_realtime", "openai_tts", "stub", "xai_realtime",
        -> "xai_tts"]
        -> ; providers.*.supports_realtime_agent_native = [false, false, true, false, false, true, false]
        -> ; providers.2.supports_realtime = true; providers.2.supports_speech_to_speech = true
        -> ; providers.2.supports_tool_use = true; auth.xai_env_names = ["GROK_API_KEY"]
        -> ; auth.xai_oauth_configured = false; auth.openai_env = false
an agent that cannot be used without a key, needs none, and is turned off
    GET realtime-agent/config -> 200 available = false
    text relay "realtime_voice: {{provider: stub}}"
    GET realtime-agent/config -> 200 available = true
    text relay "realtime_voice: {{provider: stub, enabled: false}}"
    GET realtime-agent/config -> 200 available = false
the words of the other brand
    hermes
    GET output/config -> 200 fallback_provider = "legacy_hermes_tts"
    GET realtime-agent/config -> 200 protocol = "hermes.voice.realtime_agent.v0"
        -> ; stable_engine = "hermes_voice_output"; tool_surface.0 = "hermes_run_task"
a change of the relay's own settings
    text relay {json.dumps(COMMENTED)}
    PATCH output/config {{"voice": "rex", "provider": "grok", "sample_rate": "16000"}} -> 200
        -> updated = ["provider", "sample_rate", "voice"]; config_path = "{RELAY_FILE}"; default_voice = "rex"
        -> ; default_provider = "xai_tts"; sample_rate = 16000
    kept relay {json.dumps(CHANGED)}
    GET output/config -> 200 default_voice = "rex"
a file that is not there is made
    PATCH realtime/config {{"enabled": "off"}} -> 200
    kept relay "realtime_voice:\\n  enabled: false\\n"
what stands in tts is taken along when a section is made
    file work {{tts: {{provider: openai, openai: {{model: tts-1, voice: nova}}}}}}
    PATCH output/config?profile=work {{"language": "de"}} -> 200 updated = ["language"]
    section work {{provider: openai_tts, model: tts-1, voice: nova, language: de}}
but not when another provider is named
    file work {{tts: {{provider: openai, openai: {{model: tts-1, voice: nova}}}}}}
    PATCH output/config?profile=work {{"provider": "stub"}} -> 200 updated = ["provider"]
    section work {{provider: stub}}
nor where there is one
    file work {{tts: {{provider: openai, openai: {{model: tts-1, voice: nova}}}}, voice_output: {{codec: wav}}}}
    PATCH output/config?profile=work {{"language": "de"}} -> 200 updated = ["language"]
    section work {{codec: wav, language: de}}
what only the agent has
    PATCH realtime-agent/config {{"promote_after_ms": 0}} -> 200 promotion.promote_after_ms = 0
    PATCH realtime-agent/config {{"promotion_enabled": "off"}} -> 200
        -> promotion.enabled = false; promotion.promote_after_ms = 0
    PATCH realtime/config {{"promotion_enabled": true}} -> 400 ~ known
bad changes of one family
    PATCH output/config {{"provider": "openai_realtime"}} -> 400 ~ provider
    PATCH realtime/config {{"language": "en"}} -> 400 ~ language
    PATCH realtime-agent/config {{"provider": "openai_tts"}} -> 400 ~ provider
    PATCH realtime-agent/config {{"run_retention_days": 1}} -> 400 ~ run_retention_days
a profile that is not there
    text agent "model: x\\n"
    PATCH output/config?profile=absent {{"enabled": true}} -> 404
    PATCH output/config?profile=.. {{"enabled": true}} -> 404
    PATCH output/config?profile=a%2Fb {{"enabled": true}} -> 404
    kept agent "model: x\\n"
    kept relay null
    kept work null
an API bearer changes the relay's settings and no profile
    api_bearer key
    text work "model: y\\n"
    PATCH output/config {{"voice": "rex"}} -> 200
    PATCH output/config?profile=work {{"voice": "rex"}} -> 403 ~ session
    PATCH output/config {{"voice": "x", "profile": "work"}} -> 403 ~ session
    kept work "model: y\\n"
"""


CHOICES = """
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
what was found is not kept
    options_kept 0
    text env "XAI_API_KEY=first"
    offers
    GET output/providers/xai_tts/options -> 200 dynamic.cache = "no cache"
    GET output/providers/xai_tts/options -> 200 dynamic.cache = "no cache"
    asked 2
a provider that offers what the tables have
    GET output/providers/stub/options -> 200 protocol = "svc.voice.output.options.v0"; mode = "voice_output"
        -> ; schema_version = 1; provider.models = ["stub-tone"]; provider.voices = ["sine"]
        -> ; dynamic = {"attempted": false, "status": "static", "source": "provider_info"}
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
"""


class Stage(Routes):
    def offers(self) -> None:
        """Let the vendor's discovery return the models and voices in `FOUND`."""
        self.book.scripted_providers.found = FOUND


@pytest.mark.parametrize(("title", "lines"), dialogues(DIALOGUES + CHOICES).items())
def test_a_dialogue(title: str, lines: list[str]) -> None:
    play(lines, Stage())


def test_defaults_of_speech_output() -> None:
    found = get(VoiceRoutesHarness(variables={"OPENAI_API_KEY": "a secret"}), "/voice/output/config")
    strict(found)
    providers = found.pop("providers")
    assert found == yaml.safe_load(SPEECH)
    assert [each["id"] for each in providers] == ["elevenlabs_tts", "local", "openai_tts", "stub", "xai_tts"]
    assert all(list(each) == FIRST_15 for each in providers)


PROFILE = """
    text work "# theirs\\nmodel: y\\n"
    PATCH BASE/config?profile=work {"provider": "stub"} -> 200 profile = "work"; config_scope = "profile"
        -> ; fallback_to_global = false; config_path = "/home/svc/profiles/work/config.yaml"; default_provider = "stub"
        -> ; default_voice = "sine"; updated = ["provider"]
    kept work "# theirs\\nmodel: y\\nSECTION:\\n  provider: stub\\n"
    kept relay null
"""
BAD = f"""
    text relay {json.dumps(COMMENTED)}
    PATCH BASE/config -> 400 ~ JSON object
    PATCH BASE/config {{"url": "http://evil"}} -> 400 ~ url
    PATCH BASE/config {{"voice": "a\\nb"}} -> 400 ~ voice
    kept relay {json.dumps(COMMENTED)}
"""
IN_THE_BODY = PROFILE.replace("config?profile=work {", 'config {"profile": "work", ')


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("lines", [PROFILE, IN_THE_BODY, BAD], ids=["query", "body", "bad"])
def test_a_change_of_each_family(base: str, lines: str) -> None:
    named = lines.replace("BASE", base.removeprefix("/voice/")).replace("SECTION", SECTIONS[base])
    play(dialogues(f"one\n{named}")["one"])


def test_changes_wait_for_each_other() -> None:
    book = VoiceRoutesHarness()
    token = book.pair().token
    book.hold = (WriteConfig,)
    first = book.call("PATCH", "/voice/output/config", {"voice": "rex"}, token=token)
    second = book.call("PATCH", "/voice/realtime/config", {"voice": "leo"}, token=token)
    assert len(book.held) == 1
    book.hold = ()
    book.release()
    assert (first.result.status, second.result.status) == (200, 200)
    assert book.disk.get(RELAY_FILE) == b"voice_output:\n  voice: rex\nrealtime_voice:\n  voice: leo\n"


@pytest.mark.parametrize(("method", "path"), [("PATCH", "output/config"), ("POST", "realtime-agent/session")])
def test_too_large_body_is_refused_in_plain_text(method: str, path: str) -> None:
    """Refuse a too large body in plain text, not in JSON (wire terminal-voice 3)."""
    book = VoiceRoutesHarness()
    answer = book.request(method, f"/voice/{path}", b"x" * (BODY_LIMIT + 1), token=book.pair().token)
    assert "{" not in text_of(answer, 413)


THERE = """
output: local, xai_tts, stub, -openai_realtime, -absent
realtime: xai, local, -stub, -xai_tts
realtime-agent: stub, local, openai-realtime, -elevenlabs, -%0a%07
"""


@pytest.mark.parametrize(
    ("base", "name"), [(base, name) for base, names in yaml.safe_load(THERE).items() for name in names.split(", ")]
)
def test_providers_with_options(base: str, name: str) -> None:
    book = VoiceRoutesHarness(variables={"OPENAI_API_KEY": "k", "XAI_API_KEY": "k"})
    token, path = book.pair().token, f"/voice/{base}/providers/{name.removeprefix('-')}"
    options = book.request("GET", f"{path}/options", token=token)
    checked = book.request("POST", f"{path}/validate", {}, token=token)
    if name.startswith("-"):
        assert text_of(options, 400) == text_of(checked, 400)
        return
    assert (options.status, checked.status) == (200, 200)
    assert ("language" in options.json, "language" in checked.json) == (base == "output",) * 2
    assert ("tool_surface" in options.json) == (base == "realtime-agent")


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("installed", [True, False])
def test_default_provider_has_options(base: str, installed: bool) -> None:
    """Check that a client can list the options of the provider that a session gets by default."""
    default = "local" if installed else "xai_tts" if base == BASES[0] else "xai_realtime"
    place = base.removeprefix("/voice/")
    lines = [
        *(["local"] if installed else []),
        f'GET {place}/config -> 200 default_provider = "{default}"',
        f'GET {place}/providers/{default}/options -> 200 provider.id = "{default}"',
        f"POST {place}/providers/{default}/validate {{}} -> 200 valid = true",
        f'POST {place}/session {{}} -> 200 provider = "{default}"',
    ]
    play(lines)


def test_no_secret_in_answers_or_logs() -> None:
    book = VoiceRoutesHarness(variables={"XAI_API_KEY": "very secret"})
    book.secrets.add("very secret")
    book.scripted_providers.found = FOUND
    for base in BASES:
        for path in ("config", "providers/xai/options"):
            answer = book.request("GET", f"{base}/{path}", token=book.pair().token)
            assert b"very secret" not in answer.body
    assert book.leaks() == []
