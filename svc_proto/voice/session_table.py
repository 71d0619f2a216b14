"""The sessions of one family: how many there may be, who may have one, which are over (wire terminal-voice 4.6, 4.7).

At the limit a session of the same caller that nobody listens to makes room, the oldest first: one that nobody has ever
attached to before one that is detached. A caller whose sessions are all in use, or whose share is small while others
hold the rest, gets 503.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.entropy import same_secret
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring import ExpiringMap
from svc_proto.machines.voice_session import UNATTENDED, VoiceState
from svc_proto.voice.event_log import sweep_runs
from svc_proto.voice.session import VoiceSession
from svc_proto.voice.socket import VoiceSocket

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.voice.principal import Principal

__all__ = ["MAX_OF_ONE", "MAX_SESSIONS", "SessionTable"]

MAX_SESSIONS = 128  # of a family; each keeps at most 4 MiB for whoever comes back
MAX_OF_ONE = 64  # of one caller
MAX_OVER = 1024  # ids of sessions that are over: the one that ended first is forgotten, and gives 404
SWEEP_EVERY = 3600.0  # s
OVER_FOR = 3600.0  # s that such an id gives 410


class SessionTable:
    """All sessions of a family that are not over."""

    def __init__(
        self, engine: Engine, *, most: int = MAX_SESSIONS, of_one: int = MAX_OF_ONE, patience: float = UNATTENDED
    ) -> None:
        self.engine = engine
        self.patience = patience  # s that a session waits for a socket
        self._most = most
        self._of_one = of_one
        self._sessions: dict[str, VoiceSession] = {}
        self._swept: dict[str, float] = {}  # when a folder was last swept, monotonic seconds
        self._over: ExpiringMap[str, bool] = ExpiringMap(MAX_OVER)

    def __len__(self) -> int:
        return len(self._sessions)

    def knows(self, session_id: str) -> bool:
        """Whether there is, or was, a session of that id."""
        return session_id in self._sessions or session_id in self._over

    def sessions(self) -> list[VoiceSession]:
        """The sessions that are not over, the oldest first."""
        return list(self._sessions.values())

    def make_room(self, principal: Principal) -> None:
        """See that one more fits; `Refused` 503 if it does not."""
        own = [session for session in self._sessions.values() if session.principal.matches(principal)]
        if len(own) < self._of_one and len(self._sessions) < self._most:
            return
        for state in (VoiceState.FRESH, VoiceState.DETACHED):
            for session in own:
                if session.life.state is state:
                    session.close("too many sessions")
                    return
        raise Refused(503, "too_many_sessions", "too many voice sessions are open")

    def add(self, session: VoiceSession) -> None:
        """A new session; `make_room` came before."""
        self._sessions[session.id] = session

    def open(self, session_id: str, principal: Principal) -> VoiceSocket:
        """A socket for a session; `Refused` 404, 410 or 403, in that order."""
        session = self._sessions.get(session_id)
        if session is None:
            if self._over.get(session_id, self.engine.now.mono):
                raise Refused(410, "session_closed", "this voice session is over")
            raise Refused(404, "session_not_found", "there is no such voice session")
        if not session.principal.matches(principal):
            raise Refused(403, "not_your_session", "this voice session belongs to somebody else")
        return VoiceSocket(session, principal.bearer_hash, principal.until)

    def forget(self, session: VoiceSession) -> None:
        """A session is over."""
        if self._sessions.pop(session.id, None) is not None:
            now = self.engine.now.mono
            self._over.purge(now)
            self._over.put(session.id, True, now + OVER_FOR)

    def sweep(self, runs: str, family: str, days: int) -> None:
        """Delete what sessions have left that are older; looked for once an hour, in each folder."""
        now = self.engine.now.mono
        if days > 0 and now >= self._swept.get(runs, 0.0):
            self._swept[runs] = now + SWEEP_EVERY
            sweep_runs(self.engine, runs, family, days=days)

    def end_bearer(self, bearer_hash: str, reason: str) -> None:
        """A token is accepted no more: close what was opened with it, and stop the sessions' runs."""
        for session in self.sessions():
            if same_secret(session.principal.bearer_hash, bearer_hash):
                session.revoke(reason)
            else:
                session.drop_bearer(bearer_hash, reason)

    def recheck(self, bearer_hash: str) -> None:
        """The grants behind a token were changed: close the sockets that were opened with one that is over."""
        for session in self.sessions():
            for socket in session.sockets:
                if same_secret(socket.bearer_hash, bearer_hash):
                    socket.recheck()

    def stop(self) -> None:
        """The process ends."""
        for session in self.sessions():
            session.close("server shutdown", code=1001)
