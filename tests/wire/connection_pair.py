"""Helpers for HTTP connections without IO: the events of bytes, and a client and a server in memory."""

import random
from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import frozen

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.events import (
    AcceptWebSocket,
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    StreamId,
    WebSocketAccepted,
)
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http2 import Http2Connection
from tests.wire.chunking import Cuts, cut

ONE, TWO, THREE, FIVE = StreamId(1), StreamId(2), StreamId(3), StreamId(5)
HOST = Headers(((b"host", b"relay.example:8767"),))
WHOLE: Cuts = [1_000_000]
C = TypeVar("C", Http1Connection, Http2Connection)


def seeded(seed: int = 0) -> Entropy:
    """Return entropy that is the same on every run."""
    generator = random.Random(seed)
    return generator.randbytes


def merged(events: list[Event]) -> list[Event]:
    """Return the events with consecutive body pieces of each stream joined."""
    out: list[Event] = []
    last: dict[StreamId, int] = {}
    for event in events:
        at = last.get(event.stream)
        before = None if at is None else out[at]
        if isinstance(event, RequestData | ResponseData) and at is not None and type(before) is type(event):
            assert isinstance(before, RequestData | ResponseData)
            out[at] = type(event)(event.stream, before.data + event.data)
            continue
        last[event.stream] = len(out)
        out.append(event)
    return out


def send_events(connection: Connection, *events: Event) -> None:
    for event in events:
        connection.send(event)


def drain(connection: Connection) -> list[Event]:
    return list(iter(connection.next_event, None))


def feed(connection: Connection, data: bytes, sizes: Cuts = WHOLE) -> list[Event]:
    """Pass bytes to a connection in pieces of these sizes; return its events, with body pieces joined."""
    events: list[Event] = []
    for piece in cut(data, sizes):
        connection.receive_data(piece)
        events += drain(connection)
    return merged(events)


def signs(connection: Connection) -> list[str]:
    """Return the names of the state properties, such as `must_close`, that are true."""
    more = ("ready", "has_unsent") if isinstance(connection, Http2Connection) else ()
    return [name for name in ("must_close", "paused", "idle", "has_partial_head", *more) if getattr(connection, name)]


@frozen
class ConnectionOutcome:
    """Outcome of input at a connection: its events, and status and text of the error that ended it, if any."""

    heard: tuple[Event, ...]
    status: int | None = None
    text: str = ""


def _nothing(event: Event) -> None:
    pass


def outcome(
    connection: Connection, pieces: list[bytes], attend: Callable[[Event], object] = _nothing, *, eof: bool = False
) -> ConnectionOutcome:
    """Pass pieces of input to a connection and return the outcome; `attend` is called with each event."""
    events: list[Event] = []

    def listen() -> None:
        while (event := connection.next_event()) is not None:
            events.append(event)
            attend(event)
            connection.data_to_send()  # after events alone; else the pieces would decide what is sent already

    try:
        for piece in pieces:
            connection.receive_data(piece)
            listen()
        if eof:
            connection.receive_eof()
            listen()
    except RemoteProtocolError as error:
        connection.data_to_send()
        return ConnectionOutcome(tuple(merged(events)), error.status, str(error))
    return ConnectionOutcome(tuple(merged(events)))


class Pair(Generic[C]):
    """A client and a server connection of one HTTP version, in memory; `exchange` moves their bytes."""

    def __init__(self, version: type[C], *, deflate: bool = True, sizes: Cuts = WHOLE) -> None:
        self.client: C = version(Role.CLIENT, entropy=seeded(1), deflate=deflate)
        self.server: C = version(Role.SERVER, entropy=seeded(2), deflate=deflate)
        self.sizes = sizes

    def exchange(self) -> tuple[list[Event], list[Event]]:
        """Pass the output of each side to the other until both are idle; return the events of client and server."""
        to_client: list[Event] = []
        to_server: list[Event] = []
        while (from_client := self.client.data_to_send()) + (from_server := self.server.data_to_send()):
            to_server += feed(self.server, from_client, self.sizes)
            to_client += feed(self.client, from_server, self.sizes)
        return merged(to_client), merged(to_server)


def open_pair(version: type[C], *, deflate: bool = True) -> Pair[C]:
    """Return a pair with a WebSocket open on stream 1."""
    pair = Pair(version, deflate=deflate)
    send_events(pair.client, RequestHead(ONE, "GET", "/ws", HOST, websocket=True), RequestEnd(ONE))
    _, to_server = pair.exchange()
    assert [type(event) for event in to_server] == [RequestHead, RequestEnd]
    pair.server.send(AcceptWebSocket(ONE))
    to_client, _ = pair.exchange()
    assert [type(event) for event in to_client] == [WebSocketAccepted]
    return pair
