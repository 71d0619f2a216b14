"""xAI over HTTP: `/v1/tts` and `/v1/stt`."""

from __future__ import annotations

from svc_proto.basics import strict_json
from svc_proto.schema.members import Members
from svc_proto.voice.contract import SpeechRequest
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.vendor import JSON, Form, VendorCall, number

__all__ = ["Xai"]

MODEL, VOICE, LANGUAGE = "xai-tts", "eve", "en"
RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)  # Hz
RATE = 24_000  # Hz, when it does not have the one that is asked for
MP3_RATE = 24_000  # Hz


class Xai:
    """A vendor for speech and for transcripts."""

    provider = "xai_tts"

    def __init__(self, access: VendorAccess) -> None:
        self.access = access
        self._base = access.url.removesuffix("/v1")

    def stream(self, request: SpeechRequest) -> VendorCall:
        """PCM at the rate that is asked for, if it has it."""
        rate = request.sample_rate if request.sample_rate in RATES else RATE
        return self._speech(request, "pcm", rate)

    def file(self, request: SpeechRequest) -> VendorCall:
        """The request for a text as an MP3 file."""
        return self._speech(request, "mp3", MP3_RATE)

    def form(self, model: str, language: str) -> Form:
        """A transcription; it has one model and takes no name of any."""
        return Form(
            url=f"{self._base}/v1/stt", headers=self.access.bearer, fields=(("language", language),) if language else ()
        )

    def _speech(self, request: SpeechRequest, codec: str, rate: int) -> VendorCall:
        voice = request.voice or VOICE
        asked: dict[str, object] = {
            "text": request.text,
            "voice_id": voice,
            "language": request.language or LANGUAGE,
            "output_format": {"codec": codec, "sample_rate": rate},
        }
        latency = number(request.options, "optimize_streaming_latency", 0, 1)
        if latency is not None:
            asked["optimize_streaming_latency"] = int(latency)
        normal = Members.of(request.options).flag("text_normalization")
        if normal is not None:
            asked["text_normalization"] = normal
        return VendorCall(
            url=f"{self._base}/v1/tts",
            headers=(JSON, *self.access.bearer),
            body=strict_json.dumps_bytes(asked),
            model=request.model or MODEL,
            voice=voice,
            sample_rate=rate,
        )
