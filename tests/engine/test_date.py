from __future__ import annotations

from svc_proto.engine.date import http_date


def test_the_example_of_rfc_9110() -> None:
    assert http_date(784_111_777) == b"Sun, 06 Nov 1994 08:49:37 GMT"
    assert http_date(0) == b"Thu, 01 Jan 1970 00:00:00 GMT"
