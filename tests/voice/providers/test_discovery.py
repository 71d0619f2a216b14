from typing import Any

import pytest
import yaml

from svc_proto.voice.providers.discovery import MAX_OFFERED, MAX_PAGES, DiscoveryResult, ProviderVoice
from tests.support.servers.realtime_server import XaiRealtimeServer
from tests.support.servers.speech_server import ElevenLabsServer, Plain, Refusal, Reply, Sound
from tests.voice.providers.provider_harness import KEY, ProviderHarness, problem

VOICES = f"""
voices:
- {{voice_id: v1, name: Rachel, category: premade}}
- {{voice_id: v2, name: Me, category: cloned}}
- {{voice_id: v1, name: Twice}}
- {{name: no id}}
- {{voice_id: {"x" * 160}}}
- {{voice_id: {"x" * 161}}}
- {{voice_id: "line\\nbreak"}}
- text
"""
MODELS = """
- {model_id: m1, name: One, languages: [{language_id: en, name: English}, {name: "?"}]}
- {model_id: m2, can_do_text_to_speech: false, languages: 5}
- {model_id: m3, can_do_text_to_speech: true}
"""
PAGES = """
- {voices: [{voice_id: eve, name: Eve}]}
- {voices: [{voice_id: mine}, {voice_id: eve, name: Not she}, {}], pagination_token: p 2}
- {voices: [{id: other, name: Other}]}
"""


def found(peer: Any, provider: str, **variables: str) -> DiscoveryResult | None:
    return ProviderHarness(peer, **variables).run(lambda providers, engine: providers.discover(provider))


def test_elevenlabs_voices_and_models() -> None:
    peer = ElevenLabsServer([Plain(yaml.safe_load(VOICES)), Plain(yaml.safe_load(MODELS))])
    assert found(peer, "elevenlabs_tts") == DiscoveryResult(
        source="elevenlabs_api",
        voices=(
            ProviderVoice("v1", "Twice"),
            ProviderVoice("v2", "Me", custom=True),
            ProviderVoice("x" * 160, "x" * 160),
        ),
        models=("m1", "m3"),
        model_labels={"m1": "One", "m3": "m3"},
        languages=("en",),
        language_labels={"en": "English"},
    )
    assert [asked.target for asked in peer.seen] == ["/v1/voices", "/v1/models"]
    assert {asked.headers.get(b"xi-api-key") for asked in peer.seen} == {KEY.encode()}


def test_xai_voices_and_custom_voices() -> None:
    peer = XaiRealtimeServer(map(Plain, yaml.safe_load(PAGES)))
    own = (ProviderVoice("mine", "mine", custom=True), ProviderVoice("other", "Other", custom=True))
    assert found(peer, "xai_tts") == DiscoveryResult(source="xai_api", voices=(ProviderVoice("eve", "Eve"), *own))
    pages = ["/v1/custom-voices?limit=100", "/v1/custom-voices?limit=100&pagination_token=p%202"]
    assert [asked.target for asked in peer.seen] == ["/v1/tts/voices", *pages]


@pytest.mark.parametrize("status", [403, 404])
def test_account_without_custom_voices(status: int) -> None:
    peer = XaiRealtimeServer([Plain({"voices": [{"voice_id": "eve"}]}), Refusal(status)])
    assert found(peer, "xai_realtime") == DiscoveryResult(source="xai_api", voices=(ProviderVoice("eve", "eve"),))


@pytest.mark.parametrize(
    ("first", "tokens", "asked"),
    [
        ({"voices": []}, [f"p{number}" for number in range(30)], MAX_PAGES + 1),
        ([], ["same"] * 5, 3),
        ({"voices": [{"voice_id": f"v{number}"} for number in range(MAX_OFFERED)]}, ["a", "b"], 2),
    ],
)
def test_pages_come_to_an_end(first: object, tokens: list[str], asked: int) -> None:
    peer = XaiRealtimeServer([Plain(first), *(Plain({"voices": [], "pagination_token": token}) for token in tokens)])
    found(peer, "xai")
    assert len(peer.seen) == asked


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Refusal(401, {"detail": "bad"}), "ElevenLabs does not accept the configured API key"),
        (Sound(b"<html>", "text/html"), "ElevenLabs answered with something that is no list"),
        (Plain({}, before=6.0), "ElevenLabs did not answer in time"),
    ],
)
def test_error_texts(reply: Reply, words: str) -> None:
    assert str(problem(lambda: found(ElevenLabsServer([reply]), "elevenlabs"))) == words


@pytest.mark.parametrize("value", [None, 5, [], {"voices": {}}, {"voices": [None, [], {}]}])
def test_invalid_lists(value: Any) -> None:
    assert found(ElevenLabsServer([Plain(value), Plain(value)]), "elevenlabs") == DiscoveryResult(
        source="elevenlabs_api"
    )


def test_no_request_without_a_key() -> None:
    assert problem(lambda: found(None, "elevenlabs", ELEVENLABS_API_KEY="")).variable == "ELEVENLABS_API_KEY"


@pytest.mark.parametrize("provider", ["openai_tts", "stub", "local"])
def test_providers_without_discovery(provider: str) -> None:
    assert found(None, provider) is None
