"""Delay before another attempt that a model's server requests: in header fields or in the body of a refusal."""

import re
from collections.abc import Iterator
from email.utils import mktime_tz, parsedate_tz

from svc_proto.schema.json_object import JsonObject, as_array, as_object, json_value
from svc_proto.wire.events import Headers

__all__ = ["parse_retry_delay", "parse_response_date"]

MAX_DEPTH = 6  # levels of a body that are searched
_SECONDS = re.compile(r"\d{1,12}(?:\.\d{1,9})?")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)")
_AGAIN = r"(?:try again|retry)(?: your request)? (?:in|after) "
_TRY_AGAIN = re.compile(rf"{_AGAIN}((?:\d+(?:\.\d+)?(?:ms|s|m|h) ?)+)(?![a-z])", re.IGNORECASE)
_TRY_AGAIN_WORDS = re.compile(rf"{_AGAIN}(\d+(?:\.\d+)?) (second|minute)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_retry_delay(headers: Headers, body: str, wall: float) -> float | None:
    """Return the seconds that a model's server requests to wait before the next attempt; None if it names no time.

    In this order: `retry-after-ms`; `Retry-After` in seconds, as a duration or as a date (RFC 9110, 10.2.3);
    `retryDelay` (Google), `retry_after` or `retry_after_seconds` in the body; words such as "try again in" or "retry
    after". `wall`: the time in Unix seconds.
    """
    milliseconds = _header(headers, b"retry-after-ms")
    if _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    wanted = _header(headers, b"retry-after")
    if wanted:
        delay = _parse_value(wanted, wall)
        if delay is not None:
            return delay
    for members in _objects(json_value(body), MAX_DEPTH):
        delay = _duration(members.text("retryDelay"))
        if delay is not None:
            return delay
        for name in ("retry_after", "retry_after_seconds"):
            seconds = members.number(name, 0)
            if seconds is not None:
                return float(seconds)
    found = _TRY_AGAIN.search(body)
    if found is not None:
        return _duration(found[1].replace(" ", ""))
    words = _TRY_AGAIN_WORDS.search(body)
    return None if words is None else float(words[1]) * (60.0 if words[2].lower() == "minute" else 1.0)


def parse_response_date(text: str) -> float | None:
    """Return the epoch seconds of a date in a response (RFC 9110, 5.6.7); None if it is empty or no date.

    Unlike `wire.conditional_requests.parse_http_date`, it accepts what servers send against the RFC: other zones than
    GMT, as in e-mail, and no zone, which means GMT.
    """
    date = parsedate_tz(text)
    try:
        return None if date is None else mktime_tz(date)
    except (ValueError, OverflowError):
        return None


def _parse_value(text: str, wall: float) -> float | None:
    if text.replace(".", "", 1).isdigit() and text[0].isdigit():
        return float(text)
    duration = _duration(text)
    if duration is not None:
        return duration
    date = parse_response_date(text)
    return None if date is None else max(0.0, date - wall)


def _duration(text: str) -> float | None:
    """Return the seconds of a duration such as `1m30.5s`; None if the text is no duration."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _header(headers: Headers, name: bytes) -> str:
    return (headers.get(name) or b"").decode("latin-1").strip()


def _objects(value: object, depth: int) -> Iterator[JsonObject]:
    if as_object(value) is not None and depth:
        members = JsonObject.of(value)
        yield members
        for each in members.values():
            yield from _objects(each, depth - 1)
    for each in (as_array(value) or ()) if depth else ():
        yield from _objects(each, depth - 1)
