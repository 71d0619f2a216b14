"""Framing of a request body by its head; refused heads on a connection are in `test_http1_strict`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.http1_head import Framing, check_partial_head, check_request_head
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
        (b"a:\r\nb:\r\n", Framing.NONE),  # the greatest number of fields
    ],
)
def test_whether_a_body_follows(fields: bytes, framing: Framing) -> None:
    assert check_request_head(b"POST / HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n", LIMITS) is framing


def test_a_head_never_begins_with_a_blank() -> None:
    with pytest.raises(RemoteProtocolError, match="the request line is missing"):
        check_partial_head(bytearray(b" "), 0, LIMITS)


@given(st.integers(0, 40))
def test_a_bad_partial_head_is_found_after_an_earlier_check(searched: int) -> None:
    good = bytearray(b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r")
    check_partial_head(good, min(searched, len(good)), LIMITS)
    bare = bytearray(good[: min(searched, len(good))])
    seen = len(bare)
    bare += b"z\n"
    with pytest.raises(RemoteProtocolError):
        check_partial_head(bare, seen, LIMITS)
