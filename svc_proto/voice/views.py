"""The answers of the config, options and validate routes of the three families (wire voice 4.3 to 4.5, 5, 6.1).

Clients in use decode them strictly: numbers and booleans are JSON numbers and booleans, lists and maps are never null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import asdict, frozen

from svc_proto.voice.agent.tools import tool_surface
from svc_proto.voice.contract import ProviderInfo
from svc_proto.voice.options import Offer, provider_object
from svc_proto.voice.registry import LOCAL, Registry
from svc_proto.voice.settings import OutputSettings, RealtimeSettings
from svc_proto.voice.validation import Choice, check_choice

if TYPE_CHECKING:
    from svc_proto.basics.brand import Brand
    from svc_proto.voice.keys import Keys

__all__ = [
    "AGENT",
    "LAB",
    "OUTPUT",
    "View",
    "agent_config",
    "options_answer",
    "output_config",
    "realtime_config",
    "validate_answer",
]

NATIVE = ("openai_realtime", "xai_realtime")  # that speak and listen by themselves
XAI_KEYS = ("VOICE_TOOLS_XAI_KEY", "XAI_API_KEY", "GROK_API_KEY")
XAI_REALTIME_KEYS = (*XAI_KEYS, "XAI_REALTIME_CLIENT_SECRET", "XAI_EPHEMERAL_TOKEN")
OPENAI_KEYS = ("OPENAI_API_KEY", "VOICE_TOOLS_OPENAI_KEY")
OPENAI_REALTIME_KEYS = ("OPENAI_REALTIME_API_KEY", *OPENAI_KEYS)
ELEVENLABS_KEYS = ("ELEVENLABS_API_KEY", "VOICE_TOOLS_ELEVENLABS_KEY")
LIMITS = (
    "Experimental: one spoken turn at a time, and at most five minutes each.",
    "Tasks run in a chat session of the API server, which needs to be reachable from the relay.",
    "A session that nobody is connected to ends after the resume window.",
)


@frozen
class View:
    """What distinguishes the answers of a family."""

    mode: str
    protocol: str  # behind the brand's name
    languages: bool  # whether there is a language to choose

    def allowed(self, registry: Registry) -> list[ProviderInfo]:
        """The providers that it can be set to."""
        if self is OUTPUT:
            return registry.renderers()
        if self is AGENT:
            return [info for info in registry.all() if info.id in (*NATIVE, "stub", LOCAL)]
        return registry.all()

    def described(self, registry: Registry) -> list[ProviderInfo]:
        """The providers that have options of their own here: in the lab (wire 5) the realtime ones, and this host."""
        allowed = self.allowed(registry)
        return [info for info in allowed if self is not LAB or info.supports_realtime or info.id == LOCAL]

    def object(self, info: ProviderInfo, offer: Offer | None = None) -> dict[str, object]:
        """The option object."""
        return provider_object(info, offer, native=info.id in NATIVE if self is AGENT else None)


OUTPUT = View("voice_output", "voice.output", languages=True)
LAB = View("realtime_voice", "voice.realtime", languages=False)
AGENT = View("realtime_agent", "voice.realtime_agent", languages=False)


def output_config(
    settings: OutputSettings, path: str, keys: Keys, registry: Registry, brand: Brand
) -> dict[str, object]:
    """`GET /voice/output/config`."""
    return {
        "success": True,
        "enabled": settings.enabled,
        "protocol": f"{brand.name}.{OUTPUT.protocol}.v0",
        "config_path": path,
        **_defaults(settings),
        "language": settings.language,
        "codec": settings.codec,
        "optimize_streaming_latency": settings.optimize_streaming_latency,
        "text_normalization": settings.text_normalization,
        "fallback_enabled": settings.fallback_enabled,
        "auto_speech_tags": settings.auto_speech_tags,
        "fallback_provider": f"legacy_{brand.name}_tts",
        "providers": [OUTPUT.object(info) for info in OUTPUT.allowed(registry)],
        "auth": {
            **_xai(keys, XAI_KEYS),
            "openai_env": bool(keys.present(*OPENAI_KEYS)),
            "openai_env_names": keys.present(*OPENAI_KEYS),
            "elevenlabs_env": bool(keys.present(*ELEVENLABS_KEYS)),
            "elevenlabs_env_names": keys.present(*ELEVENLABS_KEYS),
        },
        **settings.scope.fields(),
    }


def realtime_config(
    settings: RealtimeSettings, path: str, keys: Keys, registry: Registry, brand: Brand
) -> dict[str, object]:
    """`GET /voice/realtime/config`."""
    return {
        "success": True,
        "enabled": settings.enabled,
        "protocol": f"{brand.name}.{LAB.protocol}.v0",
        "config_path": path,
        **_defaults(settings),
        "providers": [LAB.object(info) for info in LAB.allowed(registry)],
        "auth": {**_xai(keys, XAI_REALTIME_KEYS), "xai_oauth_path": "", "xai_oauth_paths": []},
        **settings.scope.fields(),
    }


def agent_config(
    settings: RealtimeSettings, path: str, keys: Keys, registry: Registry, brand: Brand
) -> dict[str, object]:
    """`GET /voice/realtime-agent/config`."""
    ready = {
        "openai_realtime": bool(keys.present(*OPENAI_REALTIME_KEYS)),
        "xai_realtime": bool(keys.present(*XAI_REALTIME_KEYS)),
    }.get(settings.provider, True)
    return {
        **realtime_config(settings, path, keys, registry, brand),
        "protocol": f"{brand.name}.{AGENT.protocol}.v0",
        "available": settings.enabled and ready,
        "experimental": True,
        "mode": AGENT.mode,
        "stable_engine": f"{brand.name}_voice_output",
        "tool_surface": tool_surface(brand.name),
        "limits": list(LIMITS),
        "promotion": asdict(settings.promotion),
        "providers": [AGENT.object(info) for info in registry.all()],
        "auth": {
            **_xai(keys, XAI_REALTIME_KEYS),
            "xai_oauth_configured": False,
            "xai_oauth_path": "",
            "openai_env": bool(keys.present(*OPENAI_REALTIME_KEYS)),
            "openai_env_names": keys.present(*OPENAI_REALTIME_KEYS),
        },
    }


def options_answer(
    view: View, settings: OutputSettings | RealtimeSettings, offer: Offer, brand: Brand
) -> dict[str, object]:
    """`GET …/providers/{id}/options`."""
    answer: dict[str, object] = {
        "success": True,
        "mode": view.mode,
        "protocol": f"{brand.name}.{view.protocol}.options.v0",
        "schema_version": 1,
        "provider_id": offer.info.id,
        "provider": view.object(offer.info, offer),
        **_defaults(settings),
        **settings.scope.fields(),
        "dynamic": dict(offer.dynamic),
    }
    if isinstance(settings, OutputSettings):
        answer["language"] = settings.language
    if view is AGENT:
        answer["tool_surface"] = tool_surface(brand.name)
    return answer


def validate_answer(view: View, offer: Offer, choice: Choice, brand: Brand) -> dict[str, object]:
    """`POST …/providers/{id}/validate`."""
    checks = check_choice(offer, choice)
    valid = _all_fine(checks)
    answer: dict[str, object] = {
        "success": True,
        "mode": view.mode,
        "protocol": f"{brand.name}.{view.protocol}.validate.v0",
        "provider_id": offer.info.id,
        "model": choice.model,
        "voice": choice.voice,
        "sample_rate": choice.sample_rate,
        "dynamic": dict(offer.dynamic),
        "valid": valid,
        "summary": "ok" if valid else "invalid",
        "checks": checks,
    }
    if choice.language is not None:
        answer["language"] = choice.language
    return answer


def _defaults(settings: OutputSettings | RealtimeSettings) -> dict[str, object]:
    return {
        "default_provider": settings.provider,
        "default_model": settings.model,
        "default_voice": settings.voice,
        "sample_rate": settings.sample_rate,
    }


def _xai(keys: Keys, names: Sequence[str]) -> dict[str, object]:
    """Only names of variables, never what is in them. There is no OAuth store."""
    present = keys.present(*names)
    return {"xai_env": bool(present), "xai_env_names": present, "xai_oauth": False, "xai_oauth_source": None}


def _all_fine(checks: Sequence[Mapping[str, str]]) -> bool:
    return all(check["status"] != "error" for check in checks)
