"""Voice client of the phone: a text or recording of the user is a turn of the realtime agent (wire terminal 6).

The turn is a text, by `response.create`, or a file with speech. The program decodes the file (`speech.read`: path, Hz
and most seconds go in, PCM comes out). Each turn has a voice session of its own, in the chat of the turn before. Sound
of an answer is kept up to `MAX_AUDIO_BYTES`. When the agent moves a task to the background without an announcement,
the turn ends: the answer will be in the chat. Confirmation requests of the agent are denied here, as in
`svc_proto.phone.terminal_channels`.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import cast

from svc_proto.basics import strict_json
from svc_proto.basics.pcm import wav_head
from svc_proto.commands import Compute
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, run_operation, wait
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Failure
from svc_proto.phone.terminal_channels import PAIR_ANEW
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault
from svc_proto.wire.limits import MAX_TEXT

__all__ = ["PhoneVoiceClient"]

CREATE_TIMEOUT = 30.0  # s
READY_TIMEOUT = 75.0  # s: the relay may have to connect to its provider first
SILENCE_TIMEOUT = 90.0  # s without any event in a turn, wire terminal-voice 6.5
MAX_RATE = 192_000  # Hz
MAX_AUDIO_BYTES = 16 * 1024 * 1024  # bytes, six minutes at 24 kHz
HEARING_RATE = 16_000  # Hz of microphone audio from a file
CHUNK_SIZE = 6_400  # bytes, 200 ms of that (wire terminal-voice 6.4)
LONGEST = 120.0  # s of speech in a file
SPEAK_TIMEOUT = 30.0  # s for decoding it
MAX_SPOKEN_TEXT = 100_000  # characters of an answer

Payload = Mapping[str, object]


class PhoneVoiceClient:
    """Voice turns, one at a time; `source` returns the relay client, None before the first sign-in.

    Events: `heard` (`text`: the transcript of a recording), `spoken` (`text`, `sound`: a WAV file, or empty), and notes
    for the user.
    """

    def __init__(
        self, engine: Engine, *, source: Callable[[], RelayClient | None], notify: Callable[[str, Payload], None]
    ) -> None:
        self._engine = engine
        self._source = source
        self._notify = notify
        self._task: Task | None = None
        self._chat: str | None = None  # the chat session of the last turn

    @property
    def is_waiting(self) -> bool:
        """Report whether an answer is pending."""
        return self._task is not None

    def start_turn(self, text: str) -> None:
        """Start a turn with a text of the user, or notify the user why that is impossible."""
        if len(text) > MAX_TEXT:
            self._note(f"more than {MAX_TEXT} characters are not said")
        else:
            self._begin(lambda source: self._turn(source, text))

    def play(self, path: str) -> None:
        """Start a turn with the user's speech in a WAV file, or notify the user why that is impossible."""
        self._begin(lambda source: self._recorded(source, path))

    def stop(self) -> None:
        """Cancel the turn, because the process ends."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    def _begin(self, turn: Callable[[RelayClient], Flow[str]]) -> None:
        source = self._source()
        if source is None:
            self._note("there is no relay at the moment")
        elif self._task is not None:
            self._note("the agent has not answered yet")
        else:
            self._task = self._engine.spawn(turn(source), on_done=self._finish, on_error=self._failed)

    def _recorded(self, source: RelayClient, path: str) -> Flow[str]:
        order = Compute(self._engine.new_op(), "speech.read", (path, HEARING_RATE, LONGEST))
        read = yield from run_operation(self._engine, order, within=SPEAK_TIMEOUT)
        if isinstance(read, Failure):
            return f"{path}: {read.detail or read.kind.value}"
        return (yield from self._turn(source, cast("bytes", read)))

    def _turn(self, source: RelayClient, words: str | bytes) -> Flow[str]:
        """Run one turn; return a note about a problem for the user, empty if there is none."""
        engine, hearing = self._engine, _VoiceTurn(self._engine, words)
        does = "makes"
        try:
            wish = {} if self._chat is None else {"chat_session_id": self._chat}
            path = yield from source.voice_session(engine, wish, within=CREATE_TIMEOUT)
            does = "opens"
            opened = yield from source.socket(engine, path, hearing, within=READY_TIMEOUT)
        except ServiceCallError as error:
            remedy = f"; {PAIR_ANEW}" if error.fault is ServiceFault.FORBIDDEN else ""
            return f"the relay {does} no voice session: {error.brief}{remedy}"
        try:
            while hearing.over is None:
                within = SILENCE_TIMEOUT if hearing.asked else READY_TIMEOUT
                heard = yield from wait(hearing.ticket, engine.now.mono + within)
                if isinstance(heard, Failure):
                    hearing.over = "the agent did not answer in time"
        finally:
            opened.close(1000)
        self._chat = hearing.chat or self._chat
        if hearing.heard:
            self._notify("heard", {"text": hearing.heard})
        if hearing.text or hearing.sound:
            sound = bytes(hearing.sound)
            wav = wav_head(len(sound), hearing.rate) + sound if sound else b""
            self._notify("spoken", {"text": hearing.text, "sound": wav})
        return hearing.over

    def _finish(self, problem: str) -> None:
        self._task = None
        if problem:
            self._note(problem)

    def _failed(self, error: Exception) -> None:
        self._finish(f"internal error, reference {self._engine.log_bug(error)}")

    def _note(self, text: str) -> None:
        self._notify("note", {"text": f"voice: {text}"})


class _VoiceTurn(WebSocketHandler):
    """State of one turn; `over` is None while the turn runs, then a problem or an empty text."""

    def __init__(self, engine: Engine, words: str | bytes) -> None:
        self.ticket = engine.new_op()
        self.asked = False
        self.over: str | None = None
        self.text = ""
        self.heard = ""  # transcript of a recording
        self.sound = bytearray()
        self.rate = 24_000  # Hz
        self.chat: str | None = None
        self._engine = engine
        self._words = words
        self._socket: WebSocketConnection

    def on_open(self, socket: WebSocketConnection) -> None:
        self._socket = socket

    def on_text(self, text: str) -> None:
        event = JsonObject.parse_or_empty(text)
        kind = event.text("type")
        self.chat = event.text("chat_session_id") or self.chat
        if kind.startswith("voice."):
            self._voice(kind, event)
        else:
            self._run(kind.partition(".")[2], event)  # without the prefix `svc.` or `hermes.`
        self._engine.resume(self.ticket, None)

    def on_closed(self, code: int, reason: str) -> None:
        if self.over is None:
            self.over = f"the voice session ended ({code})"
        self._engine.resume(self.ticket, None)

    def _voice(self, kind: str, event: JsonObject) -> None:
        match kind:
            case "voice.session.ready" if not self.asked:
                self.asked = True
                self._speak()
            case "voice.input_transcript.final" if isinstance(self._words, bytes):
                self.heard = event.text("text")[:MAX_SPOKEN_TEXT]
            case "voice.response.delta":
                self.text = (self.text + event.text("delta"))[:MAX_SPOKEN_TEXT]
            case "voice.response.turn_completed" if not self.text:
                self.text = event.text("content")[:MAX_SPOKEN_TEXT]
            case "voice.output_audio.delta":
                self._on_event(event)
            case "voice.playback_drain.requested":  # audio is stored, not played
                self._send_event("playback.drained", call_id=event.get("call_id"))
            case "voice.error":
                self.over = event.text("message") or "no reason given"
            case "voice.response.done":
                self.over = ""

    def _run(self, kind: str, event: JsonObject) -> None:
        match kind:
            case "confirmation.requested":
                self._send_event("svc.confirm", confirmation_id=event.get("confirmation_id"), answer="deny")
            case "run.promoted" if event.get("spoken_handoff") is False:  # the turn has no other result
                self.over = "this takes longer: its answer will be in the chat"

    def _on_event(self, event: JsonObject) -> None:
        self.rate = event.integer("sample_rate", 1, MAX_RATE) or self.rate
        self.sound += event.binary("audio_base64")[: MAX_AUDIO_BYTES - len(self.sound)]

    def _speak(self) -> None:
        """Send the user's turn; a recording is sent at once: the relay buffers it (wire 6.4)."""
        words = self._words
        if isinstance(words, str):
            self._send_event("response.create", text=words)
            return
        for number, start in enumerate(range(0, len(words), CHUNK_SIZE), 1):
            piece = b64encode(words[start : start + CHUNK_SIZE]).decode("ascii")
            self._send_event("input_audio.append", chunk_id=number, sample_rate=HEARING_RATE, audio_base64=piece)
        self._send_event("input_audio.commit")

    def _send_event(self, kind: str, **fields: object) -> None:
        self._socket.send_text(strict_json.dumps({"type": kind, **fields}))
