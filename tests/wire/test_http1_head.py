"""Framing of a request body by its head; refused heads on a connection are in `test_http1_strict`."""

import pytest

from svc_proto.wire.http1_head import Framing, check_request_head
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
