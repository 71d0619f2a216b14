"""Expected terms of a session: the calculations of wire core 4.1 and 4.4, by the wall clock of the relay's host.

Times are epoch seconds, spans are seconds. `inf` stands for never, which is 0 in a request and null in a response.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf
from typing import TypeAlias

from attrs import define, field, frozen

DAY = 86_400.0
DEFAULT_TTL = 30 * DAY  # s, spec "Limits": session token default lifetime
VOICE = ("voice:config", "voice:stt", "voice:tts", "voice:realtime")
# s, wire core 4.1; the other channels last as long as the session
SPANS = {"chat": inf, "terminal": 30 * DAY, "bridge": 7 * DAY, "tui": 30 * DAY, **dict.fromkeys(VOICE, inf)}
TOLERANCE = 0.001  # s, of sums of floating-point numbers


Spans: TypeAlias = Mapping[str, float | None]
"""Requested grants: their seconds by channel, 0 for ever; None: withheld, or taken back."""


@define
class WallClockModel:
    """Readings of the wall clock of the relay's host through time; sessions expire by this clock."""

    steps: list[tuple[float, float]] = field(factory=list)  # (when, epoch seconds minus monotonic from then on)

    def spans(self, since: float, until: float) -> list[tuple[float, float]]:
        """Return the readings in a span of time: the first and the last of each stretch without a step."""
        ends = [*(when for when, _ in self.steps[1:]), inf]
        return [
            (max(when, since) + offset, min(end, until) + offset)
            for (when, offset), end in zip(self.steps, ends, strict=True)
            if end >= since and when <= until
        ]

    def earliest(self, since: float, until: float) -> float:
        """Return the lowest reading in a span of time; infinity if the clock has none there."""
        return min((low for low, _ in self.spans(since, until)), default=inf)

    def highest(self, now: float) -> float:
        """Return a limit that no reading so far exceeds: the time `now` by the highest offset that the clock had."""
        return max(offset for _, offset in self.steps) + now

    def over_since(self, expiry: float, now: float) -> float | None:
        """Return the time since which the clock has always read more than `expiry`; None when it does not."""
        since, end = None, now
        for when, offset in reversed(self.steps):
            if end + offset <= expiry:
                break
            since = max(when, expiry - offset)
            if since > when:
                break
            end = when
        return since


@frozen
class GrantPolicy:
    """Limits that the operator sets for sessions: the longest lifetime, and whether devices may only reduce terms."""

    max_ttl: float | None = None
    reduce_only: bool = False


OPEN = GrantPolicy()


@frozen
class RequestedTerms:
    """Requested terms of a session; None where nothing was requested."""

    ttl: float | None = None
    grants: Spans | None = None

    @property
    def members(self) -> dict[str, object]:
        """Return the members of the request body."""
        members: dict[str, object] = {}
        if self.grants is not None:
            members["grants"] = {channel: False if span is None else span for channel, span in self.grants.items()}
        return members if self.ttl is None else {**members, "ttl_seconds": self.ttl}

    def or_else(self, other: RequestedTerms) -> RequestedTerms:
        """Return these terms; a lifetime or grants that they do not request are those of `other`."""
        return RequestedTerms(
            other.ttl if self.ttl is None else self.ttl, other.grants if self.grants is None else self.grants
        )


NOTHING = RequestedTerms()


@frozen
class GrantTerms:
    """Expiry of a session and of each grant."""

    expires_at: float
    grants: Mapping[str, float]

    def until(self, channel: str) -> float:
        """Return the time when a grant ends; minus infinity without this grant."""
        return min(self.expires_at, self.grants.get(channel, -inf))

    def is_within(self, other: GrantTerms) -> bool:
        """Report whether session and grants end no later than in the other terms."""
        return self.expires_at <= other.expires_at and all(
            end <= other.until(channel) for channel, end in self.grants.items()
        )


def paired(wish: RequestedTerms, policy: GrantPolicy, wall: float) -> GrantTerms:
    """Return the terms of a session that is paired at the wall-clock time `wall` with the requested terms."""
    expires_at = _expiry(wall, DEFAULT_TTL if wish.ttl is None else wish.ttl, policy)
    return GrantTerms(expires_at, _with_wish(_defaults(wall, expires_at), wall, expires_at, wish))


def patched(
    before: GrantTerms, explicit: Collection[str], wish: RequestedTerms, policy: GrantPolicy, wall: float
) -> GrantTerms:
    """Return the terms after a change at the wall-clock time `wall`.

    `explicit` are the channels with an explicit expiry.
    """
    expires_at = before.expires_at if wish.ttl is None else _expiry(wall, wish.ttl, policy)
    kept = {channel: min(end, expires_at) for channel, end in before.grants.items()}
    defaults = {} if policy.reduce_only else _defaults(wall, expires_at)
    grants = {**kept, **{channel: end for channel, end in defaults.items() if channel not in explicit}}
    return GrantTerms(expires_at, _with_wish(grants, wall, expires_at, wish))


def refusal(
    before: GrantTerms, withheld: Collection[str], wish: RequestedTerms, policy: GrantPolicy, wall: float
) -> str:
    """Return the error code of a session's change of its own terms; empty if the change is permitted.

    `withheld` are the channels that only the operator grants.
    """
    end = before.expires_at if wish.ttl is None else _expiry(wall, wish.ttl, policy)
    if policy.reduce_only and end > before.expires_at:
        return "reduce_only"
    for channel, span in (wish.grants or {}).items():
        is_longer = span is not None and min(wall + (span or inf), end) > before.grants.get(channel, -inf)
        if is_longer and (policy.reduce_only or channel in withheld):
            return "reduce_only" if policy.reduce_only else "withheld"
    return ""


def fits(told: GrantTerms, due: Callable[[float], GrantTerms], readings: Iterable[tuple[float, float]]) -> bool:
    """Report whether the terms `told` are possible for one of the spans `readings` of wall-clock times.

    They are if they end no sooner than those due at the first time of a span, and no later than those due at its last.
    """
    return any(_is_between(told, due(low), due(high)) for low, high in readings)


def _is_between(told: GrantTerms, low: GrantTerms, high: GrantTerms) -> bool:
    if not told.grants.keys() == low.grants.keys() == high.grants.keys():
        return False
    rows = [(told.expires_at, low.expires_at, high.expires_at)]
    rows += [(end, low.grants[channel], high.grants[channel]) for channel, end in told.grants.items()]
    return all(least - TOLERANCE <= end <= most + TOLERANCE for end, least, most in rows)


def _expiry(wall: float, ttl: float, policy: GrantPolicy) -> float:
    if policy.max_ttl:
        ttl = min(ttl or inf, policy.max_ttl)
    return wall + (ttl or inf)


def _defaults(wall: float, expires_at: float) -> dict[str, float]:
    return {
        channel: expires_at if expires_at == inf else min(expires_at, wall + span) for channel, span in SPANS.items()
    }


def _with_wish(grants: Mapping[str, float], wall: float, expires_at: float, wish: RequestedTerms) -> dict[str, float]:
    wished = wish.grants or {}
    named = {channel: min(expires_at, wall + (span or inf)) for channel, span in wished.items() if span is not None}
    return {**{channel: end for channel, end in grants.items() if channel not in wished}, **named}
