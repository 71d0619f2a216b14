"""The settings of voice output and realtime, one by one: their names, their rules, and how text becomes a value.

A rule gives the value, or `Refused` 400 with the name of the setting (wire terminal-voice 4.1, 6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import choice, flag, line
from svc_proto.voice.choice import LENGTHS, MAX_RATE, MIN_RATE, whole

__all__ = ["FILE_ONLY", "OUTPUT", "PROMOTION", "REALTIME", "Rule", "Rules", "lenient"]

Rule: TypeAlias = "Callable[[object, str], object]"
Rules: TypeAlias = "Mapping[str, Rule]"

CODECS = ("pcm", "wav", "mp3", "mulaw", "ulaw", "alaw")
MODES = ("promote", "foreground")
DELIVERIES = ("speak_verbatim", "speak_when_idle", "notify_then_speak", "visual_only")


def _text(value: object, name: str) -> str:
    return line(value, name, LENGTHS[name], 1)


def _among(*words: str) -> Rule:
    return lambda value, name: choice(str(value).strip().lower(), name, words)


def _between(low: int, high: int) -> Rule:
    return lambda value, name: whole(value, name, low, high)


_COMMON: dict[str, Rule] = {
    "enabled": flag,
    "provider": _text,
    "model": _text,
    "voice": _text,
    "sample_rate": _between(MIN_RATE, MAX_RATE),
}
OUTPUT: Rules = {
    **_COMMON,
    "language": _text,
    "codec": _among(*CODECS),
    "optimize_streaming_latency": _between(0, 1),
    "text_normalization": flag,
    "fallback_enabled": flag,
    "auto_speech_tags": flag,
}
REALTIME: Rules = _COMMON
PROMOTION: Rules = {
    "promotion_enabled": flag,
    "promote_after_ms": _between(0, 120_000),
    "progress_spoken_after_ms": _between(0, 600_000),
    "progress_repeat_ms": _between(0, 600_000),
    "max_background_runs": _between(1, 4),
    "spoken_handoff": flag,
    "background_default_mode": _among(*MODES),
    "result_delivery": _among(*DELIVERIES),
}
FILE_ONLY: Rules = {"run_retention_days": _between(0, 36_500), "debug_audio_tap": flag}


def lenient(rules: Rules, found: Mapping[str, object]) -> dict[str, object]:
    """What of a file or an environment can be used; the rest counts as not said."""
    values: dict[str, object] = {}
    for name, rule in rules.items():
        if found.get(name) is not None:
            try:
                values[name] = rule(found[name], name)
            except Refused:
                continue
    return values
