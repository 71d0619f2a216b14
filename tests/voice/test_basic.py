from collections.abc import Callable
from typing import Any

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.voice.basic import BasicVoice, spoken_text
from svc_proto.voice.provider_interface import Recording
from tests.voice.harness import VoiceHarness


@pytest.mark.parametrize(
    ("text", "said"), [(" Hello. ", "Hello."), ("**x**" + "y" * 4995, "x" + "y" * 4995), ("x", "x")]
)
def test_a_text_to_be_spoken(text: str, said: str) -> None:
    assert spoken_text(text) == said


@pytest.mark.parametrize("value", [None, 5, [], "", " ", "x" * 5001, "🔧", "```x```"])
def test_invalid_texts_are_refused(value: object) -> None:
    with pytest.raises(Refused) as caught:
        spoken_text(value)
    assert caught.value.status == 400


def told(root: object, *calls: Callable[[BasicVoice], Flow[Any]], work: object = None) -> list[Any]:
    """Return the result of each call, or the text of its refusal."""

    rig = VoiceHarness({"/h/config.yaml": root, "/h/profiles/work/config.yaml": work or {}})
    found = []
    for call in calls:
        try:
            found += rig.spawn(call(BasicVoice(rig.voice)))
        except Refused as error:
            found.append(str(error))
    return found


def speak(profile: str | None = None, **choice: str) -> Callable[[BasicVoice], Flow[Any]]:
    return lambda basic: basic.synthesize(profile, "x", choice)


def listen(profile: str | None = None) -> Callable[[BasicVoice], Flow[Any]]:
    recording = Recording(path="/x", size=1, content_type="audio/wav", suffix=".wav")
    return lambda basic: basic.transcribe(profile, recording)


def test_unusable_providers_and_voices_are_named() -> None:
    gemini, missing = told({"tts": {"provider": "gemini"}}, speak(), speak("work"), work={"tts": {"provider": "xai"}})
    assert "'gemini' is not built in" in gemini
    assert missing == "TTS configuration error (xai): XAI_API_KEY not set"
    most, more = told({"tts": {"provider": "xai"}}, speak(voice="v" * 160), speak(voice="v" * 161))
    assert most.endswith("KEY not set")
    assert "at most 160" in more


def test_command_provider_uses_a_name_that_is_not_built_in() -> None:
    row = {"type": "command", "command": "listen", "voice": "Ann", "model": "big"}
    own = {"MINE": row, "openai": row}
    both = {kind: {"provider": "Mine", "providers": own} for kind in ("tts", "stt")}
    work = {"stt": {"provider": "openai", "providers": own}}
    config, *problems = told(both, lambda basic: basic.config(None), speak(), listen(), listen("work"), work=work)
    about = {"provider": "mine", "enabled": True, "model": "big"}
    assert config["tts"] == {**about, "voice_id": "Ann", "voice": "Ann", "enhanced": None}
    assert config["stt"] == about
    assert problems == [
        "TTS failed (mine): the command of the provider mine has no {output_path}",
        "the command of the provider mine has no {input_path}",
        "No STT provider available (openai): OPENAI_API_KEY not set",
    ]
