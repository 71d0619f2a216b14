"""Settings of voice output and realtime: names, defaults and rules; and the choices of a session.

Each setting is a member of `OutputSettings`, `RealtimeSettings` or `PromotionSettings`. Its rule returns a value or
raises `Refused` 400 with the setting's name (wire terminal-voice 3.2, 4.1, 4.6, 5, 6.1). They are read and stored by
`svc_proto.voice.settings_store`.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

from attrs import evolve, field, fields, frozen

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import boolean_word, choice, integer, integer_text, single_line
from svc_proto.voice.provider_registry import LOCAL, PROVIDERS, canonical_id

__all__ = [
    "MAX_RATE",
    "MIN_RATE",
    "OutputSettings",
    "PromotionSettings",
    "RealtimeSettings",
    "Rule",
    "Rules",
    "SettingsScope",
]
__all__ += [
    "AnySettings",
    "OUTPUT",
    "PROMOTION",
    "REALTIME",
    "SettingsT",
    "apply_choice",
    "parse_text_choice",
    "usable_values",
    "rules_of",
    "parse_integer_setting",
]

Rule: TypeAlias = "Callable[[object, str], object]"
Rules: TypeAlias = "Mapping[str, Rule]"
T = TypeVar("T")

MIN_RATE, MAX_RATE = 8_000, 96_000  # Hz, wire 4.1
LENGTHS = {"provider": 80, "model": 160, "voice": 160, "language": 24}  # characters, wire 4.1
CODECS = ("pcm", "wav", "mp3", "mulaw", "ulaw", "alaw")
MODES = ("promote", "foreground")
DELIVERIES = ("speak_verbatim", "speak_when_idle", "notify_then_speak", "visual_only")


def parse_integer_setting(value: object, name: str, low: int, high: int) -> int:
    """Parse a whole number in a range, or its digits as text; raise `Refused` 400."""
    return integer(integer_text(value), name, low, high)


def _text(value: object, name: str) -> str:
    return single_line(value, name, LENGTHS[name], 1)


def _provider(kind: str) -> Rule:
    return lambda value, name: canonical_id(_text(value, name), kind)


def _among(*words: str) -> Rule:
    return lambda value, name: choice(str(value).strip().lower(), name, words)


def _between(low: int, high: int) -> Rule:
    return lambda value, name: parse_integer_setting(value, name, low, high)


def _of(default: T, rule: Rule, **about: object) -> T:
    """Define a setting; `said` is its name in files and requests, if it differs from the member's.

    `env` is its variable's suffix if that is not the name in capitals; `file_only`: a request cannot change it."""
    return field(default=default, metadata={"rule": rule, **about})


@frozen(kw_only=True)
class SettingsScope:
    """Origin of settings: the relay, a profile, or the global configuration."""

    config_scope: str = "relay"  # or `global`, `profile`
    profile: str | None = None  # as it was requested
    fallback_to_global: bool = False
    config_path: str | None = None  # the profile's file; None for the relay's own settings and global ones


@frozen(kw_only=True)
class OutputSettings:
    """Settings of streaming speech output."""

    scope: SettingsScope = SettingsScope()
    enabled: bool = _of(True, boolean_word)
    provider: str = _of("xai_tts", _provider("tts"))
    model: str = _of("xai-tts", _text)
    voice: str = _of("eve", _text)
    sample_rate: int = _of(24_000, _between(MIN_RATE, MAX_RATE))  # Hz
    language: str = _of("en", _text)
    codec: str = _of("pcm", _among(*CODECS))
    optimize_streaming_latency: int = _of(1, _between(0, 1), env="OPTIMIZE_LATENCY")
    text_normalization: bool = _of(False, boolean_word)
    fallback_enabled: bool = _of(True, boolean_word)
    auto_speech_tags: bool = _of(False, boolean_word)


@frozen(kw_only=True)
class PromotionSettings:
    """Settings of runs in the background."""

    enabled: bool = _of(True, boolean_word, said="promotion_enabled")
    promote_after_ms: int = _of(6_000, _between(0, 120_000))
    background_default_mode: str = _of("promote", _among(*MODES))
    spoken_handoff: bool = _of(True, boolean_word)
    progress_spoken_after_ms: int = _of(0, _between(0, 600_000))
    progress_repeat_ms: int = _of(30_000, _between(0, 600_000))
    result_delivery: str = _of("speak_verbatim", _among(*DELIVERIES))
    max_background_runs: int = _of(1, _between(1, 4))


@frozen(kw_only=True)
class RealtimeSettings:
    """Settings of the realtime lab and the realtime agent."""

    scope: SettingsScope = SettingsScope()
    enabled: bool = _of(True, boolean_word)
    provider: str = _of("xai_realtime", _provider("realtime"))
    model: str = _of("grok-voice-latest", _text)
    voice: str = _of("eve", _text)
    sample_rate: int = _of(24_000, _between(MIN_RATE, MAX_RATE))  # Hz
    promotion: PromotionSettings = PromotionSettings()
    run_retention_days: int = _of(14, _between(0, 36_500), file_only=True)  # 0: event logs are kept


SettingsT = TypeVar("SettingsT", OutputSettings, RealtimeSettings)
AnySettings: TypeAlias = OutputSettings | RealtimeSettings


def rules_of(kind: type, *, file_only: bool = False) -> Rules:
    """Return the rules of a kind of settings by the names in files and requests: `file_only` ones, or the others."""
    rows = [(row.metadata.get("said", row.name), row.metadata) for row in fields(kind)]
    return {
        name: about["rule"] for name, about in rows if "rule" in about and bool(about.get("file_only")) is file_only
    }


OUTPUT, REALTIME, PROMOTION = rules_of(OutputSettings), rules_of(RealtimeSettings), rules_of(PromotionSettings)
VARIABLES = {row.name: str(row.metadata["env"]) for row in fields(OutputSettings) if "env" in row.metadata}


def usable_values(rules: Rules, found: Mapping[str, object]) -> dict[str, object]:
    """Return the valid settings of a file or an environment; invalid ones count as absent."""
    values: dict[str, object] = {}
    for name, rule in rules.items():
        if found.get(name) is not None:
            with suppress(Refused):
                values[name] = rule(found[name], name)
    return values


def parse_text_choice(body: Mapping[str, object], name: str, otherwise: str = "") -> str:
    """Parse a single line of limited length, trimmed; `otherwise` if it is absent. Raise `Refused` 400."""
    value = body.get(name)
    return otherwise if value is None else single_line(value, name, LENGTHS[name])


def apply_choice(settings: SettingsT, body: Mapping[str, object]) -> SettingsT:
    """Return the settings with the body's choices; raise `Refused` 400 for an invalid one.

    A null counts as absent, and so does a blank text except as `sample_rate`. With another provider, an absent model or
    voice is that provider's first one, and an absent rate the present or its first one. For the local provider a
    language without a voice selects the voice, unless the present voice is of that language.
    """
    rules = OUTPUT if hasattr(settings, "language") else REALTIME  # lab and agent have no language
    named = {name: text for name in LENGTHS if name in rules and (text := parse_text_choice(body, name))}
    picked: dict[str, Any] = usable_values(rules, named)
    if "provider" in picked:
        provider = picked["provider"]
        info = PROVIDERS.get(provider)
        if info is None:
            raise Refused(400, "voice_refused", f"unknown voice provider: {provider}")
        if provider != settings.provider:
            picked = {**info.default_options(settings.sample_rate), **picked}
    if "language" in picked and picked.get("provider", settings.provider) == LOCAL and "voice" not in named:
        # A voice of espeak-ng is a language: German text needs the German voice.
        voice = str(picked.get("voice", settings.voice))
        wanted = picked["language"].replace("_", "-")  # as Android writes `de_DE`
        if wanted.lower().partition("-")[0] != voice.lower().partition("-")[0]:
            picked["voice"] = wanted
    if body.get("sample_rate") is not None:
        picked["sample_rate"] = parse_integer_setting(body["sample_rate"], "sample_rate", MIN_RATE, MAX_RATE)
    return evolve(settings, **picked)
