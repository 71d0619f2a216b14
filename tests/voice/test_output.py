"""Streaming speech output, as a client and the event log see it."""

from __future__ import annotations

import base64
import json
import wave
from io import BytesIO

import pytest

from svc_proto.basics.brand import HERMES
from svc_proto.facts import FailureKind
from svc_proto.voice.contract import ProviderError
from tests.voice.rig import SOUND, Rig, give, spoken

# --- the golden session -----------------------------------------------------------------------------------------------


def test_a_stub_session_from_the_first_to_the_last_word(rig: Rig) -> None:
    answer = rig.create(rig.output)
    assert answer == {
        "success": True,
        "session_id": answer["session_id"],
        "websocket_path": f"/voice/output/{answer['session_id']}",
        "resume_token": answer["resume_token"],
        "resume_supported": True,
        "resume_ttl_ms": 30_000,
        "provider": "stub",
        "model": "stub-tone",
        "voice": "sine",
        "sample_rate": 24_000,
        "event_log_path": answer["event_log_path"],
        "protocol": "svc.voice.output.v0",
        "profile": None,
        "config_scope": "relay",
        "config_path": None,
        "fallback_to_global": False,
    }
    assert (len(answer["session_id"]), len(answer["resume_token"])) == (24, 43)
    stem = "".join(letter for letter in answer["session_id"] if letter.isalnum())[:12]
    assert answer["event_log_path"] == f"/home/voice-output-runs/voice-output-20261118-110640-{stem}.jsonl"

    client = rig.attach(rig.output, answer)
    assert client.pings_every == 20.0
    (ready,) = client.events()
    assert ready == {
        "type": "voice.session.ready",
        "event_id": 1,
        "at_ms": 0.0,
        "session_id": answer["session_id"],
        "provider": "stub",
        "model": "stub-tone",
        "voice": "sine",
        "sample_rate": 24_000,
        "event_log_path": answer["event_log_path"],
        "output_mode": "streaming_tts_renderer",
        "resume_supported": True,
        "resume_ttl_ms": 30_000,
        "last_event_id": 0,
        "last_audio_event_id": 0,
        "profile": None,
        "config_scope": "relay",
        "config_path": None,
    }
    rig.after(0.5)
    client.say("response.create", text="Ready when you are.")
    events = client.events()
    assert [event["type"] for event in events] == [
        "voice.response.started",
        *["voice.audio.delta"] * 8,
        "voice.audio.done",
        "voice.response.done",
    ]
    assert [event["event_id"] for event in events] == list(range(2, 13))
    assert [event["audio_event_id"] for event in events[1:9]] == list(range(1, 9))
    assert all("audio_event_id" not in event for event in (events[0], *events[9:]))
    assert {type(event["at_ms"]) for event in events} == {float}
    assert events[0] == {
        "type": "voice.response.started",
        "event_id": 2,
        "at_ms": 500.0,
        "provider": "stub",
        "model": "stub-tone",
        "voice": "sine",
        "render_mode": "verbatim",
        "text_chars": 19,
        "output_mode": "streaming_tts_renderer",
    }
    delta = events[1]
    pcm = base64.b64decode(delta.pop("audio_base64"), validate=True)
    assert len(pcm) == delta["byte_count"] == 1500
    assert delta == {
        "type": "voice.audio.delta",
        "event_id": 3,
        "audio_event_id": 1,
        "at_ms": 500.0,
        "byte_count": 1500,
        "sample_rate": 24_000,
        "channels": 1,
        "sample_width": 2,
        "label": "frames:0-750",
        "peak_level": delta["peak_level"],
        "rms_level": delta["rms_level"],
    }
    assert 0.17 < delta["rms_level"] < delta["peak_level"] < 0.2442
    done = events[-1]
    assert done["metrics"] == {
        "provider": "stub",
        "model": "local-tone",
        "voice": "sine",
        "first_audio_ms": 0.0,
        "response_done_ms": 0.0,
        "audio_chunk_gap_ms": 0.0,
        "audio_underruns": 0,
        "speech_pacing": None,
        "tone_consistency": None,
        "emotion_consistency": None,
        "voice_drift": None,
        "interrupt_latency": None,
        "pronunciation_quality": None,
        "context_retention": None,
    }
    assert {key: done[key] for key in ("provider", "model", "voice", "output_mode")} == {
        "provider": "stub",
        "model": "local-tone",
        "voice": "sine",
        "output_mode": "streaming_tts_renderer",
    }
    assert done["metadata"] == {"sample_rate": 24_000, "duration_seconds": 0.25, "frequency_hz": 440}
    assert done["event_log_path"] == answer["event_log_path"]

    client.leave(1000)
    lines = rig.log(answer)
    assert [line["type"] for line in lines] == [
        "voice.output.session.created",
        "voice.session.ready",
        *[event["type"] for event in events],
        "voice.output.session.closed",
    ]
    for line, event in zip(lines[1:-1], [ready, *events], strict=True):
        expected = {**event, "unix_ms": line["unix_ms"]}
        if event["type"] == "voice.audio.delta":
            expected["audio_base64"] = "<1500 bytes>"
        assert line == expected
    raw = rig.disk[answer["event_log_path"]].decode()
    assert raw.splitlines() == [json.dumps(line, sort_keys=True, separators=(",", ":")) for line in lines]
    with wave.open(BytesIO(rig.disk[done["audio_path"]])) as copy:
        assert (copy.getframerate(), copy.getnchannels(), copy.getsampwidth(), copy.getnframes()) == (
            24_000,
            1,
            2,
            6000,
        )
    assert answer["resume_token"] not in raw


def test_the_spelling_of_a_stock_phone() -> None:
    rig = Rig(brand=HERMES)
    assert rig.create(rig.output)["protocol"] == "hermes.voice.output.v0"
    _, client = spoken(rig)
    client.events()
    give(rig, ProviderError("no"))
    (error,) = client.events()
    logged = next(log for log in rig.logs if log.event == "voice not rendered")
    assert (logged.fields["provider"], logged.fields["problem"]) == ("openai_tts", "no")
    assert (error["fallback_provider"], error["fallback_enabled"]) == ("legacy_hermes_tts", True)


# --- messages ---------------------------------------------------------------------------------------------------------


def test_bad_messages_are_told_and_the_socket_stays(rig: Rig) -> None:
    client = rig.attach(rig.output, rig.create(rig.output))
    client.events()
    for text in (
        "",
        "{",
        "[]",
        "null",
        '{"type": 7}',
        "{}",
        '{"type":"nobody.knows"}',
        '{"type":"response.create"}',
        '{"type":"response.create","text":"  "}',
        '{"type":"response.create","text":7}',
        '{"type":"response.create","text":"```code```"}',
        '{"type":"response.create","text":"x","expression":[]}',
        '{"type":"response.create","text":"x","provider_options":"x"}',
        '{"type":"client.ack","event_id":"1"}',
        '{"type":"client.ack","audio_event_id":1.5}',
        '{"type":"input_audio.append"}',
    ):
        client.send(text)
        (error,) = client.events()
        assert error["type"] == "voice.error", text
        assert error["message"]
        assert client.closed is None
    client.send_binary(b"\x00")
    assert client.types() == ["voice.error"]
    client.say("client.ack", event_id=1)
    assert client.types() == []
    client.say("session.start")
    (ready,) = client.events()
    assert (ready["type"], ready["event_id"], ready["last_event_id"]) == ("voice.session.ready", 19, 18)


def test_one_response_for_each_session(rig: Rig) -> None:
    _, client = spoken(rig)
    client.say("response.create", text="Again.")
    assert "already running" in client.events()[-1]["message"]
    give(rig, SOUND, None)
    client.say("response.create", text="Again.")
    assert "already completed" in client.events()[-1]["message"]


def test_no_second_response_after_a_failed_one(rig: Rig) -> None:
    _, client = spoken(rig)
    client.events()
    give(rig, SOUND, ProviderError("the provider is on fire"))
    client.say("response.create", text="Again.")
    delta, error, second = client.events()
    assert delta["type"] == "voice.audio.delta"
    assert error == {
        "type": "voice.error",
        "event_id": 4,
        "at_ms": 0.0,
        "message": "the provider is on fire",
        "provider": "openai_tts",
        "fallback_enabled": True,
        "fallback_provider": "legacy_svc_tts",
    }
    assert "already completed" in second["message"]


def test_a_missing_key_is_told_when_it_is_missed(rig: Rig) -> None:
    rig.voice.providers.missing = "OPENAI_API_KEY"
    _, client = spoken(rig)
    assert client.events()[-1]["message"] == "OPENAI_API_KEY is not set"


def test_session_close(rig: Rig) -> None:
    answer, client = spoken(rig)
    client.say("session.close")
    assert (client.closed, rig.puppet.stopped, len(rig.output.sessions)) == (1000, True, 0)
    client.leave(1000)
    assert rig.log(answer)[-1] | {"unix_ms": 0, "at_ms": 0} == {
        "type": "voice.output.session.closed",
        "reason": "client closed",
        "unix_ms": 0,
        "at_ms": 0,
    }


# --- the disk, and the end --------------------------------------------------------------------------------------------


def test_a_full_disk_does_not_stop_speech(rig: Rig) -> None:
    rig.disk_problem = FailureKind.NO_SPACE
    answer, client = spoken(rig)
    give(rig, SOUND)
    rig.after(1.0)
    give(rig, SOUND, None)
    assert client.types()[-1] == "voice.response.done"
    rig.after(1.0)
    assert rig.log(answer) == []
    warnings = [(log.event, log.fields["problem"]) for log in rig.logs if log.level >= 30]
    assert sorted(warnings) == [
        ("old voice runs not deleted", "no_space"),
        ("voice file given up", "no_space"),
        ("voice file given up", "no_space"),
    ]


def test_the_process_ends(rig: Rig) -> None:
    answer, client = spoken(rig)
    waiting = rig.create(rig.output)
    give(rig, SOUND)
    rig.do(rig.output.sessions.stop)
    assert (client.closed, rig.puppet.stopped, len(rig.output.sessions)) == (1001, True, 0)
    assert rig.log(answer)[-1]["reason"] == rig.log(waiting)[-1]["reason"] == "server shutdown"


def test_a_bug_in_a_provider_is_told_with_a_reference(rig: Rig) -> None:
    _, client = spoken(rig)
    with pytest.raises(AssertionError, match="bug"):
        give(rig, SOUND, ZeroDivisionError("oops"))
    error = client.events()[-1]
    assert error["type"] == "voice.error"
    assert error["message"] == "internal error, reference bug-1"
