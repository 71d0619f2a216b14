"""Test of a voice session whose connection breaks."""

from __future__ import annotations

import base64
import json

from tests.loops.environment import Environment
from tests.loops.voice_client import VoiceClient, create, log_of
from tests.support.servers.realtime_server import OpenAiRealtimeServer
from tests.support.servers.speech_server import Sound

SPEECH = b"\x00\x10\x00\xf0" * 6_000  # half a second at 24 kHz


def test_a_socket_that_breaks_in_the_middle(relayed: Environment) -> None:
    peer = relayed.peer(OpenAiRealtimeServer([Sound(SPEECH, pause=0.02)]))
    relayed.set_variables(OPENAI_API_KEY="key", OPENAI_BASE_URL=f"{peer}/v1")
    token = relayed.pair().token
    answer = create(relayed, token, provider="openai_tts")
    first = VoiceClient(relayed, token, answer)
    first.send("response.create", text="A longer story.")
    heard = first.until("voice.audio.delta")
    first.break_off()
    intruder = VoiceClient(relayed, token, answer)
    intruder.send("session.resume", resume_token="a guess", last_event_id=0)
    assert intruder.until("voice.session.resume_failed")[-1]["reason"] == "invalid_resume_token"
    assert intruder.ws.wait_closed().code == 4003
    second = VoiceClient(relayed, token, answer)
    second.send("session.resume", resume_token=answer["resume_token"], last_event_id="x")
    assert "last_event_id" in second.until("voice.error")[-1]["message"]
    last = heard[-1]
    second.send(
        "session.resume",
        resume_token=answer["resume_token"],
        last_event_id=last["event_id"],
        last_audio_event_id=last["audio_event_id"],
        last_played_audio_event_id=0,
    )
    heard += second.until("voice.response.done")
    deltas = [event for event in heard if event["type"] == "voice.audio.delta"]
    assert [delta["audio_event_id"] for delta in deltas] == list(range(1, len(deltas) + 1))
    assert b"".join(base64.b64decode(delta["audio_base64"]) for delta in deltas) == SPEECH
    assert second.ws.close(1000).code == 1000
    assert answer["resume_token"] not in json.dumps(log_of(relayed, answer))
