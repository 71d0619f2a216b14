"""Reference model of permitted states, by requests and responses, restarts, and the log's records of refused writes.

Times are monotonic seconds of the simulation, except those whose name contains `wall`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from attrs import define, field

from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.grant_model import GrantTerms, RequestedTerms, WallClockModel

__all__ = [
    "AddressBlockModel", "AuthAttempt", "ChatModel", "CodeModel", "CommandModel", "SessionModel", "TurnModel",
    "WallClockModel", "check_grants"
]  # fmt: skip

CODE_LIFETIME = 600.0  # s
MAX_FAILURES = 5
WINDOW = 60.0  # s
BLOCK_DURATION = 300.0  # s
COMMAND_TIME = 30.0  # s
STORE_FAILED = ("session_db_unavailable", "session_not_found", "store_failed", "store_unavailable")
NOTE = "\n\n["  # before the reason for which an answer was stopped
REPEATING = ("long:", "murmur:")  # beginnings of questions whose answer repeats one text, which ends the turn
SLACK = 10.0  # s that an answer may be on its way, retransmissions included


def end_of(expiry: object) -> float:
    """Convert an expiry in the relay's JSON, a number or null for never, to a float. Raise `Violation` for others."""
    if expiry is None:
        return inf
    if not isinstance(expiry, int | float):
        violated(Invariant.STATUS, f"no expiry: {expiry!r:.200}")
    return float(expiry)


@define(eq=False)
class CodeModel:
    """Pairing code whose registration was requested."""

    word: str
    sent: float
    told: float | None = None  # when its registration was answered
    lost: bool = False  # the relay that stored it has ended
    uses: int = 0
    shown: int = 0  # number of requests that may have looked it up
    wish: RequestedTerms = field(factory=RequestedTerms)  # requested by the operator

    def must_count(self, sent: float, now: float) -> bool:
        """Report whether an `auth` sent at `sent`, the first with this code, had to be accepted."""
        known = self.told is not None and self.told <= sent and not self.lost
        return known and now < self.sent + CODE_LIFETIME and not self.uses and self.shown == 1

    def use(self, sent: float, now: float) -> None:
        """Record an `auth.ok` for an `auth` that was sent at `sent`, and check that the code was unused and valid."""
        self.uses += 1
        if self.uses > 1:
            violated(Invariant.CODE_ONCE, f"code {self.word} was accepted {self.uses} times")
        latest = self.told if self.told is not None else self.sent + WINDOW
        if sent > latest + CODE_LIFETIME:
            violated(Invariant.CODE_ONCE, f"code {self.word} was accepted {now - self.sent:.0f} s after registration")


@define(eq=False)
class SessionModel:
    """Paired session: its token, and the terms that were reported."""

    token: str
    owner: str  # name of the host that received it
    device: str
    surface: str
    terms: list[GrantTerms | None] = field(factory=list)  # all possible terms; None: unknown terms
    afterwards: list[GrantTerms | None] = field(factory=list)  # if not empty: all possible terms after a restart
    past: list[GrantTerms | None] = field(factory=list)  # all terms that were ever possible
    explicit: dict[str, None] | None = field(factory=dict)  # channels with explicit expiry; None: not known
    withheld: tuple[str, ...] = ()  # channels, by the pairing
    stored: bool = True  # as far as the log shows
    revoked: float | None = None  # when the revocation was answered
    # When it was revoked until the relay restarts, since the store refused the revocation.
    suspended: float | None = None
    revoking: bool = False  # revocation requested, perhaps done
    changed: float = -inf  # when other terms were reported last
    patches: int = 0  # requests under way
    patched: int = 0  # requests ever sent

    @property
    def prefix(self) -> str:
        """Return the token's prefix, the session's name in reports."""
        return self.token[:8]

    @property
    def sure(self) -> GrantTerms | None:
        """Return the session's terms, or None if they are uncertain."""
        return self.terms[0] if len(self.terms) == 1 and not self.patches else None

    def learn(self, members: Mapping[str, object]) -> GrantTerms:
        """Parse terms from a response of the relay, and check that they are consistent."""
        expires_at, grants = members.get("expires_at"), members.get("grants")
        if not isinstance(grants, dict):
            violated(Invariant.STATUS, f"no grants in {members!r:.200}")
        check_grants(grants, expires_at, self.prefix)
        return GrantTerms(end_of(expires_at), {channel: end_of(expiry) for channel, expiry in grants.items()})

    def ended(self, wall: WallClockModel, now: float) -> float | None:
        """Return since when the token has been invalid until `now`; None when the token may be valid."""
        ends = [end for end in (self.revoked, self.suspended) if end is not None]
        expiries = [inf if terms is None else terms.expires_at for terms in self.terms]
        if expiries and (latest := max(expiries)) < inf and (over := wall.over_since(latest, now)) is not None:
            ends.append(over)
        return min(ends, default=None)

    def is_dead(self, wall: WallClockModel, since: float, until: float) -> bool:
        """Report whether the token was invalid during the whole span."""
        if any(end is not None and end <= since for end in (self.revoked, self.suspended)):
            return True
        earliest = wall.earliest(since, until)
        return all(terms is not None and terms.expires_at < earliest for terms in self.terms)

    def lacks(self, channel: str, wall: WallClockModel, since: float, until: float) -> bool:
        """Report whether the session cannot have had a live grant at any time of the span."""
        if self.is_dead(wall, since, until):
            return True
        earliest = wall.earliest(since, until)
        possible = self.terms if since > self.changed else [*self.past, *self.terms]
        return all(terms is not None and terms.until(channel) < earliest for terms in possible)

    def surely_lives(self, latest_wall: float) -> bool:
        """Report whether the relay must accept the token."""
        return (
            self.stored
            and not self.revoking
            and all(terms is not None and terms.expires_at > latest_wall + SLACK for terms in self.terms)
        )

    def surely_holds(self, channel: str, latest_wall: float) -> bool:
        """Report whether the relay must accept the token where this grant is required."""
        return self.surely_lives(latest_wall) and _all_reach(self.terms, channel, latest_wall)

    def surely_held(self, channel: str, latest_wall: float) -> bool:
        """Report whether the relay must accept the token, and this grant must have lasted since the pairing."""
        return self.surely_lives(latest_wall) and _all_reach(self.past, channel, latest_wall)


def _all_reach(terms: list[GrantTerms | None], channel: str, latest_wall: float) -> bool:
    return all(each is not None and each.until(channel) > latest_wall + SLACK for each in terms)


def check_grants(grants: Mapping[str, object], expires_at: object, prefix: str) -> None:
    """Check that no grant outlives its session."""
    limit = end_of(expires_at)
    for channel, expiry in grants.items():
        if end_of(expiry) > limit:
            violated(Invariant.GRANT_CLAMPED, f"{channel} of {prefix} until {expiry}, the session until {expires_at}")


@define(eq=False)
class CommandModel:
    """Device Control call: its caller, the phones that received it, and the response."""

    mark: str
    caller: SessionModel
    sent: float
    selector: str = ""  # the selected phone: the name of its host
    secret: str = ""
    reached: dict[str, float] = field(factory=dict)  # name of the phone, when
    answered: dict[str, float] = field(factory=dict)  # name of the phone, when its answer was sent
    request_id: str = ""
    outcome: tuple[float, str] | None = None  # when its caller got the response, and which decision it is
    reference: bool = False  # the reference phone was online when it was sent
    unheeded: bool = False  # no phone will answer
    patched: int = 0  # `patched` of its caller, when it was sent


@define(eq=False)
class AuthAttempt:
    """Authentication that is pending or failed; without a response it may have failed."""

    sent: float
    told: float | None = None


@define
class AddressBlockModel:
    """Model of the addresses that must be blocked, and that may be, after failed authentications."""

    attempts: dict[str, list[AuthAttempt]] = field(factory=dict)
    successes: dict[str, list[tuple[float, float]]] = field(factory=dict)
    cleared: list[tuple[float, float]] = field(factory=list)  # spans within which all failures may have been cleared
    surely_cleared: list[tuple[float, float]] = field(factory=list)  # spans within which they were

    def attempt(self, address: str, now: float) -> AuthAttempt:
        """Record that a credential is sent from an address, and return the attempt."""
        attempt = AuthAttempt(now)
        self.attempts.setdefault(address, []).append(attempt)
        return attempt

    def succeeded(self, address: str, attempt: AuthAttempt, told: float) -> None:
        """Record that a credential was accepted; the attempt is no failure."""
        self.attempts[address].remove(attempt)
        self.successes.setdefault(address, []).append((attempt.sent, told))

    def forget(self, since: float, until: float, *, sure: bool = True) -> None:
        """Record a time span within which a registration or a restart has cleared the failures of all addresses.

        `sure` is False for a registration that may never have been executed.
        """
        self.cleared.append((since, until))
        if sure:
            self.surely_cleared.append((since, until))

    def check_open(self, address: str, opened: float, now: float) -> None:
        """Check that an accepted WebSocket, requested at `opened`, comes from an address that need not be blocked."""
        sure = [attempt for attempt in self.attempts.get(address, []) if attempt.told is not None]
        sure.sort(key=_describe)
        for last in range(MAX_FAILURES - 1, len(sure)):
            five = sure[last - MAX_FAILURES + 1 : last + 1]
            told, first = _describe(five[-1]), min(attempt.sent for attempt in five)
            if told - first >= WINDOW or told > opened or now >= five[-1].sent + BLOCK_DURATION:
                continue
            if self._touched(self.cleared, first, now) or self._touched(self.successes.get(address, []), first, told):
                continue
            violated(Invariant.BLOCKED, f"{address} got 101 {opened - told:.1f} s after 5 failures in a minute")

    def check_refused(self, address: str, opened: float, now: float) -> None:
        """Check that a WebSocket that was refused with 429 comes from an address that may be blocked."""
        since = opened - BLOCK_DURATION - WINDOW - SLACK
        # Failures that a finished registration has cleared do not count any more.
        cleared = max((begun for begun, until in self.surely_cleared if until <= opened), default=-inf)
        attempts = self.attempts.get(address, [])
        possible = [each for each in attempts if each.sent <= now and _describe(each) >= max(since, cleared)]
        # Each attempt failed between request and response: windows begin at the earliest response.
        most = max((_within(possible, _describe(each)) for each in possible), default=0)
        if most < MAX_FAILURES:
            violated(Invariant.NOT_BLOCKED, f"{address} got 429 after {most} failures within a minute")

    @staticmethod
    def _touched(spans: list[tuple[float, float]], since: float, until: float) -> bool:
        return any(begun <= until and ended >= since for begun, ended in spans)


def _within(attempts: list[AuthAttempt], until: float) -> int:
    return sum(_describe(each) >= until and each.sent < until + WINDOW for each in attempts)


def _describe(attempt: AuthAttempt) -> float:
    return inf if attempt.told is None else attempt.told


@define(eq=False)
class TurnModel:
    """Turn of a chat as its reader observed it."""

    chat: ChatModel
    text: str
    run_id: str = ""
    message_id: str = ""
    said: list[str] = field(factory=list)
    events: list[str] = field(factory=list)
    content: str | None = None  # of `assistant.completed`
    why: str = ""  # error code
    started: list[str] = field(factory=list)  # tool calls, by id
    called: list[str] = field(factory=list)  # finished tool calls, by id
    interrupted: bool = False  # the turn was stopped

    @property
    def ended_well(self) -> bool:
        """Report whether the stream was read to its end, without an error of the store."""
        return self.events[-1:] == ["done"] and self.why not in STORE_FAILED

    def may_store(self, results: list[str]) -> bool:
        """Report whether the stored tool results, by id of their call, agree with the calls that were reported.

        A turn may be stopped while the store answers for the result of a started call. That result is stored, and the
        end of the call is not reported: after a stop, the end of the turn is the next event.
        """
        unreported = [call for call in self.started if call not in self.called] if self.interrupted else []
        return sorted(call for call in results if call not in unreported) == sorted(self.called) and all(
            results.count(call) <= 1 for call in unreported
        )

    def has_told(self, content: str) -> bool:
        """Report whether the deltas that were read agree with `content`.

        A shortened content of a long answer agrees if the deltas begin and end like it.
        """
        told = "".join(self.said)
        beginning, _, note = content.rpartition(NOTE)
        cut = beginning and self.text.startswith(REPEATING) and told.startswith(beginning) and told.endswith(note)
        return told == content or bool(cut)


@define(eq=False)
class ChatModel:
    """A chat session of the API."""

    id: str
    turns: list[TurnModel] = field(factory=list)
    deleting: bool = False
    deleted: bool = False  # the deletion was answered
    runs: int = 0  # runs that were ever requested
    long: bool = False  # the chat has a long answer

    def allowed(self, manner: str) -> str:
        """Return `manner`, but `plain` for each `long` after the first in this chat."""
        if manner != "long":
            return manner
        manner, self.long = ("plain" if self.long else manner), True
        return manner
