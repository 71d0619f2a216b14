"""Sessions in which a renderer speaks, one response at a time: output and the lab (terminal-voice 4.6 to 5).

Output: a client that closes its socket with 1000 while it is spoken to wants no more: the session is over. Any other
end of the socket may be an accident: the speech goes on until the ring is half full, for whoever comes back.

The lab tries a provider's voice, one answer after the other. It has no ids and nothing to resume. Without a socket it
is as fresh as before; a second socket takes its place.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import ClassVar

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import integer
from svc_proto.commands import Level
from svc_proto.engine.flow import Task
from svc_proto.schema.json_object import as_text
from svc_proto.voice.event_log import WavRecorder
from svc_proto.voice.provider_interface import AudioChunk, RenderResult, SpeechRequest
from svc_proto.voice.provider_registry import PROVIDERS, is_renderer
from svc_proto.voice.rendering import Rendering
from svc_proto.voice.session import VoiceMode, VoiceSession, error_message_of
from svc_proto.voice.session_manager import VoiceSessionManager
from svc_proto.voice.settings import OutputSettings
from svc_proto.voice.settings_store import OUTPUT_SECTION, REALTIME_SECTION
from svc_proto.voice.speak_request import parse_audio, parse_expression, parse_options, parse_text
from svc_proto.voice.speech_text import clean_for_speech

__all__ = ["SENTENCE", "LabMode", "OutputMode", "LabSessionManager", "OutputSessionManager"]

RENDERER = "streaming_tts_renderer"
SENTENCE = "This is a test of the realtime voice."  # when the lab is given no text
MAX_MODE = 80  # characters of `render_mode`: the rest is cut
MAX_TRANSCRIPT = 20_000  # characters of what a provider says it said: the rest is cut


class SpeechMode(VoiceMode, ABC):
    """Responses one at a time: told, rendered, copied into a file."""

    fields: ClassVar[Mapping[str, object]] = {}  # of its start and of its end

    def __init__(self, session: VoiceSession) -> None:
        super().__init__(session)
        self.speaking = False
        self.responses = 0  # that were asked for
        self._copy = WavRecorder(session.engine, f"{session.run_path}.wav")
        self._rendering: Task | None = None

    def start(self, message: Mapping[str, object], mode: str, /, **fields: object) -> None:
        """Say that the response to `response.create` begins; `mode` if it names none."""
        self.speaking = True
        self.responses += 1
        word = (as_text(message.get("render_mode")) or mode)[:MAX_MODE]
        about = {"render_mode": word, **fields, **self.fields}
        self.session.emit("voice.response.started", **self.session.settings_choice(), **about)

    def wanted(self, message: Mapping[str, object], text: str, language: str = "", **more: object) -> SpeechRequest:
        """What `response.create` asks for; `more` are options. `Refused` for what makes no sense."""
        return SpeechRequest(
            text=text,
            model=self.chosen.model,
            voice=self.chosen.voice,
            sample_rate=self.chosen.sample_rate,
            language=language,
            expression=parse_expression(message),
            options=parse_options(message) | more,
        )

    def speak(self, request: SpeechRequest) -> None:
        """Have it spoken. A realtime provider answers on a socket of its own, any other reads the text aloud."""
        session = self.session
        if self.responses > 1:
            self._copy = WavRecorder(session.engine, f"{session.run_path}-{self.responses}.wav")
        self._rendering = Rendering(self, request).task

    def response_finished(self) -> None:
        """A response is over, well or not, or nobody wants to hear it any more."""
        self.speaking = False
        if self._rendering is not None:
            self._rendering.cancel()
        self._copy.close()

    def on_closed(self) -> None:
        """The socket is gone: stop speaking."""
        self.response_finished()

    # --- of a `Rendering` ---

    def rendered_audio(self, response_id: str, chunk: AudioChunk) -> None:
        """Some sound."""
        self.session.emit_audio("voice.audio.delta", chunk.data, chunk.sample_rate, label=chunk.label)
        self._copy.add(chunk.data, chunk.sample_rate)

    def rendered(self, response_id: str, done: RenderResult | Exception, fields: dict[str, object]) -> None:
        """All of it; or it broke off, and the session goes on."""
        self.response_finished()
        if isinstance(done, Exception):
            self.failed(error_message_of(self.engine, done))
            return
        files = {"audio_path": self._copy.path, "event_log_path": self.session.log.path}
        self.session.emit("voice.audio.done")
        self.session.emit("voice.response.done", **done.identity, **files, **fields, **self.fields)

    def failed(self, message: str) -> None:
        """Say that it broke off."""
        self.session.error(message, provider=self.chosen.provider)


class OutputMode(SpeechMode):
    """One text, spoken."""

    fields: ClassVar = {"output_mode": RENDERER}
    chosen: OutputSettings

    def ready_fields(self) -> dict[str, object]:
        """Members of `voice.session.ready`."""
        return {**self.fields}

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """`response.create` is all there is."""
        if kind != "response.create":
            return False
        if self.responses:
            word = "is already running" if self.speaking else "was already completed"
            raise Refused(400, "response_not_possible", f"a response {word} in this session")
        said, chosen = parse_text(message) or "", self.chosen
        text = clean_for_speech(said)
        if not text:
            raise Refused(400, "text_missing", "text is required")
        request = self.wanted(
            message,
            text,
            chosen.language,
            optimize_streaming_latency=chosen.optimize_streaming_latency,  # the settings say it, and no caller
            text_normalization=chosen.text_normalization,
        )
        self.start(message, "verbatim", text_chars=len(said))
        self.speak(request)
        return True

    def resumes_after(self, code: int) -> bool:
        """See the module."""
        return code != 1000 and self.responses > 0

    def failed(self, message: str) -> None:
        """The client may fall back on another way of speaking."""
        session, chosen = self.session, self.chosen
        about = {"provider": chosen.provider, "session": session.id[:8], "problem": message}
        session.engine.log(Level.WARNING, "voice not rendered", **about)
        session.error(
            message,
            provider=chosen.provider,
            fallback_enabled=chosen.fallback_enabled,
            fallback_provider=f"legacy_{session.voice.config.brand.name}_tts",
        )


class LabMode(SpeechMode):
    """One selection of provider, model and voice, to be listened to."""

    _heard = 0  # bytes of microphone audio

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """What a client may ask for."""
        match kind:
            case "input_audio.append":  # counted, and used for nothing
                rate = integer(message.get("sample_rate", 24_000), "sample_rate")
                size = len(parse_audio(message))
                self._heard += size
                told = {"byte_count": size, "total_bytes": self._heard, "sample_rate": rate}
                self.session.emit("voice.input_audio.received", **told)
            case "response.create":
                self._create(message)
            case _:
                return False
        return True

    def on_lost(self) -> None:
        """Nobody listens: stop."""
        if self.speaking:
            self.response_finished()

    def rendered(self, response_id: str, done: RenderResult | Exception, fields: dict[str, object]) -> None:
        """All of it; a realtime provider tells what it has said."""
        if isinstance(done, RenderResult) and done.transcript:
            self.session.emit("voice.transcript.final", text=done.transcript[:MAX_TRANSCRIPT])
        super().rendered(response_id, done, fields)

    def _create(self, message: Mapping[str, object]) -> None:
        if self.speaking:
            raise Refused(400, "response_not_possible", "a response is already running in this session")
        said = parse_text(message) or SENTENCE
        request = self.wanted(message, said)
        self.start(message, "conversation", text_chars=len(said), input_audio_bytes=self._heard)
        if message.get("tool_scaffold") is True:
            name = f"{self.session.voice.config.brand.name}_run_task"
            self.session.emit("voice.tool.requested", name=name, arguments={"input_audio_bytes": self._heard})
            self.session.emit("voice.tool.completed", name=name, result="scaffold-only")
        self.speak(request)


class OutputSessionManager(VoiceSessionManager):
    """The family of speech output: a text goes in by a WebSocket, PCM comes out as it is made."""

    what, place, files, folder = "voice output", "output", "voice-output", "output_runs"
    section, mode = OUTPUT_SECTION, OutputMode
    providers = tuple(name for name, info in PROVIDERS.items() if is_renderer(info))
    unsupported_text = "voice provider {} does not turn text into speech"


class LabSessionManager(VoiceSessionManager):
    """The family of the lab, where any provider may be tried."""

    what, place, files, folder = "realtime voice", "realtime", "realtime", "lab_runs"
    section, mode, resumes = REALTIME_SECTION, LabMode, False
    providers, unsupported_text = PROVIDERS, "unknown voice provider: {}"
