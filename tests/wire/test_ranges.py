"""Byte ranges, `If-Range` and `Content-Disposition` of file responses (RFC 9110 section 14)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.wire.events import Headers
from svc_proto.wire.ranges import ByteRange, Unsatisfiable, content_disposition, entity_tag, requested_range

NOW = 1_800_000_000.0
MODIFIED = 784_111_777.5  # Sun, 06 Nov 1994 08:49:37 GMT
TAG = entity_tag(10_000, MODIFIED)
DATE = b"Sun, 06 Nov 1994 08:49:37 GMT"


def asked(value: bytes, size: int = 10_000, *more: tuple[bytes, bytes]) -> ByteRange | Unsatisfiable | None:
    return requested_range(Headers([(b"range", value), *more]), size, TAG, MODIFIED, NOW)


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ([b"bytes=0-499"], ByteRange(0, 500)),
        ([b"bytes=500-999"], ByteRange(500, 500)),
        ([b"bytes=-500", b"bytes=9500-"], ByteRange(9500, 500)),
        ([b"bytes=0-0"], ByteRange(0, 1)),
        ([b"bytes=-99999"], ByteRange(0, 10_000)),
        ([b"bytes=9999-20000"], ByteRange(9999, 1)),
        ([b"Bytes= 0-1 "], ByteRange(0, 2)),
        ([b"bytes=10000-", b"bytes=-0"], Unsatisfiable()),
        ([b"bytes=0-1,3-4", b"bytes=5-4", b"bytes=-", b"lines=1-2", b"bytes=a-b", b"bytes=\xb2-"], None),
    ],
)
def test_ranges(values: list[bytes], part: object) -> None:
    for value in values:
        assert asked(value) == part


def test_requests_without_a_usable_range() -> None:
    assert asked(b"bytes=0-1", 10_000, (b"range", b"bytes=3-4")) is None  # several field lines are ignored
    assert asked(b"bytes=0-", 0) == asked(b"bytes=-5", 0) == Unsatisfiable()  # an empty file has no range
    assert requested_range(Headers(), 10, TAG, MODIFIED, NOW) is None  # the whole file


@pytest.mark.parametrize(
    ("conditions", "holds"),
    [
        ([TAG.encode(), DATE, b"Sunday, 06-Nov-94 08:49:37 GMT"], True),
        ([b'"other"', b"W/" + TAG.encode(), b"Sun, 06 Nov 1994 08:49:38 GMT", b"yesterday", b"\xff"], False),
    ],
)
def test_if_range(conditions: list[bytes], holds: bool) -> None:
    for condition in conditions:
        found = asked(b"bytes=0-1", 10_000, (b"if-range", condition))
        assert found == (ByteRange(0, 2) if holds else None)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        (None, b"inline"),
        ("", b"inline"),
        ("a b.png", b'inline; filename="a b.png"'),
        ('x";y\\z\r\n.png', b'inline; filename="x_y_z_.png"'),
        ("größe.png", b"inline; filename=\"gr__e.png\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.png"),
    ],
)
def test_content_disposition(name: str | None, field: bytes) -> None:
    assert content_disposition(name) == field


@given(st.binary(max_size=20), st.integers(0, 10**6))
def test_a_part_lies_within_the_file(value: bytes, size: int) -> None:
    part = asked(b"bytes=" + value, size)
    if isinstance(part, ByteRange):
        assert 0 <= part.first < part.first + part.length <= size


@given(st.text(max_size=30))
def test_content_disposition_is_one_ascii_line(name: str) -> None:
    field = content_disposition(name.encode("utf-8", "replace").decode())
    assert field.isascii()
    assert not {b"\r", b"\n"} & {field[i : i + 1] for i in range(len(field))}
