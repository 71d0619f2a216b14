"""Paired sessions by the hash of their tokens, with their expiries on the wall clock.

Sessions are in sixteen groups by the first character of the hash, since the growth of one large dictionary takes long.
"""

from heapq import heapify, heappop, heappush
from math import inf

from svc_proto.machines.paired_session import PairedSession, SessionState

__all__ = ["SessionMap"]

_SLACK = 64  # stale expiries of a group tolerated besides one for each session


class _Group:
    """Sessions of one group, by hash."""

    __slots__ = ("_expiries", "sessions")

    def __init__(self) -> None:
        self.sessions: dict[str, PairedSession] = {}
        self._expiries: list[tuple[float, str]] = []  # heap of expiries and hashes, also of replaced expiries

    def put(self, session: PairedSession) -> None:
        """Add a session, or update its expiry."""
        self.sessions[session.token_hash] = session
        expiry = _expiry_of(session)
        if expiry < inf:
            heappush(self._expiries, (expiry, session.token_hash))
        if len(self._expiries) > 2 * len(self.sessions) + _SLACK:
            alive = self.sessions.values()
            self._expiries = [(_expiry_of(each), each.token_hash) for each in alive if _expiry_of(each) < inf]
            heapify(self._expiries)

    def first(self) -> PairedSession | None:
        """Return the session that expires first; None if none expires."""
        while self._expiries:
            expiry, token_hash = self._expiries[0]
            session = self.sessions.get(token_hash)
            if session is not None and _expiry_of(session) == expiry:
                return session
            heappop(self._expiries)
        return None


class SessionMap:
    """Map of sessions. A session is due at its expiry, and at once when it is marked as expired."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def find(self, token_hash: str) -> PairedSession | None:
        """Return the session whose token has this hash, alive or due."""
        group = self._groups.get(token_hash[:1])
        return None if group is None else group.sessions.get(token_hash)

    def put(self, session: PairedSession) -> None:
        """Add a session, or update the expiry of one that is here."""
        group = self._groups.get(session.token_hash[:1])
        if group is None:
            group = self._groups[session.token_hash[:1]] = _Group()
        self._count += session.token_hash not in group.sessions
        group.put(session)

    def discard(self, session: PairedSession) -> None:
        """Remove a session from the map, if it is there."""
        group = self._groups.get(session.token_hash[:1])
        if group is not None and group.sessions.pop(session.token_hash, None) is not None:
            self._count -= 1
            if not group.sessions:
                del self._groups[session.token_hash[:1]]

    def values(self) -> list[PairedSession]:
        """Return all sessions, due ones included."""
        return [session for group in self._groups.values() for session in group.sessions.values()]

    def group_names(self) -> list[str]:
        """Return the names of the groups that have sessions: the first characters of their hashes."""
        return list(self._groups)

    def copy_hashes(self, name: str) -> dict[str, None]:
        """Return the token hashes of one group, those of due sessions included."""
        group = self._groups.get(name)
        return {} if group is None else dict.fromkeys(group.sessions)

    def purge(self, wall: float, limit: int) -> list[PairedSession]:
        """Remove and return at most `limit` due sessions, in the order of expiry."""
        due: list[PairedSession] = []
        while len(due) < limit and (session := self._first()) is not None and _expiry_of(session) <= wall:
            self.discard(session)
            due.append(session)
        return due

    def next_expiry(self) -> float | None:
        """Return the earliest expiry, minus infinity for a session marked as expired; None if none expires."""
        session = self._first()
        return None if session is None else _expiry_of(session)

    def _first(self) -> PairedSession | None:
        """Return the session that expires first; None if none expires."""
        found = [session for group in self._groups.values() if (session := group.first()) is not None]
        return min(found, key=_expiry_of, default=None)


def _expiry_of(session: PairedSession) -> float:
    """Return when the session is due (epoch s): infinite for never, and minus infinity if marked as expired."""
    if session.state is SessionState.EXPIRED:
        return -inf
    return inf if session.expires_at is None else session.expires_at
