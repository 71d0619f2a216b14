"""Conditional requests, by the rules of RFC 9110 section 13 and the dates of section 5.6.7."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.wire.conditional_requests import parse_http_date, precondition_status
from svc_proto.wire.events import Headers

NOW = 1_800_000_000.0  # in 2027
MODIFIED = 784_111_777.5  # Sun, 06 Nov 1994 08:49:37 GMT
TAG = '"a"'
DATE = b"Sun, 06 Nov 1994 08:49:37 GMT"
SAME = [DATE, b"Sunday, 06-Nov-94 08:49:37 GMT", b"Sun Nov  6 08:49:37 1994"]  # the examples of section 5.6.7
BEFORE, AFTER = b"Sun, 06 Nov 1994 08:49:36 GMT", b"Sun, 06 Nov 1994 08:49:38 GMT"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], None),
        ([(b"if-match", b'"a"')], None),
        ([(b"if-match", b'"b", "a"')], None),
        ([(b"if-match", b'"b"'), (b"if-match", b'"a"')], None),
        ([(b"if-match", b"*")], None),
        ([(b"if-match", b'"b"')], 412),
        ([(b"if-match", b'W/"a"')], 412),  # section 13.1.1: "MUST use the strong comparison function"
        ([(b"if-match", b"a")], 412),
        ([(b"if-unmodified-since", DATE)], None),
        ([(b"if-unmodified-since", AFTER)], None),
        ([(b"if-unmodified-since", BEFORE)], 412),
        ([(b"if-unmodified-since", b"soon")], None),
        ([(b"if-unmodified-since", BEFORE), (b"if-unmodified-since", BEFORE)], None),
        ([(b"if-match", b'"a"'), (b"if-unmodified-since", BEFORE)], None),
        ([(b"if-none-match", b'"a"')], 304),
        ([(b"if-none-match", b'"b", W/"a"')], 304),
        ([(b"if-none-match", b'"b"'), (b"if-none-match", b'"a"')], 304),
        ([(b"if-none-match", b"*")], 304),
        ([(b"if-none-match", b'"b"')], None),
        ([(b"if-none-match", b'"b"'), (b"if-modified-since", DATE)], None),
        ([(b"if-modified-since", DATE)], 304),
        ([(b"if-modified-since", AFTER)], 304),
        ([(b"if-modified-since", BEFORE)], None),
        ([(b"if-modified-since", b"soon")], None),
        ([(b"if-match", b'"b"'), (b"if-none-match", b'"a"')], 412),
        ([(b"if-match", b'"a"'), (b"if-none-match", b'"a"')], 304),
        ([(b"if-unmodified-since", DATE), (b"if-modified-since", DATE)], 304),
    ],
)
def test_conditions(headers: list[tuple[bytes, bytes]], status: int | None) -> None:
    assert precondition_status(Headers(headers), TAG, MODIFIED, NOW) == status


@pytest.mark.parametrize("date", SAME)
def test_all_three_forms_of_a_date(date: bytes) -> None:
    assert parse_http_date(date, NOW) == int(MODIFIED)
    assert precondition_status(Headers([(b"if-modified-since", date)]), TAG, MODIFIED, NOW) == 304
    assert precondition_status(Headers([(b"if-unmodified-since", date)]), TAG, MODIFIED + 1, NOW) == 412


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        (b"Thu, 01 Jan 1970 00:00:00 GMT", 0),
        (b"Thu Jan  1 00:00:00 1970", 0),
        (b"Thu Jan 01 00:00:00 1970", 0),
        (b"Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_799),  # a leap second
        (b"Friday, 31-Dec-77 23:59:59 GMT", 3_408_220_799),  # within 50 years
        (b"Saturday, 31-Dec-78 23:59:59 GMT", 283_996_799),  # beyond: in the past
        (b"Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
    ],
)
def test_dates(date: bytes, seconds: int) -> None:
    assert parse_http_date(date, NOW) == seconds


@pytest.mark.parametrize(
    "date",
    [
        *(b"", b"soon", b"\xff", b"Sun, 06 Nov 1994 08:49:37", b"Sun, 6 Nov 1994 08:49:37 GMT"),
        *(b"Sun, 06 nov 1994 08:49:37 GMT", b"Sun, 31 Feb 1994 08:49:37 GMT", b"Sun, 06 Nov 1994 24:00:00 GMT"),
        *(b"Sun, 06 Nov 0000 08:49:37 GMT", b"Sun, 06 Nov 1994 08:49:37 +0000", b"Sun Nov 6 08:49:37 1994"),
        *(b"Sunday, 06-Nov-1994 08:49:37 GMT", "Sun, \u06606 Nov 1994 08:49:37 GMT".encode()),
    ],
)
def test_invalid_dates(date: bytes) -> None:
    assert parse_http_date(date, NOW) is None


@given(st.binary(max_size=40) | st.text("SunNov, 0123456789:GMT-", max_size=32).map(str.encode))
def test_any_field_is_a_date_or_none(field: bytes) -> None:
    for name in (b"if-match", b"if-none-match", b"if-modified-since", b"if-unmodified-since"):
        assert precondition_status(Headers([(name, field)]), TAG, MODIFIED, NOW) in (None, 304, 412)
