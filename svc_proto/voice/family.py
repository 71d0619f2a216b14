"""What the three families of voice sessions share: how one is made and found, and what it says of itself at first.

class VoiceOutput(Family):
    what, place, protocol = "voice output", "output", "output"
    def create(self, body, principal): ...       # with `choose`, `admit` and `answer`
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.voice.session import VoiceKind, VoiceMode, VoiceSession
from svc_proto.voice.session_table import SessionTable
from svc_proto.voice.settings import OutputSettings, RealtimeSettings, SettingsT, choose
from svc_proto.voice.socket import VoiceSocket

if TYPE_CHECKING:
    from svc_proto.voice.principal import Principal
    from svc_proto.voice.service import Voice

__all__ = ["Family"]


class Family(ABC):
    """All sessions of one kind."""

    what: ClassVar[str]  # that can be disabled
    place: ClassVar[str]  # of its sockets: `/voice/<place>/<id>`
    protocol: ClassVar[str]  # `<brand>.voice.<protocol>.v0`

    def __init__(self, voice: Voice) -> None:
        self.voice = voice
        self.sessions: SessionTable = SessionTable(voice.engine)

    @abstractmethod
    def create(self, body: Mapping[str, object], principal: Principal) -> Flow[dict[str, object]]:
        """A new session; the answer of the route. `Refused` 404 when disabled, 400 for a bad choice, 503 when full."""

    def open(self, principal: Principal, session_id: str) -> VoiceSocket:
        """`GET /voice/<place>/{session_id}` as a WebSocket. `Refused` 404, 410 or 403."""
        return self.sessions.open(session_id, principal)

    # --- for `create` ---

    def choose(self, settings: SettingsT, body: Mapping[str, object]) -> SettingsT:
        """What the body picks of the settings. `Refused` 404 when the family is disabled, 400 for a bad choice."""
        if not settings.enabled:
            raise Refused(404, "disabled", f"{self.what} is disabled")
        return choose(settings, body)

    def admit(
        self,
        principal: Principal,
        chosen: OutputSettings | RealtimeSettings,
        kind: VoiceKind,
        mode: Callable[[VoiceSession], VoiceMode],
        about: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        """Make a session, for which there is room. The answer to the call that has wanted it, without `about`."""
        session = VoiceSession(self.voice, self.sessions, principal, chosen, kind, mode)
        self.sessions.add(session)
        session.created(about or {})
        resume: dict[str, object] = {}
        if kind.numbered:
            resume = {
                "resume_token": session.take_token(),
                "resume_supported": True,
                "resume_ttl_ms": session.resume_ttl_ms,
            }
        return {
            "success": True,
            "session_id": session.id,
            "websocket_path": f"/voice/{self.place}/{session.id}",
            **resume,
            **session.choice(),
            "sample_rate": chosen.sample_rate,
            "event_log_path": session.log.path,
            "protocol": f"{self.voice.config.brand.name}.voice.{self.protocol}.v0",
            **chosen.scope.fields(),
            "config_path": chosen.scope.config_path,
        }
