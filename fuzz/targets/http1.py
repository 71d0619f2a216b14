"""Fuzz targets of HTTP/1.1: a server, a client after its request, and the strict chunked parser against h11."""

import h11

from fuzz.targets.common import Replies, check_chunking_invariance, round_trip_request
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Headers, RequestData, RequestEnd, RequestHead, ResponseEnd
from svc_proto.wire.http1 import Http1Connection
from tests.wire.connection_pair import ONE, ConnectionOutcome, outcome, send_events

CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def http1(data: bytes) -> None:
    """Check that a server has the same results for any chunking of `data`.

    It answers requests, and accepts and echoes WebSockets. Its first request must be received equally if our client
    sends it.
    """
    heard = check_chunking_invariance(_serve, data).heard
    client = Http1Connection(Role.CLIENT, entropy=bytes)
    round_trip_request([event for event in heard if event.stream == ONE], client, _server())


def answer(data: bytes) -> None:
    """Check that a client has the same results for any chunking of a response to its GET."""
    check_chunking_invariance(_listen, data)


def chunks(data: bytes) -> None:
    """Check that the strict chunked parser refuses the input, or reads a body with which h11's body begins."""
    found = check_chunking_invariance(_serve, CHUNKED + data)
    if found.status is None:
        body = b"".join(event.data for event in found.heard if isinstance(event, RequestData) and event.stream == ONE)
        assert _h11_body(CHUNKED + data).startswith(body), "h11 reads another body"


def _server() -> Http1Connection:
    return Http1Connection(Role.SERVER, entropy=bytes)


def _serve(pieces: list[bytes]) -> ConnectionOutcome:
    connection = _server()
    return outcome(connection, pieces, Replies(connection).respond)


def _listen(pieces: list[bytes]) -> ConnectionOutcome:
    connection = Http1Connection(Role.CLIENT, entropy=bytes)
    send_events(connection, RequestHead(ONE, "GET", "/", Headers(((b"host", b"a"),))), RequestEnd(ONE))
    found = outcome(connection, pieces, eof=True)
    kinds = [type(event) for event in found.heard]
    return ConnectionOutcome(found.heard[: kinds.index(ResponseEnd) + 1]) if ResponseEnd in kinds else found


def _h11_body(data: bytes) -> bytes:
    peer = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    peer.receive_data(data)
    peer.next_event()
    body = b""
    while isinstance(event := peer.next_event(), h11.Data):
        body += bytes(event.data)
    return body
