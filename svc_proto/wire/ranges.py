"""Ranges, validators and file names of a served file (RFC 9110 sections 8.8, 13.1.5 and 14, RFC 6266)."""

import re
from urllib.parse import quote

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.wire.conditional_requests import parse_http_date
from svc_proto.wire.events import Headers

__all__ = ["ByteRange", "Unsatisfiable", "content_disposition", "entity_tag", "requested_range"]

_RANGE = re.compile(r"bytes=[ \t]*(\d{0,19})-(\d{0,19})[ \t]*", re.IGNORECASE | re.ASCII)
_UNSAFE = re.compile(r'[\x00-\x1f\x7f";\\/]+')


@fast_frozen
class ByteRange:
    """A part of a file: the index of its `first` byte, and its length."""

    first: int
    length: int


@fast_frozen
class Unsatisfiable:
    """A range outside of the file: 416."""


def entity_tag(size: int, modified: float) -> str:
    """Return a strong validator of a file's content, derived from its size and modification time."""
    return f'"{size:x}-{int(modified * 1_000_000):x}"'


def requested_range(
    headers: Headers, size: int, tag: str, modified: float, now: float
) -> ByteRange | Unsatisfiable | None:
    """Return the part of a file that a GET requests: None for the whole, `Unsatisfiable` for a part outside of it.

    Several ranges, several field lines, units other than bytes and malformed fields are ignored, as is a range whose
    `If-Range` does not hold any more.
    """
    values = headers.all(b"range")
    if len(values) != 1 or not _if_range_holds(headers, tag, modified, now):
        return None
    match = _RANGE.fullmatch(values[0].decode("latin-1"))
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        length = min(int(match[2]), size)
        return ByteRange(size - length, length) if length else Unsatisfiable()
    first, last = int(match[1]), int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None
    if first >= size:
        return Unsatisfiable()
    return ByteRange(first, min(last, size - 1) - first + 1)


def content_disposition(name: str | None) -> bytes:
    """Return the `Content-Disposition` of a displayed file: its name in ASCII, and in UTF-8 if that differs.

    Unsafe characters of the name become `_`. Without a name the field is `inline` alone.
    """
    if not name:
        return b"inline"
    clean = _UNSAFE.sub("_", name)
    ascii_name = clean.encode("ascii", "replace").decode("ascii").replace("?", "_")
    field = f'inline; filename="{ascii_name}"'
    if ascii_name != clean:
        field += f"; filename*=UTF-8''{quote(clean, safe='')}"
    return field.encode("ascii")


def _if_range_holds(headers: Headers, tag: str, modified: float, now: float) -> bool:
    field = headers.get(b"if-range")
    if field is None:
        return True
    if field.startswith((b'"', b"W/")):
        return field == tag.encode("ascii")
    return parse_http_date(field, now) == int(modified)
