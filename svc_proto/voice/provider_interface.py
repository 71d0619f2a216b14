"""Interface between the voice routes and the speech providers: requests, results and events.

    renderer = providers.renderer("local")
    done = yield from renderer.render(SpeechRequest(text="Hello.", voice="en", sample_rate=24_000), sink)

The providers over HTTP, the local provider and a command of the operator have `speak(request)`, which returns a
`SpeechFile`, and `transcribe(recording, model=, language=)`, which returns the text.

The audio of renderers and realtime providers is PCM: signed 16-bit little-endian, mono. Failures of providers are
`ProviderError`s, whose texts may be shown to the caller.
"""

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
    """Failure of a provider: `str(error)` is for people; `variable` names the missing key, if that is the reason."""

    def __init__(self, message: str, *, variable: str | None = None) -> None:
        super().__init__(message)
        self.variable = variable


SUPPORTS = ("tts", "stt", "speech_to_speech", "tool_use", "realtime", "interruption", "expression")


@frozen(kw_only=True)
class ProviderInfo:
    """Static description of a provider (wire terminal-voice 4.2)."""

    id: str
    name: str
    description: str
    status: str = "available"
    models: tuple[str, ...] = ()
    voices: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    sample_rates: tuple[int, ...] = ()  # Hz
    supports: frozenset[str] = frozenset()  # of `SUPPORTS`
    native: bool = False  # usable by the realtime agent: listens and answers by itself
    rendered: bool = False  # usable by the realtime agent: renders the answer of a chat run
    source: str = ""  # of the static models and voices, where they are documented together
    recommended: tuple[str, ...] = ()  # of its voices
    voices_of: Mapping[str, tuple[str, ...]] = field(factory=dict)  # by model, where a model has not all of them

    def default_options(self, rate: int) -> dict[str, Any]:
        """Return the first model and voice, and this rate (Hz) if it is supported, else the first rate."""
        rates = self.sample_rates
        return {"model": self.models[0], "voice": self.voices[0], "sample_rate": rate if rate in rates else rates[0]}


# --- speech output ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class SpeechRequest:
    """Text to render as speech; an empty model, voice or language leaves the choice to the provider."""

    text: str
    model: str = ""
    voice: str = ""
    sample_rate: int = 24_000  # Hz
    language: str = ""
    expression: Mapping[str, object] = field(factory=dict)  # emotion, tone, pace and so on (wire 4.7)
    options: Mapping[str, object] = field(factory=dict)  # harmless keys only: never a URL, a header or a key


@frozen
class AudioChunk:
    """PCM audio of whole samples."""

    data: bytes
    sample_rate: int  # Hz
    label: str | None = None


@frozen(kw_only=True)
class RenderResult:
    """Result of a speech synthesis: the provider, model and voice that were used, and further details."""

    provider: str
    model: str
    voice: str
    metadata: Mapping[str, object] = field(factory=dict)
    transcript: str | None = None  # the provider's transcript of its own speech

    @property
    def identity(self) -> dict[str, object]:
        """The provider, model and voice, as events name them."""
        return {"provider": self.provider, "model": self.model, "voice": self.voice}


class AudioSink(Protocol):
    """Receiver of rendered audio."""

    @property
    def has_room(self) -> bool:
        """Report whether the next chunk may be written without a wait."""
        ...

    def write(self, chunk: AudioChunk) -> None:
        """Accept a chunk of at most 32 KiB; the renderer waits before the next one while there is no room."""
        ...

    def chunk(self, chunk: AudioChunk) -> Flow[None]:
        """Accept a chunk and wait until there is room for the next."""
        ...


class Renderer(Protocol):
    """Provider that converts text to PCM, in pieces as they are made."""

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[RenderResult]:
        """Render a text; raise `ProviderError`, also for no audio at all. Cancelling the flow frees all resources."""
        ...


@frozen
class SpeechFile:
    """Complete audio file."""

    data: bytes = field(repr=False)
    content_type: str  # audio/mpeg


# --- speech input -------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Recording:
    """Audio file in the spool folder while it is transcribed: uploaded, or an utterance of a voice session."""

    path: str
    size: int  # bytes
    content_type: str  # as the client named it, without parameters
    suffix: str  # .wav, .webm and so on (wire 3.3)


# --- realtime -----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class RealtimeOptions:
    """Options for a provider's realtime session: model, voice, rate, instructions, functions."""

    model: str
    voice: str
    sample_rate: int  # Hz, of both directions
    instructions: str = ""
    tools: tuple[Mapping[str, object], ...] = ()  # function schemas in the provider's form
    transcribe: bool = True  # request transcripts of the user's speech


@frozen
class ProviderReady:
    """Completed set-up of the session; `model` as the provider resolved it, if reported."""

    model: str | None = None


@frozen
class TranscriptDelta:
    """Piece of the transcript of the user's speech."""

    delta: str


@frozen
class TranscriptFinal:
    """Transcript of one utterance of the user."""

    text: str


@frozen
class ResponseStarted:
    """Start of a response; reported once for each id."""

    response_id: str


@frozen
class SpokenTextDelta:
    """Piece of a response's text: the transcript of its speech, or the text of a response without speech."""

    response_id: str
    delta: str


@frozen
class AudioDelta:
    """Piece of a response's audio."""

    response_id: str
    data: bytes = field(repr=False)


@frozen
class AudioDone:
    """End of the audio of a response."""

    response_id: str


@frozen
class FunctionCall:
    """Function call of the model; reported once for each call id. `arguments` as the model wrote them (JSON text)."""

    response_id: str
    call_id: str
    name: str
    arguments: str


@frozen
class ResponseDone:
    """End of a response."""

    response_id: str
    status: str = "completed"  # or cancelled, failed, incomplete


@frozen
class ProviderErrorEvent:
    """Error event of the provider. `benign`: without effect; `idle`: the provider closed an unused session."""

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
