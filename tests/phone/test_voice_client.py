import json
from base64 import b64encode
from typing import Any

import pytest

from svc_proto import wire
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.basics.pcm import wav_head
from svc_proto.commands import Abort, Command, Compute, Connect, Notify
from svc_proto.facts import Closed, Failed, Failure, FailureKind, Stopping
from svc_proto.phone import voice_client
from svc_proto.phone.terminal_channels import PAIR_ANEW
from svc_proto.phone.voice_client import (
    CHUNK_SIZE,
    HEARING_RATE,
    LONGEST,
    READY_TIMEOUT,
    SILENCE_TIMEOUT,
    SPEAK_TIMEOUT,
)
from svc_proto.wire.limits import MAX_TEXT
from tests.phone.harness import ASKING, STREAM, TOKEN, PhoneHarness, RelayEnd, notes, request

MADE = {"success": True, "websocket_path": "/voice/realtime-agent/v1"}
READY = {"type": "voice.session.ready", "chat_session_id": None}
DONE = {"type": "voice.response.done", "chat_session_id": "chat-7"}
PCM = bytes(range(200))


class Talk:
    """A phone that is online, its user, and the relay's end of a voice session."""

    def __init__(self) -> None:
        self.rig = PhoneHarness(token=TOKEN, safety=ASKING)
        self.rig.online()
        self.rig.open_keyboard()
        self.asked: dict[str, Any] = {}
        self.end: RelayEnd

    def say(self, text: str) -> None:
        """Type a line for the agent; the phone requests a session."""
        self.rig.type(f"say {text}")
        self.end = self.rig.connected()
        head, body = request(self.end.receive(self.rig.book.drain_commands()))
        assert (head.method, head.target) == ("POST", "/voice/realtime-agent/session")
        assert head.headers.get(b"authorization") == f"Bearer {TOKEN}".encode()
        self.asked = json.loads(body)

    def play(self, path: str) -> Compute:
        """Type `say` with the path of a recording; return the operation that reads the file."""
        self.rig.type(f"say {path}")
        order = self.rig.book.order(Compute)
        assert (order.name, order.args) == ("speech.read", (path, HEARING_RATE, LONGEST))
        return order

    def answered(self, status: int = 200, body: object = MADE) -> list[Command]:
        """Deliver the relay's response to the request for a session; return the next commands, or [] for a success."""
        self.rig.book >> self.end.answer(status, json.dumps(body).encode())
        return [] if status == 200 and body == MADE else self.rig.book.drain_commands()

    def dial(self) -> None:
        """Let the phone connect to the session and request its WebSocket."""
        self.end = self.rig.connected()
        head, *_ = self.end.receive(self.rig.book.drain_commands())
        assert isinstance(head, wire.RequestHead)
        assert (head.target, head.websocket) == ("/voice/realtime-agent/v1", True)

    def open(self, text: str = "What is on the screen?") -> None:
        """Open a session; the phone sends the text once the session is ready."""
        self.say(text)
        self.answered()
        self.dial()
        self.rig.book >> self.end.received_fact(wire.AcceptWebSocket(STREAM)) << []
        assert self.hears(READY) == [{"type": "response.create", "text": text}]

    def hears(self, *events: dict[str, Any] | str) -> list[dict[str, Any]]:
        """Deliver events of the relay and return the phone's messages."""
        self.commands: list[Command] = []
        said: list[dict[str, Any]] = []
        for each in events:
            text = each if isinstance(each, str) else json.dumps(each)
            self.rig.book >> self.end.received_fact(wire.TextMessage(STREAM, text))
            commands = self.rig.book.drain_commands()
            self.commands += commands
            heard = self.end.receive(commands)
            said += [json.loads(event.text) for event in heard if isinstance(event, wire.TextMessage)]
            self.closed = any(isinstance(event, wire.WebSocketClosed) and event.code == 1000 for event in heard)
        return said

    def spoken(self) -> Notify:
        (tell,) = [each for each in self.commands if isinstance(each, Notify) and each.event == "spoken"]
        return tell


def open_talk() -> Talk:
    """Return the scene of a voice client whose session is open."""
    talk = Talk()
    talk.open()
    return talk


def sound(pcm: bytes = PCM, rate: object = 16_000) -> dict[str, Any]:
    return {"type": "voice.output_audio.delta", "audio_base64": b64encode(pcm).decode("ascii"), "sample_rate": rate}


def test_whole_turn() -> None:
    talk = open_talk()
    assert talk.asked == {}
    said = talk.hears(
        READY,  # a second time
        {"type": "voice.response.delta", "delta": "It is "},
        {"type": "voice.response.delta", "delta": "Mail."},
        {"type": "voice.response.delta", "delta": 7},
        {"type": "voice.response.turn_completed", "content": "It is Mail."},
        sound(rate=1),
        {**sound(rate=1), "audio_base64": "A"},
        sound(PCM, "fast"),
        {"type": "voice.playback_drain.requested", "call_id": "k1"},
        {"type": "svc.confirmation.requested", "confirmation_id": "c1"},
        {"type": "svc.run.promoted", "spoken_handoff": True},
        {"type": "svc.tool.started"},
        {"type": "voice.response.started"},
        "no JSON",
        "[]",
        DONE,
    )
    assert said == [
        {"type": "playback.drained", "call_id": "k1"},
        {"type": "svc.confirm", "confirmation_id": "c1", "answer": "deny"},
    ]
    assert talk.closed
    assert talk.spoken().fields == {"text": "It is Mail.", "sound": wav_head(2 * len(PCM), 1) + PCM + PCM}
    assert notes(talk.commands) == []
    talk.rig.book >> Closed(talk.end.ch)
    assert notes(talk.rig.book.drain_commands()) == []
    talk.say("And now?")
    assert talk.asked == {"chat_session_id": "chat-7"}
    talk.answered()
    talk.dial()
    talk.rig.book >> talk.end.received_fact(wire.AcceptWebSocket(STREAM)) << []
    talk.rig.book.after(READY_TIMEOUT).drain_commands()
    talk.say("Still there?")
    assert talk.asked == {"chat_session_id": "chat-7"}  # also after a turn that failed


def test_answer_of_a_typed_turn_ends_the_turn() -> None:
    talk = open_talk()
    talk.hears({"type": "voice.response.turn_completed", "content": "Yes."}, DONE)
    assert talk.spoken().fields == {"text": "Yes.", "sound": b""}
    talk = open_talk()
    talk.hears({"type": "voice.input_transcript.final", "text": "What?"}, DONE)
    assert not [each for each in talk.commands if isinstance(each, Notify)]
    talk = open_talk()
    late = {"type": "voice.response.delta", "delta": "late"}
    texts = [wire.TextMessage(STREAM, json.dumps(each)) for each in (DONE, late, DONE)]
    talk.rig.book >> talk.end.received_fact(*texts)
    commands = talk.rig.book.drain_commands()
    assert not [each for each in commands if isinstance(each, Notify)]


def test_recording_is_sent_in_chunks() -> None:
    talk = Talk()
    talk.rig.book.answer(talk.play("My memo.wav"), b"\1\2" * CHUNK_SIZE)
    talk.end = talk.rig.connected()
    talk.end.receive(talk.rig.book.drain_commands())
    talk.answered()
    talk.dial()
    talk.rig.book >> talk.end.received_fact(wire.AcceptWebSocket(STREAM)) << []
    piece = {"sample_rate": HEARING_RATE, "audio_base64": b64encode(b"\1\2" * (CHUNK_SIZE // 2)).decode("ascii")}
    assert talk.hears(READY) == [
        {"type": "input_audio.append", "chunk_id": 1, **piece},
        {"type": "input_audio.append", "chunk_id": 2, **piece},
        {"type": "input_audio.commit"},
    ]
    talk.hears({"type": "voice.input_transcript.final", "text": "lights on"}, sound(), DONE)
    told = [each for each in talk.commands if isinstance(each, Notify)]
    assert [(each.event, each.fields["text"]) for each in told] == [("heard", "lights on"), ("spoken", "")]


def test_unreadable_recording() -> None:
    talk = Talk()
    order = talk.play("a.wav")
    talk.rig.book >> Failed(order.op, Failure(FailureKind.INVALID, "it is no WAV file"))
    assert notes(talk.rig.book.drain_commands()) == ["voice: a.wav: it is no WAV file"]
    talk.rig.book.fail(talk.play("b.wav"), FailureKind.NOT_FOUND)
    assert notes(talk.rig.book.drain_commands()) == ["voice: b.wav: not_found"]
    talk.play("c.wav")
    assert notes(talk.rig.book.after(SPEAK_TIMEOUT).drain_commands()) == ["voice: c.wav: no answer in time"]


def test_sound_and_text_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_client, "MAX_AUDIO_BYTES", 300)
    monkeypatch.setattr(voice_client, "MAX_SPOKEN_TEXT", 5)
    talk = open_talk()
    text = {"type": "voice.response.delta", "delta": "abc"}
    talk.hears(sound(), sound(), sound(), text, text, DONE)
    assert talk.spoken().fields["text"] == "abcab"
    assert len(bytes(talk.spoken().fields["sound"])) == 300 + len(wav_head(0, 1))  # type: ignore[call-overload] # bytes


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"type": "voice.error", "message": "no key"}, "no key"),
        ({"type": "voice.error"}, "no reason given"),
        ({"type": "hermes.run.promoted", "spoken_handoff": False}, "this takes longer: its answer will be in the chat"),
    ],
)
def test_failed_turn(event: dict[str, Any], why: str) -> None:
    talk = open_talk()
    talk.hears(event)
    assert notes(talk.commands) == [f"voice: {why}"]
    assert not [each for each in talk.commands if isinstance(each, Notify) and each.event == "spoken"]


def test_closed_socket() -> None:
    talk = open_talk()
    talk.rig.book >> talk.end.received_fact(wire.BinaryMessage(STREAM, b"x"))
    talk.rig.book.drain_commands()
    talk.hears({"type": "voice.response.delta", "delta": "It"})
    talk.rig.book >> talk.end.received_fact(wire.CloseWebSocket(STREAM, 1011))
    talk.commands = talk.rig.book.drain_commands()
    assert notes(talk.commands) == ["voice: the voice session ended (1011)"]
    assert talk.spoken().fields["text"] == "It"


def test_silence_and_ready_timeouts() -> None:
    talk = open_talk()
    assert notes(talk.rig.book.after(SILENCE_TIMEOUT / 2).drain_commands()) == []
    talk.hears({"type": "svc.run.progress"})
    assert notes(talk.rig.book.after(SILENCE_TIMEOUT - 1).drain_commands()) == []
    assert notes(talk.rig.book.after(1).drain_commands()) == ["voice: the agent did not answer in time"]
    talk = Talk()
    talk.say("Hi")
    talk.answered()
    talk.dial()
    talk.rig.book >> talk.end.received_fact(wire.AcceptWebSocket(STREAM)) << []
    assert notes(talk.rig.book.after(READY_TIMEOUT).drain_commands()) == ["voice: the agent did not answer in time"]


def test_refusals() -> None:
    talk = Talk()
    for status, body, why in (
        (403, {"error": "no grant"}, f"status 403; {PAIR_ANEW}"),
        (200, {"websocket_path": 7}, "status 200"),
    ):
        talk.say("Hi")
        assert notes(talk.answered(status, body)) == [f"voice: the relay makes no voice session: {why}"]
    talk.say("Hi")
    talk.answered()
    talk.dial()
    assert notes(talk.answered(404, {})) == ["voice: the relay opens no voice session: status 404"]
    talk.rig.type("say Hi")
    connect = talk.rig.book.order(Connect)
    talk.rig.book.fail(connect, FailureKind.UNREACHABLE)
    assert notes(talk.rig.book.drain_commands()) == ["voice: the relay makes no voice session: unreachable"]


def test_one_turn_at_a_time() -> None:
    talk = open_talk()
    rig = talk.rig
    rig.type("say More")
    assert notes(rig.book.drain_commands()) == ["voice: the agent has not answered yet"]
    talk.hears(DONE)
    controls = rig.phone.controls
    controls._voice.start_turn("x" * (MAX_TEXT + 1))
    assert rig.new_notifications()[-1].fields["text"] == "voice: more than 5000 characters are not said"
    controls._voice.start_turn("x" * MAX_TEXT)
    assert "more than" not in str(rig.new_notifications())
    assert controls._voice.is_waiting


def test_no_relay_and_a_stopped_session() -> None:
    rig = PhoneHarness(token=TOKEN, safety=ASKING)
    rig.start()
    rig.open_keyboard()
    rig.type("say Hi")
    assert notes(rig.book.drain_commands()) == ["voice: there is no relay at the moment"]
    talk = Talk()
    talk.say("Hi")
    assert Abort(talk.end.ch) in (talk.rig.book >> Stopping(5.0)).drain_commands()
    talk = open_talk()
    talk.rig.phone._voice.stop()
    talk.rig.phone._voice.stop()
    talk.rig.book.after(0.0).drain_commands()


def test_internal_error_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk()
    talk.rig.book.logs.bugs = True

    def broken(*given: object, **named: object) -> Any:
        raise LocalProtocolError("broken")

    monkeypatch.setattr("svc_proto.service_clients.service_client.bearer_header", broken)
    talk.rig.type("say Hi")
    (note,) = notes(talk.rig.book.drain_commands())
    assert note.startswith("voice: internal error, reference ")
