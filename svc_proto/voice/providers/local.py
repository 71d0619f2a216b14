"""Local provider `local`: speech programs of the host, without a key and without a network.

espeak-ng renders in a child process, whose sound is passed on as it is made. Whisper, or pocketsphinx where Whisper or
its model is missing, transcribes in another child process, since it blocks its interpreter for seconds and reads files
of clients. `Compute` returns their command lines (`voice.engines`) and makes MP3 files (`voice.mp3`).
"""

import re
from collections.abc import Callable

from attrs import frozen

from svc_proto.basics.pcm import wav_head
from svc_proto.basics.resampler import Resampler
from svc_proto.commands import Compute
from svc_proto.engine.child_process import ChildHandler, ChildProcess, CommandResult, run_command, spawn
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Condition, Semaphore
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import (
    AudioChunk,
    AudioSink,
    ProviderError,
    Recording,
    RenderResult,
    SpeechFile,
    SpeechRequest,
)
from svc_proto.voice.providers.http_apis import clamped_number_option, options_text
from svc_proto.voice.providers.wav_stream import NotWavError, WavStream

__all__ = ["INSTALL", "MAX_LISTENERS", "MAX_WAITING", "MODEL", "LocalSpeechPrograms", "LocalProvider"]

MODEL = "espeak-ng"
VOICE = "en-us"
WORDS_PER_MINUTE = 160
SLOWEST, FASTEST = 0.5, 2.0  # factors of that
PITCH = 50  # of 99
PACES = {"slow": 0.8, "slower": 0.8, "relaxed": 0.9, "fast": 1.25, "faster": 1.25, "quick": 1.25}
CHUNK_SIZE = 4_096  # bytes of one chunk, at the program's rate
MAX_AHEAD = 128 * 1024  # bytes that wait for the sink: then the program is paused
SILENCE_TIMEOUT = 30.0  # s without sound from the program
MAX_FILE_SOUND = 40_000_000  # bytes of sound in one file, a quarter of an hour
MAX_WORDS = 400  # characters of the program's error output
ENCODING = 120.0  # s for one MP3 file
MAX_LISTENERS = 2  # transcriptions at once: each occupies a core
MAX_WAITING = 16  # recordings in the queue; the next one is refused
LISTENING = 600.0  # s for one recording, without its time in the queue
QUEUE_TIMEOUT = 120.0  # s of a recording in the queue
KNOWN_TTL = 60.0  # s after which missing programs are looked up again
INSTALL = "install svc-relay[voice]"
_VOICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9+_-]{0,63}")  # of espeak-ng: never a path, never an option


@frozen(kw_only=True)
class LocalSpeechPrograms:
    """Command lines of the installed programs, and capabilities for MP3 and decoding."""

    speak: tuple[str, ...] = ()
    listen: tuple[str, ...] = ()
    mp3: bool = False
    decode: bool = False

    @property
    def missing(self) -> list[str]:
        """The names of missing packages, for people."""
        wanted = {"espeak-ng": self.speak, "pocketsphinx": self.listen, "lameenc": self.mp3, "av": self.decode}
        return [name for name, there in wanted.items() if not there]


class LocalProvider:
    """`Renderer` by programs of this host, which also makes speech files and transcribes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: LocalSpeechPrograms | None = None
        self._found_at = 0.0  # monotonic seconds
        self._places = Semaphore(engine, MAX_LISTENERS)

    # --- installed programs -------------------------------------------------------------------------------------

    def engines(self) -> Flow[LocalSpeechPrograms]:
        """Return the installed programs, from a cache.

        The cache expires after `KNOWN_TTL` unless there is a program for synthesis and one for transcription.
        """
        found, now = self._found, self._engine.now.mono
        if found is not None and ((found.speak and found.listen) or now < self._found_at + KNOWN_TTL):
            return found
        answer = JsonObject.of(
            (yield from run_operation(self._engine, Compute(self._engine.new_op(), "voice.engines")))
        )
        self._found_at = self._engine.now.mono
        self._found = LocalSpeechPrograms(
            speak=tuple(answer.texts("speak")),
            listen=tuple(answer.texts("listen")),
            mp3=answer.get("mp3") is True,
            decode=answer.get("decode") is True,
        )
        return self._found

    # --- speech -------------------------------------------------------------------------------------------------

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[RenderResult]:
        """Render a text by espeak-ng at the pace of the sink; raise `ProviderError` if that fails."""
        voice = request.voice or request.language or VOICE
        rate = yield from self._speak(request, voice, sink.chunk, request.sample_rate)
        return RenderResult(
            provider="local",
            model=MODEL,
            voice=voice,
            metadata={"sample_rate": request.sample_rate, "source_sample_rate": rate},
        )

    def speak(self, request: SpeechRequest) -> Flow[SpeechFile]:
        """Render a text into an MP3 file, or a WAV file without an MP3 encoder; raise `ProviderError` if that fails."""
        engines, pcm = (yield from self.engines()), bytearray()

        def keep(chunk: AudioChunk) -> Flow[None]:
            pcm.extend(chunk.data)
            if len(pcm) > MAX_FILE_SOUND:
                raise ProviderError("the text is too long for one file")
            yield from ()

        rate = yield from self._speak(request, request.voice or request.language or VOICE, keep)
        if not engines.mp3:
            return SpeechFile(wav_head(len(pcm), rate) + pcm, "audio/wav")
        order = Compute(self._engine.new_op(), "voice.mp3", (bytes(pcm), rate))
        encoded = yield from run_operation(self._engine, order, within=ENCODING)
        if not isinstance(encoded, bytes) or not encoded:
            raise ProviderError("the speech could not be made an MP3 file on this host")
        return SpeechFile(encoded, "audio/mpeg")

    def _speak(
        self, request: SpeechRequest, voice: str, on_chunk: Callable[[AudioChunk], Flow[None]], wanted: int = 0
    ) -> Flow[int]:
        """Pass the sound of espeak-ng to `on_chunk`, at the rate `wanted` (Hz) or its own; return its own rate.

        Raise `ProviderError` if espeak-ng is missing or fails, or if the voice is invalid.
        """
        engines = yield from self.engines()
        if not engines.speak:
            raise ProviderError(f"this host has no engine that speaks: {INSTALL}, or the package espeak-ng")
        if not _VOICE.fullmatch(voice):
            raise ProviderError("the voice is not the name of one of espeak-ng")
        ear, complaint = _AudioOutput(self._engine), _StderrText()
        argv = (*engines.speak, "-v", voice, "-s", str(_words_per_minute(request)), "-p", str(PITCH))
        child = yield from spawn(self._engine, argv, ear, errors=complaint)
        if isinstance(child, Failure):
            raise ProviderError(f"espeak-ng cannot be started: {child.detail or child.kind.value}")
        ear.child = child
        child.write(request.text.encode("utf-8"))
        child.close_input()
        sound: Resampler | None = None
        size = 0  # bytes
        try:
            while (made := (yield from ear.next())) is not None:
                for begin in range(0, len(made), CHUNK_SIZE):
                    rate = wanted or ear.wav.rate
                    sound = sound or Resampler(ear.wav.rate, rate)
                    if pcm := sound.feed(made[begin : begin + CHUNK_SIZE]):
                        size += len(pcm)
                        yield from on_chunk(AudioChunk(pcm, rate))
        except NotWavError:
            raise ProviderError("espeak-ng gave something that is no sound") from None
        finally:
            if not ear.over:
                child.kill()
        if "does not exist" in complaint.words:
            raise ProviderError(f"espeak-ng has no voice {voice}")
        if ear.status or not size:
            raise ProviderError(": ".join(filter(None, ("espeak-ng made no sound", complaint.words))))
        return ear.wav.rate

    # --- transcription ------------------------------------------------------------------------------------------

    def transcribe(self, recording: Recording, *, model: str = "", language: str = "") -> Flow[str]:
        """Return the transcript of a recording; `model` is ignored, and `language` only checked.

        Raise `ProviderError` for a language other than English or `auto`, without a program for transcription, if the
        program fails, with a full queue, or after `QUEUE_TIMEOUT` in the queue.
        """
        engines = yield from self.engines()
        if not engines.listen:
            raise ProviderError(f"this host has no engine that listens: {INSTALL}")
        if language and language.lower().partition("-")[0] not in ("en", "eng", "auto"):
            raise ProviderError("the engine of this host understands English only")
        if self._places.waiting >= MAX_WAITING:
            raise ProviderError("this host listens to too many recordings already; try again in a while")
        if not (yield from self._places.acquire(QUEUE_TIMEOUT)):
            raise ProviderError("this host has been listening to other recordings for too long")
        try:
            finished = yield from run_command(self._engine, (*engines.listen, recording.path), within=LISTENING)
        finally:
            self._places.release()
        return _transcript_of(finished)


class _AudioOutput:
    """`ChildHandler` of the sound of espeak-ng, which pauses the program when too much sound waits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._made = bytearray()
        self._bell = Condition(engine)
        self.child: ChildProcess  # set after the start, before any output
        self.wav = WavStream()
        self.over = False
        self.status: int | None = None

    def next(self) -> Flow[bytes | None]:
        """Wait for more output and return its PCM, which may be empty; return None at the program's end.

        Raise `NotWavError` for other output, and `ProviderError` after `SILENCE_TIMEOUT` without any.
        """
        until = self._engine.now.mono + SILENCE_TIMEOUT
        while not self._made:
            if self.over:
                self.wav.finish()
                return None
            if self._engine.now.mono >= until:
                raise ProviderError("espeak-ng fell silent")
            yield from self._bell.wait(until)
        made, self._made = bytes(self._made), bytearray()
        self.child.set_read_paused(False)
        return self.wav.feed(made)

    def on_output(self, data: bytes) -> None:
        self._made += data
        if len(self._made) > MAX_AHEAD:
            self.child.set_read_paused(True)
        self._bell.notify_all()

    def on_exit(self, status: int | None) -> None:
        self.over, self.status = True, status
        self._bell.notify_all()


class _StderrText(ChildHandler):
    """`ChildHandler` of the program's error output."""

    def __init__(self) -> None:
        self._said = bytearray()

    @property
    def words(self) -> str:
        """The beginning of the program's error output, on one line."""
        return " ".join(self._said.decode("utf-8", "replace").split())

    def on_output(self, data: bytes) -> None:
        self._said += data[: MAX_WORDS - len(self._said)]


def _words_per_minute(request: SpeechRequest) -> int:
    speed = clamped_number_option(request.options, "speed", SLOWEST, FASTEST)
    if speed is None:
        speed = PACES.get(options_text(request.expression, "pace").lower(), 1.0)
    return round(WORDS_PER_MINUTE * speed)


def _transcript_of(finished: CommandResult | Failure) -> str:
    """Return the transcript in a program's result; raise `ProviderError`, with the program's error if it has one."""
    if isinstance(finished, Failure):
        if finished.kind is FailureKind.TIMED_OUT:
            raise ProviderError("listening to the recording took too long")
        raise ProviderError(f"the engine that listens cannot be started: {finished.detail or finished.kind.value}")
    answer = JsonObject.parse_or_empty(finished.output)
    text = answer.string("text")
    if text is not None:
        return text
    raise ProviderError(answer.text("error") or "the engine that listens broke down over the recording")
