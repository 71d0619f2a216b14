"""Members of a client's speech requests, and timing metrics of the speech (wire terminal-voice 4.7)."""

import base64
import binascii
import math
from collections.abc import Mapping

from attrs import define, field

from svc_proto.basics.pcm import duration
from svc_proto.basics.validate import invalid, object_, optional, text
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.redact import REDACTED
from svc_proto.voice.provider_interface import RenderResult
from svc_proto.wire.limits import MAX_TEXT

__all__ = ["SpeechMetrics", "parse_audio", "parse_expression", "mask_secrets", "parse_options", "parse_text"]

MAX_WORD = 2000  # characters of a text in `expression` or `provider_options`
MAX_ITEMS = 32  # members of either, and items of a list in them
MAX_METADATA = 64  # members of a provider's metadata
EXPRESSION = (  # wire 4.7
    "emotion",
    "tone",
    "intensity",
    "pace",
    "style",
    "pronunciation_hints",
    "interruption_behavior",
    "persona_instructions",
)
# Options that a caller may pass to a provider: they change the speech, never an address, a key or a header.
OPTIONS = (
    "instructions",
    "speed",
    "stability",
    "similarity_boost",
    "style",
    "use_speaker_boost",
    "temperature",
    "seed",
)
UNMEASURED = (  # members of `metrics` that are null
    *("speech_pacing", "tone_consistency", "emotion_consistency", "voice_drift", "interrupt_latency"),
    *("pronunciation_quality", "context_retention"),
)
MASKED = ("token", "secret", "key", "password", "authorization")


def parse_text(message: Mapping[str, object]) -> str | None:
    """Return `text`, or `prompt`, cut to `MAX_TEXT` characters; None without one. Raise `Refused` for another type."""
    for name in ("text", "prompt"):
        if found := (optional(message, name, text) or "").strip():
            return found[:MAX_TEXT]
    return None


def parse_audio(message: Mapping[str, object]) -> bytes:
    """Decode `audio_base64` of a piece of microphone audio; raise `Refused` 400 for other than base64.

    That is no text, a character outside of the alphabet, or wrong padding. Blanks and line breaks are skipped.
    """
    try:
        return base64.b64decode("".join(text(message.get("audio_base64"), "audio_base64").split()), validate=True)
    except (binascii.Error, ValueError):
        raise invalid("audio_base64", "base64") from None


def parse_expression(message: Mapping[str, object]) -> dict[str, object]:
    """Return the known and harmless members of `expression`; raise `Refused` if it is not an object."""
    return _picked(message, "expression", EXPRESSION)


def parse_options(message: Mapping[str, object]) -> dict[str, object]:
    """Return the known and harmless members of `provider_options`, and of `provider_overrides` in `expression`.

    Raise `Refused` 400 if one of these is not an object.
    """
    overrides = _picked(JsonObject.of(message.get("expression")), "provider_overrides", OPTIONS)
    return overrides | _picked(message, "provider_options", OPTIONS)


def mask_secrets(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return the plain values of a provider's metadata, masked where the name looks like a secret's.

    Other nested values, non-finite numbers, and members beyond `MAX_METADATA` are left out.
    """
    shown: dict[str, object] = {}
    for name, value in list(metadata.items())[:MAX_METADATA]:
        if any(word in name.lower() for word in MASKED):
            shown[name] = REDACTED
        elif value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
            shown[name] = value
    return shown


@define
class SpeechMetrics:
    """Timing of rendered audio; times are monotonic seconds."""

    begun: float
    first: float | None = field(default=None, init=False)
    gap: float = field(default=0.0, init=False)  # s, the longest between two pieces
    underruns: int = field(default=0, init=False)  # pieces that came after all earlier audio was played
    _last: float = field(default=0.0, init=False)
    _heard_until: float = field(default=0.0, init=False)

    def piece(self, size: int, rate: int, now: float) -> None:
        """Count a piece of audio: `size` in bytes, `rate` in Hz."""
        if self.first is None:
            self.first = self._heard_until = now
        else:
            self.gap = max(self.gap, now - self._last)
            if now > self._heard_until:
                self.underruns += 1
                self._heard_until = now
        self._last = now
        self._heard_until += duration(size, rate)

    def report(self, done: RenderResult, *, now: float) -> dict[str, object]:
        """Return `metrics` of `voice.response.done`; members without a measurement are null."""
        return {
            **done.identity,
            "first_audio_ms": None if self.first is None else _ms(self.first - self.begun),
            "response_done_ms": _ms(now - self.begun),
            "audio_chunk_gap_ms": _ms(self.gap),
            "audio_underruns": self.underruns,
            **dict.fromkeys(UNMEASURED),
        }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _picked(message: Mapping[str, object], name: str, allowed: tuple[str, ...]) -> dict[str, object]:
    members = JsonObject(optional(message, name, object_) or {})
    return {key: members[key] for key in allowed if _harmless(members, key)}


def _harmless(members: JsonObject, key: str) -> bool:
    items, word = members.array_or_none(key), members.string(key)
    if items is None and word is None:
        return members.boolean(key) is not None or members.number(key) is not None
    words = members.texts(key) if word is None else [word]
    return len(words) == len(items or words) <= MAX_ITEMS and all(len(each) <= MAX_WORD for each in words)
