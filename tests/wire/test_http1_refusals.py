"""Refusals of an HTTP/1.1 server; no other exception escapes from it."""

import pytest

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.events import Headers, ResponseData, ResponseEnd, ResponseHead, StreamId
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import Limits
from tests.wire.chunking import Cuts
from tests.wire.connection_pair import ONE, feed, send_events
from tests.wire.http1_server import GET, LENGTH_2, answer, fails, server

SMALL = Limits(max_head=200, max_fields=5)
BAD_HEADS = [  # one for each status; the other refusals are in `test_http1_strict`
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"x" * 300, 414),
    (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 5 + b"\r\n", 431),
    (b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    (b"GET / HTTP/0.9\r\n\r\n", 505),
]


@pytest.mark.parametrize(("data", "status"), BAD_HEADS)
@pytest.mark.parametrize("sizes", [[1], [1_000_000]])
def test_a_bad_head_can_be_answered(data: bytes, status: int, sizes: Cuts) -> None:
    connection = server(SMALL)
    error = fails(connection, data, sizes)
    assert error.status == status
    assert not connection.must_close
    assert not connection.paused
    sent = answer(connection, StreamId(0))
    assert sent.startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n")
    assert b"onnection: close\r\n" in sent
    assert connection.must_close


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


@pytest.mark.parametrize(
    ("body", "status"), [(b"x\r\n", 400), (b"1;" + b"x" * 300, 431), (b"0\r\n" + b"T: 1\r\n" * 6 + b"\r\n", 431)]
)
@pytest.mark.parametrize("sizes", [[1], [1_000_000]])
def test_a_bad_body_can_be_answered(body: bytes, status: int, sizes: Cuts) -> None:
    connection = server(SMALL)
    error = fails(connection, CHUNKED_HEAD + body, sizes)
    assert error.status == status
    assert b"onnection: close" in answer(connection, ONE)
    assert connection.must_close


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


def test_a_slow_head_can_be_answered(connection: Http1Connection) -> None:
    feed(connection, b"GET / HT")
    sent = answer(connection, StreamId(0), headers=Headers((*LENGTH_2, (b"connection", b"close"))))
    assert sent == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    assert connection.must_close
    assert feed(connection, GET) == []


def test_a_second_blank_line_is_refused_when_it_is_whole() -> None:
    for pieces in ([b"\r\n\r"], [b"\r\n", b"\r"]):
        connection = server()
        for piece in pieces:
            assert feed(connection, piece) == []
        assert fails(connection, b"\n").status == 400
