"""Spans of time as people write and read them: `7d`, `never`, `3h`, `in 2d` (wire core 10.1, 10.7)."""

from __future__ import annotations

import re

from svc_proto.basics.validate import MAX_SECONDS
from svc_proto.client.problem import MISUSED, Problem
from svc_proto.machines.grants import MAX_GRANTS, MAX_NAME

__all__ = ["NEVER", "parse_grant_spans", "parse_span", "short_expiry", "short_span", "span_label"]

NEVER = 0  # s: on the wire a span of no time means that it never ends (wire core 0.1)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}  # s, wire core 10.1
_SPAN = re.compile(r"([0-9]{1,12})([smhdwy]?)", re.ASCII | re.IGNORECASE)
_NAMES = ((31_536_000, "year"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def parse_span(text: str, field: str) -> int:
    """Seconds: `never`, digits, or digits with one of s m h d w y; 0 means never. Raises `Problem`, code 2."""
    word = text.strip()
    if word.lower() == "never":
        return NEVER
    match = _SPAN.fullmatch(word)
    if match is None:
        raise Problem(
            f"{field} must be a duration such as 1h, 30d, 3600 (seconds) or never, not {text!r}", code=MISUSED
        )
    seconds = int(match[1]) * _UNITS[match[2].lower() or "s"]
    if seconds > MAX_SECONDS:
        raise Problem(f"{field} must be at most 10 years, or never", code=MISUSED)
    return seconds


def parse_grant_spans(text: str, field: str = "--grants") -> dict[str, float]:
    """`channel=duration,…`, blank items skipped. Raises `Problem`, code 2."""
    grants: dict[str, float] = {}
    for item in text.split(","):
        if not item.strip():
            continue
        channel, equals, span = (part.strip() for part in item.partition("="))
        if not equals or not channel or len(channel) > MAX_NAME:
            raise Problem(f"{field} must be channel=duration pairs such as bridge=1h,terminal=7d", code=MISUSED)
        if channel in grants:
            raise Problem(f"{field} names {channel!r} twice", code=MISUSED)
        grants[channel] = parse_span(span, f"{field} {channel}")
    if len(grants) > MAX_GRANTS:
        raise Problem(f"{field} must name at most {MAX_GRANTS} channels", code=MISUSED)
    return grants


def span_label(seconds: float) -> str:
    """In words: the largest unit that divides it evenly."""
    if seconds == NEVER:
        return "never expires"
    whole = int(seconds)
    size, name = next((unit for unit in _NAMES if whole % unit[0] == 0), _NAMES[-1])
    count = whole // size
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def short_span(seconds: float) -> str:
    """`Ns`, `Nm`, `Nh` or `Nd`, rounded down (wire core 10.7)."""
    whole = max(int(seconds), 0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def short_expiry(expires_at: float | None, now: float) -> str:
    """`never`, `expired` or `in …`; times in epoch seconds (wire core 10.7)."""
    if expires_at is None:
        return "never"
    return "expired" if expires_at <= now else f"in {short_span(expires_at - now)}"
