"""The slow, obvious reference: what may be so, going by what was asked and what was answered, and nothing else.

It looks at no server. Where an answer was lost it keeps both possibilities, so what it calls wrong is wrong.
Times are monotonic seconds of the world, except those whose name says `wall`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NoReturn

from attrs import define, field

from fuzz.simulation.invariants import Invariant, Violation
from fuzz.simulation.models.grant_model import GrantTerms, RequestedTerms, WallClockModel

__all__ = [
    "AddressBlockModel",
    "AuthAttempt",
    "ChatModel",
    "CodeModel",
    "CommandModel",
    "SessionModel",
    "TurnModel",
    "WallClockModel",
    "check_grants",
    "violated",
]

CODE_LIFETIME = 600.0  # s
MAX_FAILURES = 5
WINDOW = 60.0  # s
BLOCK_DURATION = 300.0  # s
COMMAND_TIME = 30.0  # s
STORE_FAILED = ("session_db_unavailable", "session_not_found", "store_failed", "store_unavailable")
SLACK = 10.0  # s that an answer may be on its way, retransmissions included


def violated(invariant: Invariant, detail: str) -> NoReturn:
    """It does not hold."""
    raise Violation(invariant, detail)


def end_of(expiry: object) -> float:
    """An expiry as the relay tells it, in JSON: a number, or null for never."""
    if expiry is None:
        return inf
    if not isinstance(expiry, int | float):
        violated(Invariant.STATUS, f"no expiry: {expiry!r:.200}")
    return float(expiry)


@define(eq=False)
class CodeModel:
    """A registered code, perhaps."""

    word: str
    sent: float
    told: float | None = None  # when its registration was answered
    lost: bool = False  # the relay that knew it is gone
    uses: int = 0
    shown: int = 0  # times that it may have been looked up
    wish: RequestedTerms = field(factory=RequestedTerms)  # the operator's

    def must_count(self, sent: float, now: float) -> bool:
        """Whether an `auth` that was sent then, the first with it, had to be accepted."""
        known = self.told is not None and self.told <= sent and not self.lost
        return known and now < self.sent + CODE_LIFETIME and not self.uses and self.shown == 1

    def use(self, sent: float, now: float) -> None:
        """`auth.ok` came for an `auth` that was sent at that time."""
        self.uses += 1
        if self.uses > 1:
            violated(Invariant.CODE_ONCE, f"code {self.word} was accepted {self.uses} times")
        latest = self.told if self.told is not None else self.sent + WINDOW
        if sent > latest + CODE_LIFETIME:
            violated(Invariant.CODE_ONCE, f"code {self.word} was accepted {now - self.sent:.0f} s after registration")


@define(eq=False)
class SessionModel:
    """A paired session: its token, and what it may hold as far as was told."""

    token: str
    owner: str  # name of the host that was given it
    device: str
    surface: str
    terms: list[GrantTerms | None] = field(factory=list)  # all that may be so; None: anything
    afterwards: list[GrantTerms | None] = field(factory=list)  # if there are any: all that may be so after a restart
    past: list[GrantTerms | None] = field(factory=list)  # all that may ever have been so
    explicit: dict[str, None] | None = field(factory=dict)  # channels that somebody has set; None: not known
    withheld: tuple[str, ...] = ()  # channels, by the pairing
    stored: bool = True  # as far as the log says
    revoked: float | None = None  # when that was answered
    suspended: float | None = None  # when it was revoked until the relay restarts, since the store did not take it
    revoking: bool = False  # asked for, perhaps done
    changed: float = -inf  # when other terms were told last
    patches: int = 0  # under way
    patched: int = 0  # ever begun

    @property
    def prefix(self) -> str:
        """What it is named by."""
        return self.token[:8]

    @property
    def sure(self) -> GrantTerms | None:
        """Its terms, if they are known."""
        return self.terms[0] if len(self.terms) == 1 and not self.patches else None

    def learn(self, members: Mapping[str, object]) -> GrantTerms:
        """Read terms as the relay told them, and check them against each other."""
        expires_at, grants = members.get("expires_at"), members.get("grants")
        if not isinstance(grants, dict):
            violated(Invariant.STATUS, f"no grants in {members!r:.200}")
        check_grants(grants, expires_at, self.prefix)
        return GrantTerms(end_of(expires_at), {channel: end_of(expiry) for channel, expiry in grants.items()})

    def ended(self, wall: WallClockModel, now: float) -> float | None:
        """From when on its token could not be accepted, until now; None when it may be."""
        ends = [end for end in (self.revoked, self.suspended) if end is not None]
        expiries = [inf if terms is None else terms.expires_at for terms in self.terms]
        if expiries and (latest := max(expiries)) < inf and (over := wall.over_since(latest, now)) is not None:
            ends.append(over)
        return min(ends, default=None)

    def is_dead(self, wall: WallClockModel, since: float, until: float) -> bool:
        """Whether its token could not be accepted at any time of a span."""
        if any(end is not None and end <= since for end in (self.revoked, self.suspended)):
            return True
        earliest = wall.earliest(since, until)
        return all(terms is not None and terms.expires_at < earliest for terms in self.terms)

    def lacks(self, channel: str, wall: WallClockModel, since: float, until: float) -> bool:
        """Whether it could not hold a live grant at any time of a span."""
        if self.is_dead(wall, since, until):
            return True
        earliest = wall.earliest(since, until)
        possible = self.terms if since > self.changed else [*self.past, *self.terms]
        return all(terms is not None and terms.until(channel) < earliest for terms in possible)

    def surely_lives(self, latest_wall: float) -> bool:
        """Whether its token must be accepted."""
        return (
            self.stored
            and not self.revoking
            and all(terms is not None and terms.expires_at > latest_wall + SLACK for terms in self.terms)
        )

    def surely_holds(self, channel: str, latest_wall: float) -> bool:
        """Whether it must be let in where that grant is wanted."""
        return self.surely_lives(latest_wall) and _all_reach(self.terms, channel, latest_wall)

    def surely_held(self, channel: str, latest_wall: float) -> bool:
        """Whether that has been so from its beginning."""
        return self.surely_lives(latest_wall) and _all_reach(self.past, channel, latest_wall)


def _all_reach(terms: list[GrantTerms | None], channel: str, latest_wall: float) -> bool:
    return all(each is not None and each.until(channel) > latest_wall + SLACK for each in terms)


def check_grants(grants: Mapping[str, object], expires_at: object, prefix: str) -> None:
    """No grant outlives its session."""
    limit = end_of(expires_at)
    for channel, expiry in grants.items():
        if end_of(expiry) > limit:
            violated(Invariant.GRANT_CLAMPED, f"{channel} of {prefix} until {expiry}, the session until {expires_at}")


@define(eq=False)
class CommandModel:
    """A Device Control call: who made it, what reached which phone, what was answered."""

    mark: str
    caller: SessionModel
    sent: float
    selector: str = ""  # which phone is meant: the name of its host
    secret: str = ""
    reached: dict[str, float] = field(factory=dict)  # name of the phone, when
    answered: dict[str, float] = field(factory=dict)  # name of the phone, when its answer went out
    request_id: str = ""
    outcome: tuple[float, str] | None = None  # when its caller was told, and what decision that is
    reference: bool = False  # the reference phone was online when it was sent
    unheeded: bool = False  # no phone will answer it
    patched: int = 0  # of its caller, when it was sent


@define(eq=False)
class AuthAttempt:
    """An authentication under way, then one that failed; one whose answer never came may have failed."""

    sent: float
    told: float | None = None


@define
class AddressBlockModel:
    """Who may be blocked, and who must be: failed authentications by address, and what clears them."""

    attempts: dict[str, list[AuthAttempt]] = field(factory=dict)
    successes: dict[str, list[tuple[float, float]]] = field(factory=dict)
    cleared: list[tuple[float, float]] = field(factory=list)  # spans within which everything may have been forgotten
    surely_cleared: list[tuple[float, float]] = field(factory=list)  # those within which it was

    def attempt(self, address: str, now: float) -> AuthAttempt:
        """A credential is sent."""
        attempt = AuthAttempt(now)
        self.attempts.setdefault(address, []).append(attempt)
        return attempt

    def did_not_fail(self, address: str, attempt: AuthAttempt) -> None:
        """It was refused for a reason that does not count."""
        self.attempts[address].remove(attempt)

    def succeeded(self, address: str, attempt: AuthAttempt, told: float) -> None:
        """It was accepted."""
        self.attempts[address].remove(attempt)
        self.successes.setdefault(address, []).append((attempt.sent, told))

    def forget(self, since: float, until: float, *, sure: bool = True) -> None:
        """A registration or a restart. `sure` is False for a registration that may never have been carried out."""
        self.cleared.append((since, until))
        if sure:
            self.surely_cleared.append((since, until))

    def check_open(self, address: str, opened: float, now: float) -> None:
        """A WebSocket was accepted; the request was sent at `opened`."""
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
        """A WebSocket was refused with 429."""
        since = opened - BLOCK_DURATION - WINDOW - SLACK
        # What a finished registration has cleared does not count any more.
        cleared = max((begun for begun, until in self.surely_cleared if until <= opened), default=-inf)
        attempts = self.attempts.get(address, [])
        possible = [each for each in attempts if each.sent <= now and _describe(each) >= max(since, cleared)]
        # Each failed at some time between the two: those of a window that begins when one was told at the earliest.
        most = max((_within(possible, _describe(each)) for each in possible), default=0)
        if most < MAX_FAILURES:
            violated(Invariant.NOT_BLOCKED, f"{address} got 429 after {most} failures within a minute")

    @staticmethod
    def _touched(spans: list[tuple[float, float]], since: float, until: float) -> bool:
        return any(begun <= until and ended >= since for begun, ended in spans)


def _within(attempts: list[AuthAttempt], until: float) -> int:
    """How many may have failed in the minute that ends a minute after that time."""
    return sum(_describe(each) >= until and each.sent < until + WINDOW for each in attempts)


def _describe(attempt: AuthAttempt) -> float:
    return inf if attempt.told is None else attempt.told


@define(eq=False)
class TurnModel:
    """A turn of a chat as its reader saw it."""

    chat: ChatModel
    text: str
    run_id: str = ""
    message_id: str = ""
    said: list[str] = field(factory=list)
    events: list[str] = field(factory=list)
    content: str | None = None  # of `assistant.completed`
    why: str = ""  # the code of its failure
    called: list[str] = field(factory=list)  # tools that came to an end, by the ids of the calls

    @property
    def ended_well(self) -> bool:
        """Whether it was told to the end, and the store had taken everything then."""
        return self.events[-1:] == ["done"] and self.why not in STORE_FAILED


@define(eq=False)
class ChatModel:
    """A chat session of the API."""

    id: str
    turns: list[TurnModel] = field(factory=list)
    deleting: bool = False
    deleted: bool = False  # that was answered
    runs: int = 0  # that were ever asked for
    long: bool = False  # there is a long answer in it

    def allowed(self, manner: str) -> str:
        """One long answer is enough: all of a chat is told in one write."""
        if manner != "long":
            return manner
        manner, self.long = ("plain" if self.long else manner), True
        return manner
