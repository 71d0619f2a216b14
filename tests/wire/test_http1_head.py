"""The checks on a raw head, one by one; what they mean for a connection is in `test_http1_server`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.http1_head import Framing, check_partial_head, check_request_head, check_response_head
from svc_proto.wire.limits import Limits

LIMITS = Limits(max_head=100, max_fields=3)


@pytest.mark.parametrize(
    ("fields", "framing"),
    [
        (b"", Framing.NONE),
        (b"Content-Length: 0\r\n", Framing.NONE),  # nothing follows
        (b"Content-Length: 00\r\n", Framing.NONE),
        (b"Content-Length: 10\r\n", Framing.LENGTH),
        (b"CONTENT-LENGTH:\t12 \r\n", Framing.LENGTH),
        (b"transfer-encoding: Chunked\r\n", Framing.CHUNKED),
        (b"X-Content-Length: 5\r\n", Framing.NONE),
        (b"Content-Length-X: 5\r\n", Framing.NONE),
        (b"X: Content-Length: 5\r\n", Framing.NONE),
        (b"a:\r\nb:\r\n", Framing.NONE),  # as many fields as may be
    ],
)
def test_whether_a_body_follows(fields: bytes, framing: Framing) -> None:
    assert check_request_head(b"POST / HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n", LIMITS) is framing


@pytest.mark.parametrize(
    ("head", "status", "word"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "Host is missing"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n\r\n", 400, "Host is given twice"),
        (b"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400, "Host is malformed"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1,1\r\n\r\n", 400, "not a number"),
        (b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400, "bare CR"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400, "folded"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, "only chunked"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 400, "one chunked"),
        (b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "line is missing"),
        (b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 4 + b"\r\n", 431, "3 fields"),
        (b"GET / HTTP/3.0\r\n\r\n", 505, "HTTP/1.1"),
        (b"connect a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501, "CONNECT"),
    ],
)
def test_refused(head: bytes, status: int, word: str) -> None:
    with pytest.raises(RemoteProtocolError, match=word) as caught:
        check_request_head(head, LIMITS)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("begun", "word"),
    [
        (b" ", "line is missing"),
        (b"x" * 100, "first line has more than 100"),
        (b"x\r\n" + b"y" * 97, "head has more than 100"),
    ],
)
def test_a_beginning_that_no_end_makes_a_head(begun: bytes, word: str) -> None:
    with pytest.raises(RemoteProtocolError, match=word):
        check_partial_head(bytearray(begun), 0, LIMITS)
    check_partial_head(bytearray(b"!" + begun[:98].lstrip()), 0, LIMITS)


@pytest.mark.parametrize("line", [b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"HTTP/1.1 200 "])
def test_responses(line: bytes) -> None:
    check_response_head(line + b"\r\nContent-Length: 5\r\n\r\n", LIMITS)


@given(st.integers(0, 40))
def test_a_bad_beginning_is_seen_wherever_an_earlier_look_ended(searched: int) -> None:
    good = bytearray(b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r")
    check_partial_head(good, min(searched, len(good)), LIMITS)
    bare = bytearray(good[: min(searched, len(good))])
    seen = len(bare)
    bare += b"z\n"
    with pytest.raises(RemoteProtocolError):
        check_partial_head(bare, seen, LIMITS)
