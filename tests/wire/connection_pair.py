"""Helpers for HTTP connections without IO: the events of bytes, and a client and a server in memory."""

import random
from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import frozen

from svc_proto import wire
from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http2 import Http2Connection
from tests.wire.chunking import Cuts, cut

ONE, TWO, THREE, FIVE = wire.StreamId(1), wire.StreamId(2), wire.StreamId(3), wire.StreamId(5)
HOST = wire.Headers(((b"host", b"relay.example:8767"),))
WHOLE: Cuts = [1_000_000]
C = TypeVar("C", Http1Connection, Http2Connection)


def seeded(seed: int = 0) -> Entropy:
    """Return entropy that is the same on every run."""
    generator = random.Random(seed)
    return generator.randbytes


def merged(events: list[wire.Event]) -> list[wire.Event]:
    """Return the events with consecutive body pieces of each stream joined."""
    out: list[wire.Event] = []
    last: dict[wire.StreamId, int] = {}
    for event in events:
        at = last.get(event.stream)
        before = None if at is None else out[at]
        if isinstance(event, wire.RequestData | wire.ResponseData) and at is not None and type(before) is type(event):
            assert isinstance(before, wire.RequestData | wire.ResponseData)
            out[at] = type(event)(event.stream, before.data + event.data)
            continue
        last[event.stream] = len(out)
        out.append(event)
    return out


def send_events(connection: Connection, *events: wire.Event) -> None:
    for event in events:
        connection.send(event)


def drain(connection: Connection) -> list[wire.Event]:
    return list(iter(connection.next_event, None))


def feed(connection: Connection, data: bytes, sizes: Cuts = WHOLE) -> list[wire.Event]:
    """Pass bytes to a connection in pieces of these sizes; return its events, with body pieces joined."""
    events: list[wire.Event] = []
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

    heard: tuple[wire.Event, ...]
    status: int | None = None
    text: str = ""


def _nothing(event: wire.Event) -> None:
    pass


def outcome(
    connection: Connection, pieces: list[bytes], attend: Callable[[wire.Event], object] = _nothing, *, eof: bool = False
) -> ConnectionOutcome:
    """Pass pieces of input to a connection and return the outcome; `attend` is called with each event."""
    events: list[wire.Event] = []

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

    def exchange(self) -> tuple[list[wire.Event], list[wire.Event]]:
        """Pass the output of each side to the other until both are idle; return the events of client and server."""
        to_client: list[wire.Event] = []
        to_server: list[wire.Event] = []
        while (from_client := self.client.data_to_send()) + (from_server := self.server.data_to_send()):
            to_server += feed(self.server, from_client, self.sizes)
            to_client += feed(self.client, from_server, self.sizes)
        return merged(to_client), merged(to_server)


def open_pair(version: type[C], *, deflate: bool = True) -> Pair[C]:
    """Return a pair with a WebSocket open on stream 1."""
    pair = Pair(version, deflate=deflate)
    send_events(pair.client, wire.RequestHead(ONE, "GET", "/ws", HOST, websocket=True), wire.RequestEnd(ONE))
    _, to_server = pair.exchange()
    assert [type(event) for event in to_server] == [wire.RequestHead, wire.RequestEnd]
    pair.server.send(wire.AcceptWebSocket(ONE))
    to_client, _ = pair.exchange()
    assert [type(event) for event in to_client] == [wire.WebSocketAccepted]
    return pair
