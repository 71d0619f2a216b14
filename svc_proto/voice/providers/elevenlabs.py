"""ElevenLabs over HTTP: speech as a stream, speech as a file, transcripts."""

from __future__ import annotations

from urllib.parse import quote

from svc_proto.basics import strict_json
from svc_proto.voice.contract import SpeechRequest
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.vendor import JSON, Form, VendorCall, number

__all__ = ["ElevenLabs", "key_header"]

MODEL, VOICE = "eleven_flash_v2_5", "21m00Tcm4TlvDq8ikWAM"
LISTENING_MODEL = "scribe_v1"
RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)  # Hz
RATE = 24_000  # Hz, when it does not have the one that is asked for
MP3 = "mp3_44100_128"
SETTINGS = {  # of a voice, with their ranges
    "stability": (0.0, 1.0),
    "similarity_boost": (0.0, 1.0),
    "style": (0.0, 1.0),
    "speed": (0.7, 1.2),
}


def key_header(access: VendorAccess) -> tuple[bytes, bytes]:
    """The key as this vendor wants it."""
    return b"xi-api-key", access.key.encode("ascii")


class ElevenLabs:
    """A vendor for speech and for transcripts."""

    provider = "elevenlabs_tts"

    def __init__(self, access: VendorAccess) -> None:
        self.access = access
        self._base = access.url.removesuffix("/v1")

    def stream(self, request: SpeechRequest) -> VendorCall:
        """PCM at the rate that is asked for, if it has it."""
        rate = request.sample_rate if request.sample_rate in RATES else RATE
        return self._speech(request, "/stream", f"pcm_{rate}", rate)

    def file(self, request: SpeechRequest) -> VendorCall:
        """The request for a text as an MP3 file."""
        return self._speech(request, "", MP3, 0)

    def form(self, model: str, language: str) -> Form:
        """The form that asks for the transcription of a recording."""
        fields = [("model_id", model or LISTENING_MODEL)]
        if language:
            fields.append(("language_code", language))
        return Form(url=f"{self._base}/v1/speech-to-text", headers=(key_header(self.access),), fields=tuple(fields))

    def _speech(self, request: SpeechRequest, how: str, output: str, rate: int) -> VendorCall:
        model, voice = request.model or MODEL, request.voice or VOICE
        asked: dict[str, object] = {"text": request.text, "model_id": model}
        settings = {
            name: value
            for name, (low, high) in SETTINGS.items()
            if (value := number(request.options, name, low, high)) is not None
        }
        if settings:
            asked["voice_settings"] = settings
        return VendorCall(
            url=f"{self._base}/v1/text-to-speech/{quote(voice, safe='')}{how}?output_format={output}",
            headers=(JSON, key_header(self.access)),
            body=strict_json.dumps_bytes(asked),
            model=model,
            voice=voice,
            sample_rate=rate,
        )
