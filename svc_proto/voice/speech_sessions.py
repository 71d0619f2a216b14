"""Sessions that render one response at a time: speech output and the lab (wire terminal-voice 4.6 to 5).

Output: the session ends when the client closes its socket with 1000, or before it has requested a response. After any
other end of the socket, rendering continues until the replay buffer is half full, for a client that reconnects.

The lab tries a provider's voice, one response after the other. It has no resume: a session whose socket was closed can
be opened again, and a second socket replaces the first.
"""

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
SENTENCE = "This is a test of the realtime voice."  # when the lab's client sends no text
MAX_MODE = 80  # characters of `render_mode`: the rest is cut
MAX_TRANSCRIPT = 20_000  # characters of a provider's transcript of its speech: the rest is cut


class SpeechMode(VoiceMode, ABC):
    """Mode with one response at a time, which is announced, rendered and copied into a file."""

    fields: ClassVar[Mapping[str, object]] = {}  # of the events at its start and its end

    def __init__(self, session: VoiceSession) -> None:
        super().__init__(session)
        self.speaking = False
        self.responses = 0  # number of responses that were requested
        self._copy = WavRecorder(session.engine, f"{session.run_path}.wav")
        self._rendering: Task | None = None

    def start(self, message: Mapping[str, object], mode: str, /, **fields: object) -> None:
        """Announce the response to `response.create`; `mode` is the default of `render_mode`."""
        self.speaking = True
        self.responses += 1
        word = (as_text(message.get("render_mode")) or mode)[:MAX_MODE]
        about = {"render_mode": word, **fields, **self.fields}
        self.session.emit("voice.response.started", **self.session.settings_choice(), **about)

    def wanted(self, message: Mapping[str, object], text: str, language: str = "", **more: object) -> SpeechRequest:
        """Build the request of a `response.create`; `more` are options. Raise `Refused` for invalid members."""
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
        """Render a request; a realtime provider uses a socket of its own."""
        session = self.session
        if self.responses > 1:
            self._copy = WavRecorder(session.engine, f"{session.run_path}-{self.responses}.wav")
        self._rendering = Rendering(self, request).task

    def response_finished(self) -> None:
        """End the current response: cancel its rendering and close the file with its copy."""
        self.speaking = False
        if self._rendering is not None:
            self._rendering.cancel()
        self._copy.close()

    def on_closed(self) -> None:
        """Stop rendering at the end of the session."""
        self.response_finished()

    # --- of a `Rendering` ---

    def rendered_audio(self, response_id: str, chunk: AudioChunk) -> None:
        """Send a piece of audio and copy it."""
        self.session.emit_audio("voice.audio.delta", chunk.data, chunk.sample_rate, label=chunk.label)
        self._copy.add(chunk.data, chunk.sample_rate)

    def rendered(self, response_id: str, done: RenderResult | Exception, fields: dict[str, object]) -> None:
        """Send the client the end of the response, or its failure; the socket stays open. `response_id` is not used."""
        self.response_finished()
        if isinstance(done, Exception):
            self.failed(error_message_of(self.engine, done))
            return
        files = {"audio_path": self._copy.path, "event_log_path": self.session.log.path}
        self.session.emit("voice.audio.done")
        self.session.emit("voice.response.done", **done.identity, **files, **fields, **self.fields)

    def failed(self, message: str) -> None:
        """Report a failed response."""
        self.session.error(message, provider=self.chosen.provider)


class OutputMode(SpeechMode):
    """Mode of speech output: one text for each session."""

    fields: ClassVar = {"output_mode": RENDERER}
    chosen: OutputSettings

    def ready_fields(self) -> dict[str, object]:
        """Return the members that this mode adds to `voice.session.ready`."""
        return {**self.fields}

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """Render the response to `response.create`, the only message of this mode, once in a session.

        Return False for another message. Raise `Refused` 400 for a second one, without a text, or for invalid members.
        """
        if kind != "response.create":
            return False
        if self.responses:
            word = "is already running" if self.speaking else "was already completed"
            raise Refused(400, "response_not_possible", f"a response {word} in this session")
        message_text, chosen = parse_text(message) or "", self.chosen
        text = clean_for_speech(message_text)
        if not text:
            raise Refused(400, "text_missing", "text is required")
        request = self.wanted(
            message,
            text,
            chosen.language,
            optimize_streaming_latency=chosen.optimize_streaming_latency,  # from the settings; a caller cannot set it
            text_normalization=chosen.text_normalization,
        )
        self.start(message, "verbatim", text_chars=len(message_text))
        self.speak(request)
        return True

    def resumes_after(self, code: int) -> bool:
        """Report whether the session waits for a reconnect: a response was requested, and `code` is not 1000."""
        return code != 1000 and self.responses > 0

    def failed(self, message: str) -> None:
        """Report a failed response with the fallback that the client may use."""
        session, chosen = self.session, self.chosen
        about = {"provider": chosen.provider, "session": session.id[:8], "problem": message}
        session.engine.log(Level.WARNING, "voice not rendered", **about)
        session.error(
            message,
            provider=chosen.provider,
            fallback_enabled=chosen.fallback_enabled,
            fallback_provider=f"legacy_{session.brand.name}_tts",
        )


class LabMode(SpeechMode):
    """Mode of the lab, in which a client tries provider, model and voice: one response after the other."""

    _heard = 0  # bytes of microphone audio

    def on_message(self, kind: str, message: Mapping[str, object]) -> bool:
        """Count the audio of `input_audio.append`, or render a response to `response.create`.

        Return False for another message. Raise `Refused` 400 for invalid members, or a second response at once.
        """
        match kind:
            case "input_audio.append":  # counted, but not used
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
        """Stop rendering, because the client has disconnected."""
        if self.speaking:
            self.response_finished()

    def rendered(self, response_id: str, done: RenderResult | Exception, fields: dict[str, object]) -> None:
        """Report the end of the response or its failure; before the end, the transcript of a realtime provider."""
        if isinstance(done, RenderResult) and done.transcript:
            self.session.emit("voice.transcript.final", text=done.transcript[:MAX_TRANSCRIPT])
        super().rendered(response_id, done, fields)

    def _create(self, message: Mapping[str, object]) -> None:
        if self.speaking:
            raise Refused(400, "response_not_possible", "a response is already running in this session")
        message_text = parse_text(message) or SENTENCE
        request = self.wanted(message, message_text)
        self.start(message, "conversation", text_chars=len(message_text), input_audio_bytes=self._heard)
        if message.get("tool_scaffold") is True:
            name = f"{self.session.brand.name}_run_task"
            self.session.emit("voice.tool.requested", name=name, arguments={"input_audio_bytes": self._heard})
            self.session.emit("voice.tool.completed", name=name, result="scaffold-only")
        self.speak(request)


class OutputSessionManager(VoiceSessionManager):
    """Session manager of speech output: text comes in by a WebSocket, PCM goes out as it is made."""

    what, place, files, folder = "voice output", "output", "voice-output", "output_runs"
    section, mode = OUTPUT_SECTION, OutputMode
    providers = tuple(name for name, info in PROVIDERS.items() if is_renderer(info))
    unsupported_text = "voice provider {} does not turn text into speech"


class LabSessionManager(VoiceSessionManager):
    """Session manager of the lab, where any provider may be tried."""

    what, place, files, folder = "realtime voice", "realtime", "realtime", "lab_runs"
    section, mode, resumes = REALTIME_SECTION, LabMode, False
    providers, unsupported_text = PROVIDERS, "unknown voice provider: {}"
