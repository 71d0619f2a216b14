"""Streaming speech output: a text goes in by a WebSocket, PCM comes out as it is made (wire terminal-voice 4.6 to 4.9).

A session speaks once.

| state    | trigger | next     |                                              |
|----------|---------|----------|----------------------------------------------|
| SILENT   | SPEAK   | SPEAKING | `response.create`                              |
| SPEAKING | END     | SPOKEN   | `voice.response.done`, or `voice.error`        |

A client that closes its socket with 1000 while it is spoken to wants no more: the session is over. Any other end of
the socket may be an accident: the speech goes on until the ring is half full, for whoever comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow
from svc_proto.machines.table import Table, step
from svc_proto.voice.contract import Rendered, SpeechRequest
from svc_proto.voice.family import Family
from svc_proto.voice.profiles import profile_of
from svc_proto.voice.registry import is_renderer
from svc_proto.voice.session import problem_of
from svc_proto.voice.settings import OutputSettings
from svc_proto.voice.speaking import expression_of, options_of, text_of
from svc_proto.voice.speech_session import SpeechSession
from svc_proto.voice.text import clean_for_speech

if TYPE_CHECKING:
    from svc_proto.voice.principal import Principal

__all__ = ["LIFE", "OutputSession", "OutputState", "OutputTrigger", "VoiceOutput"]

MODE = "streaming_tts_renderer"


class OutputState(Enum):
    """How far the one response of a session is."""

    SILENT = "silent"
    SPEAKING = "speaking"
    SPOKEN = "spoken"


class OutputTrigger(Enum):
    """What moves it."""

    SPEAK = "speak"
    END = "end"


LIFE: Table[OutputState, OutputTrigger] = {
    (OutputState.SILENT, OutputTrigger.SPEAK): OutputState.SPEAKING,
    (OutputState.SPEAKING, OutputTrigger.END): OutputState.SPOKEN,
}


class VoiceOutput(Family["OutputSession"]):
    """The family: makes sessions and finds them."""

    what, place, protocol = "voice output", "output", "output"

    def create(self, body: Mapping[str, object], principal: Principal) -> Flow[dict[str, object]]:
        """`POST /voice/output/session`. `Refused` 404 when disabled, 400 for a bad choice, 503 when there are
        too many."""
        settings = yield from self.voice.output_settings(profile_of({}, body))
        chosen = self.choose(settings, body)
        info = self.voice.registry.find(chosen.provider)
        if info is None or not is_renderer(info):
            raise Refused(400, "voice_refused", f"voice provider {chosen.provider} does not turn text into speech")
        self.sessions.make_room(principal)
        return self.admit(OutputSession(self, chosen, principal))


class OutputSession(SpeechSession[OutputSettings]):
    """One text, spoken."""

    kind = "voice.output"
    family = "voice-output"

    def __init__(self, output: VoiceOutput, chosen: OutputSettings, principal: Principal) -> None:
        config = output.voice.config
        window, runs = config.resume_ttl, config.output_runs
        super().__init__(output.voice, output.sessions, principal, chosen, window=window, runs=runs)
        self.state = OutputState.SILENT

    # --- VoiceSession ---

    def ready_fields(self) -> dict[str, object]:
        """Members of `voice.session.ready`."""
        return {**super().ready_fields(), "output_mode": MODE}

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """`response.create` is all there is."""
        if kind != "response.create":
            return False
        if self.state is not OutputState.SILENT:
            running = self.state is OutputState.SPEAKING
            word = "is already running" if running else "was already completed"
            raise Refused(400, "response_not_possible", f"a response {word} in this session")
        said = text_of(message)
        text = clean_for_speech(said or "")
        if not said or not text:
            raise Refused(400, "text_missing", "text is required")
        request = SpeechRequest(
            text=text,
            model=self.chosen.model,
            voice=self.chosen.voice,
            sample_rate=self.chosen.sample_rate,
            language=self.chosen.language,
            expression=expression_of(message),
            options=options_of(message) | self._renderer_options(),
        )
        self._step(OutputTrigger.SPEAK)
        self.start(message, "verbatim", text_chars=len(said), output_mode=MODE)
        self.speak(request)
        return True

    def keeps(self, code: int) -> bool:
        """See the module."""
        return code != 1000 and self.state is not OutputState.SILENT

    def on_closed(self) -> None:
        """The socket is gone: stop speaking."""
        if self.task is not None:
            self.task.cancel()
        self.copy.close()

    # --- SpeechSession ---

    def finish(self) -> None:
        """The one response of such a session is over: end it."""
        self._step(OutputTrigger.END)
        self.copy.close()

    def spoken(self, done: Rendered) -> None:
        """All of it."""
        self.finish()
        self.tell_done(done, output_mode=MODE)

    def failed(self, error: Exception) -> None:
        """The client may fall back on another way of speaking."""
        self.finish()
        message = problem_of(self.engine, error)
        fields = {"provider": self.chosen.provider, "session": self.id[:8], "problem": message}
        self.engine.log(Level.WARNING, "voice not rendered", **fields)
        brand = self.voice.config.brand.name
        self.error(
            message,
            provider=self.chosen.provider,
            fallback_enabled=self.chosen.fallback_enabled,
            fallback_provider=f"legacy_{brand}_tts",
        )

    def _renderer_options(self) -> dict[str, object]:
        """What the settings say and a caller does not."""
        return {
            "optimize_streaming_latency": self.chosen.optimize_streaming_latency,
            "text_normalization": self.chosen.text_normalization,
        }

    def _step(self, trigger: OutputTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)
