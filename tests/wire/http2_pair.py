"""HTTP/2 in the hands of a test: our two ends face to face, and each of them against bare h2."""

from __future__ import annotations

import struct

import h2.events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings

from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    AcceptSocket,
    Event,
    Headers,
    RequestData,
    RequestHead,
    ResponseData,
    SocketAccepted,
    StreamId,
    StreamReset,
)
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.wire.chunks import Cuts, cut
from tests.wire.pair import drain, seeded

__all__ = [
    "CONNECT",
    "GET",
    "HOST",
    "ONE",
    "POST",
    "SETTINGS",
    "THREE",
    "BareClient",
    "BareServer",
    "Pair2",
    "feed",
    "frame",
    "merged2",
    "open_pair2",
    "resets",
    "signs",
]

SETTINGS = 4  # the kind of a frame
ONE, THREE, FIVE = StreamId(1), StreamId(3), StreamId(5)
HOST = Headers(((b"host", b"relay.example:8767"),))
WHOLE: Cuts = [1_000_000]
GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/health?x=1"), (b":authority", b"a")]
POST = [(b":method", b"POST"), *GET[1:]]
CONNECT = [
    (b":method", b"CONNECT"),
    *GET[1:],
    (b":protocol", b"websocket"),
    (b"sec-websocket-version", b"13"),
]


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    """A frame of HTTP/2, whether it makes sense or not."""
    return len(payload).to_bytes(3, "big") + struct.pack(">BBL", kind, flags, stream) + payload


def merged2(events: list[Event]) -> list[Event]:
    """The pieces of each stream's body that nothing of that stream parts, as one."""
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


def feed(connection: Http2Connection, data: bytes, sizes: Cuts | None = None) -> list[Event]:
    """What a connection makes of bytes."""
    events: list[Event] = []
    for piece in cut(data, sizes or WHOLE):
        connection.receive_data(piece)
        events.extend(drain(connection))
    return merged2(events)


class Pair2:
    """Both ends, and what each has heard. `exchange` moves bytes until there are none."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, deflate: bool = True, sizes: Cuts = WHOLE) -> None:
        self.client = Http2Connection(Role.CLIENT, limits=limits, entropy=seeded(1), deflate=deflate)
        self.server = Http2Connection(Role.SERVER, limits=limits, entropy=seeded(2), deflate=deflate)
        self.sizes = sizes

    def exchange(self) -> tuple[list[Event], list[Event]]:
        """Deliver everything that is queued, in both directions; what the client and the server heard."""
        to_client: list[Event] = []
        to_server: list[Event] = []
        while (from_client := self.client.data_to_send()) + (from_server := self.server.data_to_send()):
            to_server += feed(self.server, from_client, self.sizes)
            to_client += feed(self.client, from_server, self.sizes)
        return merged2(to_client), merged2(to_server)


def open_pair2(*, limits: Limits = DEFAULT_LIMITS, deflate: bool = True, sizes: Cuts = WHOLE) -> Pair2:
    """A pair with a WebSocket open on stream 1."""
    pair = Pair2(limits=limits, deflate=deflate, sizes=sizes)
    pair.client.send(RequestHead(ONE, "GET", "/ws", HOST, websocket=True))
    pair.exchange()
    pair.server.send(AcceptSocket(ONE))
    to_client, _ = pair.exchange()
    assert [type(event) for event in to_client] == [SocketAccepted]
    return pair


class Bare:
    """h2 alone on the other side, without any check of what it sends."""

    def __init__(self, us: Http2Connection, *, client: bool) -> None:
        self.us = us
        self.heard: list[h2.events.Event] = []
        self.h2 = H2Connection(
            H2Configuration(
                client_side=client,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                validate_inbound_headers=False,
            )
        )
        if not client:
            opens = {SettingCodes.ENABLE_CONNECT_PROTOCOL: 1}
            self.h2.local_settings = Settings(client=False, initial_values=opens)
        self.h2.initiate_connection()

    def talk(self, more: bytes = b"") -> list[Event]:
        """Deliver both ways until both are silent; what we heard."""
        events: list[Event] = []
        while (data := self.h2.data_to_send() + more) + (ours := self.us.data_to_send()):
            more = b""
            events += feed(self.us, data)
            self.heard += self.h2.receive_data(ours)
            events += drain(self.us)
        return merged2(events)

    def last(self, kind: type[h2.events.Event]) -> list[h2.events.Event]:
        """What it has heard of one kind."""
        return [event for event in self.heard if isinstance(event, kind)]


class BareClient(Bare):
    """A bare client and our server."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(Http2Connection(Role.SERVER, limits=limits, entropy=seeded()), client=True)
        assert self.talk() == []


class BareServer(Bare):
    """Our client and a bare server."""

    def __init__(self, *, deflate: bool = True) -> None:
        super().__init__(Http2Connection(Role.CLIENT, entropy=seeded(), deflate=deflate), client=False)
        assert self.talk() == []


def signs(connection: Http2Connection) -> list[str]:
    """The properties that are True."""
    names = ("must_close", "paused", "idle", "head_pending", "ready", "waiting")
    return [name for name in names if getattr(connection, name)]


def resets(events: list[Event]) -> list[StreamId]:
    """The streams that were reset."""
    return [event.stream for event in events if isinstance(event, StreamReset)]
