"""HTTP/1.1: a server, a client that has asked, and the strict reader of chunked bodies beside h11."""

from __future__ import annotations

import h11

from fuzz.targets.common import Replies, heard_again, merged, pieces_of
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Headers, RequestData, RequestEnd, RequestHead, ResponseEnd, StreamId
from svc_proto.wire.http1 import Http1Connection

__all__ = ["answer", "chunks", "http1"]

ONE = StreamId(1)
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def http1(data: bytes) -> None:
    """A server connection: requests are answered, WebSockets accepted and echoed."""
    whole = _serve([data])
    assert _serve(pieces_of(data)) == whole, "chunking changed the events"
    client = Http1Connection(Role.CLIENT, entropy=bytes)
    heard_again([event for event in whole if getattr(event, "stream", 0) == ONE], client, _server())


def answer(data: bytes) -> None:
    """A client connection that has asked with a GET: what answers it."""
    whole = _listen([data])
    assert _listen(pieces_of(data)) == whole, "chunking changed the events"


def chunks(data: bytes) -> None:
    """A body in chunks: the strict reader sees the body that h11 sees, or refuses."""
    whole = _serve([CHUNKED + data])
    assert _serve(pieces_of(CHUNKED + data)) == whole, "chunking changed the events"
    if not isinstance(whole[-1], tuple):  # not refused
        body = b"".join(event.data for event in whole if isinstance(event, RequestData) and event.stream == ONE)
        assert _h11_body(CHUNKED + data).startswith(body), "h11 reads another body"


def _server() -> Http1Connection:
    return Http1Connection(Role.SERVER, entropy=bytes)


def _serve(pieces: list[bytes]) -> list[object]:
    connection = _server()
    replies = Replies(connection)
    events: list[object] = []
    try:
        for piece in pieces:
            connection.receive_data(piece)
            while (event := connection.next_event()) is not None:
                events.append(event)
                replies.to(event)
                connection.data_to_send()
    except RemoteProtocolError as error:
        events.append((error.status, str(error)))
    return merged(events)


def _listen(pieces: list[bytes]) -> list[object]:
    connection = Http1Connection(Role.CLIENT, entropy=bytes)
    connection.send(RequestHead(ONE, "GET", "/", Headers(((b"host", b"a"),))))
    connection.send(RequestEnd(ONE))
    events: list[object] = []
    try:
        for piece in pieces:
            connection.receive_data(piece)
            while (event := connection.next_event()) is not None:
                events.append(event)
                if isinstance(event, ResponseEnd):
                    return merged(events)  # what follows answers nothing, and is noticed when it comes
        connection.receive_eof()
        while (event := connection.next_event()) is not None:
            events.append(event)
    except RemoteProtocolError as error:
        events.append((error.status, str(error)))
    return merged(events)


def _h11_body(data: bytes) -> bytes:
    peer = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    peer.receive_data(data)
    peer.next_event()
    body = b""
    while isinstance(event := peer.next_event(), h11.Data):
        body += bytes(event.data)
    return body
