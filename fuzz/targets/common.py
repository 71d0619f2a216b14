"""Common parts of fuzz targets: splitting of the input, chunking invariance, and a second round trip of requests."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias, TypeVar

from fuzz.mutation import split_randomly
from svc_proto import wire
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.connection import Connection
from tests.wire.connection_pair import drain, merged, send_events

Target: TypeAlias = Callable[[bytes], None]
T = TypeVar("T")


def split_input(data: bytes) -> list[bytes]:
    """Split the input into random pieces, which depend on its length only."""
    return split_randomly(data, Random(len(data)))


def check_chunking_invariance(hear: Callable[[list[bytes]], T], data: bytes) -> T:
    """Return the result of `hear` for the whole input, and check that it is the same for the split input."""
    whole = hear([data])
    assert hear(split_input(data)) == whole, "chunking changed what is heard"
    return whole


class Replies:
    """Server that answers requests, and accepts and echoes WebSockets."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sockets: dict[wire.StreamId, None] = {}

    def respond(self, event: wire.Event) -> None:
        """Answer a request with 200, accept a WebSocket, or echo a message, as the event requires.

        Send nothing if the connection must close.
        """
        connection, stream = self._connection, event.stream
        if connection.must_close:
            return
        match event:
            case wire.RequestHead(websocket=True):
                self._sockets[stream] = None
            case wire.RequestEnd() if stream in self._sockets:
                connection.send(wire.AcceptWebSocket(stream))
            case wire.RequestEnd():
                send_events(
                    connection,
                    wire.ResponseHead(stream, 200),
                    wire.ResponseData(stream, b"ok"),
                    wire.ResponseEnd(stream),
                )
            case wire.TextMessage() | wire.BinaryMessage():
                connection.send(event)
            case _:
                pass


def round_trip_request(events: Sequence[wire.Event], client: Connection, server: Connection) -> None:
    """Send the first request of `events` that opens no WebSocket with our client: our server must receive the same.

    Do nothing if there is none, it is incomplete, or the client refuses to send it.
    """
    requests = [event for event in events if isinstance(event, wire.RequestHead | wire.RequestData | wire.RequestEnd)]
    head = next((event for event in requests if isinstance(event, wire.RequestHead) and not event.websocket), None)
    mine = [event for event in requests if head is not None and event.stream == head.stream]
    if not mine or not isinstance(mine[-1], wire.RequestEnd):
        return
    try:
        send_events(client, *mine)
    except LocalProtocolError:
        return
    server.receive_data(client.data_to_send())
    assert _comparable_events(merged(drain(server))) == _comparable_events(mine), "a request does not come back"


def _comparable_events(events: Sequence[wire.Event]) -> list[object]:
    said: list[object] = []
    for event in events:
        match event:
            case wire.RequestHead():
                fields = tuple(pair for pair in event.headers if pair[0] not in FRAMING)
                said.append((event.method, event.target, fields))
            case wire.RequestData(data=data):
                said.append(data)
            case wire.RequestEnd(trailers=trailers):
                said.append(trailers)
            case _:
                said.append(event)
    return said


FRAMING = (b"content-length", b"transfer-encoding", b"connection", b"expect", b"te", b"trailer", b"host")
