"""The realtime lab: try a provider's voice, one answer after the other (wire terminal-voice 5).

| state | trigger | next  |                                                       |
|-------|---------|-------|-------------------------------------------------------|
| IDLE  | CREATE  | BUSY  | `response.create`                                       |
| BUSY  | END     | IDLE  | `voice.response.done`, `voice.error`, or a lost socket |

A session has no ids and nothing to resume. Without a socket it is as fresh as before; a second socket takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import integer
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.machines.table import Table, step
from svc_proto.voice.contract import Rendered, SpeechRequest
from svc_proto.voice.event_log import AudioCopy
from svc_proto.voice.family import Family
from svc_proto.voice.profiles import profile_of
from svc_proto.voice.session import problem_of
from svc_proto.voice.settings import RealtimeSettings
from svc_proto.voice.socket import VoiceSocket
from svc_proto.voice.speaking import audio_of, expression_of, options_of, text_of
from svc_proto.voice.speech_session import SpeechSession

if TYPE_CHECKING:
    from svc_proto.voice.principal import Principal

__all__ = ["LIFE", "LabSession", "LabState", "LabTrigger", "RealtimeLab"]

SENTENCE = "This is a test of the realtime voice."  # when no text is given
MAX_TRANSCRIPT = 20_000  # characters of what a provider says it said: the rest is cut


class LabState(Enum):
    """Whether a response is under way."""

    IDLE = "idle"
    BUSY = "busy"


class LabTrigger(Enum):
    """What changes that."""

    CREATE = "create"
    END = "end"


LIFE: Table[LabState, LabTrigger] = {
    (LabState.IDLE, LabTrigger.CREATE): LabState.BUSY,
    (LabState.BUSY, LabTrigger.END): LabState.IDLE,
}


class RealtimeLab(Family["LabSession"]):
    """The family: makes sessions and finds them."""

    what, place, protocol = "realtime voice", "realtime", "realtime"

    def create(self, body: Mapping[str, object], principal: Principal) -> Flow[dict[str, object]]:
        """`POST /voice/realtime/session`. `Refused` 404 when disabled, 400 for a bad choice, 503 for too many."""
        settings = yield from self.voice.realtime_settings(profile_of({}, body))
        chosen = self.choose(settings, body)
        if self.voice.registry.find(chosen.provider) is None:
            raise Refused(400, "voice_refused", f"unknown voice provider: {chosen.provider}")
        self.sessions.make_room(principal)
        return self.admit(LabSession(self, chosen, principal), keep_days=chosen.run_retention_days)

    def open(self, request: Request, principal: Principal, session_id: str) -> VoiceSocket:
        """As of any family, but that what is over is unknown: 404."""
        try:
            return super().open(request, principal, session_id)
        except Refused as refused:
            if refused.status == 410:
                raise Refused(404, "session_not_found", "there is no such voice session") from None
            raise


class LabSession(SpeechSession[RealtimeSettings]):
    """One selection of provider, model and voice, to be listened to."""

    kind = "voice.realtime"
    family = "realtime"
    numbered = False
    reopens = True

    def __init__(self, lab: RealtimeLab, chosen: RealtimeSettings, principal: Principal) -> None:
        runs = lab.voice.config.lab_runs
        super().__init__(lab.voice, lab.sessions, principal, chosen, window=0.0, runs=runs)
        self.state = LabState.IDLE
        self._heard = 0  # bytes of microphone audio
        self._responses = 0

    # --- VoiceSession ---

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """What a client may ask for."""
        match kind:
            case "input_audio.append":
                self._listen(message)
            case "response.create":
                self._create(message)
            case _:
                return False
        return True

    def on_lost(self) -> None:
        """Nobody listens: stop."""
        self._cancel()

    def on_closed(self) -> None:
        """The socket is gone: stop speaking."""
        self._cancel()

    # --- messages ---

    def _listen(self, message: Mapping[str, object]) -> None:
        """Audio is counted, and used for nothing."""
        rate = integer(message.get("sample_rate", 24_000), "sample_rate")
        size = len(audio_of(message))
        self._heard += size
        self.emit("voice.input_audio.received", byte_count=size, total_bytes=self._heard, sample_rate=rate)

    def _create(self, message: Mapping[str, object]) -> None:
        if self.state is LabState.BUSY:
            raise Refused(400, "response_not_possible", "a response is already running in this session")
        said = text_of(message) or SENTENCE
        request = SpeechRequest(
            text=said,
            model=self.chosen.model,
            voice=self.chosen.voice,
            sample_rate=self.chosen.sample_rate,
            expression=expression_of(message),
            options=options_of(message),
        )
        self._step(LabTrigger.CREATE)
        self._responses += 1
        self.start(message, "conversation", text_chars=len(said), input_audio_bytes=self._heard)
        if message.get("tool_scaffold") is True:
            name = f"{self.voice.config.brand.name}_run_task"
            self.emit("voice.tool.requested", name=name, arguments={"input_audio_bytes": self._heard})
            self.emit("voice.tool.completed", name=name, result="scaffold-only")
        if self._responses > 1:
            self.copy = AudioCopy(self.engine, f"{self.run_path}-{self._responses}.wav")
        self.speak(request)

    # --- SpeechSession ---

    def finish(self) -> None:
        """The response is over; another may be asked for."""
        self._step(LabTrigger.END)
        self.copy.close()

    def spoken(self, done: Rendered) -> None:
        """All of it; a realtime provider tells what it has said."""
        self.finish()
        if done.transcript:
            self.emit("voice.transcript.final", text=done.transcript[:MAX_TRANSCRIPT])
        self.tell_done(done)

    def failed(self, error: Exception) -> None:
        """The session goes on."""
        self.finish()
        self.error(problem_of(self.engine, error), provider=self.chosen.provider)

    def _cancel(self) -> None:
        if self.state is LabState.BUSY and self.task is not None:
            self.task.cancel()
            self.finish()

    def _step(self, trigger: LabTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)
