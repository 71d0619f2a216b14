"""Durations as people write and read them: `7d`, `never`, `3h`, `in 2d` (wire core 10.1, 10.7)."""

import re

from svc_proto.basics.duration_text import short_duration
from svc_proto.basics.validate import MAX_SECONDS
from svc_proto.cli.error_text import sanitize_line
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.machines.grants import CHANNELS, RIGHTS

__all__ = ["NEVER", "parse_preset", "parse_duration", "short_expiry", "duration_label"]

NEVER = 0  # s: on the wire, a duration of 0 never ends (wire core 0.1)
MINUTE = 60.0  # s added to a remaining time, so that a new 24 h are shown as 1d, not 23h
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}  # s, wire core 10.1
_SPAN = re.compile(r"([0-9]{1,12})([smhdwy]?)", re.ASCII | re.IGNORECASE)
_NAMES = ((31_536_000, "year"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def parse_duration(text: str, field: str) -> int:
    """Return the seconds of `never` (0), of digits, or of digits with one of s m h d w y.

    Raises `CliError`, code 2, for any other text or more than 10 years.
    """
    word = text.strip()
    if word.lower() == "never":
        return NEVER
    match = _SPAN.fullmatch(word)
    if match is None:
        raise CliError(
            f"{field} must be a duration such as 1h, 30d, 3600 (seconds) or never, not {text!r}", code=USAGE_ERROR
        )
    seconds = int(match[1]) * _UNITS[match[2].lower() or "s"]
    if seconds > MAX_SECONDS:
        raise CliError(f"{field} must be at most 10 years, or never", code=USAGE_ERROR)
    return seconds


def parse_preset(grants: str | None, only: str | None) -> dict[str, float | None] | None:
    """Parse the options `--grants channel=duration,…` and `--only channel,…`; None if nothing is preset.

    Return seconds (0: as long as the session) or None (withheld) by channel. In `--grants`, `none` withholds; `--only`
    withholds the channels that it does not name. Raises `CliError`, code 2.
    """
    wanted = CHANNELS if only is None else _channels(only, "--only")
    preset: dict[str, float | None] = {channel: None for channel in CHANNELS if channel not in wanted}
    preset |= {right: 0.0 for right in RIGHTS if right in wanted}
    named: set[str] = set()
    for item in (grants or "").split(","):
        if not item.strip():
            continue
        channel, equals, span = (part.strip() for part in item.partition("="))
        if not equals:
            raise CliError("--grants must be channel=duration pairs such as bridge=1h,terminal=none", code=USAGE_ERROR)
        channel = _channel(channel, "--grants")
        if channel in named:
            raise CliError(f"--grants names {channel} twice", code=USAGE_ERROR)
        named.add(channel)
        given = None if span.lower() == "none" else parse_duration(span, f"--grants {channel}")
        if channel in RIGHTS and given:
            raise CliError(
                f"--grants {channel} lasts as the session: {channel}=never or {channel}=none", code=USAGE_ERROR
            )
        if given is not None and channel not in (*wanted, *RIGHTS):
            raise CliError(f"--grants gives {channel}, which --only leaves out", code=USAGE_ERROR)
        preset[channel] = given
    return preset or None


def duration_label(seconds: float) -> str:
    """Return a duration in the largest unit that divides it evenly: `36 hours`; `never expires` for 0."""
    if seconds == NEVER:
        return "never expires"
    whole = int(seconds)
    size, name = next((unit for unit in _NAMES if whole % unit[0] == 0), _NAMES[-1])
    count = whole // size
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def short_expiry(expires_at: float | None, now: float) -> str:
    """Return `never` for None, else `expired` or `in …`; times in epoch seconds (wire core 10.7).

    Above 59 minutes a minute is added, so that a day that was set a moment ago is shown as `in 1d`.
    """
    if expires_at is None:
        return "never"
    left = expires_at - now
    return "expired" if left <= 0 else f"in {short_duration(left + MINUTE if left > 3_600 - MINUTE else left)}"


def _channel(word: str, field: str) -> str:
    if word not in (*CHANNELS, *RIGHTS):
        raise CliError(
            f"{field}: {sanitize_line(word, 40)!r} is no channel; there are {', '.join((*CHANNELS, *RIGHTS))}",
            code=USAGE_ERROR,
        )
    return word


def _channels(text: str, field: str) -> list[str]:
    """Parse `channel,…`, at least one. Raises `CliError`, code 2."""
    channels = [_channel(word.strip(), field) for word in text.split(",") if word.strip()]
    if not channels:
        raise CliError(f"{field} must name a channel: {', '.join(CHANNELS)}", code=USAGE_ERROR)
    return channels
