"""MCP sessions over HTTP, which clients name by a session id in each later request.

A session ends by request of its client, after a time without use, when the client's credential is revoked or has lost
its grant, and with the process. If no call is under way, a session may also end to make room for another. Event
streams are stored, within limits, for readers that were disconnected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import cast

from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.engine.core import Engine
from svc_proto.mcp.event_store import EventStore, NotificationStore
from svc_proto.mcp.server_features import RequestHandlers
from svc_proto.mcp.session import McpSession

__all__ = ["HttpSession", "HttpSessionRegistry"]

MAX_SESSIONS = 1024  # sessions; a further one replaces an idle one, or is refused with 503
MAX_PER_PRINCIPAL = 32  # sessions of one caller; the same, with 429
RETRY = (250, 1_250)  # ms; a reader of a stopping server reconnects after a random time between these
IDLE = 1800.0  # s without use after which a session ends
TIMER_PRECISION = 1.0  # s; uses within this time update the expiry once
MAX_STORED_BYTES = 16 * 1024 * 1024  # bytes of finished event streams, of all sessions together
# From this version on clients accept an event without data, which carries only an id.
FIRST_RESUMABLE_VERSION = "2025-11-25"
OWN = 0  # number of the stream of messages outside of requests


class HttpSession:
    """An MCP session over HTTP, begun by a handshake, with the event streams that readers may resume."""

    __slots__ = (
        "_count",
        "_is_stopping",
        "_on_over",
        "_on_told",
        "caller",
        "conversation",
        "identity",
        "logs",
        "notices",
        "used",
    )

    def __init__(
        self,
        engine: Engine,
        answers: RequestHandlers,
        *,
        caller: str,
        identity: str,
        on_told: Callable[[HttpSession, EventStore], None],
        on_over: Callable[[HttpSession], None],
    ) -> None:
        self.notices = NotificationStore(engine, OWN)
        self.conversation = McpSession(engine, answers, self.notices.append, on_idle=self._on_idle)
        self.caller = caller
        self.identity = identity
        self.logs: dict[int, EventStore] = {OWN: self.notices}  # streams that readers may resume, by number
        self._count = OWN
        self._is_stopping = False
        self.used = -inf  # monotonic seconds of the last use
        self._on_told = on_told
        self._on_over = on_over

    @property
    def busy(self) -> bool:
        """Report whether a call is under way, or a reader is connected."""
        return self.conversation.busy or any(log.reader is not None for log in self.logs.values())

    def number(self, log: EventStore) -> bool:
        """Number a stream so that readers may resume it.

        Report whether the session's version allows a first event without data.
        """
        self._count += 1
        log.number = self._count
        self.logs[self._count] = log
        return self.conversation.version >= FIRST_RESUMABLE_VERSION

    def on_stream_ended(self, log: EventStore) -> None:
        """Report the end of a stream to the registry, which stores the stream, within limits, for readers to resume."""
        self._on_told(self, log)

    def stop(self, retry: int) -> None:
        """End the notifications now, whose reader is to reconnect after `retry` ms, and the session when it is idle."""
        self._is_stopping = True
        self.notices.end(retry)
        self.conversation.stop()
        self._on_idle()

    def close(self) -> None:
        """End the session and its streams."""
        self.conversation.close()
        logs, self.logs = self.logs, {}
        for log in logs.values():
            log.end()

    def _on_idle(self) -> None:
        if self._is_stopping and not self.conversation.busy:
            self._on_over(self)


class HttpSessionRegistry:
    """All MCP sessions over HTTP, by id; uses count with a precision of `TIMER_PRECISION`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sessions: ExpiringMap[str, HttpSession] = ExpiringMap(MAX_SESSIONS)
        self._timer = engine.timers.timer(self._expire)
        self._kept: deque[tuple[HttpSession, int, int]] = deque()  # finished streams: session, number and bytes
        self.kept = 0  # bytes of finished streams

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, identity: str) -> bool:
        return identity in self._sessions

    def open(self, caller: str, answers: RequestHandlers) -> HttpSession:
        """Open a session; at a limit, end one without calls for it.

        If all have calls, it raises `Refused` 429 at the client's limit, 503 at the total limit.
        """
        mine = [session for session in self._sessions.values() if session.caller == caller]
        if len(mine) >= MAX_PER_PRINCIPAL:
            self._make_room(mine, Refused(429, "too_many_sessions", f"{MAX_PER_PRINCIPAL} sessions of yours are busy"))
        elif len(self) >= MAX_SESSIONS:
            self._make_room(self._sessions.values(), Refused(503, "too_many_sessions", "all sessions are busy"))
        identity = self._engine.entropy(16).hex()
        session = HttpSession(
            self._engine, answers, caller=caller, identity=identity, on_told=self._store_stream, on_over=self.end
        )
        self._use(session)
        self._watch()
        return session

    def find(self, caller: str, identity: bytes | None) -> HttpSession:
        """Return the client's session of this id, and mark it as used.

        Raises `Refused` 400 without an id, 404 for an unknown one or one of another client.
        """
        if identity is None:
            raise Refused(400, "session_required", "Mcp-Session-Id is missing: initialize gives one")
        session = self._sessions.peek(identity.decode("latin-1"))
        if session is None or session.caller != caller:
            raise Refused(404, "session_not_found", "there is no such session: initialize again")
        self._use(session)
        return session

    def end(self, session: HttpSession) -> None:
        """End a session and remove it."""
        self._sessions.discard(session.identity)
        session.close()
        self._kept = deque(kept for kept in self._kept if kept[0] is not session)
        self.kept = sum(size for _, _, size in self._kept)
        self._watch()

    def close_principal_sessions(self, caller: str | None = None) -> None:
        """End all sessions of a client, or with None all sessions."""
        for session in self._sessions.values():
            if caller in (None, session.caller):
                self.end(session)

    def stop(self) -> None:
        """End all sessions, because the process ends: each after the answers to its requests."""
        least, most = RETRY
        for session in self._sessions.values():
            share = int.from_bytes(self._engine.entropy(2), "big") / 65_536
            session.stop(round(least + (most - least) * share))

    def _make_room(self, among: list[HttpSession], refused: Refused) -> None:
        """End an idle session among these, or else one that has only a reader. Raises `refused` if all have calls."""
        idle = [session for session in among if not session.conversation.busy]
        if not idle:
            raise refused
        self.end(next((session for session in idle if not session.busy), idle[0]))

    def _use(self, session: HttpSession) -> None:
        """Mark the session as used last and extend its lifetime, at most once per `TIMER_PRECISION`."""
        now = self._engine.now.mono
        if now >= session.used + TIMER_PRECISION:
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
        self._timer.schedule(self._sessions.next_expiry())

    def _store_stream(self, session: HttpSession, log: EventStore) -> None:
        size = log.size
        self._kept.append((session, cast("int", log.number), size))
        self.kept += size
        while self.kept > MAX_STORED_BYTES or len(self._kept) > MAX_SESSIONS:
            old, number, gone = self._kept.popleft()
            self.kept -= gone
            old.logs.pop(number, None)
