"""The realtime lab, as a client sees it."""

from __future__ import annotations

import base64

import pytest
from attrs import evolve

from svc_proto.basics.brand import HERMES
from svc_proto.basics.errors import Refused
from svc_proto.machines.voice_session import VoiceState
from svc_proto.voice.contract import AudioChunk, ProviderError
from svc_proto.voice.speech import SENTENCE
from tests.voice.rig import OTHER, Client, Rig

SOUND = AudioChunk(b"\x00\x10" * 240, 24_000)


def puppet(rig: Rig) -> Client:
    """A client of a session of the puppet."""
    client = rig.attach(rig.lab, rig.create(rig.lab, provider="openai_tts"))
    client.events()
    return client


def test_a_stub_session(rig: Rig) -> None:
    answer = rig.create(rig.lab)
    assert answer == {
        "success": True,
        "session_id": answer["session_id"],
        "websocket_path": f"/voice/realtime/{answer['session_id']}",
        "provider": "stub",
        "model": "stub-tone",
        "voice": "sine",
        "sample_rate": 24_000,
        "event_log_path": answer["event_log_path"],
        "protocol": "svc.voice.realtime.v0",
        "profile": None,
        "config_scope": "relay",
        "config_path": None,
        "fallback_to_global": False,
    }
    assert answer["event_log_path"].startswith("/home/realtime-voice-runs/realtime-2026")
    client = rig.attach(rig.lab, answer)
    (ready,) = client.events()
    assert ready == {
        "type": "voice.session.ready",
        "at_ms": 0.0,
        "session_id": answer["session_id"],
        "provider": "stub",
        "model": "stub-tone",
        "voice": "sine",
        "sample_rate": 24_000,
        "event_log_path": answer["event_log_path"],
        "profile": None,
        "config_scope": "relay",
        "config_path": None,
    }
    client.say("session.start")
    client.say("input_audio.append", audio_base64=base64.b64encode(bytes(6400)).decode())
    client.say("input_audio.append", audio_base64="AA==", sample_rate=16_000)
    assert [event for event in client.events() if event["type"] != "voice.session.ready"] == [
        {
            "type": "voice.input_audio.received",
            "at_ms": 0.0,
            "byte_count": 6400,
            "total_bytes": 6400,
            "sample_rate": 24_000,
        },
        {
            "type": "voice.input_audio.received",
            "at_ms": 0.0,
            "byte_count": 1,
            "total_bytes": 6401,
            "sample_rate": 16_000,
        },
    ]
    client.say("response.create", tool_scaffold=True)
    events = client.events()
    assert [event["type"] for event in events] == [
        "voice.response.started",
        "voice.tool.requested",
        "voice.tool.completed",
        *["voice.audio.delta"] * 8,
        "voice.audio.done",
        "voice.response.done",
    ]
    assert not any("event_id" in event or "audio_event_id" in event for event in events)
    assert events[0] == {
        "type": "voice.response.started",
        "at_ms": 0.0,
        "provider": "stub",
        "model": "stub-tone",
        "voice": "sine",
        "render_mode": "conversation",
        "text_chars": len(SENTENCE),
        "input_audio_bytes": 6401,
    }
    assert events[1]["arguments"] == {"input_audio_bytes": 6401}
    assert (events[1]["name"], events[2]["name"], events[2]["result"]) == (
        "svc_run_task",
        "svc_run_task",
        "scaffold-only",
    )
    assert "output_mode" not in events[-1]
    client.say("response.create", text="Again.", render_mode="song")
    again = client.events()
    assert (again[0]["render_mode"], again[0]["text_chars"]) == ("song", 6)
    stem = answer["event_log_path"].removesuffix(".jsonl")
    assert [events[-1]["audio_path"], again[-1]["audio_path"]] == [f"{stem}.wav", f"{stem}-2.wav"]
    assert {f"{stem}.wav", f"{stem}-2.wav"} <= set(rig.disk)
    client.say("session.close")
    assert client.closed == 1000
    kinds = [line["type"] for line in rig.log(answer)]
    assert (kinds[0], kinds[-1], len(kinds)) == ("voice.realtime.session.created", "voice.realtime.session.closed", 30)


def test_the_spelling_of_a_stock_phone() -> None:
    rig = Rig(brand=HERMES)
    answer = rig.create(rig.lab)
    assert answer["protocol"] == "hermes.voice.realtime.v0"
    client = rig.attach(rig.lab, answer)
    client.say("response.create", tool_scaffold=True)
    assert client.events()[2]["name"] == "hermes_run_task"


def test_a_provider_of_the_settings_that_there_is_not(rig: Rig) -> None:
    rig.voice.realtime = evolve(rig.voice.realtime, provider="gone")
    with pytest.raises(Refused, match="gone"):
        rig.create(rig.lab)


def test_who_may_open_a_socket(rig: Rig) -> None:
    answer = rig.create(rig.lab)
    with pytest.raises(Refused) as foreign:
        rig.attach(rig.lab, answer, OTHER)
    rig.attach(rig.lab, answer).say("session.close")
    with pytest.raises(Refused) as over:
        rig.attach(rig.lab, answer)
    assert (foreign.value.status, over.value.status) == (403, 404)


def test_bad_messages(rig: Rig) -> None:
    client = puppet(rig)
    for text in (
        "{",
        '{"type":"client.ack"}',
        '{"type":"session.resume"}',
        '{"type":"response.cancel"}',
        '{"type":"input_audio.commit"}',
        '{"type":"input_audio.append"}',
        '{"type":"input_audio.append","audio_base64":"A"}',
        '{"type":"input_audio.append","audio_base64":"ü"}',
        '{"type":"input_audio.append","audio_base64":"","sample_rate":"x"}',
        '{"type":"response.create","text":1}',
    ):
        client.send(text)
        (error,) = client.events()
        assert (error["type"], client.closed) == ("voice.error", None), text
        assert "event_id" not in error


def test_one_response_at_a_time(rig: Rig) -> None:
    client = puppet(rig)
    client.say("response.create", text="One.")
    client.say("response.create", text="Two.")
    rig.do(lambda: rig.puppet.give(SOUND, None))
    assert client.types() == [
        "voice.response.started",
        "voice.error",
        "voice.audio.delta",
        "voice.transcript.final",
        "voice.audio.done",
        "voice.response.done",
    ]
    client.say("response.create", text="Three.")
    rig.do(lambda: rig.puppet.give(SOUND, ProviderError("out of breath")))
    error = client.events()[-1]
    assert error.items() >= {"type": "voice.error", "message": "out of breath", "provider": "openai_tts"}.items()
    client.say("response.create", text="Four.")
    assert client.types() == ["voice.response.started"]


def test_a_lost_socket_stops_the_response_and_the_session_may_be_opened_again(rig: Rig) -> None:
    answer = rig.create(rig.lab, provider="openai_tts")
    for code in (1000, 1006):
        client = rig.attach(rig.lab, answer)
        assert client.types() == ["voice.session.ready"]
        client.say("response.create", text="One.")
        rig.do(lambda: rig.puppet.give(SOUND))
        rig.puppet.stopped = False
        client.leave(code)
        assert rig.puppet.stopped
        (session,) = rig.lab.sessions.sessions()
        assert session.life.state is VoiceState.FRESH
    rig.attach(rig.lab, answer).leave()
    rig.after(121.0)
    assert len(rig.lab.sessions) == 0
    assert rig.engine.next_deadline() is None


def test_a_second_socket_takes_the_place_of_the_first(rig: Rig) -> None:
    answer = rig.create(rig.lab, provider="openai_tts")
    first = rig.attach(rig.lab, answer)
    first.say("response.create", text="One.")
    second = rig.attach(rig.lab, answer)
    assert (first.closed, rig.puppet.stopped, second.types()) == (4000, True, ["voice.session.ready"])
    first.leave(4000)
    rig.do(rig.lab.sessions.stop)
    assert second.closed == 1001
