"""The registry of paired sessions (spec "Paired session", wire core 4).

A session leaves the registry by being revoked, or through `expire_due`, which hands every expired one out once so
that its sockets and stored record can go too. Between its expiry and that call it is there but dead. One whose stored
record could not be erased is a tombstone until it is: it would be alive again after a restart.
Whatever is called in whatever order, no grant outlives its session.
"""

from __future__ import annotations

from collections.abc import Mapping

from svc_proto.basics.entropy import Entropy, new_uuid, sha256_hex
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.expiring import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.basics.validate import invalid
from svc_proto.machines.grants import CHANNELS, MAX_GRANTS, build_grants, clamp, default_grants, expiry_after
from svc_proto.machines.session import (
    PREFIX_LENGTH,
    SESSION_TABLE,
    DeviceInfo,
    Session,
    SessionState,
    SessionTrigger,
    parse_device,
    parse_patch,
    session_record,
)

# Whoever works with the registry needs the session's own names too.
__all__ = [
    "DEFAULT_TTL",
    "MAX_SESSIONS",
    "MIN_PREFIX",
    "SESSION_TABLE",
    "DeviceInfo",
    "Session",
    "SessionState",
    "SessionTrigger",
    "Sessions",
    "parse_device",
    "parse_patch",
    "session_record",
]

DEFAULT_TTL = 2_592_000.0  # s, spec "Limits": 30 days
MAX_SESSIONS = 10_000  # a further one is refused with 503
MIN_PREFIX = 4  # characters, spec "Limits"
TOKEN_LENGTH = 36  # characters of a UUID, wire core 0.1
_TOKEN_TRIES = 8  # to find a token whose prefix no other session has


class Sessions:
    """All sessions whose tokens are accepted, by the SHA-256 of the token."""

    def __init__(self, cap: int = MAX_SESSIONS) -> None:
        self._cap = cap
        self._sessions: ExpiringMap[str, Session] = ExpiringMap(cap)  # on the wall clock
        self._tombstones: dict[str, Session] = {}  # they count towards the cap

    def __len__(self) -> int:
        return len(self._sessions)

    def create(
        self,
        now: Moment,
        entropy: Entropy,
        *,
        ttl: float | None = None,
        preset: Mapping[str, float] | None = None,
        transport_hint: str = "unknown",
        device: DeviceInfo | None = None,
        max_ttl: float | None = None,
    ) -> tuple[str, Session]:
        """A new session and its token, which exists nowhere else.

        `ttl` in seconds: None for the default, 0 for never. `max_ttl` is the operator's maximum; None and 0 set
        none. `preset` has seconds per channel. `Refused` 503 `too_many_sessions` at the cap.
        """
        self._check_room()
        token = self._new_token(entropy)
        device = device or DeviceInfo()
        expires_at = _expiry(now.wall, DEFAULT_TTL if ttl is None else ttl, max_ttl)
        session = Session(
            token_hash=sha256_hex(token),
            token_prefix=token[:PREFIX_LENGTH],
            device_name=device.name,
            device_id=device.id,
            device_model=device.model,
            device_platform=device.platform,
            client_surface=device.surface,
            device_form_factor=device.form_factor,
            transport_hint=transport_hint,
            created_at=now.wall,
            first_seen=now.wall,
            last_seen=now.wall,
            expires_at=expires_at,
            grants=build_grants(now.wall, expires_at, preset),
            preset=tuple(preset or ()),
        )
        self._file(session)
        return token, session

    def lookup(self, token: str, now: Moment) -> Session | None:
        """The session of a token, if it is accepted now; moves `last_seen`."""
        session = self._sessions.peek(sha256_hex(token))
        if session is None or not self._is_alive(session, now):
            return None
        session.last_seen = now.wall
        return session

    def find(self, prefix: str, now: Moment) -> list[Session]:
        """The active sessions whose token begins with `prefix`; case counts.

        Only a hash and eight characters of a token are known. So of a prefix of 9 to 35 characters the first
        eight are compared, and one of 36, a whole token, is compared by hash. `Refused` 400 under 4 characters.
        """
        if len(prefix.strip()) < MIN_PREFIX:
            raise Refused(
                400,
                "invalid_prefix",
                f"the token prefix must have at least {MIN_PREFIX} characters",
                extra={"field": "token_prefix"},
            )
        return [session for session in _named(self._sessions.values(), prefix) if self._is_alive(session, now)]

    def active(self, now: Moment) -> list[Session]:
        """The active sessions, last seen newest first."""
        alive = [session for session in self._sessions.values() if self._is_alive(session, now)]
        return sorted(alive, key=lambda session: session.last_seen, reverse=True)

    def revoke(self, session: Session, now: Moment) -> None:
        """Accept the token no more. `LocalProtocolError` unless the session is active."""
        self._is_alive(session, now)
        session.step(SessionTrigger.REVOKE)
        self._sessions.discard(session.token_hash)

    def bury(self, session: Session) -> None:
        """The stored record of a session that is over could not be erased."""
        self._tombstones[session.token_hash] = session

    def erased(self, session: Session) -> None:
        """The stored record is gone."""
        self._tombstones.pop(session.token_hash, None)

    def tombstones(self, prefix: str = "") -> list[Session]:
        """The sessions that are over and whose records are still to be erased, those that `find` would have found."""
        return _named(list(self._tombstones.values()), prefix)

    def patch(
        self,
        session: Session,
        now: Moment,
        *,
        ttl: float | None,
        grants: Mapping[str, float] | None,
        max_ttl: float | None = None,
        reduce_only: bool = False,
    ) -> None:
        """Change lifetime and grants in place (spec: clock restarts from now, grants re-clamped; wire core 4.4 [R]).

        `ttl` sets the expiry to that many seconds from now (0: never), at most `max_ttl`; None leaves it. Channels
        in `grants` are set from now. Of the others, those once set explicitly keep the earlier of their own expiry
        and the session's, and the rest get the defaults anew. With `reduce_only` nothing may end later than before:
        `Refused` 403 `reduce_only` if what is asked would, and unnamed channels are only ever clamped.
        """
        self._is_alive(session, now)
        expires_at = session.expires_at if ttl is None else _expiry(now.wall, ttl, max_ttl)
        asked = build_grants(now.wall, expires_at, grants)
        named = grants or {}
        kept = session.grants if reduce_only else {channel: session.grants[channel] for channel in session.preset}
        rebuilt = {} if reduce_only else default_grants(now.wall, expires_at)
        rebuilt.update({channel: clamp(expiry, expires_at) for channel, expiry in kept.items()})
        rebuilt.update({channel: asked[channel] for channel in named})
        if len(rebuilt) > len(CHANNELS) + MAX_GRANTS:
            raise invalid("grants", f"at most {MAX_GRANTS} channels beside the usual ones")
        if reduce_only:
            _check_reduced(session, expires_at, {channel: rebuilt[channel] for channel in named})
        session.step(SessionTrigger.PATCH)
        session.expires_at = expires_at
        session.grants = rebuilt
        session.preset = tuple(dict.fromkeys((*session.preset, *named)))
        session.last_seen = now.wall
        self._file(session)

    def expire_due(self, now: Moment) -> list[Session]:
        """Take out the sessions whose lifetime has elapsed, in order of expiry."""
        gone = [session for _, session in self._sessions.purge(now.wall)]
        for session in gone:
            if session.state is SessionState.ACTIVE:
                session.step(SessionTrigger.LIFETIME_ELAPSED)
        return gone

    def next_expiry(self) -> float | None:
        """When (wall) the next session expires."""
        return self._sessions.next_expiry()

    def restore(self, record: object, now: Moment) -> Session | None:
        """Take a stored session in; None when it has expired meanwhile. `Refused` for a bad record or at the cap."""
        session = Session.from_record(record)
        if not session.is_active(now.wall):
            return None
        if session.token_hash not in self._sessions:
            self._check_room()
        self._file(session)
        return session

    def _is_alive(self, session: Session, now: Moment) -> bool:
        alive = session.is_active(now.wall)
        if not alive and session.state is SessionState.ACTIVE:
            # One way, even if the operator sets the clock back.
            session.step(SessionTrigger.LIFETIME_ELAPSED)
        return alive

    def _check_room(self) -> None:
        if len(self._sessions) + len(self._tombstones) >= self._cap:
            raise Refused(503, "too_many_sessions", "there are too many paired sessions; revoke some")

    def _new_token(self, entropy: Entropy) -> str:
        prefixes = [session.token_prefix for session in self._sessions.values()]
        for _ in range(_TOKEN_TRIES):
            token = new_uuid(entropy)
            # People and clients name a session by these eight characters.
            if token[:PREFIX_LENGTH] not in prefixes:
                return token
        raise LocalProtocolError("the entropy source repeats itself")

    def _file(self, session: Session) -> None:
        self._sessions.put(session.token_hash, session, session.expires_at)


def _named(sessions: list[Session], prefix: str) -> list[Session]:
    if len(prefix) >= TOKEN_LENGTH:
        token_hash = sha256_hex(prefix)
        return [session for session in sessions if session.token_hash == token_hash]
    return [session for session in sessions if session.token_prefix.startswith(prefix[:PREFIX_LENGTH])]


def _expiry(wall: float, ttl: float, max_ttl: float | None) -> float | None:
    if max_ttl:
        ttl = min(ttl, max_ttl) if ttl else max_ttl
    return expiry_after(wall, ttl)


def _check_reduced(session: Session, expires_at: float | None, named: Mapping[str, float | None]) -> None:
    if clamp(expires_at, session.expires_at) != expires_at:
        raise Refused(403, "reduce_only", "the session may only be shortened here", extra={"field": "ttl_seconds"})
    for channel, expiry in named.items():
        if channel not in session.grants or clamp(expiry, session.grants[channel]) != expiry:
            raise Refused(403, "reduce_only", "grants may only be shortened here", extra={"field": f"grants.{channel}"})
