"""Voice sessions over real sockets: the golden session, sockets that break, and what is left of it all."""

from __future__ import annotations

import base64
import json
import wave
from io import BytesIO

import pytest

from tests.loops.virtual import VirtualWorld
from tests.loops.voices import VoiceClient, create, log_of
from tests.loops.wires import Declined
from tests.loops.world import World, bearer
from tests.peers.realtime import OpenAiPeer
from tests.peers.vendor import Sound

SPEECH = b"\x00\x10\x00\xf0" * 6_000  # half a second at 24 kHz


def test_the_golden_session(relayed: World) -> None:
    token = relayed.pair().token
    answer = create(relayed, token, provider="stub")
    client = VoiceClient(relayed, token, answer)
    ready = client.hear()
    assert (ready["type"], ready["event_id"], ready["resume_supported"]) == ("voice.session.ready", 1, True)
    client.say("response.create", text="Ready when you are.")
    events = [ready, *client.until("voice.response.done")]
    deltas = [event for event in events if event["type"] == "voice.audio.delta"]
    sound = b"".join(base64.b64decode(delta["audio_base64"]) for delta in deltas)
    assert len(sound) == 12_000
    done = events[-1]
    assert client.ws.close(1000).code == 1000
    logged = log_of(relayed, answer)
    assert [line["type"] for line in logged[1:-1]] == [event["type"] for event in events]
    assert [line.get("event_id") for line in logged[1:-1]] == list(range(1, 13))
    assert {line["audio_base64"] for line in logged if "audio_base64" in line} == {"<1500 bytes>"}
    with wave.open(BytesIO(relayed.contents(done["audio_path"]))) as copy:
        assert (copy.getframerate(), copy.readframes(6_001)) == (24_000, sound)
    with pytest.raises(Declined) as over:
        VoiceClient(relayed, token, answer)
    assert over.value.answer.status == 410


def test_a_socket_that_breaks_in_the_middle(relayed: World) -> None:
    peer = relayed.peer(OpenAiPeer([Sound(SPEECH, pause=0.02)]))
    relayed.set_variables(OPENAI_API_KEY="key", OPENAI_BASE_URL=f"{peer}/v1")
    token = relayed.pair().token
    answer = create(relayed, token, provider="openai_tts")
    first = VoiceClient(relayed, token, answer)
    first.say("response.create", text="A longer story.")
    heard = first.until("voice.audio.delta")
    first.break_off()
    intruder = VoiceClient(relayed, token, answer)
    intruder.say("session.resume", resume_token="a guess", last_event_id=0)
    assert intruder.until("voice.session.resume_failed")[-1]["reason"] == "invalid_resume_token"
    assert intruder.ws.wait_closed().code == 4003
    second = VoiceClient(relayed, token, answer)
    second.say("session.resume", resume_token=answer["resume_token"], last_event_id="x")
    assert "last_event_id" in second.until("voice.error")[-1]["message"]
    last = heard[-1]
    second.say(
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


def test_a_socket_ends_with_its_grant() -> None:
    world = VirtualWorld()
    world.start_relay()
    token = world.pair(grants={"voice:realtime": 5}).token
    client = VoiceClient(world, token, create(world, token, "realtime", provider="stub"))
    client.until("voice.session.ready")
    over = client.ws.wait_closed(10.0)
    assert (over.code, over.reason) == (1008, "the grant has run out")
    other = world.pair(grants={"voice:realtime": 500}).token
    client = VoiceClient(world, other, create(world, other, "realtime", provider="stub"))
    change = {"grants": {"voice:realtime": 0.1}}
    assert world.http("PATCH", f"/sessions/{other[:8]}", change, headers=bearer(other)).status == 200
    client.until("voice.session.ready")
    assert client.ws.wait_closed(10.0).code == 1008
    world.close()
