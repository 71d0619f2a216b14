"""Options of a provider: the registry's table, and the vendor's present offer (wire terminal-voice 4.2, 4.4, 4.5).

A vendor's offer is cached for a while, by provider and by the keys that the operator has set. A failed request to a
vendor is no error: the options of the registry remain, and `dynamic` has the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import ProviderError, ProviderInfo
from svc_proto.voice.providers.discovery import DiscoveryResult, ProviderVoice
from svc_proto.voice.settings import AnySettings, OutputSettings

if TYPE_CHECKING:
    from svc_proto.schema.voice_types import ChoiceCheckJson, VoiceProviderJson
    from svc_proto.voice.service import VoiceServices

__all__ = ["STATIC", "ProviderCatalog", "ProviderCatalogs", "check_choice", "compatible_voices", "provider_object"]

MAX_CACHED = 64  # discoveries; the oldest is dropped
STATIC: Mapping[str, object] = {"attempted": False, "status": "static", "source": "provider_info"}
NOTHING = DiscoveryResult(source="")


@frozen
class ProviderCatalog:
    """Options of a provider, from the registry and the vendor; `dynamic` describes the request to the vendor."""

    info: ProviderInfo
    found: DiscoveryResult = NOTHING
    dynamic: Mapping[str, object] = STATIC


class ProviderCatalogs:
    """Options of providers, with a cache of the vendors' offers."""

    def __init__(self, voice: VoiceServices) -> None:
        self._voice = voice
        self._kept: ExpiringMap[tuple[str, str], DiscoveryResult] = ExpiringMap(MAX_CACHED)

    def cached(self, info: ProviderInfo) -> ProviderCatalog:
        """Return the options of the registry and the cached offer, without a request to the vendor."""
        found = self._kept.get(self._key(info), self._voice.engine.now.mono)
        return (
            ProviderCatalog(info) if found is None else ProviderCatalog(info, found, self._dynamic(found, cached=True))
        )

    def fetch(self, info: ProviderInfo) -> Flow[ProviderCatalog]:
        """Return the options, with a request to the vendor unless its offer is cached or it has no discovery.

        Without the vendor's key, or if the request fails, return the registry's options; `dynamic` has the reason.
        """
        voice, key, offer = self._voice, self._key(info), self.cached(info)
        if offer.found is not NOTHING:
            return offer
        try:
            found = yield from voice.providers.discover(info.id)
        except ProviderError as error:
            missing = error.variable is not None
            status = {"attempted": not missing, "status": "auth_missing" if missing else "error"}
            return ProviderCatalog(info, dynamic={**STATIC, **status, "message": str(error)})
        if found is None:
            return offer
        if lasts := voice.config.options_cache:
            now = voice.engine.now.mono
            self._kept.purge(now)
            self._kept.put(key, found, now + lasts)
        return ProviderCatalog(info, found, self._dynamic(found, cached=False))

    def _key(self, info: ProviderInfo) -> tuple[str, str]:
        return info.id, self._voice.keys.fingerprint()

    def _dynamic(self, found: DiscoveryResult, *, cached: bool) -> dict[str, object]:
        dynamic: dict[str, object] = {
            "attempted": True,
            "status": "ok",
            "source": found.source,
            "voice_count": len(found.voices),
            "custom_voice_count": sum(voice.custom for voice in found.voices),
            "model_count": len(found.models),
        }
        if cached:
            dynamic |= {"cache": "hit", "cache_ttl_seconds": int(self._voice.config.options_cache)}
        return dynamic


def provider_object(
    info: ProviderInfo, offer: ProviderCatalog | None = None, *, native: bool | None = None
) -> VoiceProviderJson:
    """Return the JSON description of a provider (wire 4.2, 6.1).

    An `offer` adds the vendor's options, labels and voice groups. A `native` other than None adds the members of the
    realtime agent: whether the provider listens and answers by itself.
    """
    found = NOTHING if offer is None else offer.found
    able = info.supports | {"speech_to_speech", "tool_use"} if native else info.supports
    answer: VoiceProviderJson = {
        "id": info.id,
        "name": info.name,
        "status": info.status,
        "description": info.description,
        "models": _union(info.models, found.models),
        "voices": _union(info.voices, _ids(found)),
        "languages": _union(info.languages, found.languages),
        "sample_rates": list(info.sample_rates),
        "supports_tts": "tts" in able,
        "supports_stt": "stt" in able,
        "supports_speech_to_speech": "speech_to_speech" in able,
        "supports_tool_use": "tool_use" in able,
        "supports_realtime": "realtime" in able,
        "supports_interruption": "interruption" in able,
        "supports_expression": "expression" in able,
    }
    if native is not None:
        answer["supports_realtime_agent_native"] = native
    if offer is not None:
        _describe(answer, offer)
    return answer


def compatible_voices(offer: ProviderCatalog, model: str) -> list[str] | None:
    """Return the voices of a model; None where they are unknown."""
    info = offer.info
    if model in info.voices_of:
        return list(info.voices_of[model])
    return _union(info.voices, _ids(offer.found)) if info.source and model in info.models else None


def check_choice(offer: ProviderCatalog, choice: AnySettings) -> list[ChoiceCheckJson]:
    """Return checks `{id, status, message}`; a choice without an `error` is valid (wire terminal-voice 4.5)."""
    known = JsonObject(provider_object(offer.info, offer))
    checks = [_check_model(known.texts("models"), choice.model), _check_voice(offer, known.texts("voices"), choice)]
    if rates := offer.info.sample_rates:
        fits = choice.sample_rate in rates
        allowed = ", ".join(map(str, rates))
        message = f"{choice.sample_rate} Hz is offered" if fits else f"{choice.sample_rate} Hz is not one of {allowed}"
        checks.append(_check("sample_rate_known", "ok" if fits else "error", message))
    language = choice.language if isinstance(choice, OutputSettings) else ""
    if language and (languages := known.texts("languages")):
        checks.append(_listed("language", language, languages))
    return checks


# --- helpers ---


def _describe(answer: VoiceProviderJson, offer: ProviderCatalog) -> None:
    """Add labels, voice groups, voice metadata and the voices of each model to `answer`."""
    info, found = offer.info, offer.found
    known = info.voices if info.source else ()
    asked = {voice.id: voice for voice in found.voices}
    voices = {name: ProviderVoice(name, name.replace("_", " ").replace("-", " ").title()) for name in known} | asked
    custom = [voice.id for voice in found.voices if voice.custom]
    builtin = _union(known, [name for name in asked if name not in custom])
    source = found.source or info.source
    groups = [("builtin", "Built-in", builtin, list(info.recommended)), ("custom", "Custom", custom, [])]
    shown = groups[: 1 + bool(custom)] if found.source or known else []
    answer |= {
        "model_labels": dict(found.model_labels),
        "voice_labels": {name: voice.label for name, voice in voices.items()},
        "language_labels": dict(found.language_labels),
        "voice_groups": [
            {
                "id": f"{info.id.partition('_')[0]}_{kind}",
                "label": label,
                "values": values,
                "source": source,
                "recommended": recommended,
                "custom": kind == "custom",
            }
            for kind, label, values, recommended in shown
        ],
        "voice_metadata": {
            name: {
                "source": source if name in asked else info.source,
                "custom": voice.custom,
                "recommended": name in info.recommended,
                "experimental": False,
                "requires_manual_id": False,
                "label": voice.label,
            }
            for name, voice in voices.items()
        },
        "model_voice_compatibility": {
            model: fitting for model in info.models if (fitting := compatible_voices(offer, model)) is not None
        },
        "recommended_voices": list(info.recommended),
        "requires_manual_id": False,
    }


def _union(known: Sequence[str], found: Sequence[str]) -> list[str]:
    """Return the entries of both lists in their order, each once."""
    return list(dict.fromkeys((*known, *found)))


def _ids(found: DiscoveryResult) -> list[str]:
    return [voice.id for voice in found.voices]


def _check_model(models: Sequence[str], model: str) -> ChoiceCheckJson:
    if not model and models:
        return _check("model_present", "error", "no model is chosen")
    return _listed("model", model, models)


def _check_voice(offer: ProviderCatalog, voices: Sequence[str], choice: AnySettings) -> ChoiceCheckJson:
    if not choice.voice:
        return _check("voice_present", "error", "no voice is chosen")
    compatible = compatible_voices(offer, choice.model)
    if compatible is not None and choice.voice not in compatible:
        return _check("voice_compatible", "error", f"the model {choice.model} has no voice {choice.voice}")
    return _listed("voice", choice.voice, voices)


def _listed(what: str, value: str, values: Sequence[str]) -> ChoiceCheckJson:
    if value in values:
        return _check(f"{what}_known", "ok", f"the {what} {value} is known")
    words = f"the {what} {value} is not in the list; the provider may know it all the same"
    return _check(f"{what}_known", "warning", words)


def _check(name: str, status: Literal["ok", "warning", "error"], message: str) -> ChoiceCheckJson:
    return {"id": name, "status": status, "message": message}
