"""The `Date` header (RFC 9110 section 5.6.7), made once a second."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

__all__ = ["http_date"]

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=4)
def http_date(second: int) -> bytes:
    """IMF-fixdate of an epoch time, such as ``Sun, 06 Nov 1994 08:49:37 GMT``."""
    when = datetime.fromtimestamp(second, UTC)
    text = f"{DAYS[when.weekday()]}, {when.day:02} {MONTHS[when.month - 1]} {when.year:04} {when:%H:%M:%S} GMT"
    return text.encode("ascii")
