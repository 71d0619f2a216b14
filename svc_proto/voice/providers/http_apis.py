"""HTTP APIs of the vendors: their requests for speech and transcription; each is a row of `SPEECH_APIS`.

Groq, Mistral and DeepInfra have an API of OpenAI's form. A vendor without a speech model only transcribes.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import quote

from attrs import frozen

from svc_proto.engine.http_client import bearer_header
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import SpeechRequest
from svc_proto.voice_config import (
    DEEPINFRA_ENDPOINT,
    ELEVENLABS_ENDPOINT,
    GROQ_ENDPOINT,
    MISTRAL_ENDPOINT,
    OPENAI_ENDPOINT,
    XAI_ENDPOINT,
    ProviderEndpoint,
)

__all__ = ["SPEECH_APIS", "RATE", "SpeechApi", "instructions_of", "clamped_number_option", "options_text"]

RATE = 24_000  # Hz of PCM, if the vendor does not have the requested rate
RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)  # Hz
WITHOUT_INSTRUCTIONS = ("tts-1", "tts-1-hd")
SLOWEST, FASTEST = 0.25, 4.0
SETTINGS = {  # of a voice of ElevenLabs, with their ranges
    "stability": (0.0, 1.0),
    "similarity_boost": (0.0, 1.0),
    "style": (0.0, 1.0),
    "speed": (0.7, 1.2),
}
_SPOKEN = (  # members of `expression`, wire 4.7, in the order of the instructions
    ("emotion", "Emotion: {}."),
    ("tone", "Tone: {}."),
    ("pace", "Pace: {}."),
    ("style", "Style: {}."),
    ("persona_instructions", "{}"),
)
ApiRequest: TypeAlias = "tuple[str, dict[str, object]]"  # the end of the URL, and the body
# Builds the request for a text by the rate in Hz; None: as an MP3 file.
Speech: TypeAlias = Callable[[SpeechRequest, "int | None"], ApiRequest]


def clamped_number_option(options: Mapping[str, object], name: str, low: float, high: float) -> float | None:
    """Return a numeric option, clamped to its range; another type counts as absent."""
    value = JsonObject.of(options).number(name)
    return None if value is None else float(min(max(value, low), high))


def options_text(options: Mapping[str, object], name: str, limit: int = 2_000) -> str:
    """Return a text option, cut to `limit` characters; empty without one, and for another type."""
    return JsonObject.of(options).first_text(name)[:limit]


def instructions_of(request: SpeechRequest) -> str:
    """Return the request's style (instructions and expression) as one text for a speech model."""
    told = [options_text(request.options, "instructions")]
    told += [line.format(value) for name, line in _SPOKEN if (value := options_text(request.expression, name, 500))]
    return " ".join(text for text in told if text)


def _key_header(key: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header field of ElevenLabs for the key."""
    return ((b"xi-api-key", key.encode("ascii")),)


def _as_openai(request: SpeechRequest, rate: int | None) -> ApiRequest:
    body: dict[str, object] = {"model": request.model, "voice": request.voice, "input": request.text}
    body["response_format"] = "mp3" if rate is None else "pcm"
    if (speed := clamped_number_option(request.options, "speed", SLOWEST, FASTEST)) is not None:
        body["speed"] = speed
    return "/audio/speech", body


def _openai(request: SpeechRequest, rate: int | None) -> ApiRequest:
    path, body = _as_openai(request, rate)
    instructions = instructions_of(request)
    if instructions and request.model not in WITHOUT_INSTRUCTIONS:
        body["instructions"] = instructions
    return path, body


def _xai(request: SpeechRequest, rate: int | None) -> ApiRequest:
    codec = {"codec": "mp3" if rate is None else "pcm", "sample_rate": rate or RATE}
    body: dict[str, object] = {"text": request.text, "voice_id": request.voice, "language": request.language or "en"}
    body["output_format"] = codec
    latency = clamped_number_option(request.options, "optimize_streaming_latency", 0, 1)
    if latency is not None:
        body["optimize_streaming_latency"] = int(latency)
    normal = JsonObject.of(request.options).boolean("text_normalization")
    if normal is not None:
        body["text_normalization"] = normal
    return "/v1/tts", body


def _elevenlabs(request: SpeechRequest, rate: int | None) -> ApiRequest:
    ranges = ((name, clamped_number_option(request.options, name, low, high)) for name, (low, high) in SETTINGS.items())
    settings = {name: value for name, value in ranges if value is not None}
    body: dict[str, object] = {"text": request.text, "model_id": request.model}
    if settings:
        body["voice_settings"] = settings
    how = "?output_format=mp3_44100_128" if rate is None else f"/stream?output_format=pcm_{rate}"
    return f"/v1/text-to-speech/{quote(request.voice, safe='')}{how}", body


@frozen(kw_only=True)
class SpeechApi:
    """API of one vendor, with defaults for model and voice."""

    endpoint: ProviderEndpoint
    provider: str  # id in results
    speech: Speech
    model: str = ""  # for speech
    voice: str = ""
    rates: tuple[int, ...] = ()  # Hz of PCM, besides `RATE`
    header: Callable[[str], tuple[tuple[bytes, bytes], ...]] = bearer_header  # header fields with the key
    listening: str = "/audio/transcriptions"
    hears: tuple[tuple[str, str], ...] = ()  # the form's fields; the first is the model
    language: str = "language"  # the form's field for the language


def _openai_shaped(
    endpoint: ProviderEndpoint,
    provider: str,
    listener: str,
    model: str = "",
    voice: str = "",
    speech: Speech = _as_openai,
) -> SpeechApi:
    hears = (("model", listener), ("response_format", "json"))
    return SpeechApi(endpoint=endpoint, provider=provider, speech=speech, hears=hears, model=model, voice=voice)


SPEECH_APIS = {  # by vendor
    "openai": _openai_shaped(OPENAI_ENDPOINT, "openai_tts", "whisper-1", "gpt-4o-mini-tts", "alloy", _openai),
    "groq": _openai_shaped(GROQ_ENDPOINT, "groq", "whisper-large-v3-turbo"),
    "mistral": _openai_shaped(MISTRAL_ENDPOINT, "mistral", "voxtral-mini-latest"),
    "deepinfra": _openai_shaped(
        DEEPINFRA_ENDPOINT, "deepinfra", "openai/whisper-large-v3-turbo", "hexgrad/Kokoro-82M", "af_bella"
    ),
    "xai": SpeechApi(
        endpoint=XAI_ENDPOINT,
        provider="xai_tts",
        speech=_xai,
        model="xai-tts",
        voice="eve",
        rates=RATES,
        listening="/v1/stt",
    ),
    "elevenlabs": SpeechApi(
        endpoint=ELEVENLABS_ENDPOINT,
        provider="elevenlabs_tts",
        speech=_elevenlabs,
        model="eleven_flash_v2_5",
        voice="21m00Tcm4TlvDq8ikWAM",
        rates=RATES,
        header=_key_header,
        listening="/v1/speech-to-text",
        hears=(("model_id", "scribe_v1"),),
        language="language_code",
    ),
}
