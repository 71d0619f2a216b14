"""Which engine speaks and listens. The routes: tests/relay/routes/test_voice_basic.py."""

from __future__ import annotations

from collections.abc import Mapping

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


def files(root: Mapping[str, object], work: Mapping[str, object] | None = None) -> dict[str, object]:
    return {"/h/config.yaml": root, "/h/profiles/work/config.yaml": work or {}}


def problem(root: dict[str, object], work: dict[str, object] | None = None, **choice: str) -> str:
    """Why nothing is spoken, for the profile if there is one."""

    def plan(voice: Voice) -> Flow[str]:
        with pytest.raises((NoEngineError, Refused)) as caught:
            yield from BasicVoice(voice).synthesize("work" if work else None, "x", choice)
        return str(caught.value)

    return run(plan, files(root, work))


def test_what_cannot_be_used_is_named() -> None:
    elevenlabs: dict[str, object] = {"tts": {"provider": "elevenlabs"}}
    gemini: dict[str, object] = {"tts": {"provider": "gemini"}}
    missing = "TTS configuration error (elevenlabs): ELEVENLABS_API_KEY not set"
    assert problem(elevenlabs) == problem(gemini, elevenlabs) == missing
    assert "'gemini' is not built in" in problem(gemini)


def test_what_a_request_may_choose() -> None:
    xai: dict[str, object] = {"tts": {"provider": "xai"}}
    assert problem(xai, voice="v" * 160).endswith("KEY not set")
    assert "at most 160" in problem(xai, voice="v" * 161)


def test_a_command_of_the_operators_own_takes_a_name_that_is_not_built_in() -> None:
    row = {"type": "command", "command": "listen", "voice": "Ann", "model": "big"}
    own = {"MINE": row, "openai": row}
    recording = Recording(path="/x", size=1, content_type="audio/wav", suffix=".wav")

    def plan(voice: Voice) -> Flow[list[object]]:
        basic = BasicVoice(voice)
        found = yield from basic.config(None)
        told: list[object] = [found["tts"], found["stt"]]
        for call in (
            basic.synthesize(None, "x", {}),
            basic.transcribe(None, recording),
            basic.transcribe("work", recording),
        ):
            with pytest.raises(NoEngineError) as caught:
                yield from call
            told.append(str(caught.value))
        return told

    both = {kind: {"provider": "Mine", "providers": own} for kind in ("tts", "stt")}
    assert run(plan, files(both, {"stt": {"provider": "openai", "providers": own}})) == [
        {"provider": "mine", "enabled": True, "model": "big", "voice_id": "Ann", "voice": "Ann", "enhanced": None},
        {"provider": "mine", "enabled": True, "model": "big"},
        "TTS failed (mine): the command of the provider mine has no {output_path}",
        "the command of the provider mine has no {input_path}",
        "No STT provider available (openai): OPENAI_API_KEY not set",
    ]
