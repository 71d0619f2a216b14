"""OpenAI over HTTP: `/audio/speech` and `/audio/transcriptions`."""

from __future__ import annotations

from svc_proto.basics import strict_json
from svc_proto.voice.contract import SpeechRequest
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.vendor import JSON, Form, VendorCall, number, options_text

__all__ = ["OpenAi"]

SPEECH_MODEL, VOICE = "gpt-4o-mini-tts", "alloy"
LISTENING_MODEL = "whisper-1"
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


class OpenAi:
    """A vendor for speech and for transcripts."""

    provider = "openai_tts"

    def __init__(self, access: VendorAccess) -> None:
        self.access = access

    def stream(self, request: SpeechRequest) -> VendorCall:
        """PCM at 24 kHz."""
        return self._speech(request, "pcm")

    def file(self, request: SpeechRequest) -> VendorCall:
        """The request for a text as an MP3 file."""
        return self._speech(request, "mp3")

    def form(self, model: str, language: str) -> Form:
        """The form that asks for the transcription of a recording."""
        fields = [("model", model or LISTENING_MODEL), ("response_format", "json")]
        if language:
            fields.append(("language", language))
        return Form(url=f"{self.access.url}/audio/transcriptions", headers=self.access.bearer, fields=tuple(fields))

    def _speech(self, request: SpeechRequest, response_format: str) -> VendorCall:
        model, voice = request.model or SPEECH_MODEL, request.voice or VOICE
        asked: dict[str, object] = {
            "model": model,
            "voice": voice,
            "input": request.text,
            "response_format": response_format,
        }
        instructions = instructions_of(request)
        if instructions and model not in WITHOUT_INSTRUCTIONS:
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
