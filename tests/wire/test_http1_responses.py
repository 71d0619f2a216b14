"""Responses of a server as h11 events; `test_http1_server` has them as bytes."""

from svc_proto.wire.http1_responses import build_response

CLOSE = (b"connection", b"close")


def test_connection_close_is_added_once() -> None:
    assert list(build_response(200, [], closing=True).headers) == [CLOSE]
    assert list(build_response(200, [CLOSE], closing=True).headers) == [CLOSE]
