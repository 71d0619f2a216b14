"""Refusals of an HTTP/1.1 server; no other exception escapes from it."""

import pytest

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.events import ResponseData, ResponseEnd, ResponseHead, StreamId
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import Limits
from tests.wire.connection_pair import ONE, feed, send_events
from tests.wire.http1_server import GET, LENGTH_2, answer, fails, server

SMALL = Limits(max_head=200, max_fields=5)


def test_heads_at_the_limits_are_taken() -> None:
    connection = server(SMALL)
    assert len(feed(connection, b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 4 + b"\r\n")) == 2
    answer(connection, ONE)
    padding = 200 - len(b"GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n")
    assert len(feed(connection, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * padding + b"\r\n\r\n", [1])) == 2


def test_a_second_bad_request_is_reported_after_the_first_response(connection: Http1Connection) -> None:
    feed(connection, GET + b"BAD\r\n\r\n")
    answer(connection, ONE)
    with pytest.raises(RemoteProtocolError):
        connection.next_event()
    assert b"onnection: close" in answer(connection, StreamId(0))


def test_the_secret_in_a_malformed_head_is_not_quoted() -> None:
    error = fails(server(), b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization : Bearer s3cret\r\n\r\n")
    assert "s3cret" not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__


CHUNKED_HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_bad_body_after_or_during_the_answer(connection: Http1Connection) -> None:
    feed(connection, CHUNKED_HEAD)
    answer(connection, ONE)
    fails(connection, b"x\r\n")
    assert connection.must_close
    connection = server()
    feed(connection, CHUNKED_HEAD)
    connection.send(ResponseHead(ONE, 200, LENGTH_2))
    fails(connection, b"x\r\n")
    assert not connection.must_close
    send_events(connection, ResponseData(ONE, b"ok"), ResponseEnd(ONE))
    assert connection.must_close
