"""Grants: what a session may do, per channel, each with its own expiry (spec "Grants", wire core 4.1).

An expiry is wall time in epoch seconds, or None for never. A channel without an entry counts as expired.
A grant never outlives its session: every grant made here is clamped to the session's expiry.
"""

from __future__ import annotations

from collections.abc import Mapping

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import invalid, object_, seconds

__all__ = [
    "CHANNELS",
    "MAX_GRANTS",
    "VOICE_CHANNELS",
    "build_grants",
    "clamp",
    "clamp_all",
    "default_grants",
    "expiry_after",
    "holds",
    "is_live",
    "lenient_grants",
    "parse_grants",
]

VOICE_CHANNELS = ("voice:config", "voice:stt", "voice:tts", "voice:realtime")
CHANNELS = ("chat", "terminal", "bridge", "tui", *VOICE_CHANNELS)  # spec "Grants", in that order

_DAY = 86_400.0  # s
_DEFAULT_SPANS: dict[str, float] = {  # s, wire core 4.1; the others last as long as the session
    "terminal": 30 * _DAY,
    "tui": 30 * _DAY,
    "bridge": 7 * _DAY,
}
MAX_GRANTS = 64  # entries of one request; any name is accepted, so their number is not
MAX_NAME = 64  # characters of a channel name


def default_grants(now: float, expires_at: float | None) -> dict[str, float | None]:
    """What a session gets when nothing is preset. A session that never expires has grants that never expire."""
    if expires_at is None:
        return dict.fromkeys(CHANNELS)
    return {
        channel: expires_at if (span := _DEFAULT_SPANS.get(channel)) is None else min(expires_at, now + span)
        for channel in CHANNELS
    }


def build_grants(now: float, expires_at: float | None, preset: Mapping[str, float] | None) -> dict[str, float | None]:
    """The defaults, with the channels of `preset` (seconds from now, 0 for never) put in their place."""
    grants = default_grants(now, expires_at)
    for channel, span in (preset or {}).items():
        grants[channel] = clamp(expiry_after(now, span), expires_at)
    return grants


def clamp(expiry: float | None, session_expiry: float | None) -> float | None:
    """The earlier of two expiries; None is later than any."""
    if expiry is None:
        return session_expiry
    return expiry if session_expiry is None else min(expiry, session_expiry)


def clamp_all(grants: Mapping[str, float | None], session_expiry: float | None) -> dict[str, float | None]:
    """Each grant clamped to the session's expiry."""
    return {channel: clamp(expiry, session_expiry) for channel, expiry in grants.items()}


def expiry_after(now: float, span: float) -> float | None:
    """The expiry `span` seconds from now; 0 means never, on the wire and here (wire core 0.1)."""
    return None if span == 0 else now + span


def is_live(expiry: float | None, now: float) -> bool:
    """Whether an expiry lies ahead."""
    return expiry is None or now < expiry


def holds(grants: Mapping[str, float | None], channel: str, now: float) -> bool:
    """Whether the channel is granted now."""
    return channel in grants and is_live(grants[channel], now)


def parse_grants(value: object, field: str = "grants") -> dict[str, float]:
    """Seconds per channel of a request; any channel name, at most `MAX_GRANTS` of them. Raises `Refused` 400."""
    entries = object_(value, field)
    if len(entries) > MAX_GRANTS:
        raise invalid(field, f"at most {MAX_GRANTS} channels")
    for channel in entries:
        if not channel or len(channel) > MAX_NAME:
            raise invalid(field, f"named by channels of 1 to {MAX_NAME} characters")
    return {channel: seconds(span, f"{field}.{channel}") for channel, span in entries.items()}


def lenient_grants(value: object, field: str = "grants") -> dict[str, float] | None:
    """The good entries of what a phone asked for; None when nothing is left (wire core 1.3)."""
    if not isinstance(value, dict):
        return None
    kept: dict[str, float] = {}
    for channel, span in value.items():
        try:
            kept.update(parse_grants({channel: span}, field))
        except Refused:
            continue
        if len(kept) == MAX_GRANTS:
            break
    return kept or None
