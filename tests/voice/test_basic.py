"""Which engine speaks and listens. The routes: tests/relay/routes/test_voice_basic.py."""

from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.voice.basic import BasicVoice, NoEngineError, spoken_text
from svc_proto.voice.contract import Recording
from svc_proto.voice.service import Voice
from tests.voice.plans import run


@pytest.mark.parametrize(
    ("text", "said"), [(" Hello. ", "Hello."), ("**x**" + "y" * 4995, "x" + "y" * 4995), ("x", "x")]
)
def test_a_text_to_be_spoken(text: str, said: str) -> None:
    assert spoken_text(text) == said


@pytest.mark.parametrize("value", [None, 5, [], "", " ", "x" * 5001, "🔧", "```x```"])
def test_what_cannot_be_spoken(value: object) -> None:
    with pytest.raises(Refused) as caught:
        spoken_text(value)
    assert caught.value.status == 400


def test_a_missing_key_is_named_by_its_variable() -> None:
    def plan(voice: Voice) -> Flow[str]:
        with pytest.raises(NoEngineError) as caught:
            yield from BasicVoice(voice).synthesize(None, "x", {})
        return str(caught.value)

    said = run(plan, {"/h/config.yaml": {"tts": {"provider": "elevenlabs"}}})
    assert said == "TTS configuration error (elevenlabs): ELEVENLABS_API_KEY not set"


def test_a_provider_that_is_not_built() -> None:
    def plan(voice: Voice) -> Flow[str]:
        with pytest.raises(NoEngineError) as caught:
            yield from BasicVoice(voice).synthesize(None, "x", {})
        return str(caught.value)

    assert "gemini" in run(plan, {"/h/config.yaml": {"tts": {"provider": "gemini"}}})


def test_what_a_request_may_choose() -> None:
    def plan(voice: Voice) -> Flow[str]:
        with pytest.raises(NoEngineError, match="KEY not set"):
            yield from BasicVoice(voice).synthesize(None, "x", {"voice": "v" * 160})
        with pytest.raises(Refused) as caught:
            yield from BasicVoice(voice).synthesize(None, "x", {"voice": "v" * 161})
        return str(caught.value)

    assert "at most 160" in run(plan, {"/h/config.yaml": {"tts": {"provider": "xai"}}})


def test_a_command_of_the_operators_own_takes_a_name_that_is_not_built_in() -> None:
    row = {"type": "command", "command": "listen", "voice": "Ann", "model": "big"}
    rows = {"MINE": row, "openai": row}
    files = {"/h/config.yaml": {kind: {"provider": "Mine", "providers": rows} for kind in ("tts", "stt")}}
    files["/h/profiles/work/config.yaml"] = {"stt": {"provider": "openai", "providers": rows}}

    def plan(voice: Voice) -> Flow[list[object]]:
        basic = BasicVoice(voice)
        found = yield from basic.config(None)
        told: list[object] = [found["tts"], found["stt"]]
        recording = Recording(path="/x", size=1, content_type="audio/wav", suffix=".wav")
        for call in (
            basic.synthesize(None, "x", {}),
            basic.transcribe(None, recording),
            basic.transcribe("work", recording),
        ):
            with pytest.raises(NoEngineError) as caught:
                yield from call
            told.append(str(caught.value))
        return told

    speaks, listens, *problems = run(plan, files)
    assert speaks == {
        "provider": "mine",
        "voice_id": "Ann",
        "voice": "Ann",
        "model": "big",
        "enabled": True,
        "enhanced": None,
    }
    assert listens == {"provider": "mine", "model": "big", "enabled": True}
    assert problems == [
        "TTS failed (mine): the command of the provider mine has no {output_path}",
        "the command of the provider mine has no {input_path}",
        "No STT provider available (openai): OPENAI_API_KEY not set",
    ]


def test_the_engine_of_a_profile() -> None:
    files = {
        "/h/config.yaml": {"tts": {"provider": "gemini"}},
        "/h/profiles/work/config.yaml": {"tts": {"provider": "elevenlabs"}},
    }

    def plan(voice: Voice) -> Flow[str]:
        with pytest.raises(NoEngineError) as caught:
            yield from BasicVoice(voice).synthesize("work", "x", {})
        return str(caught.value)

    assert "ELEVENLABS" in run(plan, files)
