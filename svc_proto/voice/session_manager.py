"""What the three families of voice sessions share: how one is made and found, how many there may be, who may have one,
which are over (wire terminal-voice 4.6, 4.7).

class VoiceOutput(Family):
    what, place, files, folder = ...    # and `section`, `providers`, `misfit`, `mode`

At the limit a session of the same caller that nobody listens to makes room, the oldest first: one that nobody has ever
attached to before one that is detached. A caller whose sessions are all in use, or whose share is small while others
hold the rest, gets 503.
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
    from svc_proto.voice.principal import Principal
    from svc_proto.voice.service import VoiceServices

__all__ = ["VoiceSessionManager", "MAX_PER_PRINCIPAL", "MAX_SESSIONS"]

MAX_SESSIONS = 128  # of a family; each keeps at most 4 MiB for whoever comes back
MAX_PER_PRINCIPAL = 64  # of one caller
MAX_ENDED = 1024  # ids of sessions that are over: the one that ended first is forgotten, and gives 404
SWEEP_INTERVAL = 3600.0  # s
ENDED_TTL = 3600.0  # s that such an id gives 410


class VoiceSessionManager:
    """All sessions of one kind."""

    what: ClassVar[str]  # that can be disabled
    place: ClassVar[str]  # of its sockets: `/voice/<place>/<id>`
    files: ClassVar[str]  # prefix of the names of its files
    folder: ClassVar[str]  # of those: the member of the configuration that names it
    providers: ClassVar[Container[str]]  # that may be chosen
    unsupported_text: ClassVar[str]  # why another, `{}`, cannot be
    section: ClassVar[SettingsSection[Any]]  # its settings
    mode: ClassVar[type[VoiceMode]]
    resumes: ClassVar[bool] = True  # events have ids, and are kept; else a session is afresh once its socket has gone

    def __init__(self, voice: VoiceServices) -> None:
        self.voice = voice
        self.runs: str = getattr(voice.config, self.folder)
        self.name = f"voice.{self.place.replace('-', '_')}"  # prefix of types in the log: `<name>.session.created`
        self.most, self.of_one = MAX_SESSIONS, MAX_PER_PRINCIPAL  # sessions: of all callers, and of one
        self._sessions: dict[str, VoiceSession] = {}
        self._swept = 0.0  # when its folder is to be swept again, monotonic seconds
        self._over: ExpiringMap[str, bool] = ExpiringMap(MAX_ENDED)

    def create(self, body: Mapping[str, object], principal: Principal) -> Flow[dict[str, object]]:
        """`POST /voice/<place>/session`: a new one, and the answer. `Refused` 404 when disabled, 400 for a bad choice,
        503 for too many."""
        return self.admit(principal, (yield from self.chosen(body)), self.mode)

    def open(self, principal: Principal, session_id: str) -> VoiceConnection:
        """`GET /voice/<place>/{session_id}` as a WebSocket. `Refused` 404, 410 or 403, in that order."""
        session = self._sessions.get(session_id)
        if session is None:
            if self.resumes and self._over.get(session_id, self.voice.engine.now.mono):
                raise Refused(410, "session_closed", "this voice session is over")
            raise Refused(404, "session_not_found", "there is no such voice session")
        if not session.principal.matches(principal):
            raise Refused(403, "not_your_session", "this voice session belongs to somebody else")
        return VoiceConnection(session, principal.bearer_hash, principal.until)

    # --- for `create` ---

    def chosen(self, body: Mapping[str, object]) -> Flow[Any]:
        """What the body picks of the settings. `Refused` 404 when the family is disabled, 400 for a bad choice."""
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
    ) -> dict[str, object]:
        """Make a session, and room for it. The answer to the call that has wanted it; `about` is for the log, too."""
        self.make_room(principal)
        session, about = VoiceSession(self, principal, chosen, mode), about or {}
        self._sessions[session.id] = session
        session.created(about)
        resume: dict[str, object] = {}
        if self.resumes:
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
            **session.settings_choice(),
            "sample_rate": chosen.sample_rate,
            "event_log_path": session.log.path,
            "protocol": f"{self.voice.config.brand.name}.{self.name}.v0",
            **chosen.scope.fields(),
            "config_path": chosen.scope.config_path,
            **about,
        }

    def make_room(self, principal: Principal) -> None:
        """See that one more fits; `Refused` 503 if it does not."""
        own = [session for session in self._sessions.values() if session.principal.matches(principal)]
        if len(own) < self.of_one and len(self._sessions) < self.most:
            return
        for state in (VoiceState.FRESH, VoiceState.DETACHED):
            for session in own:
                if session.life.state is state:
                    session.close("too many sessions")
                    return
        raise Refused(503, "too_many_sessions", "too many voice sessions are open")

    # --- all of them ---

    def is_known(self, session_id: str) -> bool:
        """Whether there is, or was, a session of that id."""
        return session_id in self._sessions or session_id in self._over

    def sessions(self) -> list[VoiceSession]:
        """The sessions that are not over, the oldest first."""
        return list(self._sessions.values())

    def forget(self, session: VoiceSession) -> None:
        """A session is over."""
        now = self.voice.engine.now.mono
        del self._sessions[session.id]
        self._over.purge(now)
        self._over.put(session.id, True, now + ENDED_TTL)

    def sweep(self, days: int) -> None:
        """Delete what sessions have left that are older; looked for once an hour. 0: never."""
        now = self.voice.engine.now.mono
        if days > 0 and now >= self._swept:
            self._swept = now + SWEEP_INTERVAL
            self.voice.engine.spawn(delete_old_logs(self.voice.engine, self.runs, self.files, days=days))

    def revoke_bearer(self, bearer_hash: str, reason: str) -> None:
        """A token is accepted no more: close what was opened with it, and stop the sessions' runs."""
        for session in self.sessions():
            if secrets_equal(session.principal.bearer_hash, bearer_hash):
                session.revoke(reason)
            else:
                for socket in session.opened_with(bearer_hash):  # the session stays for the caller's others
                    socket.detach(POLICY, reason)

    def recheck(self, bearer_hash: str) -> None:
        """The grants behind a token were changed: close the sockets that were opened with one that is over."""
        for session in self.sessions():
            for socket in session.opened_with(bearer_hash):
                socket.recheck()

    def stop(self) -> None:
        """The process ends."""
        for session in self.sessions():
            session.close("server shutdown", code=1001)
