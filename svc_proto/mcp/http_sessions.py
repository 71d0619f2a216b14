"""Sessions over HTTP: conversations that their callers come back to by a number.

A session ends when its caller says so, when nobody has used it for a while, with what let its caller in, or, if no call
is under way, to make room for another. What was told as events is kept for readers who were cut off, in bounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.mcp.event_store import EventStore, NotificationStore
from svc_proto.mcp.session import McpSession

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.mcp.server_features import RequestHandlers

__all__ = ["HttpSession", "HttpSessionRegistry"]

MAX_SESSIONS = 1024  # sessions; a further one replaces an idle one, or is refused with 503
MAX_PER_PRINCIPAL = 32  # sessions of one caller; the same, with 429
IDLE = 1800.0  # s after which a session ends
TIMER_PRECISION = 1.0  # s within which one use is like another
MAX_STORED_BYTES = 16 * 1024 * 1024  # bytes of answers that were told as events, of all sessions together
FIRST_RESUMABLE_VERSION = (
    "2025-11-25"  # from this version on clients take an event without data, which only has a number
)
OWN = 0  # number of the stream of what a server says by itself


class HttpSession:
    """A conversation with the handshake."""

    __slots__ = ("_count", "_on_told", "caller", "conversation", "identity", "logs", "notices", "used")

    def __init__(
        self,
        engine: Engine,
        answers: RequestHandlers,
        *,
        caller: str,
        identity: str,
        on_told: Callable[[HttpSession, EventStore], None],
    ) -> None:
        self.notices = NotificationStore(engine, OWN)
        self.conversation = McpSession(engine, answers, self.notices.append)
        self.caller = caller
        self.identity = identity
        self.logs: dict[int, EventStore] = {OWN: self.notices}  # which readers may come back to
        self._count = OWN
        self.used = 0.0  # monotonic seconds
        self._on_told = on_told

    @property
    def busy(self) -> bool:
        """Whether something is under way, or somebody listens."""
        return self.conversation.busy or any(log.reader is not None for log in self.logs.values())

    def number(self, log: EventStore) -> bool:
        """It is told as events from now on, to which readers may come back; whether the first has a number only."""
        self._count += 1
        log.number = self._count
        self.logs[self._count] = log
        return self.conversation.version >= FIRST_RESUMABLE_VERSION

    def on_stream_ended(self, log: EventStore) -> None:
        """All was said in it."""
        self._on_told(self, log)

    def close(self) -> None:
        """End the conversation, and the streams that readers may come back to."""
        self.conversation.close()
        logs, self.logs = self.logs, {}
        for log in logs.values():
            log.end()


class HttpSessionRegistry:
    """All of them, those that were not used for longest first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: ExpiringMap[str, HttpSession] = ExpiringMap(MAX_SESSIONS)
        self._timer = engine.timers.timer(self._expire)
        self._kept: deque[tuple[HttpSession, int, int]] = deque()  # session, number of the stream, bytes
        self.kept = 0  # bytes of them

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, identity: str) -> bool:
        return identity in self._sessions

    def open(self, caller: str, answers: RequestHandlers) -> HttpSession:
        """A new one. `Refused` 429 where its caller has too many that are busy, 503 where all have."""
        mine = [session for session in self._sessions.values() if session.caller == caller]
        if len(mine) >= MAX_PER_PRINCIPAL:
            self._make_room(mine, Refused(429, "too_many_sessions", f"{MAX_PER_PRINCIPAL} sessions of yours are busy"))
        elif len(self) >= MAX_SESSIONS:
            self._make_room(self._sessions.values(), Refused(503, "too_many_sessions", "all sessions are busy"))
        identity = self._engine.entropy(16).hex()
        session = HttpSession(self._engine, answers, caller=caller, identity=identity, on_told=self._store_stream)
        self._use(session)
        self._watch()
        return session

    def find(self, caller: str, identity: bytes | None) -> HttpSession:
        """That of this caller with that number. `Refused` 400 without one, 404 where there is none."""
        if identity is None:
            raise Refused(400, "session_required", "Mcp-Session-Id is missing: initialize gives one")
        session = self._sessions.peek(identity.decode("latin-1"))
        if session is None or session.caller != caller:
            raise Refused(404, "session_not_found", "there is no such session: initialize again")
        self._use(session)
        return session

    def end(self, session: HttpSession) -> None:
        """End a session, and forget it."""
        self._sessions.discard(session.identity)
        session.close()
        self._kept = deque(kept for kept in self._kept if kept[0] is not session)
        self.kept = sum(size for _, _, size in self._kept)
        self._watch()

    def close_principal_sessions(self, caller: str | None = None) -> None:
        """All of a caller, or of everybody."""
        for session in self._sessions.values():
            if caller in (None, session.caller):
                self.end(session)

    def _make_room(self, among: list[HttpSession], refused: Refused) -> None:
        """Whoever only listens is idle, too, if nobody else is."""
        idle = [session for session in among if not session.conversation.busy]
        if not idle:
            raise refused
        self.end(next((session for session in idle if not session.busy), idle[0]))

    def _use(self, session: HttpSession) -> None:
        """It is the one that was used last, to the second."""
        now = self._engine.now.mono
        if now >= session.used + TIMER_PRECISION or session.identity not in self._sessions:
            session.used = now
            self._sessions.put(session.identity, session, now + IDLE)

    def _expire(self) -> None:
        for _, session in self._sessions.purge(self._engine.now.mono):
            if session.busy:
                self._use(session)
            else:
                self.end(session)
        self._watch()

    def _watch(self) -> None:
        when = self._sessions.next_expiry()
        if when is None:
            self._timer.cancel()
        else:
            self._timer.set(when)

    def _store_stream(self, session: HttpSession, log: EventStore) -> None:
        size = log.size
        self._kept.append((session, cast("int", log.number), size))
        self.kept += size
        while self.kept > MAX_STORED_BYTES or len(self._kept) > MAX_SESSIONS:
            old, number, gone = self._kept.popleft()
            self.kept -= gone
            old.logs.pop(number, None)
