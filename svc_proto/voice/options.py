"""What can be chosen of a provider: the registry's tables, and what its vendor offers now (wire voice 4.2, 4.4).

What was found is kept for a while, by provider and by the keys that the operator has set. A vendor that cannot be
asked is no error: the tables remain, and `dynamic` says why there is no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.basics.expiring import ExpiringMap
from svc_proto.engine.flow import Flow
from svc_proto.voice.contract import ProviderError, ProviderInfo
from svc_proto.voice.providers.discovery import Discovered

if TYPE_CHECKING:
    from svc_proto.voice.service import Voice

__all__ = ["STATIC", "Offer", "Options", "compatible_voices", "provider_object"]

MAX_CACHED = 64
STATIC: Mapping[str, object] = {"attempted": False, "status": "static", "source": "provider_info"}

_RECOMMENDED = {
    "xai_tts": ("eve", "ara", "sal"),
    "xai_realtime": ("eve", "ara", "sal"),
    "openai_tts": ("marin", "cedar", "coral"),
    "openai_realtime": ("marin", "cedar", "coral"),
}
_SOURCES = {
    "xai_tts": "xai_docs",
    "xai_realtime": "xai_docs",
    "openai_tts": "openai_docs",
    "openai_realtime": "openai_docs",
}
_OLD_OPENAI = ("alloy", "ash", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer")  # of tts-1 and tts-1-hd


@frozen
class Offer:
    """Everything that is known of what a provider has. `dynamic` is the member of that name."""

    info: ProviderInfo
    found: Discovered | None
    dynamic: Mapping[str, object]


class Options:
    """Asks vendors, and remembers."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._kept: ExpiringMap[tuple[str, str], Discovered] = ExpiringMap(MAX_CACHED)

    def known(self, info: ProviderInfo) -> Offer:
        """Without asking anybody."""
        found = self._kept.get(self._key(info), self._voice.engine.now.mono)
        return Offer(info, found, STATIC if found is None else self._dynamic(found, cached=True))

    def ask(self, info: ProviderInfo) -> Flow[Offer]:
        """Ask the vendor, unless it was asked lately."""
        voice = self._voice
        key, lasts = self._key(info), voice.config.options_cache
        found = self._kept.get(key, voice.engine.now.mono)
        if found is not None:
            return Offer(info, found, self._dynamic(found, cached=True))
        try:
            found = yield from voice.providers.discover(info.id)
        except ProviderError as error:
            status = "auth_missing" if error.variable is not None else "error"
            attempted = error.variable is None
            return Offer(
                info,
                None,
                {"attempted": attempted, "status": status, "source": "provider_info", "message": str(error)},
            )
        if found is None:
            return Offer(info, None, STATIC)
        if lasts:
            now = voice.engine.now.mono
            self._kept.purge(now)
            self._kept.put(key, found, now + lasts)
        return Offer(info, found, self._dynamic(found, cached=False))

    def _key(self, info: ProviderInfo) -> tuple[str, str]:
        return info.id, self._voice.keys.fingerprint()

    def _dynamic(self, found: Discovered, *, cached: bool) -> dict[str, object]:
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


def provider_object(info: ProviderInfo, offer: Offer | None = None, *, native: bool | None = None) -> dict[str, object]:
    """The option object. Labels and groups only with an `offer`. `native` is the agent's own member (wire 6.1)."""
    found = offer.found if offer is not None else None
    speech = info.supports_speech_to_speech or bool(native)
    answer: dict[str, object] = {
        "id": info.id,
        "name": info.name,
        "status": info.status,
        "description": info.description,
        "models": _union(info.models, found.models if found is not None else ()),
        "voices": _union(info.voices, [voice.id for voice in found.voices] if found is not None else ()),
        "languages": _union(info.languages, found.languages if found is not None else ()),
        "sample_rates": list(info.sample_rates),
        "supports_tts": info.supports_tts,
        "supports_stt": info.supports_stt,
        "supports_speech_to_speech": speech,
        "supports_tool_use": info.supports_tool_use or bool(native),
        "supports_realtime": info.supports_realtime,
        "supports_interruption": info.supports_interruption,
        "supports_expression": info.supports_expression,
    }
    if native is not None:
        answer["supports_realtime_agent_native"] = native
    return answer if offer is None else answer | _described(info, found)


def compatible_voices(info: ProviderInfo, found: Discovered | None, model: str) -> list[str] | None:
    """The voices of a model; None where nothing is known of it."""
    if info.id == "openai_tts" and model in ("tts-1", "tts-1-hd"):
        return list(_OLD_OPENAI)
    if info.id in _SOURCES and model in info.models:
        return _union(info.voices, [voice.id for voice in found.voices] if found is not None else ())
    return None


def _described(info: ProviderInfo, found: Discovered | None) -> dict[str, object]:
    """Labels, groups and what goes with what."""
    recommended = list(_RECOMMENDED.get(info.id, ()))
    labels = {name: name.replace("_", " ").replace("-", " ").title() for name in info.voices if info.id in _SOURCES}
    metadata = {
        name: _metadata(labels.get(name, name), _SOURCES[info.id], recommended=name in recommended)
        for name in info.voices
        if info.id in _SOURCES
    }
    groups: list[dict[str, object]] = []
    if info.id in _SOURCES:
        vendor = info.id.partition("_")[0]
        groups.append(_group(f"{vendor}_builtin", "Built-in", info.voices, _SOURCES[info.id], recommended))
    if found is not None:
        for voice in found.voices:
            labels[voice.id] = voice.label
            metadata[voice.id] = _metadata(
                voice.label, found.source, custom=voice.custom, recommended=voice.id in recommended
            )
        groups = _found_groups(info, found, recommended)
    compatibility = {
        model: voices for model in info.models if (voices := compatible_voices(info, found, model)) is not None
    }
    return {
        "model_labels": dict(found.model_labels) if found is not None else {},
        "voice_labels": labels,
        "language_labels": dict(found.language_labels) if found is not None else {},
        "voice_groups": groups,
        "voice_metadata": metadata,
        "model_voice_compatibility": compatibility,
        "recommended_voices": recommended,
        "requires_manual_id": False,
    }


def _found_groups(info: ProviderInfo, found: Discovered, recommended: Sequence[str]) -> list[dict[str, object]]:
    vendor = info.id.partition("_")[0]
    builtin = _union(
        info.voices if info.id in _SOURCES else (), [voice.id for voice in found.voices if not voice.custom]
    )
    custom = [voice.id for voice in found.voices if voice.custom]
    groups = [_group(f"{vendor}_builtin", "Built-in", builtin, found.source, recommended)]
    if custom:
        groups.append(_group(f"{vendor}_custom", "Custom", custom, found.source, (), custom=True))
    return groups


def _group(
    name: str, label: str, values: Sequence[str], source: str, recommended: Sequence[str], *, custom: bool = False
) -> dict[str, object]:
    return {
        "id": name,
        "label": label,
        "values": list(values),
        "source": source,
        "recommended": list(recommended),
        "custom": custom,
    }


def _metadata(label: str, source: str, *, custom: bool = False, recommended: bool = False) -> dict[str, object]:
    return {
        "source": source,
        "custom": custom,
        "recommended": recommended,
        "experimental": False,
        "requires_manual_id": False,
        "label": label,
    }


def _union(known: Sequence[str], found: Sequence[str]) -> list[str]:
    """The entries of both lists in their order, each once."""
    return list(dict.fromkeys((*known, *found)))
