"""A client and a server connection face to face in memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

from svc_proto.basics.entropy import Entropy
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.events import (
    AcceptSocket,
    BinaryMessage,
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    SocketAccepted,
    StreamId,
    TextMessage,
)
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.wire.chunks import Cuts, cut

__all__ = ["HOST", "Pair", "drain", "merged", "open_pair", "seeded"]

HOST = Headers(((b"host", b"relay.example:8767"),))
WHOLE: Cuts = [1_000_000]


def seeded(seed: int = 0) -> Entropy:
    """Entropy that is the same on every run."""
    generator = random.Random(seed)
    return generator.randbytes


def merged(events: list[Event]) -> list[Event]:
    """The pieces of each stream's body that nothing of that stream parts, as one: where it is cut says nothing."""
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


def drain(connection: Connection) -> list[Event]:
    """Every event there is now."""
    return list(iter(connection.next_event, None))


class Pair:
    """Both ends, and what each has heard. `exchange` moves bytes until there are none."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, deflate: bool = True, sizes: Cuts = WHOLE) -> None:
        self.client = Http1Connection(Role.CLIENT, limits=limits, entropy=seeded(1), deflate=deflate)
        self.server = Http1Connection(Role.SERVER, limits=limits, entropy=seeded(2), deflate=deflate)
        self.sizes = sizes
        self.to_client: list[Event] = []
        self.to_server: list[Event] = []
        self.wire: list[bytes] = []
        self.on_server: Callable[[Event], None] = self.to_server.append

    def exchange(self) -> None:
        """Deliver everything that is queued, in both directions, until both are silent."""
        for _ in count():
            from_client, from_server = self.client.data_to_send(), self.server.data_to_send()
            if not from_client and not from_server:
                break
            self.wire.extend(data for data in (from_client, from_server) if data)
            for piece in cut(from_client, self.sizes):
                self.server.receive_data(piece)
                for event in drain(self.server):
                    self.on_server(event)
            for piece in cut(from_server, self.sizes):
                self.client.receive_data(piece)
                self.to_client.extend(drain(self.client))
        self.to_server[:] = merged(self.to_server)
        self.to_client[:] = merged(self.to_client)

    def heard(self) -> tuple[list[Event], list[Event]]:
        """What the client and the server have heard since the last call."""
        heard = list(self.to_client), list(self.to_server)
        self.to_client.clear()
        self.to_server.clear()
        return heard


def open_pair(*, limits: Limits = DEFAULT_LIMITS, deflate: bool = True, sizes: Cuts = WHOLE) -> Pair:
    """A pair with a WebSocket open on stream 1."""
    pair = Pair(limits=limits, deflate=deflate, sizes=sizes)
    pair.client.send(RequestHead(StreamId(1), "GET", "/ws", HOST, websocket=True))
    pair.client.send(RequestEnd(StreamId(1)))
    pair.exchange()
    pair.server.send(AcceptSocket(StreamId(1)))
    pair.exchange()
    to_client, to_server = pair.heard()
    assert [type(event) for event in to_server] == [RequestHead, RequestEnd]
    assert [type(event) for event in to_client] == [SocketAccepted]
    return pair


Message = TextMessage | BinaryMessage
