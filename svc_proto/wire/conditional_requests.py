"""Conditional requests for resources with a strong validator and a modification time (RFC 9110, 5.6.7 and 13)."""

import re
from datetime import UTC, datetime, timedelta

from svc_proto.wire.events import Headers

__all__ = ["NOT_MODIFIED", "is_known_version", "precondition_status", "parse_http_date"]

NOT_MODIFIED, PRECONDITION_FAILED = 304, 412
MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
FUTURE = 50  # years after the current one up to which a two-digit year is read

_TAG = re.compile(rb'(W/)?("[!#-~\x80-\xff]*")')
_MONTH = rb"(?P<month>%s)" % b"|".join(MONTHS)
_TIME = rb"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES = [
    re.compile(form)
    for form in (
        rb"[A-Z][a-z]{2}, (?P<day>[0-9]{2}) %s (?P<year>[0-9]{4}) %s GMT" % (_MONTH, _TIME),  # IMF-fixdate
        rb"[A-Z][a-z]{5,8}, (?P<day>[0-9]{2})-%s-(?P<year>[0-9]{2}) %s GMT" % (_MONTH, _TIME),  # RFC 850
        rb"[A-Z][a-z]{2} %s (?P<day>[0-9 ][0-9]) %s (?P<year>[0-9]{4})" % (_MONTH, _TIME),  # asctime
    )
]


def precondition_status(headers: Headers, tag: str, modified: float, now: float) -> int | None:
    """Return the status that a GET or HEAD has to be answered with: 304, 412, or None for the normal response.

    `modified` and `now` are epoch seconds. The order is that of RFC 9110 section 13.2.2.
    """
    matching, changed = _tags(headers, b"if-match"), int(modified)
    if matching is not None:
        if not _among(matching, tag, weak=False):
            return PRECONDITION_FAILED
    elif (until := _date(headers, b"if-unmodified-since", now)) is not None and changed > until:
        return PRECONDITION_FAILED
    if headers.get(b"if-none-match") is not None:
        return NOT_MODIFIED if is_known_version(headers, tag) else None
    since = _date(headers, b"if-modified-since", now)
    return NOT_MODIFIED if since is not None and changed <= since else None


def is_known_version(headers: Headers, tag: str) -> bool:
    """Report whether `If-None-Match` has the tag of the current version, or is `*`."""
    known = _tags(headers, b"if-none-match")
    return known is not None and _among(known, tag, weak=True)


def parse_http_date(field: bytes, now: float) -> int | None:
    """Parse a date in any of the three forms of RFC 9110 section 5.6.7; return epoch seconds, or None if malformed.

    `now` decides the century of a two-digit year.
    """
    found = next((match for form in _DATES if (match := form.fullmatch(field))), None)
    if found is None:
        return None
    day, hour, minute, second, year = (int(found[part]) for part in ("day", "hour", "minute", "second", "year"))
    if len(found["year"]) == 2:
        today = datetime.fromtimestamp(now, UTC).year
        year += today - today % 100
        year -= 100 * (year > today + FUTURE)
    try:
        start = datetime(year, MONTHS.index(found["month"]) + 1, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
    return int((start + timedelta(seconds=min(second, 59))).timestamp())  # the 60th is a leap second


def _date(headers: Headers, name: bytes, now: float) -> int | None:
    values = headers.all(name)
    return parse_http_date(values[0], now) if len(values) == 1 else None  # a field given more than once is ignored


def _tags(headers: Headers, name: bytes) -> list[tuple[bytes, bytes]] | None:
    """Return the entity tags of a list field, over all its lines, as (`W/` or empty, tag); None without the field.

    The value `*` is returned as a tag.
    """
    values = headers.all(name)
    if not values:
        return None
    return [(b"", b"*")] if values == [b"*"] else _TAG.findall(b",".join(values))


def _among(tags: list[tuple[bytes, bytes]], tag: str, *, weak: bool) -> bool:
    return any(found in (b"*", tag.encode("ascii")) and (weak or not mark) for mark, found in tags)
