"""HTTP/2 between our client and our server: requests, WebSockets, GOAWAY and resets."""

import pytest
from hypothesis import given, settings

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.events import (
    AcceptWebSocket,
    BinaryMessage,
    CloseWebSocket,
    Event,
    Headers,
    Informational,
    Ping,
    Pong,
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
    WebSocketClosed,
)
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.http2_settings import MAX_STREAMS
from tests.wire.chunking import Cuts, cuts
from tests.wire.connection_pair import HOST, ONE, THREE, Pair, open_pair, send_events, signs


@pytest.fixture
def pair() -> Pair[Http2Connection]:
    return Pair(Http2Connection)


TRAILERS = Headers(((b"t", b"v"),))
LENGTH_2 = Headers(((b"content-length", b"2"),))


@given(cuts())
@settings(max_examples=25)
def test_requests_and_responses_however_they_are_cut(sizes: Cuts) -> None:
    pair = Pair(Http2Connection, sizes=sizes)
    length_5 = Headers((*HOST, (b"content-length", b"5")))
    assert pair.client.next_stream == ONE
    send_events(pair.client, RequestHead(ONE, "POST", "/a?b=c", length_5), RequestData(ONE, b"he"))
    send_events(pair.client, RequestData(ONE, b""), RequestData(ONE, b"llo"), RequestEnd(ONE, TRAILERS))
    assert pair.client.next_stream == THREE
    send_events(pair.client, RequestHead(THREE, "GET", "/d", HOST), RequestEnd(THREE))
    assert "idle" not in signs(pair.client)
    _, heard = pair.exchange()
    first: list[Event] = [RequestHead(ONE, "POST", "/a?b=c", length_5, http_version="2")]
    rest: list[Event] = [RequestData(ONE, b"hello"), RequestEnd(ONE, TRAILERS)]
    second = RequestHead(THREE, "GET", "/d", HOST, http_version="2")
    assert heard in ([*first, *rest, second, RequestEnd(THREE)], [*first, second, *rest, RequestEnd(THREE)])
    pair.server.acknowledge_data(ONE, 5)
    send_events(pair.server, Informational(THREE, 103, TRAILERS), ResponseHead(THREE, 200, LENGTH_2))
    send_events(pair.server, ResponseData(THREE, b"ok"), ResponseEnd(THREE, TRAILERS))
    assert pair.exchange()[0] == [
        Informational(THREE, 103, TRAILERS),
        ResponseHead(THREE, 200, LENGTH_2, "2"),
        ResponseData(THREE, b"ok"),
        ResponseEnd(THREE, TRAILERS),
    ]
    send_events(pair.server, ResponseHead(ONE, 204, LENGTH_2), ResponseData(ONE, b"not sent"), ResponseEnd(ONE))
    assert pair.exchange()[0] == [ResponseHead(ONE, 204, http_version="2"), ResponseEnd(ONE)]
    assert "idle" in signs(pair.server)
    assert "idle" in signs(pair.client)
    assert "ready" in signs(pair.client)


def test_the_answer_to_head_has_no_body(pair: Pair[Http2Connection]) -> None:
    send_events(pair.client, RequestHead(ONE, "HEAD", "/", HOST), RequestEnd(ONE))
    pair.exchange()
    send_events(pair.server, ResponseHead(ONE, 200, LENGTH_2), ResponseData(ONE, b"ok"), ResponseEnd(ONE))
    assert pair.exchange()[0] == [ResponseHead(ONE, 200, LENGTH_2, "2"), ResponseEnd(ONE)]


def test_a_large_answer_waits_for_its_reader(pair: Pair[Http2Connection]) -> None:
    send_events(pair.client, RequestHead(ONE, "GET", "/", HOST), RequestEnd(ONE))
    pair.exchange()
    send_events(pair.server, ResponseHead(ONE, 200), ResponseData(ONE, bytes(600_000)), ResponseEnd(ONE))
    assert pair.server.unsent(ONE) == 600_000
    assert "has_unsent" in signs(pair.server)
    heard = pair.exchange()[0]
    window = 262_144
    assert heard[1] == ResponseData(ONE, bytes(window))
    assert pair.server.unsent(ONE) == 600_000 - window
    pair.client.acknowledge_data(ONE, window)
    heard = pair.exchange()[0]
    assert heard == [ResponseData(ONE, bytes(window))]
    pair.client.acknowledge_data(ONE, window + 1)  # more than there was
    assert pair.exchange()[0][-1] == ResponseEnd(ONE)
    assert pair.server.unsent(ONE) == 0
    pair.client.acknowledge_data(ONE, 1)  # of an ended stream
    assert "idle" in signs(pair.client)


def test_requests_before_the_settings_are_refused_beyond_the_limit(pair: Pair[Http2Connection]) -> None:
    for number in range(MAX_STREAMS + 1):
        pair.client.send(RequestHead(StreamId(2 * number + 1), "GET", "/", HOST))
    refused, requests = pair.exchange()
    assert len(requests) == MAX_STREAMS
    assert refused == [StreamReset(StreamId(2 * MAX_STREAMS + 1), "the peer reset the stream")]


def test_streams_take_turns_within_the_given_size(pair: Pair[Http2Connection]) -> None:
    for stream in (ONE, THREE):
        send_events(pair.client, RequestHead(stream, "GET", "/", HOST), RequestEnd(stream))
    pair.exchange()
    for stream in (ONE, THREE):
        pair.server.send(ResponseHead(stream, 200))
        pair.server.send(ResponseData(stream, bytes(20_000)))
        pair.server.send(ResponseData(stream, bytes(20_000)))
    heads = pair.server.data_to_send(0)
    assert 0 < len(heads) < 100
    assert 40_000 < len(pair.server.data_to_send(40_000)) < 41_000
    assert pair.server.unsent(ONE) == 40_000 - 16_384 - 7_232
    assert pair.server.unsent(THREE) == 40_000 - 16_384


# --- WebSockets -------------------------------------------------------------------------------------------------


@given(cuts())
@settings(max_examples=25)
def test_a_websocket(sizes: Cuts) -> None:
    pair = Pair(Http2Connection, sizes=sizes)
    pair.client.send(RequestHead(ONE, "GET", "/ws", Headers((*HOST, (b"sec-websocket-protocol", b"a, B"))), True))
    pair.client.send(RequestEnd(ONE))
    assert pair.client.next_stream == THREE
    pair.client.send(RequestHead(THREE, "GET", "/", HOST))  # after it
    _, (head, end, *_rest) = pair.exchange()
    assert isinstance(head, RequestHead)
    assert (head.method, head.target, head.websocket, head.http_version) == ("GET", "/ws", True, "2")
    assert end == RequestEnd(ONE)
    with pytest.raises(LocalProtocolError, match="subprotocol"):
        pair.server.send(AcceptWebSocket(ONE, subprotocol="b"))
    send_events(pair.server, AcceptWebSocket(ONE, TRAILERS, "B"), TextMessage(ONE, "welcome"))
    (accepted, text), _ = pair.exchange()
    assert isinstance(accepted, WebSocketAccepted)
    assert (accepted.subprotocol, accepted.deflate, accepted.headers.get(b"t")) == ("B", True, b"v")
    assert text == TextMessage(ONE, "welcome")
    send_events(pair.client, TextMessage(ONE, "x" * 5000), BinaryMessage(ONE, b"y"), Ping(ONE, b"p"))
    heard = pair.exchange()
    assert heard == ([Pong(ONE, b"p")], [TextMessage(ONE, "x" * 5000), BinaryMessage(ONE, b"y"), Ping(ONE, b"p")])
    pair.server.send(CloseWebSocket(ONE, 1001, "bye"))
    assert pair.exchange() == ([WebSocketClosed(ONE, 1001, "bye")], [WebSocketClosed(ONE, 1001)])
    with pytest.raises(LocalProtocolError):
        pair.server.send(TextMessage(ONE, "late"))


def test_a_websocket_without_compression() -> None:
    pair = open_pair(Http2Connection, deflate=False)
    pair.client.send(TextMessage(ONE, "x" * 2000))
    assert len(pair.client.data_to_send()) > 2000


def test_a_websocket_that_was_declined(pair: Pair[Http2Connection]) -> None:
    pair.client.send(RequestHead(ONE, "GET", "/ws", HOST, websocket=True))
    pair.exchange()
    send_events(pair.server, ResponseHead(ONE, 403, LENGTH_2), ResponseData(ONE, b"no"), ResponseEnd(ONE))
    heard: list[Event] = [ResponseHead(ONE, 403, LENGTH_2, "2"), ResponseData(ONE, b"no"), ResponseEnd(ONE)]
    assert pair.exchange() == (heard, [])
    assert "idle" in signs(pair.server)
    assert "idle" in signs(pair.client)


def test_the_end_of_the_stream_is_the_end_of_a_websocket() -> None:
    pair = open_pair(Http2Connection)
    pair.client.reset_stream(ONE)
    pair.client.reset_stream(ONE)
    _, (closed,) = pair.exchange()
    assert isinstance(closed, WebSocketClosed)
    assert (closed.code, closed.clean) == (1006, False)
    assert "idle" in signs(pair.server)
    pair = open_pair(Http2Connection)
    pair.server.receive_eof()
    closed_or_none = pair.server.next_event()
    assert isinstance(closed_or_none, WebSocketClosed)
    assert pair.server.next_event() is None
    assert "must_close" in signs(pair.server)


def test_a_stream_reset_after_its_close_frame() -> None:
    pair = open_pair(Http2Connection)
    pair.client.send(CloseWebSocket(ONE))
    pair.server.receive_data(pair.client.data_to_send())
    assert pair.server.next_event() == WebSocketClosed(ONE, 1000)
    pair.server.send(StreamReset(ONE))
    assert pair.server.unsent(ONE) == 4  # the close frame
    assert pair.server.knows(ONE)
    assert pair.server.unsent(THREE) == 0
    heard, _ = pair.exchange()
    assert heard == [WebSocketClosed(ONE, 1000)]
    assert "idle" in signs(pair.server)
    assert "idle" in signs(pair.client)


# --- the end ----------------------------------------------------------------------------------------------------


def test_goaway_lets_open_streams_finish(pair: Pair[Http2Connection]) -> None:
    send_events(pair.client, RequestHead(ONE, "GET", "/", HOST), RequestEnd(ONE))
    pair.exchange()
    pair.client.send(RequestHead(THREE, "GET", "/", HOST))
    crossing = pair.client.data_to_send()
    pair.server.go_away()
    pair.server.go_away()
    assert "must_close" not in signs(pair.server)
    (reset,), _ = pair.exchange()
    assert isinstance(reset, StreamReset)
    assert reset.stream == THREE
    pair.server.receive_data(crossing)
    assert pair.server.next_event() is None
    send_events(pair.server, ResponseHead(ONE, 200), ResponseEnd(ONE))
    assert pair.exchange()[0] == [ResponseHead(ONE, 200, http_version="2"), ResponseEnd(ONE)]
    assert "must_close" in signs(pair.server)
    assert "must_close" in signs(pair.client)
    assert "ready" not in signs(pair.client)
    with pytest.raises(LocalProtocolError, match="not now"):
        pair.client.send(RequestHead(pair.client.next_stream, "GET", "/", HOST))


def test_an_end_of_input_within_a_message(pair: Pair[Http2Connection]) -> None:
    send_events(
        pair.client, RequestHead(ONE, "POST", "/", HOST), RequestHead(THREE, "GET", "/", HOST), RequestEnd(THREE)
    )
    pair.exchange()
    pair.server.receive_eof()
    event = pair.server.next_event()
    assert isinstance(event, StreamReset)
    assert event.stream == ONE
    assert pair.server.next_event() is None
    assert "must_close" not in signs(pair.server)  # the other stream is still answered
    send_events(pair.server, ResponseHead(THREE, 200), ResponseEnd(THREE))
    assert pair.server.data_to_send()
    assert "must_close" in signs(pair.server)
    pair.client.receive_eof()
    assert [type(event) for event in (pair.client.next_event(), pair.client.next_event())] == [StreamReset] * 2
    assert "must_close" in signs(pair.client)


def test_resetting_a_stream(pair: Pair[Http2Connection]) -> None:
    for stream in (ONE, THREE):
        send_events(pair.client, RequestHead(stream, "POST", "/", HOST), RequestData(stream, b"part"))
    pair.exchange()
    send_events(pair.server, ResponseHead(ONE, 413, LENGTH_2), ResponseData(ONE, b"no"), ResponseEnd(ONE))
    pair.server.send(StreamReset(ONE))  # after the answer
    pair.server.send(StreamReset(THREE))
    heard, _ = pair.exchange()
    resets = [event.stream for event in heard if isinstance(event, StreamReset)]
    assert resets == [THREE]
    assert ResponseEnd(ONE) in heard
    assert "idle" in signs(pair.server)
    assert "idle" in signs(pair.client)
    pair.client.send(RequestHead(pair.client.next_stream, "POST", "/", HOST))
    pair.exchange()
    pair.client.send(StreamReset(pair.client.next_stream - 2))  # type: ignore[arg-type] # the last one
    _, (reset,) = pair.exchange()
    assert isinstance(reset, StreamReset)
