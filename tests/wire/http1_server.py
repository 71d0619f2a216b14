"""Helpers for HTTP/1.1 servers: samples of requests and responses."""

import pytest

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Headers, RequestHead, ResponseData, ResponseEnd, ResponseHead, StreamId
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.wire.chunking import Cuts
from tests.wire.connection_pair import ONE, WHOLE, feed, seeded, send_events

LENGTH_2 = Headers(((b"content-length", b"2"),))
GET = b"GET /health?x=1 HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n"
GET_HEAD = RequestHead(ONE, "GET", "/health?x=1", Headers(((b"host", b"a"), (b"x-a", b"1"))))
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: v\r\n\r\n"
)
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
EXPECTING = POST.replace(b"Content", b"Expect: 100-continue\r\nContent")
TEXT_HI = b"\x81\x82\x00\x00\x00\x00hi"


def server(limits: Limits = DEFAULT_LIMITS) -> Http1Connection:
    return Http1Connection(Role.SERVER, limits=limits, entropy=seeded())


def answer(connection: Http1Connection, stream: StreamId, body: bytes = b"ok", headers: Headers = LENGTH_2) -> bytes:
    send_events(connection, ResponseHead(stream, 200, headers), ResponseData(stream, body), ResponseEnd(stream))
    return connection.data_to_send()


def fails(connection: Http1Connection, data: bytes, sizes: Cuts = WHOLE) -> RemoteProtocolError:
    """Return the error that these bytes cause; check that no event follows, even after a further request."""
    with pytest.raises(RemoteProtocolError) as caught:
        feed(connection, data, sizes)
    connection.receive_data(GET)
    assert connection.next_event() is None
    return caught.value
