"""Routes of settings and sessions of speech output, the realtime lab and the realtime agent.

Each of these three modes has the same routes (wire terminal-voice 4.3 to 4.7, 5, 6.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from attrs import evolve, frozen

from svc_proto.basics.brand import Brand
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import HandlerResult, Route, RouteKind
from svc_proto.engine.websocket import WebSocketHandler
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.cluster.local_coordinator import local_or_forwarded
from svc_proto.relay.ports import RelayPort
from svc_proto.relay.voice.subsystem import VoiceSubsystem
from svc_proto.voice.principal import Principal
from svc_proto.voice.profiles import profile_of
from svc_proto.voice.provider_interface import ProviderInfo
from svc_proto.voice.provider_registry import canonical_id
from svc_proto.voice.settings import AnySettings, parse_integer_setting, parse_text_choice
from svc_proto.voice.settings_store import checked_change
from svc_proto.voice.settings_views import (
    AGENT_VIEW,
    LAB_VIEW,
    OUTPUT_VIEW,
    VoiceModeView,
    config_response,
    options_response,
    validate_response,
)

if TYPE_CHECKING:
    from svc_proto.schema import voice_types as types

__all__ = ["routes"]

MAX_RATE = 10_000_000  # Hz, of a choice to validate
# Name of the session manager, access to the routes, access to the WebSocket, view.
VOICE_MODES = (
    ("output", RelayAccess.VOICE_TTS, RelayAccess.VOICE_OUTPUT_SOCKET, OUTPUT_VIEW),
    ("lab", RelayAccess.VOICE_REALTIME, RelayAccess.VOICE_REALTIME_SOCKET, LAB_VIEW),
    ("agent", RelayAccess.VOICE_REALTIME, RelayAccess.VOICE_REALTIME_SOCKET, AGENT_VIEW),
)


class VoicePort(RelayPort, Protocol):
    """Members of the relay that the routes of voice use."""

    @property
    def voice_side(self) -> VoiceSubsystem:
        """Voice subsystem, loaded with its first use."""


def routes(relay: VoicePort) -> list[Route]:
    """Return the routes of speech output, the realtime lab and the realtime agent."""
    return [row for theme in VOICE_MODES for row in _VoiceModeRoutes(relay, *theme).rows()]


@frozen
class _VoiceModeRoutes:
    relay: VoicePort
    name: str
    access: RelayAccess
    socket: RelayAccess
    view: VoiceModeView

    def rows(self) -> list[Route]:
        base, access = f"/voice/{self.view.family.place}", self.access
        one, session = f"{base}/providers/{{provider_id}}", f"{base}/{{session_id}}"
        return [
            Route(method="GET", pattern=f"{base}/config", access=access, handler=self.show),
            Route(method="PATCH", pattern=f"{base}/config", access=access, handler=self.change),
            Route(method="GET", pattern=f"{one}/options", access=access, handler=self.options),
            Route(method="POST", pattern=f"{one}/validate", access=access, handler=self.validate),
            Route(method="POST", pattern=f"{base}/session", access=access, handler=self.create),
            Route(method="GET", pattern=session, access=self.socket, handler=self.open, kind=RouteKind.WEBSOCKET),
        ]

    def show(self, request: Request) -> Flow[JsonResponse[types.VoiceModeSettingsJson]]:
        return json_response(200, self._settings_response(request, (yield from self._settings(request))))

    def change(self, request: Request) -> Flow[JsonResponse[types.VoiceModeSettingsJson]]:
        view, voice = self.view, self.relay.voice_side.voice
        if not request.body:
            raise Refused(400, "voice_refused", "the body must be a JSON object")
        body = request.json_object()
        profile = profile_of(request.query, body)
        if profile is not None and cast("Principal", request.principal).kind == "api":
            # SPEC.md, API bearer on voice routes, 3: not for profile writes, which need a session token.
            raise Refused(403, "session_required", "changing a profile needs the token of a paired session")
        change = checked_change(view.rules, body, [info.id for info in view.allowed()])
        path = yield from voice.stored.change(view.family.section, profile, change)
        settings = yield from voice.settings(view.family.section, profile)
        return json_response(
            200, {**self._settings_response(request, settings), "config_path": path, "updated": sorted(change)}
        )

    def options(self, request: Request) -> Flow[JsonResponse[types.ProviderOptionsJson]]:
        info = self._provider(request)
        settings = yield from self._settings(request)
        offer = yield from self.relay.voice_side.options.fetch(info)
        return json_response(200, options_response(self.view, settings, offer, self._brand(request)))

    def validate(self, request: Request) -> Flow[JsonResponse[types.ChoiceCheckedJson]]:
        info = self._provider(request)
        body = request.json_object() if request.body else {}
        choice = _choice(body, (yield from self._settings(request, body)), info)
        offer = self.relay.voice_side.options.cached(info)
        return json_response(200, validate_response(self.view, offer, choice, self._brand(request)))

    def create(self, request: Request) -> Flow[JsonResponse[types.VoiceSessionJson]]:
        body = request.json_object() if request.body else {}
        if (profile := profile_of(request.query, body)) is not None:
            body["profile"] = profile
        family = self.relay.voice_side.sessions[self.name]
        return json_response(200, (yield from family.create(body, cast("Principal", request.principal))))

    def open(self, request: Request) -> WebSocketHandler | Flow[HandlerResult]:
        relay, name = self.relay, request.params["session_id"]
        principal, family = cast("Principal", request.principal), relay.voice_side.sessions[self.name]
        return local_or_forwarded(relay.coordinator, request, "voice", name, lambda: family.open(principal, name))

    # --- helpers ---

    def _settings(self, request: Request, body: Mapping[str, object] | None = None) -> Flow[AnySettings]:
        """Return this mode's settings of the profile that the request names."""
        found: Flow[AnySettings]
        found = self.relay.voice_side.voice.settings(self.view.family.section, profile_of(request.query, body))
        return found

    def _settings_response(self, request: Request, settings: AnySettings) -> types.VoiceModeSettingsJson:
        view, voice = self.view, self.relay.voice_side.voice
        path = settings.scope.config_path or voice.stored.path_of(view.family.section)
        return config_response(view, settings, path, voice.keys, self._brand(request))

    def _brand(self, request: Request) -> Brand:
        """Return the brand of the request's principal if it has one, else the configured brand."""
        return cast("Principal", request.principal).brand or self.relay.config.brand

    def _provider(self, request: Request) -> ProviderInfo:
        view = self.view
        wanted = canonical_id(request.params["provider_id"], view.family.section.kind)
        for info in view.described():
            if info.id == wanted:
                return info
        shown = "".join(letter for letter in wanted[:80] if letter.isprintable())
        raise Refused(400, "voice_refused", f"'{shown}' is not a provider of {view.mode}")


def _choice(body: Mapping[str, object], settings: AnySettings, info: ProviderInfo) -> AnySettings:
    """Return settings for the provider `info`, with the language, model, voice and sample rate of the body.

    Members that the body lacks keep the value of `settings`. If these are of another provider, `info` gives the first
    model and voice, and its first sample rate unless it supports the present one. Raise `Refused` 400 for an invalid
    member.
    """
    if settings.provider != info.id:
        settings = evolve(settings, **info.default_options(settings.sample_rate))
    names = [name for name in ("language", "model", "voice") if hasattr(settings, name)]
    changes: dict[str, Any] = {name: parse_text_choice(body, name, getattr(settings, name)) for name in names}
    if body.get("sample_rate") is not None:
        changes["sample_rate"] = parse_integer_setting(body["sample_rate"], "sample_rate", 1, MAX_RATE)
    return evolve(settings, **changes)
