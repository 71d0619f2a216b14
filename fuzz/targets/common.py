"""What targets share: pieces of the input, the same however it is cut, requests that are said again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias, TypeVar

from fuzz.mutation import split_randomly
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.connection import Connection
from svc_proto.wire.events import (
    AcceptWebSocket,
    BinaryMessage,
    Event,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    TextMessage,
)
from tests.wire.connection_pair import drain, merged, send_events

Target: TypeAlias = Callable[[bytes], None]
T = TypeVar("T")


def split_input(data: bytes) -> list[bytes]:
    """The input in pieces, the same ones each time."""
    return split_randomly(data, Random(len(data)))


def check_chunking_invariance(hear: Callable[[list[bytes]], T], data: bytes) -> T:
    """What is heard of the input, whole and in pieces."""
    whole = hear([data])
    assert hear(split_input(data)) == whole, "chunking changed what is heard"
    return whole


class Replies:
    """What a server says to what it hears: requests are answered, WebSockets accepted and echoed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sockets: dict[StreamId, None] = {}

    def respond(self, event: Event) -> None:
        """Say it."""
        connection, stream = self._connection, event.stream
        if connection.must_close:
            return
        match event:
            case RequestHead(websocket=True):
                self._sockets[stream] = None
            case RequestEnd() if stream in self._sockets:
                connection.send(AcceptWebSocket(stream))
            case RequestEnd():
                send_events(connection, ResponseHead(stream, 200), ResponseData(stream, b"ok"), ResponseEnd(stream))
            case TextMessage() | BinaryMessage():
                connection.send(event)
            case _:
                pass


def round_trip_request(events: Sequence[Event], client: Connection, server: Connection) -> None:
    """Say the first request that was heard once more: our server hears the same from our client as from whoever it was.

    A client may refuse to say what others do; what it says goes through.
    """
    requests = [event for event in events if isinstance(event, RequestHead | RequestData | RequestEnd)]
    head = next((event for event in requests if isinstance(event, RequestHead) and not event.websocket), None)
    mine = [event for event in requests if head is not None and event.stream == head.stream]
    if not mine or not isinstance(mine[-1], RequestEnd):
        return
    try:
        send_events(client, *mine)
    except LocalProtocolError:
        return
    server.receive_data(client.data_to_send())
    assert _comparable_events(merged(drain(server))) == _comparable_events(mine), "a request does not come back"


def _comparable_events(events: Sequence[Event]) -> list[object]:
    """Without what a connection may word in its own way: the version, the framing of a body, the number of a stream."""
    said: list[object] = []
    for event in events:
        match event:
            case RequestHead():
                fields = tuple(pair for pair in event.headers if pair[0] not in FRAMING)
                said.append((event.method, event.target, fields))
            case RequestData(data=data):
                said.append(data)
            case RequestEnd(trailers=trailers):
                said.append(trailers)
            case _:
                said.append(event)
    return said


FRAMING = (b"content-length", b"transfer-encoding", b"connection", b"expect", b"te", b"trailer", b"host")
