"""Signed-in clients of the dashboard: sessions in cookies, and tickets for WebSockets.

A session is a random token in a cookie, of which the state file has the hash. It lasts for `SESSION_TTL` from its last
recorded use (once in `USE_RESOLUTION`). It ends earlier if it is revoked, if a start finds another password or cannot
read the file, or if `MAX_SESSIONS` is reached and no other was unused for longer. A ticket is for one WebSocket within
`TICKET_TTL`.
"""

import hmac
from collections.abc import Iterator

from attrs import evolve, frozen

from svc_proto.basics import strict_json
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.commands import Level, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.events import Headers

__all__ = ["COOKIE", "FILE", "SESSION_TTL", "TICKET_TTL", "SignInRegistry", "SignInSession", "cookie_token"]

FILE = "dashboard-sessions.json"  # in the state folder
COOKIE = "hermes_session"  # phones carry a cookie of this name between the addresses of one connection
SESSION_TTL = 90 * 86_400.0  # s since the last use
USE_RESOLUTION = 86_400.0  # s after which a further use is stored
TICKET_TTL = 30.0  # s
MAX_SESSIONS = 100  # the one that was used first is dropped
MAX_TICKETS = 1_000  # the oldest is dropped
MAX_TOKEN = 128  # characters
MAX_AGENT = 120  # characters of a client's name
TOKEN_SIZE = 32  # bytes of entropy
PREFIX_SIZE = 16  # characters of a session's id


@frozen(kw_only=True)
class SignInSession:
    """A signed-in client. Times are Unix seconds. Only a prefix of the token's hash leaves the server, as `id`."""

    token_hash: str
    created_at: float
    used_at: float
    agent: str  # as the client names itself
    address: str

    @property
    def id(self) -> str:
        """The identifier of the session in lists."""
        return self.token_hash[:PREFIX_SIZE]

    @property
    def expires_at(self) -> float:
        """The time at which the session ends without a further use."""
        return self.used_at + SESSION_TTL


class SignInRegistry:
    """The sign-in sessions and WebSocket tickets of one dashboard."""

    def __init__(self, password: str) -> None:
        self._password = password
        self._salt = ""
        self._sessions: dict[str, SignInSession] = {}  # by the hash of the token
        self._tickets: ExpiringMap[str, str] = ExpiringMap(MAX_TICKETS)  # hash of a session's token, or empty
        self._stored = True  # the file can be replaced

    def bind(self, engine: Engine) -> None:
        """Store the engine, and create the lock for writing the state file."""
        self._engine = engine
        self._busy = Lock(engine)

    def __iter__(self) -> Iterator[SignInSession]:
        return iter(sorted(self._sessions.values(), key=lambda session: session.used_at, reverse=True))

    def load(self) -> Flow[None]:
        """Read the sessions of earlier starts, without those that are over or were made with another password.

        If the file cannot be read, start without sessions and store none.
        """
        text = yield from read_state(self._engine, FILE)
        if isinstance(text, Failure):
            self._engine.log(Level.WARNING, "sign-ins not read", problem=text.kind.value)
            self._stored = False
            text = None
        state = JsonObject.parse_or_empty(text or "")
        self._salt = state.text("salt")
        if not self._salt or not hmac.compare_digest(state.text("password"), self._fingerprint()):
            self._salt = self._engine.entropy(TOKEN_SIZE).hex()
            return
        for row in state.objects("sessions"):
            session = _read_session(row)
            if session is not None and session.expires_at > self._engine.now.wall:
                self._sessions[session.token_hash] = session

    # --- sessions ---

    def create(self, agent: str, address: str) -> Flow[tuple[str, SignInSession]]:
        """Create a session; return the token for the cookie, and the session.

        At the limit, the session that was not used for the longest time ends.
        """
        engine = self._engine
        token, now = engine.entropy(TOKEN_SIZE).hex(), engine.now.wall
        session = SignInSession(
            token_hash=sha256_hex(token),
            created_at=now,
            used_at=now,
            agent=sanitize_line(agent)[:MAX_AGENT],
            address=address,
        )
        if len(self._sessions) >= MAX_SESSIONS:
            self._end(min(self._sessions.values(), key=lambda each: each.used_at))
        self._sessions[session.token_hash] = session
        yield from self._save()
        return token, session

    def find(self, token: str) -> SignInSession | None:
        """Return the session of a cookie's token; None if it is unknown or expired, which ends it.

        The time of its use is recorded, at most once in `USE_RESOLUTION`.
        """
        found = self._sessions.get(sha256_hex(token)) if token else None
        if found is None:
            return None
        now = self._engine.now.wall
        if found.expires_at <= now:
            self._end(found)
            self._engine.spawn(self._save())
            return None
        if now - found.used_at >= USE_RESOLUTION:
            found = self._sessions[found.token_hash] = evolve(found, used_at=now)
            self._engine.spawn(self._save())
        return found

    def get(self, token_hash: str) -> SignInSession | None:
        """Return a session by the hash of its token; None if unknown."""
        return self._sessions.get(token_hash)

    def revoke(self, identity: str) -> Flow[bool]:
        """End a session by its id, with its requests and WebSockets; False if there is none."""
        found = next((session for session in self._sessions.values() if session.id == identity), None)
        if found is None:
            return False
        self._end(found)
        yield from self._save()
        return True

    # --- tickets ---

    def new_ticket(self, session: SignInSession | None) -> str:
        """Return a ticket for one WebSocket; `session` is None for a client without a session."""
        mono, ticket = self._engine.now.mono, self._engine.entropy(TOKEN_SIZE).hex()
        self._tickets.purge(mono)
        self._tickets.put(sha256_hex(ticket), "" if session is None else session.token_hash, mono + TICKET_TTL)
        return ticket

    def pop_ticket(self, ticket: str) -> str:
        """Use a ticket; return the hash of its session's token, or empty without a session. Raises `Refused` 401."""
        key = sha256_hex(ticket)
        holder = self._tickets.get(key, self._engine.now.mono)
        self._tickets.discard(key)
        if holder is None or (holder and holder not in self._sessions):
            raise Refused(401, "unauthorized", "this ticket is unknown, used or too old: get another one")
        return holder

    # --- helpers ---

    def _end(self, session: SignInSession) -> None:
        del self._sessions[session.token_hash]
        self._engine.revoke_credential(session.token_hash, Refused(401, "unauthorized", "this sign-in is over"))

    def _fingerprint(self) -> str:
        return sha256_hex(f"{self._salt}:{self._password}")

    def _save(self) -> Flow[None]:
        if not self._stored:
            return
        engine = self._engine
        yield from self._busy.acquire()
        try:
            rows = [
                {
                    "token_hash": session.token_hash,
                    "created_at": session.created_at,
                    "used_at": session.used_at,
                    "agent": session.agent,
                    "address": session.address,
                }
                for session in self._sessions.values()
            ]
            state = {"salt": self._salt, "password": self._fingerprint(), "sessions": rows}
            done = yield from run_operation(engine, WriteConfig(engine.new_op(), FILE, strict_json.dumps(state)))
            if isinstance(done, Failure):
                engine.log(Level.WARNING, "sign-ins not stored", problem=done.kind.value)
        finally:
            self._busy.release()


def cookie_token(headers: Headers) -> str:
    """Return the token in the cookie `COOKIE` of a request; empty without one of at most `MAX_TOKEN` characters."""
    for pair in (headers.get(b"cookie") or b"").split(b";"):
        name, _, value = pair.strip().partition(b"=")
        if name == COOKIE.encode("ascii") and len(value) <= MAX_TOKEN:
            return value.decode("latin-1")
    return ""


def _read_session(row: JsonObject) -> SignInSession | None:
    token_hash, created, used = row.text("token_hash"), row.number("created_at"), row.number("used_at")
    if not token_hash or created is None or used is None:
        return None
    return SignInSession(
        token_hash=token_hash,
        created_at=created,
        used_at=used,
        agent=row.text("agent"),
        address=row.text("address"),
    )
