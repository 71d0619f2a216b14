"""What a caller picks for one session, laid over the settings (wire terminal-voice 4.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import integer, line, unquoted
from svc_proto.voice.registry import LOCAL, Registry, canonical_id
from svc_proto.voice.settings import OutputSettings, RealtimeSettings

__all__ = ["MAX_RATE", "MIN_RATE", "SettingsT", "choose", "chosen_text", "whole"]

MIN_RATE, MAX_RATE = 8_000, 96_000  # Hz, wire 4.1
LENGTHS = {"provider": 80, "model": 160, "voice": 160, "language": 24}  # characters, wire 4.1

SettingsT = TypeVar("SettingsT", OutputSettings, RealtimeSettings)


def choose(settings: SettingsT, body: Mapping[str, object], registry: Registry) -> SettingsT:
    """The settings with what the body names. One that is null or blank counts as absent. `Refused` 400.

    Whoever names another provider and no model or voice gets that provider's own, not the settings'.
    """
    output = hasattr(settings, "language")  # realtime has none
    names = [name for name in LENGTHS if output or name != "language"]
    named = {name: text for name in names if (text := chosen_text(body, name))}
    picked: dict[str, Any] = dict(named)
    if "provider" in picked:
        provider = picked["provider"] = canonical_id(picked["provider"], "tts" if output else "realtime")
        info = registry.find(provider)
        if info is None:
            raise Refused(400, "voice_refused", f"unknown voice provider: {provider}")
        if provider != settings.provider:
            picked.setdefault("model", info.models[0])
            picked.setdefault("voice", info.voices[0])
            if settings.sample_rate not in info.sample_rates:
                picked["sample_rate"] = info.sample_rates[0]
    if "language" in picked and picked.get("provider", settings.provider) == LOCAL and "voice" not in named:
        # A voice of espeak-ng is a language: nobody wants German read in English.
        voice = str(picked.get("voice", settings.voice))
        wanted = named["language"].replace("_", "-")  # as Android writes `de_DE`
        if wanted.lower().partition("-")[0] != voice.lower().partition("-")[0]:
            picked["voice"] = wanted
    if body.get("sample_rate") is not None:
        picked["sample_rate"] = whole(body["sample_rate"], "sample_rate", MIN_RATE, MAX_RATE)
    return evolve(settings, **picked)


def whole(value: object, name: str, low: int, high: int) -> int:
    """A whole number in a range, or its digits as text. `Refused` 400."""
    return integer(unquoted(value), name, low, high)


def chosen_text(body: Mapping[str, object], name: str, otherwise: str = "") -> str:
    """A member that is text of one line, no longer than its kind may be, without blanks around. `Refused` 400."""
    value = body.get(name)
    return otherwise if value is None else line(value, name, LENGTHS[name])
