"""OpenAI over HTTP, and who has an API of its shape: `/audio/speech` and `/audio/transcriptions`."""

from __future__ import annotations

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.voice.contract import SpeechRequest
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.vendor import JSON, Form, VendorCall, number, options_text
from svc_proto.voice_config import DEEPINFRA, GROQ, MISTRAL, OPENAI, Vendor

__all__ = ["SHAPES", "OpenAi", "Shape"]

RATE = 24_000  # Hz: its `pcm` has no other
WITHOUT_INSTRUCTIONS = ("tts-1", "tts-1-hd")
SLOWEST, FASTEST = 0.25, 4.0
_SPOKEN = (  # of `expression`, wire 4.7, in the order of telling
    ("emotion", "Emotion: {}."),
    ("tone", "Tone: {}."),
    ("pace", "Pace: {}."),
    ("style", "Style: {}."),
    ("persona_instructions", "{}"),
)


@frozen(kw_only=True)
class Shape:
    """Who has an API of this shape: models and voice where none is named. Without a `speech_model` he only listens."""

    vendor: Vendor
    provider: str  # as it names itself
    listening_model: str
    speech_model: str = ""
    voice: str = ""
    instructed: bool = False  # takes words on how to speak


SHAPES = {  # by name
    "openai": Shape(
        vendor=OPENAI,
        provider="openai_tts",
        listening_model="whisper-1",
        speech_model="gpt-4o-mini-tts",
        voice="alloy",
        instructed=True,
    ),
    "groq": Shape(vendor=GROQ, provider="groq", listening_model="whisper-large-v3-turbo"),
    "mistral": Shape(vendor=MISTRAL, provider="mistral", listening_model="voxtral-mini-latest"),
    "deepinfra": Shape(
        vendor=DEEPINFRA,
        provider="deepinfra",
        listening_model="openai/whisper-large-v3-turbo",
        speech_model="hexgrad/Kokoro-82M",
        voice="af_bella",
    ),
}


class OpenAi:
    """A vendor of `SHAPES`, for speech and for transcripts."""

    def __init__(self, access: VendorAccess, shape: Shape) -> None:
        self.provider = shape.provider
        self.access = access
        self._shape = shape

    def stream(self, request: SpeechRequest) -> VendorCall:
        """PCM at 24 kHz."""
        return self._speech(request, "pcm")

    def file(self, request: SpeechRequest) -> VendorCall:
        """The request for a text as an MP3 file."""
        return self._speech(request, "mp3")

    def form(self, model: str, language: str) -> Form:
        """The form that asks for the transcription of a recording."""
        fields = [("model", model or self._shape.listening_model), ("response_format", "json")]
        if language:
            fields.append(("language", language))
        return Form(url=f"{self.access.url}/audio/transcriptions", headers=self.access.bearer, fields=tuple(fields))

    def _speech(self, request: SpeechRequest, response_format: str) -> VendorCall:
        model, voice = request.model or self._shape.speech_model, request.voice or self._shape.voice
        asked: dict[str, object] = {
            "model": model,
            "voice": voice,
            "input": request.text,
            "response_format": response_format,
        }
        instructions = instructions_of(request)
        if instructions and self._shape.instructed and model not in WITHOUT_INSTRUCTIONS:
            asked["instructions"] = instructions
        speed = number(request.options, "speed", SLOWEST, FASTEST)
        if speed is not None:
            asked["speed"] = speed
        return VendorCall(
            url=f"{self.access.url}/audio/speech",
            headers=(JSON, *self.access.bearer),
            body=strict_json.dumps_bytes(asked),
            model=model,
            voice=voice,
            sample_rate=RATE,
        )


def instructions_of(request: SpeechRequest) -> str:
    """How to speak, in words."""
    told = [options_text(request.options, "instructions")]
    told += [line.format(value) for name, line in _SPOKEN if (value := options_text(request.expression, name, 500))]
    return " ".join(text for text in told if text)
