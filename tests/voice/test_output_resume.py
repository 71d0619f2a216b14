"""Sockets of speech output that are lost, and who may come back."""

from __future__ import annotations

import wave
from io import BytesIO

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.voice_session import AWAY_BYTES, VoiceState
from svc_proto.voice.contract import AudioChunk
from svc_proto.voice.session import MAX_DELTA
from tests.voice.rig import SOUND, Rig, give, spoken


def test_resume_in_the_middle(rig: Rig) -> None:
    answer, first = spoken(rig)
    give(rig, SOUND, SOUND)
    heard = first.events()
    first.leave(1001)
    give(rig, SOUND)
    rig.after(10.0)
    second = rig.attach(rig.output, answer)
    assert second.types() == []
    second.say(
        "session.resume",
        resume_token=answer["resume_token"],
        last_event_id=heard[-1]["event_id"],
        last_audio_event_id=1,
        last_played_audio_event_id=0,
    )
    events = second.events()
    assert [(event["type"], event["event_id"], event.get("replayed")) for event in events] == [
        ("voice.session.resumed", 7, None),
        ("voice.replay.started", 8, None),
        ("voice.audio.delta", 4, True),
        ("voice.session.detached", 5, True),
        ("voice.audio.delta", 6, True),
        ("voice.replay.done", 9, None),
    ]
    here = {"session_id": answer["session_id"]}
    assert events[0].items() >= {**here, "last_event_id": 4, "last_audio_event_id": 1}.items()
    assert events[0]["last_played_audio_event_id"] == 0
    assert events[1].items() >= {**here, "from_event_id": 4, "from_audio_event_id": 1}.items()
    assert events[1]["replay_event_count"] == events[-1]["replay_event_count"] == 3
    assert events[3].items() >= {**here, "reason": "websocket_disconnected", "resume_ttl_ms": 30_000}.items()
    give(rig, SOUND, None)
    assert [event["event_id"] for event in second.events()] == [10, 11, 12]
    second.leave(1000)
    kinds = [line["type"] for line in rig.log(answer)]
    assert kinds.count("voice.audio.delta") == 4
    assert "voice.output.session.detached" in kinds
    with wave.open(BytesIO(rig.disk[answer["event_log_path"].replace(".jsonl", ".wav")])) as copy:
        assert copy.getnframes() == 4 * 240


def test_session_start_resumes_too(rig: Rig) -> None:
    answer, first = spoken(rig)
    first.leave()
    second = rig.attach(rig.output, answer)
    second.say("session.start", resume_token=answer["resume_token"])
    assert second.types()[0] == "voice.session.resumed"
    second.say("session.start", resume_token=answer["resume_token"])  # by the owner itself
    assert second.types()[0] == "voice.session.resumed"
    second.leave()
    third = rig.attach(rig.output, answer)
    third.say("session.start")
    (failed,) = third.events()
    assert (failed["reason"], third.closed) == ("invalid_resume_token", 4003)


def test_a_wrong_token(rig: Rig) -> None:
    answer, first = spoken(rig)
    first.leave()
    second = rig.attach(rig.output, answer)
    second.say("session.resume", resume_token="guess", last_event_id=0)
    (failed,) = second.events()
    assert failed["type"] == "voice.session.resume_failed"
    assert (failed["session_id"], failed["reason"]) == (answer["session_id"], "invalid_resume_token")
    assert (second.closed, second.reason) == (4003, "invalid_resume_token")
    second.say("session.resume", resume_token=answer["resume_token"])  # too late
    assert second.events() == []
    third = rig.attach(rig.output, answer)
    third.say("session.resume", resume_token=answer["resume_token"])
    assert third.types()[-1] == "voice.replay.done"


@pytest.mark.parametrize("spoke", [True, False])
def test_a_wrong_token_from_the_owner(rig: Rig, spoke: bool) -> None:
    answer = rig.create(rig.output)
    client = rig.attach(rig.output, answer)
    if spoke:
        client.say("response.create", text="Hello.")
    client.say("session.resume", resume_token="guess")
    assert client.closed == 4003
    states = [session.life.state for session in rig.output.sessions.sessions()]
    assert states == ([VoiceState.DETACHED] if spoke else [])


def test_a_cursor_that_is_no_number(rig: Rig) -> None:
    answer, first = spoken(rig)
    first.leave()
    second = rig.attach(rig.output, answer)
    second.say("session.resume", resume_token=answer["resume_token"], last_event_id="1")
    (error,) = second.events()
    assert error["type"] == "voice.error"
    assert "last_event_id" in error["message"]
    assert second.closed is None
    second.say("session.resume", resume_token=answer["resume_token"], last_event_id=1)
    assert second.types()[0] == "voice.session.resumed"
    second.say("session.resume", resume_token=answer["resume_token"], last_audio_event_id=-1)
    assert [event["type"] for event in second.events()] == ["voice.error"]
    assert second.closed is None


def test_the_window_closes(rig: Rig) -> None:
    answer, first = spoken(rig)
    first.leave()
    late = rig.attach(rig.output, answer)
    rig.after(29.9)
    assert [rig.puppet.stopped] == [False]
    rig.after(0.2)
    (failed,) = late.events()
    assert (failed["reason"], late.closed) == ("resume_expired", 4008)
    assert rig.puppet.stopped
    with pytest.raises(Refused) as refused:
        rig.attach(rig.output, answer)
    assert refused.value.status == 410


def test_a_second_socket_takes_over(rig: Rig) -> None:
    answer, first = spoken(rig)
    second = rig.attach(rig.output, answer)
    assert second.types() == []
    second.say("session.resume", resume_token=answer["resume_token"])
    assert second.types()[-1] == "voice.replay.done"
    assert first.closed == 4000
    first.leave(4000)
    give(rig, SOUND)
    assert second.types() == ["voice.audio.delta"]
    candidate = rig.attach(rig.output, answer)
    candidate.read()  # is no concern of the session
    rig.after(60.0)
    assert (candidate.closed, second.closed) == (4009, None)


@pytest.mark.parametrize("message", ['{"type":"session.start"}', '{"type":"response.create","text":"x"}'])
def test_a_second_socket_says_something_else(rig: Rig, message: str) -> None:
    answer, first = spoken(rig)
    second = rig.attach(rig.output, answer)
    second.send(message)
    assert [event.get("reason") for event in second.events()] == ["session_not_claimed"]
    assert (second.closed, first.closed) == (4009, None)


def test_a_candidate_that_makes_no_sense_may_try_again(rig: Rig) -> None:
    answer, _ = spoken(rig)
    second = rig.attach(rig.output, answer)
    second.send("{")
    assert second.types() == ["voice.error"]
    second.send_binary(b"")
    assert (second.types(), second.closed) == (["voice.session.resume_failed"], 4009)


@pytest.mark.parametrize(
    ("moves", "code", "kept"),
    [
        (None, 1000, False),  # before it asked for anything
        (None, 1006, False),
        ((SOUND,), 1000, False),  # in the middle
        ((SOUND,), 1001, True),
        ((SOUND, None), 1000, False),  # after all was said
        ((SOUND, None), 1006, True),
    ],
)
def test_the_client_goes(rig: Rig, moves: tuple[AudioChunk | None, ...] | None, code: int, kept: bool) -> None:
    answer = rig.create(rig.output, provider="openai_tts")
    client = rig.attach(rig.output, answer)
    if moves is not None:
        client.say("response.create", text="Hello there.")
        give(rig, *moves)
    client.leave(code)
    assert len(rig.output.sessions) == kept
    assert rig.puppet.stopped is (moves is not None and (not kept or None in moves))
    if moves == (SOUND, None) and kept:
        second = rig.attach(rig.output, answer)
        second.say("session.resume", resume_token=answer["resume_token"])
        assert "voice.response.done" in second.types()
        second.leave()
    rig.after(31.0)
    assert len(rig.output.sessions) == 0
    rig.after(3601.0)
    assert rig.engine.next_deadline() is None


def test_nobody_listens_for_long(rig: Rig) -> None:
    answer, client = spoken(rig)
    client.leave()
    piece = AudioChunk(bytes(MAX_DELTA), 24_000)
    give(rig, *[piece] * 200, None)
    kept = rig.puppet.taken
    assert 0 < kept * MAX_DELTA * 4 // 3 < AWAY_BYTES + MAX_DELTA
    rig.after(29.0)
    assert rig.puppet.taken == kept
    second = rig.attach(rig.output, answer)
    second.say("session.resume", resume_token=answer["resume_token"])
    assert rig.puppet.taken == 200
    ids = [event["audio_event_id"] for event in second.events() if event["type"] == "voice.audio.delta"]
    assert ids == list(range(1, 201))
