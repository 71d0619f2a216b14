"""The registry of paired sessions (spec "Paired session", wire core 4).

A session leaves the registry by being revoked, or through `expire_due`, which hands every expired one out once so
that its sockets and stored record can go too. Between its expiry and that call it is there but dead. One whose stored
record could not be erased is a tombstone until it is: it would be alive again after a restart.
Whatever is called in whatever order, no grant outlives its session.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import assert_never

from attrs import evolve

from svc_proto.basics.entropy import Entropy, new_secret, new_uuid, secrets_equal, sha256_hex
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.machines.grants import CHANNELS, Preset, build_grants, clamp, default_grants, expiry_after, later_expiry
from svc_proto.machines.paired_session import (
    PREFIX_LENGTH,
    SESSION_TABLE,
    DeviceInfo,
    OAuthTokens,
    PairedSession,
    PairingTerms,
    SessionState,
    SessionTrigger,
    parse_device,
    parse_patch,
    session_record,
)
from svc_proto.relay_config import SessionPolicy

# Whoever works with the registry needs the session's own names too.
__all__ = [
    "ACCESS_LIFETIME",
    "DEFAULT_TTL",
    "MAX_CLUSTER_SESSIONS",
    "MAX_SESSIONS",
    "MIN_PREFIX",
    "SESSION_TABLE",
    "DeviceInfo",
    "PairedSession",
    "SessionState",
    "SessionTrigger",
    "PairedSessionRegistry",
    "parse_device",
    "parse_patch",
    "session_expiry",
    "session_record",
]

DEFAULT_TTL = 2_592_000.0  # s, spec "Limits": 30 days
MAX_SESSIONS = 10_000  # a further one is refused with 503
MAX_CLUSTER_SESSIONS = 300_000  # the same of several nodes, each of which knows all
MIN_PREFIX = 4  # characters, spec "Limits"
ACCESS_LIFETIME = 3_600.0  # s, of an access token
TOKEN_LENGTH = 36  # characters of a UUID, wire core 0.1
_TOKEN_TRIES = 8  # to find a token whose prefix no other session has


class PairedSessionRegistry:
    """All sessions whose tokens are accepted, by the SHA-256 of the token."""

    def __init__(self, cap: int = MAX_SESSIONS) -> None:
        self.cap = cap
        self._sessions: ExpiringMap[str, PairedSession] = ExpiringMap(
            max(cap, MAX_CLUSTER_SESSIONS)
        )  # on the wall clock
        self.hashed = self._sessions.peek  # the session whose token has this hash, alive or due
        self._prefixes: Counter[str] = Counter()
        self._keyed: dict[str, PairedSession] = {}  # those with a key of their own, by its SHA-256
        self._accessed: dict[str, PairedSession] = {}  # those of OAuth clients, by the SHA-256 of the access token
        self._tombstones: dict[str, PairedSession] = {}  # they count towards the cap

    def __len__(self) -> int:
        return len(self._sessions)

    def create(
        self,
        now: Moment,
        entropy: Entropy,
        *,
        ttl: float | None = None,
        preset: Preset | None = None,
        transport_hint: str = "unknown",
        device: DeviceInfo | None = None,
        max_ttl: float | None = None,
        knows_key: bool = False,
        key_hash: str = "",
    ) -> tuple[str, PairedSession]:
        """A new session and its token, which exists nowhere else.

        `ttl` in seconds: None for the default, 0 for never. `max_ttl` is the operator's maximum; None and 0 set
        none. `Refused` 503 `too_many_sessions` at the cap.
        """
        self._check_room()
        token = self._new_token(entropy)
        device = device or DeviceInfo()
        expires_at = session_expiry(now.wall, ttl, max_ttl)
        grants = build_grants(now.wall, expires_at, preset)
        session = PairedSession(
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
            grants=grants,
            given=PairingTerms.until(now.wall, expires_at, grants),
            preset=tuple(preset or ()),
            knows_key=knows_key,
            key_hash=key_hash,
        )
        self._file(session)
        return token, session

    def lookup(self, token: str, now: Moment) -> PairedSession | None:
        """The session of a token, if it is accepted now; moves `last_seen`."""
        return self.find_by_token_hash(sha256_hex(token), now)

    def find_by_token_hash(self, token_hash: str, now: Moment) -> PairedSession | None:
        """The session whose token has this hash, if it is accepted now; moves `last_seen`."""
        session = self._sessions.peek(token_hash)
        if session is None or session.tokens is not None or not self._is_alive(session, now):
            return None
        session.last_seen = now.wall
        return session

    # --- OAuth clients (RFC 6749 section 5 and 6) ---

    def issue(self, session: PairedSession, client: str, now: Moment, entropy: Entropy) -> tuple[str, str, float]:
        """New tokens for an OAuth client: for access, and the part of the refresh token that changes.

        The number is the seconds for which the former is accepted. Those that it had are accepted no more.
        """
        access, refresh = new_secret(entropy), new_secret(entropy)
        end = session.expires_at
        lasts = ACCESS_LIFETIME if end is None else min(ACCESS_LIFETIME, end - now.wall)
        self._forget_tokens(session)
        session.tokens = OAuthTokens(
            client=sha256_hex(client),
            access=sha256_hex(access),
            access_until=now.wall + lasts,
            refresh=sha256_hex(refresh),
        )
        self._file(session)
        return access, refresh, lasts

    def find_by_access_token(self, token: str, now: Moment) -> PairedSession | None:
        """The session of an access token, if it is accepted now; moves `last_seen`."""
        session = self._accessed.get(sha256_hex(token))
        tokens = None if session is None else session.tokens
        if session is None or tokens is None or now.wall >= tokens.access_until or not self._is_alive(session, now):
            return None
        session.last_seen = now.wall
        return session

    def find_by_refresh_token(self, token: str, now: Moment) -> tuple[PairedSession | None, bool]:
        """The session that a refresh token is of, and whether it is the newest: an older one was used before."""
        family, _, part = token.partition(".")
        session = self._sessions.peek(sha256_hex(family))
        if session is None or session.tokens is None or not self._is_alive(session, now):
            return None, False
        return session, secrets_equal(session.tokens.refresh, sha256_hex(part))

    def find_by_api_key(self, key_hash: str) -> PairedSession | None:
        """The session whose own key has this hash; None once it was revoked or has left by `expire_due`."""
        return self._keyed.get(key_hash)

    def find(self, prefix: str, now: Moment) -> list[PairedSession]:
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

    def active(self, now: Moment) -> list[PairedSession]:
        """The active sessions, last seen newest first."""
        alive = [session for session in self._sessions.values() if self._is_alive(session, now)]
        return sorted(alive, key=lambda session: session.last_seen, reverse=True)

    def revoke(self, session: PairedSession, now: Moment) -> None:
        """Accept the token no more. `LocalProtocolError` unless the session is active."""
        self._is_alive(session, now)
        session.step(SessionTrigger.REVOKE)
        self._sessions.discard(session.token_hash)
        self._unfile(session)
        self._keyed.pop(session.key_hash, None)
        self._forget_tokens(session)

    def remember_revoked(self, session: PairedSession) -> None:
        """The stored record of a session that is over could not be erased."""
        self._tombstones[session.token_hash] = session

    def forget_revoked(self, session: PairedSession) -> None:
        """The stored record is gone."""
        self._tombstones.pop(session.token_hash, None)

    def tombstones(self, prefix: str = "") -> list[PairedSession]:
        """The sessions that are over and whose records are still to be erased, those that `find` would have found."""
        return _named(list(self._tombstones.values()), prefix)

    def patch(
        self,
        session: PairedSession,
        now: Moment,
        *,
        ttl: float | None,
        grants: Preset | None,
        max_ttl: float | None = None,
        policy: SessionPolicy | None = SessionPolicy.OPEN,
    ) -> None:
        """Change lifetime and grants in place (spec: clock restarts from now, grants re-clamped; wire core 4.4 [R]).

        `ttl` sets the expiry to that many seconds from now (0: never), at most `max_ttl`; None leaves it. Channels
        in `grants` are set from now, or taken back. Of the others, those once set explicitly keep the earlier of their
        own expiry and the session's; the rest of what the pairing gave gets the defaults anew, and under `REDUCE_ONLY`
        is clamped like them. `Refused` 403 for what the policy does not allow. It is None for the operator, who may do
        anything; what the operator takes back counts as withheld.
        """
        self._is_alive(session, now)
        expires_at = session.expires_at if ttl is None else session_expiry(now.wall, ttl, max_ttl)
        given, held = session.given, session.grants
        limit = _limit(policy, now.wall, session.expires_at, given.ttl)
        if clamp(expires_at, limit) != expires_at:
            raise _beyond(policy, "ttl_seconds")
        limits = {
            channel: _limit(policy, now.wall, session.grants_until(channel), given.grants.get(channel))
            for channel in CHANNELS
        }
        rebuilt = {channel: clamp(expiry, expires_at) for channel, expiry in held.items()}
        if policy is not SessionPolicy.REDUCE_ONLY:
            for channel, expiry in default_grants(now.wall, expires_at).items():
                if channel in given.grants and channel not in session.preset:
                    rebuilt[channel] = clamp(expiry, limits[channel])
        for channel, span in (grants or {}).items():
            rebuilt.pop(channel, None)
            if span is None:
                continue
            rebuilt[channel] = clamp(expiry_after(now.wall, span), expires_at)
            if clamp(rebuilt[channel], limits[channel]) != rebuilt[channel]:
                raise _beyond(policy, f"grants.{channel}", withheld=channel not in given.grants)
        session.step(SessionTrigger.PATCH)
        session.expires_at = expires_at
        session.grants = {channel: rebuilt[channel] for channel in (*CHANNELS, *rebuilt) if channel in rebuilt}
        if policy is None:
            kept = {name: span for name, span in given.grants.items() if (grants or {}).get(name, span) is not None}
            session.given = evolve(given, grants=kept)
        session.preset = tuple(dict.fromkeys((*session.preset, *(grants or ()))))
        session.last_seen = now.wall
        self._file(session)

    def expire_due(self, now: Moment) -> list[PairedSession]:
        """Take out the sessions whose lifetime has elapsed: those seen to be over first, the others as they expire."""
        gone = [session for _, session in self._sessions.purge(now.wall)]
        for session in gone:
            self._unfile(session)
            self._keyed.pop(session.key_hash, None)
            self._forget_tokens(session)
            if session.state is SessionState.ACTIVE:
                session.step(SessionTrigger.LIFETIME_ELAPSED)
        return gone

    def next_expiry(self) -> float | None:
        """When (wall) the next session expires."""
        return self._sessions.next_expiry()

    def restore(self, record: object, now: Moment) -> PairedSession | None:
        """Take a stored session in; None when it has expired meanwhile. `Refused` for a bad record or at the cap."""
        session = PairedSession.from_record(record)
        if not session.is_active(now.wall):
            return None
        if session.token_hash not in self._sessions:
            self._check_room()
        self._file(session)
        return session

    def apply_record(self, record: object, now: Moment) -> PairedSession | None:
        """Take in what another node has stored: a session, or what is different of one that is here.

        None when it has expired, or was seen to have. `Refused` like `restore`.
        """
        heard = PairedSession.from_record(record)
        session = self._sessions.peek(heard.token_hash)
        if session is None:
            return self.restore(record, now)
        if session.state is SessionState.EXPIRED:
            return None
        session.step(SessionTrigger.PATCH)
        self._forget_tokens(session)
        session.expires_at, session.grants, session.given = heard.expires_at, heard.grants, heard.given
        session.preset, session.tokens = heard.preset, heard.tokens
        self._file(session)
        return session

    def all(self) -> list[PairedSession]:
        """Every session that is here, alive or due."""
        return self._sessions.values()

    def _is_alive(self, session: PairedSession, now: Moment) -> bool:
        alive = session.is_active(now.wall)
        if not alive and session.state is SessionState.ACTIVE:
            # One way, even if the operator sets the clock back: from now on it is due at any time.
            session.step(SessionTrigger.LIFETIME_ELAPSED)
            self._sessions.put(session.token_hash, session, -inf)
        return alive

    def _check_room(self) -> None:
        if len(self._sessions) + len(self._tombstones) >= self.cap:
            raise Refused(503, "too_many_sessions", "there are too many paired sessions; revoke some")

    def _new_token(self, entropy: Entropy) -> str:
        for _ in range(_TOKEN_TRIES):
            token = new_uuid(entropy)
            # People and clients name a session by these eight characters.
            if token[:PREFIX_LENGTH] not in self._prefixes:
                return token
        raise LocalProtocolError("the entropy source repeats itself")

    def _file(self, session: PairedSession) -> None:
        if session.token_hash not in self._sessions:
            self._prefixes[session.token_prefix] += 1
        self._sessions.put(session.token_hash, session, session.expires_at)
        if session.key_hash:
            self._keyed[session.key_hash] = session
        if session.tokens is not None:
            self._accessed[session.tokens.access] = session

    def _unfile(self, session: PairedSession) -> None:
        self._prefixes[session.token_prefix] -= 1
        if not self._prefixes[session.token_prefix]:
            del self._prefixes[session.token_prefix]

    def _forget_tokens(self, session: PairedSession) -> None:
        if session.tokens is not None:
            self._accessed.pop(session.tokens.access, None)


def session_expiry(wall: float, ttl: float | None, max_ttl: float | None) -> float | None:
    """When a session ends that is given `ttl` seconds now, None for the default, and `max_ttl` at most."""
    span = DEFAULT_TTL if ttl is None else ttl
    if max_ttl:
        span = min(span, max_ttl) if span else max_ttl
    return expiry_after(wall, span)


def _named(sessions: list[PairedSession], prefix: str) -> list[PairedSession]:
    if len(prefix) >= TOKEN_LENGTH:
        token_hash = sha256_hex(prefix)
        return [session for session in sessions if session.token_hash == token_hash]
    return [session for session in sessions if session.token_prefix.startswith(prefix[:PREFIX_LENGTH])]


def _limit(policy: SessionPolicy | None, wall: float, held: float | None, given: float | None) -> float | None:
    """How late something may end that ends at `held` now. `given`: by the pairing, in s; None if that withheld it."""
    match policy:
        case None:
            return None
        case SessionPolicy.OPEN:
            return held if given is None else None
        case SessionPolicy.AS_PAIRED:
            return held if given is None else later_expiry(held, expiry_after(wall, given))
        case SessionPolicy.REDUCE_ONLY:
            return held
        case _:
            assert_never(policy)


def _beyond(policy: SessionPolicy | None, name: str, *, withheld: bool = False) -> Refused:
    if withheld and policy is not SessionPolicy.REDUCE_ONLY:
        code, text = "withheld", "the pairing withheld this channel: only a program on the relay's own host may give it"
    elif policy is SessionPolicy.AS_PAIRED:
        code, text = "as_paired", "a session may last no longer from now on than its pairing gave"
    else:
        code, text = "reduce_only", "a session may only be shortened here"
    return Refused(403, code, text, extra={"field": name})
