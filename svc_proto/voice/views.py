"""The answers of the config, options and validate routes of the three families (wire voice 4.3 to 4.5, 5, 6.1).

Clients in use decode them strictly: numbers and booleans are JSON numbers and booleans, lists and maps are never null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import asdict, frozen

from svc_proto.voice.contract import ProviderInfo
from svc_proto.voice.options import Choice, Offer, check_choice, provider_object
from svc_proto.voice.realtime.calls import tool_surface
from svc_proto.voice.registry import LOCAL, PROVIDERS, is_renderer
from svc_proto.voice.settings import OUTPUT as OUTPUT_RULES
from svc_proto.voice.settings import REALTIME, OutputSettings, RealtimeSettings
from svc_proto.voice_config import ELEVENLABS, OPENAI, OPENAI_REALTIME, XAI, XAI_REALTIME, Vendor

if TYPE_CHECKING:
    from svc_proto.basics.brand import Brand
    from svc_proto.voice.keys import Keys

__all__ = ["AGENT", "LAB", "OUTPUT", "View", "config_answer", "options_answer", "validate_answer"]

AGENT_VENDORS = {"openai_realtime": OPENAI_REALTIME, "xai_realtime": XAI_REALTIME}  # without a key it cannot be used
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

    def allowed(self) -> list[ProviderInfo]:
        """The providers that it can be set to."""
        if self is OUTPUT:
            return [info for info in PROVIDERS.values() if is_renderer(info)]
        if self is AGENT:
            return [info for info in PROVIDERS.values() if info.native or info.rendered]
        return list(PROVIDERS.values())

    def described(self) -> list[ProviderInfo]:
        """The providers that have options of their own here: in the lab (wire 5) the realtime ones, and this host."""
        allowed = self.allowed()
        return [info for info in allowed if self is not LAB or "realtime" in info.supports or info.id == LOCAL]

    def object(self, info: ProviderInfo, offer: Offer | None = None) -> dict[str, object]:
        """The option object."""
        return provider_object(info, offer, native=info.native if self is AGENT else None)


OUTPUT = View("voice_output", "voice.output")
LAB = View("realtime_voice", "voice.realtime")
AGENT = View("realtime_agent", "voice.realtime_agent")


def config_answer(
    view: View, settings: OutputSettings | RealtimeSettings, path: str, keys: Keys, brand: Brand
) -> dict[str, object]:
    """`GET …/config`."""
    own: dict[str, object] = {}
    if isinstance(settings, OutputSettings):
        own = {name: getattr(settings, name) for name in OUTPUT_RULES if name not in REALTIME}
        own["fallback_provider"] = f"legacy_{brand.name}_tts"
    described = PROVIDERS.values() if view is AGENT else view.allowed()
    answer: dict[str, object] = {
        "success": True,
        "enabled": settings.enabled,
        "protocol": f"{brand.name}.{view.protocol}.v0",
        "config_path": path,
        **_defaults(settings),
        **own,
        "providers": [view.object(info) for info in described],
        "auth": _auth(view, keys),
        **settings.scope.fields(),
    }
    if view is AGENT and isinstance(settings, RealtimeSettings):
        vendor = AGENT_VENDORS.get(settings.provider)
        answer |= {
            "available": settings.enabled and (vendor is None or bool(keys.present(*vendor.keys))),
            "experimental": True,
            "mode": view.mode,
            "stable_engine": f"{brand.name}_voice_output",
            "tool_surface": tool_surface(brand.name),
            "limits": list(LIMITS),
            "promotion": asdict(settings.promotion),
        }
    return answer


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
    valid = all(check["status"] != "error" for check in checks)
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


def _auth(view: View, keys: Keys) -> dict[str, object]:
    """Only names of variables, never what is in them. There is no OAuth store."""
    present = keys.present(*(XAI if view is OUTPUT else XAI_REALTIME).keys)
    auth: dict[str, object] = {"xai_env": bool(present), "xai_env_names": present}
    auth |= {"xai_oauth": False, "xai_oauth_source": None}
    if view is OUTPUT:
        return {**auth, **_has(keys, "openai", OPENAI), **_has(keys, "elevenlabs", ELEVENLABS)}
    if view is LAB:
        return {**auth, "xai_oauth_path": "", "xai_oauth_paths": []}
    about = {"xai_oauth_configured": False, "xai_oauth_path": ""}
    return {**auth, **about, **_has(keys, "openai", OPENAI_REALTIME)}


def _has(keys: Keys, name: str, vendor: Vendor) -> dict[str, object]:
    present = keys.present(*vendor.keys)
    return {f"{name}_env": bool(present), f"{name}_env_names": present}
