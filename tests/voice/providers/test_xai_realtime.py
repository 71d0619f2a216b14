"""xAI's own part of the realtime protocol."""

from __future__ import annotations

from svc_proto.voice.contract import RealtimeOptions, TranscriptDelta, TranscriptFinal
from tests.voice.providers.test_realtime import TOOL, xai


def test_xais_setup() -> None:
    sound = {"format": {"type": "audio/pcm", "rate": 16_000}}
    options = RealtimeOptions(model="m", voice="eve", sample_rate=16_000, tools=(TOOL,))
    session = {
        "voice": "eve",
        "instructions": "",
        "turn_detection": None,
        "audio": {"input": sound, "output": sound},
        "tools": [TOOL],
    }
    assert xai(options).setup() == [{"type": "session.update", "session": session}]
    assert "tools" not in repr(xai(RealtimeOptions(model="m", voice="v", sample_rate=8_000)).setup())


def test_reading_aloud() -> None:
    item = {"type": "force_message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 5."}]}
    assert xai().read_aloud("It is 5.") == [{"type": "conversation.item.create", "item": item}]


def test_xai_tells_all_that_it_heard_so_far() -> None:
    dialect = xai()

    def updated(text: str) -> tuple[object, ...]:
        kind = "conversation.item.input_audio_transcription.updated"
        return dialect.parse({"type": kind, "item_id": "i", "transcript": text})

    assert updated("turn") == (TranscriptDelta("turn"),)
    assert updated("turn on") == (TranscriptDelta(" on"),)
    assert updated("turn on") == ()
    assert updated("learn on it") == ()  # it thought better of it: the final text says all
    final = {"type": "input_audio_transcription.completed", "item_id": "i", "transcript": "learn on it"}
    assert dialect.parse(final) == (TranscriptFinal("learn on it"),)
