"""The registry of paired sessions (spec "Paired session", wire core 4).

A session leaves the registry when it is revoked, or through `expire_due`. Between its expiry and that call it is
present but not accepted. An ended session whose stored record could not be erased is a tombstone: after a restart it
would be valid again.
"""

from typing import assert_never

from attrs import evolve

from svc_proto.basics.entropy import Entropy, new_secret, sha256_hex
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.moment import Moment
from svc_proto.machines.grants import (
    CHANNELS,
    RIGHTS,
    Preset,
    build_grants,
    build_rights,
    clamp,
    default_grants,
    expiry_after,
    later_expiry,
)
from svc_proto.machines.oauth_tokens import OAuthTokenPair, OAuthTokens
from svc_proto.machines.paired_session import (
    PREFIX_LENGTH,
    SESSION_TABLE,
    DeviceInfo,
    PairedSession,
    PairingTerms,
    SessionState,
    SessionTrigger,
    parse_device,
    parse_patch,
    session_record,
)
from svc_proto.machines.session_index import SessionIndex
from svc_proto.machines.session_map import SessionMap
from svc_proto.relay_config import SessionPolicy

# Users of the registry need the names of the session module, too.
__all__ = [
    "ACCESS_LIFETIME",
    "DEFAULT_TTL",
    "EXPIRED_PAGE",
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
MAX_CLUSTER_SESSIONS = 300_000  # the limit with several nodes, each of which has all sessions
MIN_PREFIX = 4  # characters, spec "Limits"
EXPIRED_PAGE = 25  # sessions that are removed at once, so that a core takes a few milliseconds for them
ACCESS_LIFETIME = 3_600.0  # s, of an access token
TOKEN_LENGTHS = (36, 64)  # characters: UUIDs of earlier versions (wire core 0.1), which stay valid; 32 random bytes
_TOKEN_TRIES = 8  # attempts to create a token with an unused prefix


class PairedSessionRegistry:
    """Paired sessions by the SHA-256 of their tokens, until they are revoked or removed by `expire_due`."""

    def __init__(self, cap: int = MAX_SESSIONS) -> None:
        self.cap = cap
        self.unread = 0  # stored sessions that are not here yet, at most; for a new one they count towards the cap
        self._sessions = SessionMap()
        self.hashed = self._sessions.find  # returns the session whose token has this hash, alive or due
        self._index = SessionIndex()
        self._accessed: dict[str, PairedSession] = {}  # sessions of OAuth clients, by the SHA-256 of the access token
        self._tombstones: dict[str, PairedSession] = {}  # they count towards the cap

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def total(self) -> int:
        """Number of sessions, with those that are not read yet."""
        return len(self._sessions) + self.unread

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
        audience: str = "",
    ) -> tuple[str, PairedSession]:
        """Create a session; return its token, which is stored nowhere, and the session.

        `ttl` in seconds: None for the default, 0 for never. `max_ttl` is the operator's maximum; None and 0 set none.
        Raise `Refused` 503 `too_many_sessions` at the cap.
        """
        self._check_room(self.unread)
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
            names=device.names,
            transport_hint=transport_hint,
            created_at=now.wall,
            first_seen=now.wall,
            last_seen=now.wall,
            expires_at=expires_at,
            grants=grants,
            given=PairingTerms.until(now.wall, expires_at, grants),
            preset=tuple(channel for channel in preset or () if channel not in RIGHTS),
            knows_key=knows_key,
            key_hash=key_hash,
            rights=build_rights(preset),
            audience=audience,
        )
        self._file(session)
        return token, session

    def lookup(self, token: str, now: Moment) -> PairedSession | None:
        """Return the session of a device's token, if it is accepted now; update `last_seen`."""
        return self.find_by_token_hash(sha256_hex(token), now)

    def find_by_token_hash(self, token_hash: str, now: Moment) -> PairedSession | None:
        """Return the session whose device's token has this hash, if it is accepted now; update `last_seen`."""
        session = self.hashed(token_hash)
        if session is None or not session.is_for_device or not self._is_alive(session, now):
            return None
        session.last_seen = now.wall
        return session

    def find_by_audience(self, token: str, audience: str, now: Moment) -> PairedSession | None:
        """Return the session of a token for this audience, if it is accepted now; update `last_seen`."""
        session = self.hashed(sha256_hex(token))
        if session is None or session.audience != audience or not self._is_alive(session, now):
            return None
        session.last_seen = now.wall
        return session

    # --- OAuth clients (RFC 6749 section 5 and 6) ---

    def issue(
        self, session: PairedSession, client: str, now: Moment, entropy: Entropy, *, used: str = ""
    ) -> tuple[str, str, float]:
        """Issue new tokens for an OAuth client: the access token, and the changing part of the refresh token.

        The number is the lifetime of the access token in seconds. The tokens of the `used` refresh token become invalid
        after its grace; without one all previous tokens do at once.
        """
        access, refresh = new_secret(entropy), new_secret(entropy)
        end = session.expires_at
        lasts = ACCESS_LIFETIME if end is None else min(ACCESS_LIFETIME, end - now.wall)
        self._forget_tokens(session)
        newest = OAuthTokenPair(access=sha256_hex(access), access_until=now.wall + lasts, refresh=sha256_hex(refresh))
        if session.tokens is None or not used:
            session.tokens = OAuthTokens(client=sha256_hex(client), pairs=(newest,))
        else:
            session.tokens = session.tokens.replaced(_changing_part(used), newest, now.wall)
        self._file(session)
        return access, refresh, lasts

    def find_by_access_token(self, token: str, now: Moment) -> PairedSession | None:
        """Return the session of an access token, if it is accepted now; update `last_seen`."""
        access = sha256_hex(token)
        session = self._accessed.get(access)
        tokens = None if session is None else session.tokens
        if session is None or tokens is None or not self._is_alive(session, now):
            return None
        if now.wall >= tokens.access_until(access):
            return None
        session.last_seen = now.wall
        return session

    def find_by_refresh_token(self, token: str, now: Moment) -> tuple[PairedSession | None, bool]:
        """Return the session of a refresh token, and whether the token is accepted: unused, or in its grace."""
        session = self.hashed(sha256_hex(token.partition(".")[0]))
        if session is None or session.tokens is None or not self._is_alive(session, now):
            return None, False
        return session, session.tokens.accepts_refresh(_changing_part(token), now.wall)

    def find_by_api_key(self, key_hash: str) -> PairedSession | None:
        """Return the session whose own key has this hash; None after it was revoked or removed by `expire_due`."""
        return self._index.find_by_key(key_hash)

    def find(self, prefix: str, now: Moment) -> list[PairedSession]:
        """Return the active sessions whose token begins with `prefix`; case-sensitive.

        Only a hash and eight characters of a token are stored. So of a prefix of 9 to 35 characters the first eight are
        compared; a longer one is compared as a whole token, by its hash. Raise `Refused` 400 under 4 characters.
        """
        if len(prefix.strip()) < MIN_PREFIX:
            raise Refused(
                400,
                "invalid_prefix",
                f"the token prefix must have at least {MIN_PREFIX} characters",
                extra={"field": "token_prefix"},
            )
        if len(prefix) < TOKEN_LENGTHS[0]:
            found = self._index.find(prefix[:PREFIX_LENGTH])
        else:
            session = self.hashed(sha256_hex(prefix))
            found = [] if session is None else [session]
        return [session for session in found if self._is_alive(session, now)]

    def page(self, after: str, limit: int, now: Moment) -> tuple[list[PairedSession], str]:
        """Return the active ones of the next `limit` sessions, and the cursor for the page after; empty on the last."""
        found, cursor = self._index.page(after, limit)
        return [session for session in found if self._is_alive(session, now)], cursor

    def active(self, now: Moment) -> list[PairedSession]:
        """Return the active sessions, most recently seen first."""
        alive = [session for session in self._sessions.values() if self._is_alive(session, now)]
        return sorted(alive, key=lambda session: session.last_seen, reverse=True)

    def revoke(self, session: PairedSession, now: Moment) -> None:
        """Revoke an active session: its token is no longer accepted. Raise `LocalProtocolError` if not active."""
        self._is_alive(session, now)
        session.step(SessionTrigger.REVOKE)
        self._sessions.discard(session)
        self._index.remove(session)
        self._forget_tokens(session)

    def remember_revoked(self, session: PairedSession) -> None:
        """Add a tombstone: the stored record of an ended session could not be erased."""
        self._tombstones[session.token_hash] = session

    def forget_revoked(self, session: PairedSession) -> None:
        """Remove a tombstone: the stored record is erased."""
        self._tombstones.pop(session.token_hash, None)

    def tombstones(self, prefix: str = "") -> list[PairedSession]:
        """Return the ended sessions whose records are still to be erased and whose token begins with `prefix`."""
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
        """Change lifetime, grants and rights in place (spec: clock restarts now, grants re-clamped; wire core 4.4 [R]).

        `ttl` sets the expiry to that many seconds from now (0: never), at most `max_ttl`; None leaves it unchanged.
        Channels and rights in `grants` are set, or withdrawn. Of the others, those once set explicitly keep the earlier
        of their own expiry and the session's. The rest of the pairing's grants get the defaults anew, as far as the
        policy permits, or are only clamped under `REDUCE_ONLY`. Raise `Refused` 403 for a change that the policy
        forbids. The policy is None for the operator, without restriction; channels that the operator withdraws count as
        withheld.
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
        rights = {right: right in session.rights for right in RIGHTS}
        for channel, span in (grants or {}).items():
            if channel in RIGHTS:
                if policy is not None and span is not None and not rights[channel]:
                    raise _beyond(policy, f"grants.{channel}", withheld=True)
                rights[channel] = span is not None
                continue
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
        session.rights = tuple(right for right, given_now in rights.items() if given_now)
        session.preset = tuple(name for name in dict.fromkeys((*session.preset, *(grants or ()))) if name not in RIGHTS)
        session.last_seen = now.wall
        self._file(session)

    def rename(self, session: PairedSession, name: str, now: Moment) -> None:
        """Change the device name of an active session. Raise `LocalProtocolError` if it is not active."""
        self._is_alive(session, now)
        session.step(SessionTrigger.PATCH)
        session.device_name = name

    def of_device(self, device_id: str, now: Moment) -> list[PairedSession]:
        """Return the active sessions of a device, oldest first; none for an id in `NO_DEVICE_ID`, such as `unknown`."""
        return [session for session in self._index.of_device(device_id) if self._is_alive(session, now)]

    def expire_due(self, now: Moment, limit: int = EXPIRED_PAGE) -> list[PairedSession]:
        """Remove and return at most `limit` expired sessions: first those marked as expired, then in order of expiry.

        Further expired sessions stay in the registry until a later call, but are not accepted.
        """
        gone = self._sessions.purge(now.wall, limit)
        for session in gone:
            self._index.remove(session)
            self._forget_tokens(session)
            if session.state is SessionState.ACTIVE:
                session.step(SessionTrigger.LIFETIME_ELAPSED)
        return gone

    def next_expiry(self) -> float | None:
        """Return the wall time at which the next session is due: minus infinity if one is marked as expired.

        None if no session expires.
        """
        return self._sessions.next_expiry()

    def restore(self, record: object, now: Moment) -> PairedSession | None:
        """Load a stored session; return None if it has expired. Raise `Refused` for an invalid record or at the cap."""
        return self._add(PairedSession.from_record(record), now)

    def _add(self, session: PairedSession, now: Moment) -> PairedSession | None:
        if not session.is_active(now.wall):
            return None
        if self.hashed(session.token_hash) is None:
            self._check_room()
        self._file(session)
        return session

    def apply_record(self, record: object, now: Moment) -> PairedSession | None:
        """Apply a record that another node has stored: add the session, or update the one that is here.

        Return None if the session here is marked as expired, or if none is here and the record has expired. Raise
        `Refused` for an invalid record or at the cap.
        """
        received = PairedSession.from_record(record)
        session = self.hashed(received.token_hash)
        if session is None:
            return self._add(received, now)
        if session.state is SessionState.EXPIRED:
            return None
        session.step(SessionTrigger.PATCH)
        self._forget_tokens(session)
        session.expires_at, session.grants, session.given = received.expires_at, received.grants, received.given
        session.preset, session.tokens = received.preset, received.tokens
        session.device_name, session.names = received.device_name, received.names
        session.rights, session.audience = received.rights, received.audience
        self._file(session)
        return session

    def hash_groups(self) -> list[str]:
        """Return the distinct first characters of the token hashes of all registered sessions."""
        return self._sessions.group_names()

    def copy_hashes(self, group: str) -> dict[str, None]:
        """Return the token hashes of the registered sessions that begin with the character `group`.

        Expired sessions that were not removed yet are included.
        """
        return self._sessions.copy_hashes(group)

    def _is_alive(self, session: PairedSession, now: Moment) -> bool:
        alive = session.is_active(now.wall)
        if not alive and session.state is SessionState.ACTIVE:
            # Final, even if the operator sets the clock back: the session is due from now on.
            session.step(SessionTrigger.LIFETIME_ELAPSED)
            self._sessions.put(session)
        return alive

    def _check_room(self, unread: int = 0) -> None:
        if len(self._sessions) + len(self._tombstones) + unread >= self.cap:
            raise Refused(503, "too_many_sessions", "there are too many paired sessions; revoke some")

    def _new_token(self, entropy: Entropy) -> str:
        for _ in range(_TOKEN_TRIES):
            token = entropy(32).hex()
            # Users and clients name a session by these eight characters.
            if not self._index.find(token[:PREFIX_LENGTH]):
                return token
        raise LocalProtocolError("the entropy source repeats itself")

    def _file(self, session: PairedSession) -> None:
        replaced = self.hashed(session.token_hash)
        if replaced is not session:
            if replaced is not None:
                self._index.remove(replaced)
            self._index.add(session)
        self._sessions.put(session)
        if session.tokens is not None:
            self._accessed.update((pair.access, session) for pair in session.tokens.pairs)

    def _forget_tokens(self, session: PairedSession) -> None:
        if session.tokens is not None:
            for pair in session.tokens.pairs:
                self._accessed.pop(pair.access, None)


def _changing_part(token: str) -> str:
    """Return the SHA-256 of the part of a refresh token that changes with each use."""
    return sha256_hex(token.partition(".")[2])


def session_expiry(wall: float, ttl: float | None, max_ttl: float | None) -> float | None:
    """Return the expiry of a session that lasts `ttl` seconds from the time `wall`, at most `max_ttl`; None for never.

    A `ttl` of None is the default, 0 is never. A `max_ttl` of None or 0 sets no maximum.
    """
    span = DEFAULT_TTL if ttl is None else ttl
    if max_ttl:
        span = min(span, max_ttl) if span else max_ttl
    return expiry_after(wall, span)


def _named(sessions: list[PairedSession], prefix: str) -> list[PairedSession]:
    if len(prefix) >= TOKEN_LENGTHS[0]:
        token_hash = sha256_hex(prefix)
        return [session for session in sessions if session.token_hash == token_hash]
    return [session for session in sessions if session.token_prefix.startswith(prefix[:PREFIX_LENGTH])]


def _limit(policy: SessionPolicy | None, wall: float, held: float | None, given: float | None) -> float | None:
    """Return the latest expiry that the policy permits for a grant that now expires at `held`; None for no limit.

    `given` is the pairing's duration in s, None if the channel was withheld.
    """
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
