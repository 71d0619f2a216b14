"""Voice chat with the agent at a desktop: microphone and loudspeaker on a realtime session (wire terminal-voice 6).

A line that is typed while the agent works is the answer to an open question, or else the next turn. An empty line
denies an open question, or else cancels the turn or ends the rest of its sound. A task may continue in the background
(wire 6.9): its turn is over then, and its answer comes between turns.

Recorder and player are programs of this host that use raw PCM, 16 bits, one channel.
"""

from __future__ import annotations

from base64 import b64encode
from collections import deque
from collections.abc import Callable
from enum import Enum

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.cli import voice_chat_io
from svc_proto.cli.error_text import sanitize_line, with_explanation
from svc_proto.cli.errors import CliError
from svc_proto.cli.one_shot_service import OneShotService, announce_progress
from svc_proto.commands import Notify, SignalName
from svc_proto.engine.channel import Channel
from svc_proto.engine.child_process import ChildProcess, spawn
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Condition
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import Accepted, Failure
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceFault
from svc_proto.wire.limits import MAX_TEXT

__all__ = [
    "VOICE_CHAT_TABLE",
    "MAX_SECONDS",
    "RECORDER_RATE",
    "VoiceChatService",
    "VoiceChatRequest",
    "VoiceChatState",
    "VoiceChatTrigger",
]

RECORDER_RATE = 16_000  # Hz
CHUNK_SIZE = 6_400  # bytes, wire terminal-voice 6.4: 200 ms
MAX_SECONDS = 120.0  # s of one recording
TURN_TIMEOUT = 300.0  # s without an event of the relay, wire terminal-voice 6.5
A_DAY = 86_400.0  # s: the person may think for as long
MAX_NEWS = 10_000  # events that wait while an answer is played
MAX_TYPED = 100  # lines that wait for their turn
OPEN_TIMEOUT = 75.0  # s: the relay may have to connect to its provider first


class VoiceChatState(Enum):
    """States of turn-taking."""

    IDLE = "idle"
    RECORDING = "recording"
    WAITING = "waiting"
    OVER = "over"


class VoiceChatTrigger(Enum):
    """Triggers of the state changes of turn-taking."""

    RECORD = "record"
    ASK = "ask"
    SEND = "send"
    FAIL = "fail"
    DONE = "done"
    LEAVE = "leave"


_ENTER = voice_chat_io.TypedLine("")
_S, _T = VoiceChatState, VoiceChatTrigger
VOICE_CHAT_TABLE: Table[VoiceChatState, VoiceChatTrigger] = {
    (_S.IDLE, _T.RECORD): _S.RECORDING,  # Enter
    (_S.IDLE, _T.ASK): _S.WAITING,  # a line was typed: a text turn
    (_S.RECORDING, _T.SEND): _S.WAITING,  # Enter again, or the recording is as long as it may be, or has ended
    (_S.RECORDING, _T.FAIL): _S.IDLE,  # it has ended without any sound
    (_S.WAITING, _T.DONE): _S.IDLE,  # the turn is over, but its sound may not have ended
    (_S.WAITING, _T.ASK): _S.WAITING,  # an answer to a question of the agent
    # The end of the input when no answer is pending, or a lost connection.
    **{(state, _T.LEAVE): _S.OVER for state in _S},
}


@frozen(kw_only=True)
class VoiceChatRequest:
    """Options of the chat. Without a `recorder` turns can only be typed; without a `player` answers are only shown."""

    recorder: tuple[str, ...] = ()
    player: Callable[[int], tuple[str, ...]] | None = None  # by the rate of the sound, Hz
    profile: str | None = None
    session: str | None = None  # a chat session to continue


class VoiceChatService(OneShotService[None]):
    """Service of a voice chat; its channel is the keyboard."""

    def __init__(
        self, find: Callable[[Engine], Flow[RelayClient]], order: VoiceChatRequest, *, watched: bool = False
    ) -> None:
        super().__init__(self._talk, watched=watched)
        self._find = find
        self._order = order
        self._news: deque[voice_chat_io.VoiceChatEvent] = deque()
        self._typed_ahead: deque[str] = deque()
        self._input_over = False
        self._recorder: ChildProcess | None = None
        self._speaker: voice_chat_io.PlayerProcess | None = None
        self._chunks = 0
        self._silent = True  # this recording is empty so far
        self._unsent = b""  # of the microphone, less than a chunk
        self._text_shown = False  # some of the answer's text was shown
        self._question: str | None = None  # a pending confirmation
        self._promises = voice_chat_io.PendingAnswers()  # answers from the background
        self.state = _S.IDLE

    def bind(self, engine: Engine) -> None:
        """Store the engine, and create the condition that the flow waits for."""
        super().bind(engine)
        self.engine = engine
        self._bell = Condition(engine)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return the channel of the keyboard."""
        return voice_chat_io.KeyboardChannel(self.engine, fact, self.on_event)

    # --- the course of the chat ---

    def _talk(self, engine: Engine) -> Flow[None]:
        relay = yield from self._find(engine)
        announce_progress(engine, f"connecting to {relay.url}")
        body: dict[str, object] = {}
        if self._order.profile:
            body["profile"] = self._order.profile
        if self._order.session:
            body["chat_session_id"] = self._order.session
        lacking = {ServiceFault.UNAVAILABLE: f"{relay.name} made no voice session"}
        path = yield from with_explanation(relay.voice_session(engine, body), lacking)
        socket = yield from relay.socket(
            engine, path, voice_chat_io.RelayEventHandler(self.on_event), within=OPEN_TIMEOUT
        )
        yield from self._get_ready(relay)
        try:
            self._prompt()
            while self.state is not _S.OVER:
                news = yield from self._next()
                yield from self._handle_event(socket, news)
        finally:
            self._stop_recording()
            if self._speaker is not None:
                self._speaker.stop()
            socket.close()

    def _get_ready(self, relay: RelayClient) -> Flow[None]:
        early: list[voice_chat_io.VoiceChatEvent] = []  # input typed meanwhile
        while True:
            news = yield from self._next(OPEN_TIMEOUT)
            match news:
                case voice_chat_io.RelayEvent(event=event) if event.get("type") == "voice.session.ready":
                    self._news.extendleft(reversed(early))
                    return
                case voice_chat_io.RelayEvent(event=event) if event.get("type") == "voice.error":
                    raise CliError(f"{relay.name} refuses: {sanitize_line(event.text('message'))}")
                case voice_chat_io.ConnectionLost(why=why):
                    raise CliError(f"the voice session ended: {why}")
                case None:
                    raise CliError("the voice session does not get ready")
                case voice_chat_io.TypedLine() | voice_chat_io.LineTooLong() | voice_chat_io.InputEnded():
                    early.append(news)

    def _handle_event(self, socket: WebSocketConnection, news: voice_chat_io.VoiceChatEvent | None) -> Flow[None]:
        match news:
            case voice_chat_io.TypedLine(text=text):
                yield from self._typed(socket, text)
            case voice_chat_io.LineTooLong():
                self._problem(f"a line of more than {MAX_TEXT} characters is not sent")
            case voice_chat_io.InputEnded():
                self._input_over = True
                if self.state is _S.RECORDING:
                    self._send(socket)
                elif self.state is _S.IDLE:
                    self._rest(socket)
            case voice_chat_io.RecorderEnded() if self.state is _S.RECORDING and self._silent:
                self._stop_recording()
                self._step(_T.FAIL)
                self._problem(f"{self._order.recorder[0]} recorded nothing: is there a microphone?")
                self._prompt()
            case voice_chat_io.RecorderEnded() if self.state is _S.RECORDING:
                self._send(socket)
            case voice_chat_io.RelayEvent(event=event):
                yield from self._handle_relay_event(socket, event)
            case voice_chat_io.ConnectionLost(why=why):
                raise CliError(f"the voice session ended: {why}")
            case None if self.state is _S.RECORDING:
                self._send(socket)
            case None if self.state is _S.WAITING or self._input_over:
                raise CliError("the agent did not answer in time")

    def _typed(self, socket: WebSocketConnection, text: str) -> Flow[None]:
        match self.state:
            case _S.RECORDING:
                self._send(socket)
            case _S.WAITING | _S.IDLE if self._question is not None:
                answer = text.strip().lower() or "deny"
                _send_event(socket, "svc.confirm", confirmation_id=self._question, answer=answer)
                self._question = None
                if self.state is _S.WAITING:
                    self._step(_T.ASK)
            case _S.WAITING if not text:
                _send_event(socket, "response.cancel")
                self._promises.cancel_all()
                if self._speaker is not None:
                    self._speaker.stop()
            case _S.WAITING if len(self._typed_ahead) < MAX_TYPED:
                self._typed_ahead.append(text)
            case _S.WAITING:
                self._problem(f"too much is waiting to be said: not sent: {text}")
            case _S.IDLE if text:
                self._send_text(socket, text)
            case _:  # Enter
                yield from self._record(socket)

    def _send_text(self, socket: WebSocketConnection, text: str) -> None:
        self._step(_T.ASK)
        self._begin_turn()
        _send_event(socket, "response.create", text=text)

    def _record(self, socket: WebSocketConnection) -> Flow[None]:
        if not self._order.recorder:
            self._problem("nothing here records (arecord or sox): type instead")
            self._prompt()
            return
        microphone = voice_chat_io.RecorderProcess(lambda pcm: self.on_recorded(socket, pcm), self.on_event)
        child = yield from spawn(self.engine, self._order.recorder, microphone)
        if isinstance(child, Failure):
            self._problem(f"{self._order.recorder[0]} cannot be started: {child.detail or child.kind.value}")
            self._prompt()
            return
        child.close_input()
        self._recorder, self._silent = child, True
        self._step(_T.RECORD)
        self.engine.emit(Notify("recording", {}))

    def _send(self, socket: WebSocketConnection) -> None:
        """Complete the utterance and begin its turn."""
        self._stop_recording()
        self.on_recorded(socket, b"", last=True)
        self._step(_T.SEND)
        self._begin_turn()
        _send_event(socket, "input_audio.commit")

    def _begin_turn(self) -> None:
        self._text_shown = False
        announce_progress(self.engine, "the agent is at work")

    def _handle_relay_event(self, socket: WebSocketConnection, event: JsonObject) -> Flow[None]:
        kind = str(event.get("type"))
        match kind:
            case "voice.input_transcript.final":
                self.engine.emit(Notify("heard", {"text": sanitize_line(event.text("text"))}))
            case "voice.response.delta":
                self._show_text(event, "delta")
            case "voice.response.turn_completed" if not self._text_shown:
                self._show_text(event, "content")
            case "voice.output_audio.delta":
                yield from self._play(event)
            case "voice.playback_drain.requested":  # the player has it: the relay waits for no more than 2.5 s
                _send_event(socket, "playback.drained", call_id=event.get("call_id"))
            case "voice.error":
                self._problem(sanitize_line(event.text("message")) or "no reason given")
                if self._promises.has_failed() and self.state is _S.WAITING:
                    self._promises.resolve_one()  # the turn goes on
                else:
                    yield from self._finish_turn(socket, failed=True)  # after a refusal no further event comes
            case "voice.response.done":
                if event.get("cancelled"):
                    self._promises.turn_cancelled()
                    self._close_if_done()
                yield from self._finish_turn(socket)
            case _:
                yield from self._run(socket, kind.partition(".")[2], event)  # `svc.` or `hermes.` goes before it

    def _run(self, socket: WebSocketConnection, kind: str, event: JsonObject) -> Flow[None]:
        match kind:
            case "tool.started":
                self._tool("→", event, "message")
            case "tool.completed":
                self._tool("←", event, "message")
            case "tool.failed":
                self._tool("✗", event, "error")
            case "confirmation.requested":
                self._question = sanitize_line(event.text("confirmation_id")) or None
                self.engine.emit(Notify("question", {"text": sanitize_line(event.text("message"))}))
            case "run.queued":
                self._promises.add()
                self.engine.emit(Notify("tool", {"line": "… this task waits for the one before it"}))
            case "run.promoted":
                new = event.get("origin") != "queued"  # or it was pending before, and its turn is over
                if new:
                    self._promises.add()
                self.engine.emit(Notify("tool", {"line": "… this takes longer: it goes on in the background"}))
                if new and event.get("spoken_handoff") is False:  # wire 6.5: no more events of the turn follow
                    yield from self._finish_turn(socket)
            case "run.background_completed":
                self._question = None
                self._promises.completed(ok=event.get("ok") is not False)
            case "run.cancelled":
                self._question = None
                self._promises.clear()
                self._close_if_done()

    def _close_if_done(self) -> None:
        if self.state is _S.IDLE and self._input_over and not self._promises:
            self._step(_T.LEAVE)

    def _tool(self, sign: str, event: JsonObject, name: str) -> None:
        line = ": ".join(
            text for text in (sanitize_line(event.text("tool_name")), sanitize_line(event.text(name))) if text
        )
        self.engine.emit(Notify("tool", {"line": f"{sign} {line}"}))

    def _show_text(self, event: JsonObject, name: str) -> None:
        if value := event.text(name):
            self._text_shown = True
            self.engine.emit(Notify("text", {"text": value}))

    def _finish_turn(self, socket: WebSocketConnection, *, failed: bool = False) -> Flow[None]:
        """Finish a turn, or an answer from the background, and play the rest of its sound.

        Do nothing if there was neither.
        """
        if self.state is not _S.WAITING and not (self._text_shown or failed):
            return
        self._text_shown = False
        self.engine.emit(Notify("end", {}))
        if self.state is not _S.WAITING:
            self._promises.resolve_one()
            self._close_if_done()
        else:
            self._step(_T.DONE)
        self._question = self._question if self._promises else None  # a background task may still need the answer
        if self._speaker is not None:
            yield from self._speaker.finish()
            self._speaker = None
        if self.state is _S.IDLE:
            self._rest(socket)

    def _rest(self, socket: WebSocketConnection) -> None:
        """Continue between turns: send a line typed ahead, else prompt.

        After the end of the input, end the chat unless an answer is pending.
        """
        if self._typed_ahead:
            self._send_text(socket, self._typed_ahead.popleft())
        elif not self._input_over:
            self._prompt()
        elif not self._promises:
            self._step(_T.LEAVE)

    def _play(self, event: JsonObject) -> Flow[None]:
        sound, rate = event.binary("audio_base64"), event.integer("sample_rate")
        if self._order.player is None or not sound or rate is None:
            return
        if self._speaker is None:
            speaker = self._speaker = voice_chat_io.PlayerProcess(self.engine)
            if not (yield from speaker.start(self._order.player(rate))):
                self._problem("what plays sound here does not start")
        self._speaker.play(sound)

    def _problem(self, text: str) -> None:
        self.engine.emit(Notify("problem", {"text": text}))

    def _prompt(self) -> None:
        self.engine.emit(Notify("prompt", {"records": bool(self._order.recorder)}))

    def _next(self, within: float | None = None) -> Flow[voice_chat_io.VoiceChatEvent | None]:
        """Return the next event, or None after `within` seconds; by default, after the limit of the present state."""
        if within is None:
            rest = TURN_TIMEOUT if self._input_over else A_DAY
            within = {_S.RECORDING: MAX_SECONDS, _S.WAITING: TURN_TIMEOUT}.get(self.state, rest)
        until = self.engine.now.mono + within
        while not self._news:
            if self.engine.now.mono >= until:
                return None
            yield from self._bell.wait(until)
        return self._news.popleft()

    def _stop_recording(self) -> None:
        if self._recorder is not None:
            recorder, self._recorder = self._recorder, None
            recorder.terminate(SignalName.INTERRUPT)

    def _step(self, trigger: VoiceChatTrigger) -> None:
        self.state = step(VOICE_CHAT_TABLE, self.state, trigger)

    # --- events ---

    def on_event(self, news: voice_chat_io.VoiceChatEvent) -> None:
        """Queue an event of keyboard, recorder or relay for the flow of the chat; exit above `MAX_NEWS` events.

        An empty line after the whole answer has arrived ends its sound at once.
        """
        speaker = self._speaker
        if news == _ENTER and self._question is None and speaker is not None and speaker.is_finishing:
            speaker.stop()
            return
        self._news.append(news)
        if len(self._news) > MAX_NEWS:
            self.engine.exit(1, "the relay says more than can be taken")
            return
        self._bell.notify_all()

    def on_recorded(self, socket: WebSocketConnection, pcm: bytes, *, last: bool = False) -> None:
        """Send recorded sound in chunks of `CHUNK_SIZE` bytes; a shorter rest waits for more, unless with `last`."""
        self._unsent += pcm
        self._silent = self._silent and not pcm
        while len(self._unsent) >= (1 if last else CHUNK_SIZE):
            piece, self._unsent = self._unsent[:CHUNK_SIZE], self._unsent[CHUNK_SIZE:]
            self._chunks += 1
            audio = b64encode(piece).decode("ascii")
            _send_event(
                socket, "input_audio.append", chunk_id=self._chunks, sample_rate=RECORDER_RATE, audio_base64=audio
            )


def _send_event(socket: WebSocketConnection, kind: str, **fields: object) -> None:
    socket.send_text(strict_json.dumps({"type": kind, **fields}))
