"""Grants: permissions of a session by channel, each with its own expiry (spec "Grants", wire core 4.1).

An expiry is wall time in epoch seconds, or None for never. A channel without an entry is not granted: it was withheld,
or withdrawn. A preset has seconds from now, 0 for never, and None for a withheld channel: `false` on the wire. A grant
never outlives its session: `default_grants` and `build_grants` clamp each one to the session's expiry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import invalid, object_, seconds
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import Right

__all__ = [
    "AUDIENCES",
    "CHANNELS",
    "FILES",
    "MANAGE",
    "NOTIFICATIONS",
    "RIGHTS",
    "VOICE_CHANNELS",
    "Preset",
    "build_grants",
    "build_rights",
    "clamp",
    "clamp_all",
    "default_grants",
    "expiry_after",
    "is_granted",
    "is_live",
    "later_expiry",
    "parse_requested_grants",
    "parse_grants",
]

VOICE_CHANNELS = ("voice:config", "voice:stt", "voice:tts", "voice:realtime")
CHANNELS = ("chat", "terminal", "bridge", "tui", *VOICE_CHANNELS)  # spec "Grants", in that order
Preset = Mapping[str, float | None]
# Rights beside the channels. The wire has no member for them, so `grants` there has none; they last as the session.
MANAGE: Final = "manage"  # other sessions, settings, and approvals that outlive one call
FILES: Final = "files"  # files of the host by path, uploads, the clipboard inbox
NOTIFICATIONS: Final = "notifications"  # the buffer of notifications: post and read
RIGHTS: tuple[Right, ...] = (MANAGE, FILES, NOTIFICATIONS)
AUDIENCES = ("mcp",)  # a token with an audience opens nothing else

_DAY = 86_400.0  # s
# Seconds, wire core 4.1; the others last as long as the session.
_DEFAULT_SPANS: dict[str, float] = {
    "terminal": 30 * _DAY,
    "tui": 30 * _DAY,
    "bridge": 7 * _DAY,
}
_SHOWN = 64  # characters of an unknown channel in the refusal


def default_grants(now: float, expires_at: float | None) -> dict[str, float | None]:
    """Return the default grants of a new session with this expiry.

    A session that never expires has grants that never expire.
    """
    if expires_at is None:
        return dict.fromkeys(CHANNELS)
    return {
        channel: expires_at if (span := _DEFAULT_SPANS.get(channel)) is None else min(expires_at, now + span)
        for channel in CHANNELS
    }


def build_grants(now: float, expires_at: float | None, preset: Preset | None) -> dict[str, float | None]:
    """Return the grants of a new session: the defaults, with the channels of `preset` set, or left out if withheld."""
    grants = default_grants(now, expires_at)
    for channel, span in (preset or {}).items():
        if channel in RIGHTS:
            continue
        if span is None:
            grants.pop(channel, None)
        else:
            grants[channel] = clamp(expiry_after(now, span), expires_at)
    return grants


def build_rights(preset: Preset | None) -> tuple[Right, ...]:
    """Return the rights of a new session: as the preset names them, else those that its channels need.

    A session without a withheld channel is the owner's own device: it gets all rights that the preset does not
    withhold.
    """
    given = preset or {}
    withheld = {channel for channel in CHANNELS if given.get(channel, 0.0) is None}
    implied = {
        MANAGE: not withheld,
        FILES: not withheld.issuperset(("chat", "bridge", "terminal", "tui")),
        NOTIFICATIONS: "bridge" not in withheld,
    }
    rights = tuple(right for right in RIGHTS if (given[right] is not None if right in given else implied[right]))
    return RIGHTS if rights == RIGHTS else rights  # nearly all sessions share one value


def clamp(expiry: float | None, session_expiry: float | None) -> float | None:
    """Return the earlier of two expiries; None is later than any."""
    if expiry is None:
        return session_expiry
    return expiry if session_expiry is None else min(session_expiry, expiry)  # of equal ones the session's own object


def later_expiry(one: float | None, other: float | None) -> float | None:
    """Return the later of two expiries; None, which means never, is later than any."""
    return None if one is None or other is None else max(one, other)


def clamp_all(grants: Mapping[str, float | None], session_expiry: float | None) -> dict[str, float | None]:
    """Return each grant clamped to the session's expiry."""
    if session_expiry is None:
        return dict(grants)
    # `clamp`, inlined for the sessions that a start reads.
    return {
        channel: session_expiry if expiry is None or expiry >= session_expiry else expiry
        for channel, expiry in grants.items()
    }


def expiry_after(now: float, span: float) -> float | None:
    """Return the expiry `span` seconds from now; 0 means never, on the wire and here (wire core 0.1)."""
    return None if span == 0 else now + span


def is_live(expiry: float | None, now: float) -> bool:
    """Report whether an expiry is in the future, or None for never."""
    return expiry is None or now < expiry


def is_granted(grants: Mapping[str, float | None], channel: str, now: float) -> bool:
    """Report whether the channel is granted now."""
    return channel in grants and is_live(grants[channel], now)


def parse_grants(value: object, field: str = "grants", *, more: tuple[str, ...] = ()) -> dict[str, float | None]:
    """Parse the grants of a request, by names of `CHANNELS` or `more`: seconds, or None for `false`.

    Raise `Refused` 400 for any other name or value.
    """
    known = (*CHANNELS, *more)
    return {channel: _span(channel, span, field, known) for channel, span in object_(value, field).items()}


def parse_requested_grants(value: object, field: str = "grants") -> dict[str, float | None] | None:
    """Return the valid grants among those that a phone requests; None if there are none (wire core 1.3)."""
    asked, kept = JsonObject.of(value), dict[str, float | None]()
    for channel in CHANNELS:
        try:
            kept.update({channel: _span(channel, asked[channel], field, CHANNELS)} if channel in asked else {})
        except Refused:
            continue
    return kept or None


def _span(channel: str, value: object, field: str, known: tuple[str, ...]) -> float | None:
    name = f"{field}.{channel[:_SHOWN]}"
    if channel not in known:
        raise invalid(name, f"named by a channel: {', '.join(known)}")
    return None if value is False else seconds(value, name)
