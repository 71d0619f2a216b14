"""The slow, obvious reference: what may be so, going by what was asked and what was answered, and nothing else.

It looks at no server. Where an answer was lost it keeps both possibilities, so what it calls wrong is wrong.
Times are monotonic seconds of the world, except those whose name says `wall`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NoReturn

from attrs import define, field, frozen

from fuzz.invariants import Invariant, Violation

__all__ = ["Addresses", "Attempt", "Chat", "Code", "Command", "Session", "Turn", "Wall", "violated", "within"]

CODE_LIFETIME = 600.0  # s
MAX_FAILURES = 5
WINDOW = 60.0  # s
BLOCK_FOR = 300.0  # s
COMMAND_TIME = 30.0  # s
SLACK = 10.0  # s that an answer may be on its way, retransmissions included


def violated(invariant: Invariant, detail: str) -> NoReturn:
    """It does not hold."""
    raise Violation(invariant, detail)


def within(expiry: object, limit: object) -> bool:
    """Whether one expiry is no later than another; None is never."""
    return _end(expiry) <= _end(limit)


def _end(expiry: object) -> float:
    """An expiry as the relay tells it, in JSON: a number, or null for never."""
    if expiry is None:
        return inf
    if not isinstance(expiry, int | float):
        violated(Invariant.STATUS, f"no expiry: {expiry!r:.200}")
    return float(expiry)


@define
class Wall:
    """The home's wall clock through time: it is what sessions live by."""

    steps: list[tuple[float, float]] = field(factory=list)  # (when, epoch seconds minus monotonic from then on)

    def earliest(self, since: float, until: float) -> float:
        """The lowest reading in a span of time."""
        lowest = inf
        for place, (when, offset) in enumerate(self.steps):
            end = self.steps[place + 1][0] if place + 1 < len(self.steps) else inf
            if end >= since and when <= until:
                lowest = min(lowest, max(when, since) + offset)
        return lowest


@define(eq=False)
class Code:
    """A registered code, perhaps."""

    word: str
    sent: float
    told: float | None = None  # when its registration was answered
    lost: bool = False  # the answer never came: it may have been carried out, until shortly after
    uses: int = 0
    ttl: float | None = None
    grants: Mapping[str, object] | None = None

    def use(self, sent: float, now: float) -> None:
        """`auth.ok` came for an `auth` that was sent at that time."""
        self.uses += 1
        if self.uses > 1:
            violated(Invariant.CODE_ONCE, f"code {self.word} was accepted {self.uses} times")
        latest = self.told if self.told is not None else self.sent + WINDOW
        if sent > latest + CODE_LIFETIME:
            violated(Invariant.CODE_ONCE, f"code {self.word} was accepted {now - self.sent:.0f} s after registration")


@frozen
class Terms:
    """What a session may be allowed: wall times, None for never."""

    expires_at: float | None
    grants: Mapping[str, object]

    def until(self, channel: str) -> float:
        """When a grant is over in any case."""
        if channel not in self.grants:
            return -inf
        ends = (self.expires_at, self.grants[channel])
        return min(_end(end) for end in ends)


@define(eq=False)
class Session:
    """A paired session: its token, and what it may hold as far as was told."""

    token: str
    owner: str  # name of the host that was given it
    device: str
    surface: str
    terms: list[Terms | None] = field(factory=list)  # all that may be so; None: anything
    revoked: float | None = None  # when that was answered
    revoking: bool = False  # asked for, perhaps done
    patches: int = 0  # under way
    patched: int = 0  # ever begun

    @property
    def prefix(self) -> str:
        """What it is named by."""
        return self.token[:8]

    def learn(self, members: Mapping[str, object]) -> Terms:
        """Read terms as the relay told them, and check them against each other."""
        expires_at, grants = members.get("expires_at"), members.get("grants")
        if not isinstance(grants, dict):
            violated(Invariant.STATUS, f"no grants in {members!r:.200}")
        check_grants(grants, expires_at, self.prefix)
        return Terms(None if expires_at is None else _end(expires_at), dict(grants))

    def is_dead(self, wall: Wall, since: float, until: float) -> bool:
        """Whether its token could not be accepted at any time of a span."""
        if self.revoked is not None and self.revoked <= since:
            return True
        earliest = wall.earliest(since, until)
        return all(
            terms is not None and terms.expires_at is not None and terms.expires_at < earliest for terms in self.terms
        )

    def lacks(self, channel: str, wall: Wall, since: float, until: float) -> bool:
        """Whether it could not hold a live grant at any time of a span."""
        if self.is_dead(wall, since, until):
            return True
        earliest = wall.earliest(since, until)
        return all(terms is not None and terms.until(channel) < earliest for terms in self.terms)

    def surely_lives(self, latest_wall: float) -> bool:
        """Whether its token must be accepted."""
        return not self.revoking and all(
            terms is not None and (terms.expires_at is None or terms.expires_at > latest_wall + SLACK)
            for terms in self.terms
        )

    def surely_holds(self, channel: str, latest_wall: float) -> bool:
        """Whether it must be let in where that grant is wanted."""
        return self.surely_lives(latest_wall) and all(
            terms is not None and terms.until(channel) > latest_wall + SLACK for terms in self.terms
        )


def check_grants(grants: Mapping[str, object], expires_at: object, prefix: str) -> None:
    """No grant outlives its session."""
    for channel, expiry in grants.items():
        if not within(expiry, expires_at):
            violated(Invariant.GRANT_CLAMPED, f"{channel} of {prefix} until {expiry}, the session until {expires_at}")


@define(eq=False)
class Command:
    """A Device Control call: who made it, what reached which phone, what was answered."""

    mark: str
    caller: Session
    sent: float
    secret: str = ""
    reached: dict[str, float] = field(factory=dict)  # name of the phone, when
    answered: dict[str, float] = field(factory=dict)  # name of the phone, when its answer went out
    request_id: str = ""


@define(eq=False)
class Attempt:
    """An authentication under way, then one that failed; one whose answer never came may have failed."""

    sent: float
    told: float | None = None


@define
class Addresses:
    """Who may be blocked, and who must be: failed authentications by address, and what clears them."""

    attempts: dict[str, list[Attempt]] = field(factory=dict)
    successes: dict[str, list[tuple[float, float]]] = field(factory=dict)
    cleared: list[tuple[float, float]] = field(factory=list)  # spans within which everything may have been forgotten
    surely_cleared: list[tuple[float, float]] = field(factory=list)  # those within which it was

    def attempt(self, address: str, now: float) -> Attempt:
        """A credential is sent."""
        attempt = Attempt(now)
        self.attempts.setdefault(address, []).append(attempt)
        return attempt

    def did_not_fail(self, address: str, attempt: Attempt) -> None:
        """It was refused for a reason that does not count."""
        self.attempts[address].remove(attempt)

    def succeeded(self, address: str, attempt: Attempt, told: float) -> None:
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
        sure.sort(key=_told)
        for last in range(MAX_FAILURES - 1, len(sure)):
            five = sure[last - MAX_FAILURES + 1 : last + 1]
            told, first = _told(five[-1]), min(attempt.sent for attempt in five)
            if told - first >= WINDOW or told > opened or now >= five[-1].sent + BLOCK_FOR:
                continue
            if self._touched(self.cleared, first, now) or self._touched(self.successes.get(address, []), first, told):
                continue
            violated(Invariant.BLOCKED, f"{address} got 101 {opened - told:.1f} s after 5 failures in a minute")

    def check_refused(self, address: str, opened: float, now: float) -> None:
        """A WebSocket was refused with 429."""
        since = opened - BLOCK_FOR - WINDOW - SLACK
        # What a finished registration has cleared does not count any more.
        cleared = max((begun for begun, until in self.surely_cleared if until <= opened), default=-inf)
        attempts = self.attempts.get(address, [])
        possible = [each for each in attempts if each.sent <= now and _told(each) >= max(since, cleared)]
        if len(possible) < MAX_FAILURES:
            violated(Invariant.NOT_BLOCKED, f"{address} got 429 after {len(possible)} failures")

    @staticmethod
    def _touched(spans: list[tuple[float, float]], since: float, until: float) -> bool:
        return any(begun <= until and ended >= since for begun, ended in spans)


def _told(attempt: Attempt) -> float:
    return inf if attempt.told is None else attempt.told


@define(eq=False)
class Turn:
    """A turn of a chat as its reader saw it."""

    chat: Chat
    text: str
    run_id: str = ""
    message_id: str = ""
    said: list[str] = field(factory=list)
    events: list[str] = field(factory=list)
    content: str | None = None  # of `assistant.completed`
    failed: bool = False


@define(eq=False)
class Chat:
    """A chat session of the API."""

    id: str
    turns: list[Turn] = field(factory=list)
    deleting: bool = False
