"""The client's end of HTTP/1.1, as playbooks of bytes and events."""

import pytest
from hypothesis import given

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    AcceptWebSocket,
    Event,
    Headers,
    Informational,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    StreamReset,
    TextMessage,
    WebSocketAccepted,
)
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import Limits
from tests.wire.chunking import Cuts, cuts
from tests.wire.connection_pair import HOST, ONE, TWO, drain, feed, seeded, send_events

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SMALL = Limits(max_head=300, max_fields=5)


def client(limits: Limits = SMALL, *, deflate: bool = False) -> Http1Connection:
    return Http1Connection(Role.CLIENT, limits=limits, entropy=seeded(), deflate=deflate)


@pytest.fixture
def connection() -> Http1Connection:
    return client()


def ask(connection: Http1Connection, stream: StreamId = ONE, method: str = "GET", *, websocket: bool = False) -> bytes:
    send_events(connection, RequestHead(stream, method, "/a?b", HOST, websocket=websocket), RequestEnd(stream))
    return connection.data_to_send()


@given(cuts())
def test_requests_one_after_another(sizes: Cuts) -> None:
    connection = client()
    for stream in (ONE, TWO):
        assert connection.idle
        assert ask(connection, stream) == b"GET /a?b HTTP/1.1\r\nhost: relay.example:8767\r\n\r\n"
        assert feed(connection, b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" + OK, sizes) == [
            Informational(stream, 103, Headers(((b"x", b"y"),))),
            ResponseHead(stream, 200, Headers(((b"content-length", b"2"),))),
            ResponseData(stream, b"ok"),
            ResponseEnd(stream),
        ]


def test_interim_responses_without_end(connection: Http1Connection) -> None:
    hint = b"HTTP/1.1 102 Processing\r\n\r\n"
    for stream in (ONE, TWO):
        ask(connection, stream)
        assert len(feed(connection, hint * 1000 + OK)) == 1003
    ask(connection, StreamId(3))
    with pytest.raises(RemoteProtocolError, match="interim"):
        feed(connection, hint * 1001)
    assert connection.must_close


def test_a_request_with_a_body(connection: Http1Connection) -> None:
    connection.send(RequestHead(ONE, "POST", "/", Headers((*HOST, (b"transfer-encoding", b"chunked")))))
    connection.send(RequestData(ONE, b""))
    connection.send(RequestData(ONE, b"hello"))
    connection.send(RequestEnd(ONE, Headers(((b"t", b"v"),))))
    assert connection.data_to_send().endswith(b"\r\n\r\n5\r\nhello\r\n0\r\nt: v\r\n\r\n")


def test_an_answer_before_the_request_is_complete(connection: Http1Connection) -> None:
    connection.send(RequestHead(ONE, "POST", "/", Headers((*HOST, (b"content-length", b"5")))))
    assert feed(connection, OK)[-1] == ResponseEnd(ONE)
    assert not connection.idle
    send_events(connection, RequestData(ONE, b"hello"), RequestEnd(ONE))
    ask(connection, TWO)


@pytest.mark.parametrize(
    ("method", "response", "closes"),
    [
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", False),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", False),
        ("GET", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", True),
        ("GET", b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        ("GET", b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", False),
        ("GET", OK + b"junk", True),
    ],
)
def test_which_responses_keep_the_connection(
    connection: Http1Connection, method: str, response: bytes, closes: bool
) -> None:
    ask(connection, method=method)
    assert isinstance(feed(connection, response)[-1], ResponseEnd)
    assert connection.must_close is closes
    assert connection.idle is not closes
    if closes:
        with pytest.raises(LocalProtocolError, match="over"):
            ask(connection, TWO)


def test_a_body_that_ends_with_the_connection(connection: Http1Connection) -> None:
    ask(connection)
    assert feed(connection, b"HTTP/1.1 200 OK\r\n\r\nabc") == [ResponseHead(ONE, 200), ResponseData(ONE, b"abc")]
    connection.receive_eof()
    assert drain(connection) == [ResponseEnd(ONE)]
    assert connection.must_close
    connection = client()
    ask(connection)
    feed(connection, OK)
    connection.receive_eof()  # between requests
    assert drain(connection) == []
    assert connection.must_close


@pytest.mark.parametrize(
    "begun", [b"", b"HTTP/1.1 2", OK[:-1], b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]
)
def test_the_end_before_the_response(connection: Http1Connection, begun: bytes) -> None:
    ask(connection)
    feed(connection, begun)
    connection.receive_eof()
    (event,) = drain(connection)
    assert isinstance(event, StreamReset)
    assert event.stream == 1
    assert connection.must_close


@pytest.mark.parametrize("sizes", [[1], [1_000_000]])
@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 099 What\r\n\r\n",
    ],
)
def test_a_refused_response_ends_the_connection(connection: Http1Connection, response: bytes, sizes: Cuts) -> None:
    ask(connection)
    with pytest.raises(RemoteProtocolError):
        feed(connection, response, sizes)
    assert connection.next_event() is None
    assert connection.must_close
    with pytest.raises(LocalProtocolError, match="over"):
        ask(connection)


def test_a_response_to_nothing(connection: Http1Connection) -> None:
    connection.receive_data(OK)
    with pytest.raises(RemoteProtocolError, match="no request"):
        connection.next_event()


@pytest.mark.parametrize(
    "event",
    [
        RequestHead(TWO, "GET", "/", HOST),
        RequestHead(ONE, "GET", "/"),
        RequestHead(ONE, "GET", "/ x", HOST),
        RequestHead(ONE, "GET", "/\N{EURO SIGN}", HOST),
        RequestHead(ONE, "G T", "/", HOST),
        RequestHead(ONE, "GET", "/", Headers((*HOST, (b"authorization", b"s3cret\n")))),
        *(RequestData(ONE, b"x"), RequestEnd(ONE), RequestEnd(StreamId(0)), ResponseHead(ONE, 200)),
    ],
)
def test_events_that_cannot_be_sent_first(connection: Http1Connection, event: Event) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        connection.send(event)
    assert "s3cret" not in str(caught.value)
    ask(connection)


@pytest.mark.parametrize(
    "event", [RequestHead(ONE, "GET", "/", HOST), RequestData(ONE, b"x"), ResponseEnd(ONE), RequestEnd(TWO)]
)
def test_events_that_cannot_be_sent_during_a_request(connection: Http1Connection, event: Event) -> None:
    connection.send(RequestHead(ONE, "GET", "/", HOST))
    with pytest.raises(LocalProtocolError):
        connection.send(event)


# --- the upgrade ------------------------------------------------------------------------------------------------


def switching(request: bytes, extra: bytes = b"") -> bytes:
    """Return the 101 of our server for the WebSocket handshake `request`, with `extra` header fields."""
    server = Http1Connection(Role.SERVER, entropy=seeded())
    server.receive_data(request)
    drain(server)
    server.send(AcceptWebSocket(ONE))
    return server.data_to_send().replace(b"\r\n\r\n", b"\r\n" + extra + b"\r\n")


def test_upgrade(connection: Http1Connection) -> None:
    request = ask(connection, websocket=True)
    assert ask(client(), websocket=True) == request  # the key comes from the entropy
    assert b"\r\nsec-websocket-version: 13\r\n" in request
    assert b"extensions" not in request
    accepted, text = feed(connection, switching(request) + b"\x81\x02hi")
    assert isinstance(accepted, WebSocketAccepted)
    assert (accepted.stream, accepted.subprotocol, accepted.deflate) == (1, None, False)
    assert text == TextMessage(ONE, "hi")


def test_a_declined_upgrade(connection: Http1Connection) -> None:
    ask(connection, websocket=True)
    assert feed(connection, OK)[0] == ResponseHead(ONE, 200, Headers(((b"content-length", b"2"),)))
    assert connection.idle
    ask(connection, TWO)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"upgrade: websocket", b"upgrade: h2c"),
        (b"connection: Upgrade", b"connection: close"),
        (b"accept: ", b"accept: x"),
        (b"sec-websocket-accept", b"x"),
        (b"\r\n\r\n", b"\r\nsec-websocket-protocol: chat\r\n\r\n"),
        (b"\r\n\r\n", b"\r\nsec-websocket-extensions: permessage-deflate\r\n\r\n"),
    ],
)
def test_an_invalid_101_is_refused(connection: Http1Connection, old: bytes, new: bytes) -> None:
    answer = switching(ask(connection, websocket=True)).replace(old, new)
    with pytest.raises(RemoteProtocolError):
        feed(connection, answer)
    assert connection.must_close


def test_a_101_for_another_upgrade_is_refused(connection: Http1Connection) -> None:
    send_events(connection, RequestHead(ONE, "GET", "/", Headers((*HOST, (b"upgrade", b"h2c")))), RequestEnd(ONE))
    with pytest.raises(RemoteProtocolError, match="101"):
        feed(connection, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n")


def test_subprotocol(connection: Http1Connection) -> None:
    connection.send(
        RequestHead(ONE, "GET", "/", Headers((*HOST, (b"sec-websocket-protocol", b"a, Chat"))), websocket=True)
    )
    (accepted,) = feed(connection, switching(connection.data_to_send(), b"sec-websocket-protocol: Chat\r\n"))
    assert isinstance(accepted, WebSocketAccepted)
    assert accepted.subprotocol == "Chat"


@pytest.mark.parametrize("extension", [b"permessage-deflate; x=y", b"x", b"permessage-deflate, x"])
def test_a_compression_that_was_not_offered(extension: bytes) -> None:
    connection = client(deflate=True)
    request = ask(connection, websocket=True).replace(b"permessage", b"other")
    with pytest.raises(RemoteProtocolError, match="Extensions"):
        feed(connection, switching(request, b"sec-websocket-extensions: " + extension + b"\r\n"))
