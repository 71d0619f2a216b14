"""Responses of the config, options and validate routes of the three modes (wire terminal-voice 4.3 to 4.5, 5, 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from attrs import asdict, frozen

from svc_proto.basics.brand import Brand
from svc_proto.voice.agent.agent_session_manager import AgentSessionManager
from svc_proto.voice.provider_interface import ProviderInfo
from svc_proto.voice.provider_keys import ProviderKeys
from svc_proto.voice.provider_options import ProviderCatalog, check_choice, provider_object
from svc_proto.voice.provider_registry import LOCAL, PROVIDERS
from svc_proto.voice.realtime.function_calls import tool_surface
from svc_proto.voice.session_manager import VoiceSessionManager
from svc_proto.voice.settings import OUTPUT as OUTPUT_RULES
from svc_proto.voice.settings import PROMOTION, REALTIME, AnySettings, OutputSettings, Rules
from svc_proto.voice.speech_sessions import LabSessionManager, OutputSessionManager
from svc_proto.voice_config import (
    ELEVENLABS_ENDPOINT,
    OPENAI_ENDPOINT,
    OPENAI_REALTIME_ENDPOINT,
    XAI_ENDPOINT,
    XAI_REALTIME_ENDPOINT,
    ProviderEndpoint,
)

if TYPE_CHECKING:
    from svc_proto.schema import voice_types as types

__all__ = [
    "AGENT_VIEW",
    "LAB_VIEW",
    "OUTPUT_VIEW",
    "VoiceModeView",
    "config_response",
    "options_response",
    "validate_response",
]

LIMITS = (
    "Experimental: one spoken turn at a time, and at most five minutes each.",
    "Tasks run in a chat session of the API server, which needs to be reachable from the relay.",
    "A session without a client ends after the resume window.",
)


@frozen(eq=False)
class VoiceModeView:
    """Properties of a mode of voice sessions in which its settings and responses differ from those of other modes."""

    mode: str
    protocol: str  # behind the brand's name
    family: type[VoiceSessionManager]
    rules: Rules  # of the settings that a request can change
    endpoints: tuple[ProviderEndpoint, ...]  # the vendors whose keys are shown

    def allowed(self) -> list[ProviderInfo]:
        """Return the providers that the mode can use."""
        return [info for info in PROVIDERS.values() if info.id in self.family.providers]

    def described(self) -> list[ProviderInfo]:
        """Return the providers that the mode can use; in the lab (wire 5) only the realtime ones and the local one."""
        return [
            info for info in self.allowed() if self is not LAB_VIEW or "realtime" in info.supports or info.id == LOCAL
        ]

    def object(self, info: ProviderInfo, offer: ProviderCatalog | None = None) -> types.VoiceProviderJson:
        """Return the option object of a provider in this mode."""
        return provider_object(info, offer, native=info.native if self is AGENT_VIEW else None)


OUTPUT_VIEW = VoiceModeView(
    "voice_output",
    "voice.output",
    OutputSessionManager,
    OUTPUT_RULES,
    (XAI_ENDPOINT, OPENAI_ENDPOINT, ELEVENLABS_ENDPOINT),
)
LAB_VIEW = VoiceModeView("realtime_voice", "voice.realtime", LabSessionManager, REALTIME, (XAI_REALTIME_ENDPOINT,))
AGENT_VIEW = VoiceModeView(
    "realtime_agent",
    "voice.realtime_agent",
    AgentSessionManager,
    {**REALTIME, **PROMOTION},
    (XAI_REALTIME_ENDPOINT, OPENAI_REALTIME_ENDPOINT),
)
AuthFields: TypeAlias = dict[str, bool | str | list[str] | None]
OAUTH: Mapping[
    VoiceModeView, Mapping[str, bool | str | list[str] | None]
] = {  # members of an OAuth store, which does not exist
    LAB_VIEW: {"xai_oauth_path": "", "xai_oauth_paths": []},
    AGENT_VIEW: {"xai_oauth_configured": False, "xai_oauth_path": ""},
}


def config_response(
    view: VoiceModeView, settings: AnySettings, path: str, keys: ProviderKeys, brand: Brand
) -> types.VoiceModeSettingsJson:
    """Return the response of `GET …/config`."""
    shown = PROVIDERS.values() if view is AGENT_VIEW else view.allowed()
    common: types.VoiceModeSettingsJson = {
        "success": True,
        "enabled": settings.enabled,
        "protocol": f"{brand.name}.{view.protocol}.v0",
        "config_path": path,
        "default_provider": settings.provider,
        "default_model": settings.model,
        "default_voice": settings.voice,
        "sample_rate": settings.sample_rate,
        "profile": settings.scope.profile,
        "config_scope": settings.scope.config_scope,
        "fallback_to_global": settings.scope.fallback_to_global,
        "providers": [view.object(info) for info in shown],
        "auth": _auth(view, keys),
    }
    if isinstance(settings, OutputSettings):
        output: types.OutputSettingsJson = {
            **common,
            "language": settings.language,
            "codec": settings.codec,
            "optimize_streaming_latency": settings.optimize_streaming_latency,
            "text_normalization": settings.text_normalization,
            "fallback_enabled": settings.fallback_enabled,
            "auto_speech_tags": settings.auto_speech_tags,
            "fallback_provider": f"legacy_{brand.name}_tts",
        }
        return output
    if view is not AGENT_VIEW:
        return common
    endpoints = [endpoint for endpoint in view.endpoints if settings.provider == f"{endpoint.name.lower()}_realtime"]
    agent: types.AgentSettingsJson = {
        **common,
        "available": settings.enabled and all(keys.present_variables(*endpoint.keys) for endpoint in endpoints),
        "experimental": True,
        "mode": view.mode,
        "stable_engine": f"{brand.name}_voice_output",
        "tool_surface": tool_surface(brand.name),
        "limits": list(LIMITS),
        "promotion": cast("types.PromotionJson", asdict(settings.promotion)),
    }
    return agent


def options_response(
    view: VoiceModeView, settings: AnySettings, offer: ProviderCatalog, brand: Brand
) -> types.ProviderOptionsJson:
    """Return the response of `GET …/providers/{id}/options`."""
    answer: types.ProviderOptionsJson = {
        "success": True,
        "mode": view.mode,
        "protocol": f"{brand.name}.{view.protocol}.options.v0",
        "schema_version": 1,
        "provider_id": offer.info.id,
        "provider": view.object(offer.info, offer),
        "default_provider": settings.provider,
        "default_model": settings.model,
        "default_voice": settings.voice,
        "sample_rate": settings.sample_rate,
        "profile": settings.scope.profile,
        "config_scope": settings.scope.config_scope,
        "fallback_to_global": settings.scope.fallback_to_global,
        "dynamic": dict(offer.dynamic),
    }
    if isinstance(settings, OutputSettings):
        answer["language"] = settings.language
    if view is AGENT_VIEW:
        answer["tool_surface"] = tool_surface(brand.name)
    return answer


def validate_response(
    view: VoiceModeView, offer: ProviderCatalog, choice: AnySettings, brand: Brand
) -> types.ChoiceCheckedJson:
    """Return the response of `POST …/providers/{id}/validate`."""
    checks = check_choice(offer, choice)
    valid = all(check["status"] != "error" for check in checks)
    answer: types.ChoiceCheckedJson = {
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
    if isinstance(choice, OutputSettings):
        answer["language"] = choice.language
    return answer


def _auth(view: VoiceModeView, keys: ProviderKeys) -> AuthFields:
    """Return the member `auth`: which variables with keys are set, never their values; there is no OAuth store."""
    auth: AuthFields = {}
    for endpoint in view.endpoints:
        name, present = endpoint.name.lower(), keys.present_variables(*endpoint.keys)
        auth |= {f"{name}_env": bool(present), f"{name}_env_names": present}
        if name == "xai":
            auth |= {"xai_oauth": False, "xai_oauth_source": None, **OAUTH.get(view, {})}
    return auth
