"""OpenAI's own part of the realtime protocol."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from svc_proto.voice.contract import AudioDelta, RealtimeOptions
from tests.voice.providers.test_realtime import TOOL, openai


def test_openais_setup() -> None:
    sound = {"type": "audio/pcm", "rate": 24_000}
    session: dict[str, Any] = {
        "type": "realtime",
        "model": "gpt realtime",
        "instructions": "Be short.",
        "output_modalities": ["audio"],
        "audio": {
            "input": {
                "format": sound,
                "turn_detection": None,
                "transcription": {"model": "gpt-4o-mini-transcribe"},
            },
            "output": {"format": sound, "voice": "marin"},
        },
        "tools": [TOOL],
        "tool_choice": "auto",
    }
    assert openai().setup() == [{"type": "session.update", "session": session}]
    bare = openai(RealtimeOptions(model="m", voice="v", sample_rate=16_000, transcribe=False))
    (update,) = bare.setup()
    told: Any = update["session"]
    assert "tools" not in told
    assert told["audio"]["input"]["transcription"] is None
    assert told["audio"]["input"]["format"]["rate"] == 24_000  # it has no other


def test_openai_has_one_rate_whatever_the_session_has() -> None:
    dialect = openai(RealtimeOptions(model="m", voice="v", sample_rate=48_000))
    (append,) = dialect.append(bytes(9_602))
    assert len(b64decode(str(append["audio"]))) == 4_800
    sound = b64encode(bytes(2_402)).decode()
    (heard,) = dialect.parse({"type": "response.output_audio.delta", "response_id": "r", "delta": sound})
    assert isinstance(heard, AudioDelta)
    assert len(heard.data) == 4_800


def test_reading_aloud() -> None:
    (create,) = openai().read_aloud("It is 5.")
    told: Any = create["response"]
    assert create["type"] == "response.create"
    assert told["instructions"].endswith("\n\nIt is 5.")
    assert told["tool_choice"] == "none"
