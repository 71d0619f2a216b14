"""The voice routes for settings, provider options and validation (wire terminal-voice 4.3 to 4.5, 5, 6.1)."""

import json

import pytest
import yaml

from svc_proto.commands import WriteConfig
from svc_proto.engine.router import BODY_LIMIT
from svc_proto.voice.providers.discovery import DiscoveryResult, ProviderVoice
from tests.relay.routes.voice_dialogue import Routes, dialogues, play, read_dialogues
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

COMMENTED = json.dumps('# mine\nvoice_output:\n  voice: "eve"  # quoted\n')
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


DIALOGUES = read_dialogues("relay/routes/voice_settings")


class Stage(Routes):
    def offers(self) -> None:
        """Let the vendor's discovery return the models and voices in `FOUND`."""
        self.book.scripted_providers.found = FOUND


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], Stage())


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
    text relay {COMMENTED}
    PATCH BASE/config -> 400 ~ JSON object
    PATCH BASE/config {{"url": "http://evil"}} -> 400 ~ url
    PATCH BASE/config {{"voice": "a\\nb"}} -> 400 ~ voice
    kept relay {COMMENTED}
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
