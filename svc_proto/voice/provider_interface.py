"""The seam between the voice routes and the providers of speech: what is asked of one, and what it tells.

    renderer = providers.renderer("local")
    done = yield from renderer.render(SpeechRequest(text="Hello.", voice="en", sample_rate=24_000), sink)

A vendor, this host and a command of the operator's have `speak(request)`, which gives `SpeechFile`, and
`transcribe(recording, model=, language=)`, which gives its words.

Audio is PCM everywhere behind this seam: signed 16-bit little-endian, mono. A provider raises `ProviderError` for
whatever keeps it from its work; its text may be shown to the caller, so it never holds a key or a whole answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from attrs import field, frozen

from svc_proto.engine.flow import Flow

__all__ = ["AudioChunk", "AudioDelta", "AudioDone", "AudioSink", "FunctionCall", "ProviderError", "ProviderEvent"]
__all__ += [
    "ProviderInfo",
    "ProviderErrorEvent",
    "ProviderReady",
    "RealtimeOptions",
    "Recording",
    "RenderResult",
    "Renderer",
]
__all__ += ["ResponseDone", "ResponseStarted", "SUPPORTS", "SpeechRequest", "SpeechFile", "SpokenTextDelta"]
__all__ += ["TranscriptDelta", "TranscriptFinal"]


class ProviderError(Exception):
    """A provider could not do it. `str(error)` is for people; `variable` names the missing key, if that is it."""

    def __init__(self, message: str, *, variable: str | None = None) -> None:
        super().__init__(message)
        self.variable = variable


SUPPORTS = ("tts", "stt", "speech_to_speech", "tool_use", "realtime", "interruption", "expression")


@frozen(kw_only=True)
class ProviderInfo:
    """What is known of a provider without asking it (wire terminal-voice 4.2)."""

    id: str
    name: str
    description: str
    status: str = "available"
    models: tuple[str, ...] = ()
    voices: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    sample_rates: tuple[int, ...] = ()  # Hz
    supports: frozenset[str] = frozenset()  # of `SUPPORTS`
    native: bool = False  # the realtime agent's: hears and speaks by itself
    rendered: bool = False  # the same: speaks what a chat run has answered
    source: str = ""  # of what is known of its models and voices, where they go with each other
    recommended: tuple[str, ...] = ()  # of its voices
    voices_of: Mapping[str, tuple[str, ...]] = field(factory=dict)  # by model, where one has not all of them

    def default_options(self, rate: int) -> dict[str, Any]:
        """Its first model and voice, and this rate (Hz) or its first: for whoever names the provider alone."""
        rates = self.sample_rates
        return {"model": self.models[0], "voice": self.voices[0], "sample_rate": rate if rate in rates else rates[0]}


# --- speech out ---------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class SpeechRequest:
    """A text to be spoken. Empty strings leave the choice to the provider."""

    text: str
    model: str = ""
    voice: str = ""
    sample_rate: int = 24_000  # Hz
    language: str = ""
    expression: Mapping[str, object] = field(factory=dict)  # emotion, tone, pace and so on (wire 4.7)
    options: Mapping[str, object] = field(factory=dict)  # harmless keys only: never a URL, a header or a key


@frozen
class AudioChunk:
    """Some PCM: whole samples."""

    data: bytes
    sample_rate: int  # Hz
    label: str | None = None


@frozen(kw_only=True)
class RenderResult:
    """What a renderer says when it is done."""

    provider: str
    model: str
    voice: str
    metadata: Mapping[str, object] = field(factory=dict)
    transcript: str | None = None  # what the provider says it said

    @property
    def identity(self) -> dict[str, object]:
        """Who has spoken, as events name it."""
        return {"provider": self.provider, "model": self.model, "voice": self.voice}


class AudioSink(Protocol):
    """Who takes the audio."""

    @property
    def has_room(self) -> bool:
        """Whether nobody has to wait before the next chunk."""
        ...

    def write(self, chunk: AudioChunk) -> None:
        """Take a chunk of at most 32 KiB at once; whoever has more to give waits while there is no room."""
        ...

    def chunk(self, chunk: AudioChunk) -> Flow[None]:
        """Take a chunk; returns when there is room for the next."""
        ...


class Renderer(Protocol):
    """Text to PCM, piece by piece as it comes."""

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[RenderResult]:
        """Speak. Raises `ProviderError`; no audio at all is one too. Cancelling the flow frees everything."""
        ...


@frozen
class SpeechFile:
    """A whole audio file."""

    data: bytes = field(repr=False)
    content_type: str  # audio/mpeg


# --- speech in ----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Recording:
    """An uploaded audio file, in the spool folder while it is worked on."""

    path: str
    size: int  # bytes
    content_type: str  # as the sender named it, without parameters
    suffix: str  # .wav, .webm and so on (wire 3.3)


# --- both ways ----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class RealtimeOptions:
    """How a realtime session is to be set up."""

    model: str
    voice: str
    sample_rate: int  # Hz, of both directions
    instructions: str = ""
    tools: tuple[Mapping[str, object], ...] = ()  # function schemas as the provider wants them
    transcribe: bool = True  # tell what the person said


@frozen
class ProviderReady:
    """The session is set up; `model` as the provider resolved it, when it says."""

    model: str | None = None


@frozen
class TranscriptDelta:
    """A piece of what the person said."""

    delta: str


@frozen
class TranscriptFinal:
    """All of what the person said in one utterance."""

    text: str


@frozen
class ResponseStarted:
    """A response has begun; told once for each id."""

    response_id: str


@frozen
class SpokenTextDelta:
    """A piece of the text of what is spoken."""

    response_id: str
    delta: str


@frozen
class AudioDelta:
    """A piece of what is spoken."""

    response_id: str
    data: bytes = field(repr=False)


@frozen
class AudioDone:
    """The audio of a response is complete."""

    response_id: str


@frozen
class FunctionCall:
    """The model wants a function; told once for each call id. `arguments` as the model wrote them (JSON text)."""

    response_id: str
    call_id: str
    name: str
    arguments: str


@frozen
class ResponseDone:
    """A response is over."""

    response_id: str
    status: str = "completed"  # or cancelled, failed, incomplete


@frozen
class ProviderErrorEvent:
    """An `error` of the provider. `benign`: changes nothing; `idle`: it closed a session that nobody used."""

    message: str
    benign: bool = False
    idle: bool = False


ProviderEvent: TypeAlias = (
    ProviderReady
    | TranscriptDelta
    | TranscriptFinal
    | ResponseStarted
    | SpokenTextDelta
    | AudioDelta
    | AudioDone
    | FunctionCall
    | ResponseDone
    | ProviderErrorEvent
)

Message: TypeAlias = "dict[str, object]"  # a JSON object for the provider's socket
