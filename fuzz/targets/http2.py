"""Fuzz targets of HTTP/2: a server's input after the preface, and the responses to a client."""

from collections.abc import Sequence

from fuzz.targets.common import Replies, check_chunking_invariance, round_trip_request
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Event, Headers, RequestData, RequestEnd, RequestHead, ResponseData, TextMessage
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.http2_frames import PREFACE
from tests.wire.connection_pair import FIVE, ONE, THREE, ConnectionOutcome, outcome, send_events

HOST = Headers(((b"host", b"a"),))


def http2(data: bytes) -> None:
    """Check that a server has the same results for any chunking of `data` after the preface.

    It answers requests, and accepts and echoes WebSockets. Its first request must be received equally if our client
    sends it.
    """
    heard = check_chunking_invariance(_serve, PREFACE + data).heard
    server = _server()
    round_trip_request([_as_first(event) for event in _first_request(heard)], _settled_client(server), server)


def answer2(data: bytes) -> None:
    """Check that a client with a GET, a POST and a WebSocket has the same results for any chunking of the responses."""
    check_chunking_invariance(_listen, data)


def _server() -> Http2Connection:
    return Http2Connection(Role.SERVER, entropy=bytes)


def _serve(pieces: list[bytes]) -> ConnectionOutcome:
    connection = _server()
    replies = Replies(connection)

    def attend(event: Event) -> None:
        if isinstance(event, RequestData):
            connection.acknowledge_data(event.stream, len(event.data))
        if connection.knows(event.stream):
            replies.respond(event)

    return outcome(connection, pieces, attend)


def _listen(pieces: list[bytes]) -> ConnectionOutcome:
    connection = Http2Connection(Role.CLIENT, entropy=bytes)
    send_events(connection, RequestHead(ONE, "GET", "/", HOST), RequestEnd(ONE))
    connection.send(RequestHead(THREE, "POST", "/x", Headers((*HOST, (b"content-length", b"70000")))))
    send_events(connection, RequestData(THREE, b"x" * 70_000), RequestEnd(THREE))  # more than a window
    connection.send(RequestHead(FIVE, "GET", "/ws", HOST, websocket=True))
    connection.data_to_send()

    def attend(event: Event) -> None:
        if isinstance(event, ResponseData):
            connection.acknowledge_data(event.stream, len(event.data))
        elif isinstance(event, TextMessage) and connection.knows(event.stream):
            connection.send(event)

    return outcome(connection, pieces, attend, eof=True)


def _first_request(events: Sequence[Event]) -> list[Event]:
    first = next((event.stream for event in events if isinstance(event, RequestHead)), None)
    return [event for event in events if event.stream == first]


def _as_first(event: Event) -> Event:
    match event:
        case RequestHead():
            return RequestHead(ONE, event.method, event.target, event.headers, event.websocket)
        case RequestData(data=data):
            return RequestData(ONE, data)
        case RequestEnd(trailers=trailers):
            return RequestEnd(ONE, trailers)
        case _:
            return event


def _settled_client(server: Http2Connection) -> Http2Connection:
    client = Http2Connection(Role.CLIENT, entropy=bytes)
    for _ in range(2):
        server.receive_data(client.data_to_send())
        assert server.next_event() is None
        client.receive_data(server.data_to_send())
        assert client.next_event() is None
    return client
