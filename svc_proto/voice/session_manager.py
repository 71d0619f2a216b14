"""Base class of the three session managers: creation, lookup, limits and end (wire terminal-voice 4.6, 4.7).

    class OutputSessionManager(VoiceSessionManager):
        what, place, files, folder = ...    # and `section`, `providers`, `unsupported_text`, `mode`

At the limit, a session of the same caller without a client is closed, the oldest first: a new or released one before a
detached one. A caller without such a session gets 503, even if other callers use up the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc_proto.basics.entropy import secrets_equal
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.engine.flow import Flow
from svc_proto.machines.voice_session import VoiceState
from svc_proto.voice.connection import VoiceConnection
from svc_proto.voice.event_log import delete_old_logs
from svc_proto.voice.profiles import profile_of
from svc_proto.voice.session import POLICY, VoiceMode, VoiceSession
from svc_proto.voice.settings import OutputSettings, RealtimeSettings, apply_choice
from svc_proto.voice.settings_store import SettingsSection

if TYPE_CHECKING:
    from svc_proto.schema.voice_types import VoiceSessionJson
    from svc_proto.voice.principal import Principal
    from svc_proto.voice.service import VoiceServices

__all__ = ["VoiceSessionManager", "MAX_PER_PRINCIPAL", "MAX_SESSIONS"]

MAX_SESSIONS = 128  # of one kind; each keeps at most 4 MiB for event replay
MAX_PER_PRINCIPAL = 64  # of one caller
MAX_ENDED = 1024  # ids of ended sessions: the oldest is dropped, and gives 404
SWEEP_INTERVAL = 3600.0  # s
ENDED_TTL = 3600.0  # s that such an id gives 410


class VoiceSessionManager:
    """Registry of all sessions of one kind."""

    what: ClassVar[str]  # name in error texts
    place: ClassVar[str]  # of its sockets: `/voice/<place>/<id>`
    files: ClassVar[str]  # prefix of the names of its files
    folder: ClassVar[str]  # the member of the configuration that names their folder
    providers: ClassVar[Container[str]]  # that may be chosen
    unsupported_text: ClassVar[str]  # error text for another one, `{}`
    section: ClassVar[SettingsSection[Any]]  # its settings
    mode: ClassVar[type[VoiceMode]]
    resumes: ClassVar[bool] = True  # events have ids and are replayed; else a session without socket is as new

    def __init__(self, voice: VoiceServices) -> None:
        self.voice = voice
        self.runs: str = getattr(voice.config, self.folder)
        self.name = f"voice.{self.place.replace('-', '_')}"  # prefix of types in the log: `<name>.session.created`
        self.most, self.of_one = MAX_SESSIONS, MAX_PER_PRINCIPAL  # sessions: of all callers, and of one
        self._sessions: dict[str, VoiceSession] = {}
        self._swept = 0.0  # when its folder is swept next, monotonic seconds
        self._over: ExpiringMap[str, bool] = ExpiringMap(MAX_ENDED)

    def create(self, body: Mapping[str, object], principal: Principal) -> Flow[VoiceSessionJson]:
        """Create a session and return the response of `POST /voice/<place>/session`.

        Raise `Refused` 404 when disabled, 400 for a bad choice, 503 for too many sessions."""
        return self.admit(principal, (yield from self.chosen(body)), self.mode)

    def open(self, principal: Principal, session_id: str) -> VoiceConnection:
        """Return the handler of the WebSocket `/voice/<place>/{session_id}`.

        Raise `Refused` 404 for an unknown session, 403 for another principal's. With resume, raise 410 for one of the
        last `MAX_ENDED` sessions that ended within the last hour.
        """
        session = self._sessions.get(session_id)
        if session is None:
            if self.resumes and self._over.get(session_id, self.voice.engine.now.mono):
                raise Refused(410, "session_closed", "this voice session is over")
            raise Refused(404, "session_not_found", "there is no such voice session")
        if not session.principal.matches(principal):
            raise Refused(403, "not_your_session", "this voice session belongs to another caller")
        return VoiceConnection(session, principal.bearer_hash, principal.until)

    # --- for `create` ---

    def chosen(self, body: Mapping[str, object]) -> Flow[Any]:
        """Return the settings with the body's choices; raise `Refused` 404 when disabled, 400 for a bad choice."""
        settings = yield from self.voice.settings(self.section, profile_of({}, body))
        if not settings.enabled:
            raise Refused(404, "disabled", f"{self.what} is disabled")
        chosen = apply_choice(settings, body)
        if chosen.provider not in self.providers:
            raise Refused(400, "voice_refused", self.unsupported_text.format(chosen.provider))
        return chosen

    def admit(
        self,
        principal: Principal,
        chosen: OutputSettings | RealtimeSettings,
        mode: Callable[[VoiceSession], VoiceMode],
        about: Mapping[str, object] | None = None,
    ) -> VoiceSessionJson:
        """Create a session, after making room, and return the response; `about` goes to the event log.

        Raise `Refused` 503 if there is no room.
        """
        self.make_room(principal)
        session, about = VoiceSession(self, principal, chosen, mode), about or {}
        self._sessions[session.id] = session
        session.created(about)
        answer: VoiceSessionJson = {
            "success": True,
            "session_id": session.id,
            "websocket_path": f"/voice/{self.place}/{session.id}",
            "provider": chosen.provider,
            "model": chosen.model,
            "voice": chosen.voice,
            "sample_rate": chosen.sample_rate,
            "event_log_path": session.log.path,
            "protocol": f"{session.brand.name}.{self.name}.v0",
            "profile": chosen.scope.profile,
            "config_scope": chosen.scope.config_scope,
            "fallback_to_global": chosen.scope.fallback_to_global,
            "config_path": chosen.scope.config_path,
        }
        if self.resumes:
            answer["resume_token"] = session.take_token()
            answer["resume_supported"] = True
            answer["resume_ttl_ms"] = session.resume_ttl_ms
        return answer

    def make_room(self, principal: Principal) -> None:
        """If a limit is reached, close the principal's oldest new or released session, or else its oldest detached one.

        Raise `Refused` 503 if the principal has no such session.
        """
        own = [session for session in self._sessions.values() if session.principal.matches(principal)]
        if len(own) < self.of_one and len(self._sessions) < self.most:
            return
        for state in (VoiceState.FRESH, VoiceState.DETACHED):
            for session in own:
                if session.life.state is state:
                    session.close("too many sessions")
                    return
        raise Refused(503, "too_many_sessions", "too many voice sessions are open")

    # --- for all sessions ---

    def is_known(self, session_id: str) -> bool:
        """Report whether a session of that id is open, or ended lately."""
        return session_id in self._sessions or session_id in self._over

    def sessions(self) -> list[VoiceSession]:
        """Return the open sessions, the oldest first."""
        return list(self._sessions.values())

    def forget(self, session: VoiceSession) -> None:
        """Remove a session that has ended, and store its id for an hour, or until `MAX_ENDED` later ones have ended."""
        now = self.voice.engine.now.mono
        del self._sessions[session.id]
        self._over.purge(now)
        self._over.put(session.id, True, now + ENDED_TTL)

    def sweep(self, days: int) -> None:
        """Delete files of sessions older than `days`, at most once an hour; 0: never."""
        now = self.voice.engine.now.mono
        if days > 0 and now >= self._swept:
            self._swept = now + SWEEP_INTERVAL
            self.voice.engine.spawn(delete_old_logs(self.voice.engine, self.runs, self.files, days=days))

    def revoke_bearer(self, bearer_hash: str, reason: str) -> None:
        """Close the sockets and sessions that were opened with a revoked token, and stop the sessions' runs."""
        for session in self.sessions():
            if secrets_equal(session.principal.bearer_hash, bearer_hash):
                session.revoke(reason)
            else:
                for socket in session.opened_with(bearer_hash):  # the session stays for the caller's other tokens
                    socket.detach(POLICY, reason)

    def recheck(self, bearer_hash: str) -> None:
        """Check the grant of each socket of a token after a change: close a socket whose grant has ended."""
        for session in self.sessions():
            for socket in session.opened_with(bearer_hash):
                socket.recheck()

    def stop(self) -> None:
        """Close all sessions, because the process ends."""
        for session in self.sessions():
            session.close("server shutdown", code=1001)
