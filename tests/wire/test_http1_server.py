"""The server's end of HTTP/1.1, as playbooks of bytes and events."""

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    AcceptWebSocket,
    Event,
    Headers,
    Informational,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseBodyDelegated,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    StreamReset,
    TextMessage,
    WebSocketClosed,
)
from svc_proto.wire.http1 import Http1Connection
from tests.wire.connection_pair import ONE, THREE, TWO, drain, feed, merged, seeded, send_events, signs
from tests.wire.http1_server import CHUNKED, EXPECTING, GET, GET_HEAD, LENGTH_2, POST, TEXT_HI, UPGRADE, answer, server

# --- requests and responses -------------------------------------------------------------------------------------


def test_a_request_and_its_response(connection: Http1Connection) -> None:
    assert signs(connection) == ["idle"]
    assert feed(connection, GET) == [GET_HEAD, RequestEnd(ONE)]
    assert signs(connection) == []
    assert answer(connection, ONE) == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    assert signs(connection) == ["idle"]
    assert connection.data_to_send() == b""
    assert feed(connection, GET)[1] == RequestEnd(TWO)
    assert answer(connection, TWO) == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.mark.parametrize("first", [GET, POST, CHUNKED])
def test_pipelined_requests_wait_for_their_turn(connection: Http1Connection, first: bytes) -> None:
    events = feed(connection, first + POST + GET)
    assert events[-1].stream == 1
    assert signs(connection) == ["paused"]
    answer(connection, ONE)
    assert signs(connection) == ["has_partial_head"]
    events = merged(drain(connection))
    assert [type(event) for event in events] == [RequestHead, RequestData, RequestEnd]
    assert {event.stream for event in events} == {2}
    assert signs(connection) == ["paused"]
    answer(connection, TWO)
    assert [type(event) for event in drain(connection)] == [RequestHead, RequestEnd]
    assert signs(connection) == []
    answer(connection, THREE)
    assert connection.idle


def test_an_incomplete_head_is_pending(connection: Http1Connection) -> None:
    connection.receive_data(b"")
    assert feed(connection, GET[:-1]) == []
    assert connection.has_partial_head
    assert not connection.idle
    assert not connection.paused
    assert feed(connection, GET[-1:])[0] == GET_HEAD
    assert not connection.has_partial_head


@pytest.mark.parametrize(
    ("method", "status", "head"),
    [
        (b"GET", 204, b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"GET", 304, b"HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\n"),
        (b"HEAD", 200, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"),
    ],
)
def test_some_responses_have_no_body(connection: Http1Connection, method: bytes, status: int, head: bytes) -> None:
    feed(connection, GET.replace(b"GET", method))
    send_events(connection, ResponseHead(ONE, status, LENGTH_2), ResponseData(ONE, b"ok"), ResponseEnd(ONE))
    assert connection.data_to_send() == head
    assert connection.idle
    feed(connection, GET)
    assert answer(connection, TWO).endswith(b"ok")


def test_a_body_of_unknown_length_is_chunked(connection: Http1Connection) -> None:
    feed(connection, GET)
    connection.send(ResponseHead(ONE, 299))
    connection.send(ResponseData(ONE, b""))
    connection.send(ResponseData(ONE, b"abc"))
    connection.send(ResponseEnd(ONE, Headers(((b"t", b"v"),))))
    expected = b"HTTP/1.1 299 Unknown\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nt: v\r\n\r\n"
    assert connection.data_to_send() == expected
    assert connection.idle


def test_http_1_0_ends_with_the_connection(connection: Http1Connection) -> None:
    head = feed(connection, b"GET / HTTP/1.0\r\n\r\n")[0]
    assert isinstance(head, RequestHead)
    assert head.http_version == "1.0"
    connection.send(Informational(ONE, 103))  # dropped: HTTP/1.0 does not have them
    assert answer(connection, ONE, headers=Headers()) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"
    assert connection.must_close


@pytest.mark.parametrize("asked", [True, False])
def test_either_side_can_ask_to_close(connection: Http1Connection, asked: bool) -> None:
    feed(connection, GET.replace(b"X-A: 1", b"Connection: close") if asked else GET)
    close = Headers(((b"content-length", b"2"), (b"connection", b"close")))
    sent = answer(connection, ONE, headers=LENGTH_2 if asked else close)
    assert b"onnection: close" in sent
    assert connection.must_close
    assert not connection.idle
    connection.receive_data(GET)
    assert connection.next_event() is None
    with pytest.raises(LocalProtocolError, match="over"):
        connection.send(ResponseHead(ONE, 200))


# --- interim responses and early answers ------------------------------------------------------------------------


def test_continue(connection: Http1Connection) -> None:
    head = feed(connection, EXPECTING[:-5])[0]
    assert isinstance(head, RequestHead)
    assert head.expects_continue
    connection.send(Informational(ONE, 100))
    assert connection.data_to_send() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert feed(connection, b"hello") == [RequestData(ONE, b"hello"), RequestEnd(ONE)]
    answer(connection, ONE)
    assert connection.idle
    feed(connection, EXPECTING[:-5])
    assert b"onnection: close" in answer(connection, TWO)  # a final answer instead
    assert connection.must_close


@pytest.mark.parametrize("closes", [False, True])
def test_an_early_answer_lets_the_body_come(connection: Http1Connection, closes: bool) -> None:
    feed(connection, POST[:-3])
    answer(connection, ONE, headers=Headers((*LENGTH_2, *([(b"connection", b"close")] if closes else []))))
    assert connection.must_close is closes
    assert not connection.idle
    assert feed(connection, b"llo" + GET)[:2] == [RequestData(ONE, b"llo"), RequestEnd(ONE)]
    assert signs(connection) == (["must_close"] if closes else [])


def test_an_answer_before_the_request_end_was_taken(connection: Http1Connection) -> None:
    connection.receive_data(GET + GET)
    assert connection.next_event() == GET_HEAD
    answer(connection, ONE)
    assert connection.paused
    assert [event.stream for event in drain(connection)] == [1, 2, 2]


# --- ends of input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\n"])
def test_end_between_requests_or_within_a_head(connection: Http1Connection, begun: bytes) -> None:
    feed(connection, begun)
    connection.receive_eof()
    assert connection.next_event() is None
    assert connection.must_close
    connection.receive_data(GET)
    assert connection.next_event() is None


@pytest.mark.parametrize("whole", [POST, CHUNKED])
def test_end_within_a_body(connection: Http1Connection, whole: bytes) -> None:
    feed(connection, whole[:-4])
    connection.receive_eof()
    assert connection.next_event() == StreamReset(ONE, "the connection ended within a message")
    assert connection.next_event() is None
    assert connection.must_close
    with pytest.raises(LocalProtocolError, match="over"):
        connection.send(ResponseHead(ONE, 200))


def test_a_half_closed_peer_still_gets_its_answers(connection: Http1Connection) -> None:
    connection.receive_data(GET + GET)
    connection.receive_eof()
    drain(connection)
    answer(connection, ONE)
    assert not connection.must_close
    assert [event.stream for event in drain(connection)] == [2, 2]
    answer(connection, TWO)
    assert not connection.idle
    assert connection.next_event() is None
    assert connection.must_close


# --- our own mistakes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        RequestHead(ONE, "GET", "/"),
        *(ResponseData(ONE, b"x"), ResponseEnd(ONE), ResponseHead(TWO, 200), ResponseHead(ONE, 1000)),
        ResponseHead(ONE, 200, Headers(((b"x", b"s3cret\r\ny: z"),))),
        ResponseHead(ONE, 200, Headers(((b"x y", b"s3cret"),))),
        Informational(ONE, 101),
        Informational(ONE, 200),
        Informational(ONE, 103, Headers(((b"x", b"s3cret\n"),))),
        AcceptWebSocket(ONE),
        TextMessage(ONE, "x"),
    ],
)
def test_events_that_cannot_be_sent(connection: Http1Connection, event: Event) -> None:
    feed(connection, GET)
    with pytest.raises(LocalProtocolError) as caught:
        connection.send(event)
    assert "s3cret" not in str(caught.value)


def test_nothing_can_be_accepted_without_a_request() -> None:
    with pytest.raises(LocalProtocolError, match="AcceptWebSocket"):
        server().send(AcceptWebSocket(StreamId(0)))
    server().send(Informational(StreamId(0), 100))  # there is no request


def test_a_valid_head_may_follow_a_malformed_one(connection: Http1Connection) -> None:
    feed(connection, GET)
    with pytest.raises(LocalProtocolError):
        connection.send(ResponseHead(ONE, 200, Headers(((b"x", b"\n"),))))
    assert answer(connection, ONE).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("body", [b"o", b"okay"])
def test_a_body_of_another_length_than_promised(connection: Http1Connection, body: bytes) -> None:
    feed(connection, GET)
    with pytest.raises(LocalProtocolError):
        answer(connection, ONE, body)


# --- the upgrade ------------------------------------------------------------------------------------------------


def test_upgrade(connection: Http1Connection) -> None:
    head, end = feed(connection, UPGRADE)
    assert isinstance(head, RequestHead)
    assert head.websocket
    assert end == RequestEnd(ONE)
    connection.send(AcceptWebSocket(ONE, Headers(((b"x", b"y"),))))
    # the key and the token are those of RFC 6455 section 1.3
    assert connection.data_to_send() == (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
        b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nx: y\r\n\r\n"
    )
    assert feed(connection, TEXT_HI) == [TextMessage(ONE, "hi")]
    connection.send(TextMessage(ONE, "ho"))
    assert connection.data_to_send() == b"\x81\x02ho"
    with pytest.raises(LocalProtocolError, match="stream 2"):
        connection.send(TextMessage(TWO, "ho"))
    assert signs(connection) == []
    connection.receive_eof()
    (closed,) = drain(connection)
    assert isinstance(closed, WebSocketClosed)
    assert connection.must_close


@pytest.mark.parametrize("early", [True, False])
def test_frames_and_the_end_right_after_the_handshake_are_kept(connection: Http1Connection, early: bool) -> None:
    connection.receive_data(UPGRADE + TEXT_HI[:4])
    if early:
        assert isinstance(connection.next_event(), RequestHead)
    else:
        assert len(drain(connection)) == 2
    assert signs(connection) == ["paused"]
    connection.receive_data(TEXT_HI[4:])
    connection.receive_eof()
    connection.send(AcceptWebSocket(ONE))
    text, closed = drain(connection)
    assert text == TextMessage(ONE, "hi")
    assert isinstance(closed, WebSocketClosed)
    assert closed.code == 1006
    assert connection.must_close


def test_an_upgrade_can_be_declined(connection: Http1Connection) -> None:
    feed(connection, UPGRADE)
    answer(connection, ONE)
    assert connection.idle
    assert feed(connection, GET)[1] == RequestEnd(TWO)


@pytest.mark.parametrize(
    "request_bytes",
    [
        UPGRADE.replace(b"13", b"8"),
        UPGRADE.replace(b"websocket", b"h2c"),
        UPGRADE.replace(b"Host: a", b"Host: a\r\nContent-Length: 00"),
    ],
)
def test_other_upgrades_are_ordinary_requests(connection: Http1Connection, request_bytes: bytes) -> None:
    head, end = feed(connection, request_bytes)
    assert isinstance(head, RequestHead)
    assert not head.websocket
    assert end == RequestEnd(ONE)
    with pytest.raises(LocalProtocolError, match="AcceptWebSocket"):
        connection.send(AcceptWebSocket(ONE))
    answer(connection, ONE)
    assert connection.idle


def test_a_handshake_may_have_content_length_0(connection: Http1Connection) -> None:
    head = feed(connection, UPGRADE.replace(b"Host: a", b"Host: a\r\nContent-Length: 0"))[0]
    assert isinstance(head, RequestHead)
    assert head.websocket
    connection.send(AcceptWebSocket(ONE))
    assert connection.data_to_send().startswith(b"HTTP/1.1 101 ")


def test_a_subprotocol_must_have_been_offered(connection: Http1Connection) -> None:
    feed(connection, UPGRADE.replace(b"Host: a", b"Host: a\r\nSec-WebSocket-Protocol: One, two"))
    with pytest.raises(LocalProtocolError, match="subprotocol"):
        connection.send(AcceptWebSocket(ONE, subprotocol="one"))
    connection.send(AcceptWebSocket(ONE, subprotocol="One"))
    assert b"sec-websocket-protocol: One\r\n" in connection.data_to_send()


# --- a body that is written elsewhere ---


def test_delegated_bodies_are_counted_and_not_written(connection: Http1Connection) -> None:
    feed(connection, GET + GET)
    connection.send(ResponseHead(ONE, 200, Headers(((b"content-length", b"7"),))))
    connection.send(ResponseBodyDelegated(ONE, 3))
    connection.send(ResponseData(ONE, b"."))
    connection.send(ResponseBodyDelegated(ONE, 0))
    connection.send(ResponseBodyDelegated(ONE, 3))
    assert connection.data_to_send() == b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n."
    assert signs(connection) == ["paused"]
    connection.send(ResponseEnd(ONE))
    assert connection.data_to_send() == b""
    assert drain(connection)[0] == RequestHead(TWO, "GET", "/health?x=1", GET_HEAD.headers)


def test_delegated_bodies_may_exceed_memory(connection: Http1Connection) -> None:
    feed(connection, GET.replace(b"GET", b"HEAD"))
    send_events(connection, ResponseHead(ONE, 200, LENGTH_2), ResponseBodyDelegated(ONE, 2), ResponseEnd(ONE))
    assert connection.data_to_send() == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"  # HEAD: there is none
    feed(connection, GET)
    size = 9_000_000_000_000_000_000
    connection.send(ResponseHead(TWO, 200, Headers(((b"content-length", b"%d" % size),))))
    send_events(connection, ResponseBodyDelegated(TWO, size), ResponseEnd(TWO))
    assert connection.idle


@pytest.mark.parametrize("headers", [LENGTH_2, Headers()], ids=["too long", "no length"])
def test_delegated_bodies_must_fit_the_head(connection: Http1Connection, headers: Headers) -> None:
    feed(connection, GET)
    connection.send(ResponseHead(ONE, 200, headers))
    with pytest.raises(LocalProtocolError):
        connection.send(ResponseBodyDelegated(ONE, 3))


def test_a_client_sends_no_delegated_body() -> None:
    connection = Http1Connection(Role.CLIENT, entropy=seeded())
    connection.send(RequestHead(ONE, "GET", "/", Headers(((b"host", b"a"),))))
    with pytest.raises(LocalProtocolError):
        connection.send(ResponseBodyDelegated(ONE, 3))
