"""Both ends of HTTP/1.1 together; each end alone is in `test_http1_server` and `test_http1_client`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.wire.events import (
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    TextMessage,
)
from svc_proto.wire.http1 import Http1Connection
from tests.wire.chunking import Cuts, cuts
from tests.wire.connection_pair import HOST, ONE, Pair, feed, open_pair

BODIES = st.lists(st.binary(max_size=50), max_size=4)


@given(st.lists(st.tuples(BODIES, BODIES, st.booleans()), min_size=1, max_size=4), cuts())
def test_round_trips(rounds: list[tuple[list[bytes], list[bytes], bool]], sizes: Cuts) -> None:
    pair = Pair(Http1Connection, sizes=sizes)
    for number, (request, response, chunked) in enumerate(rounds, start=1):
        stream = StreamId(number)
        size = sum(map(len, request))
        framing = (b"transfer-encoding", b"chunked") if chunked else (b"content-length", b"%d" % size)
        pair.client.send(RequestHead(stream, "POST", "/", Headers((*HOST, framing))))
        for piece in request:
            pair.client.send(RequestData(stream, piece))
        pair.client.send(RequestEnd(stream))
        _, to_server = pair.exchange()
        size = sum(map(len, response))
        pair.server.send(
            ResponseHead(stream, 200, Headers() if chunked else Headers(((b"content-length", b"%d" % size),)))
        )
        for piece in response:
            pair.server.send(ResponseData(stream, piece))
        pair.server.send(ResponseEnd(stream))
        to_client, _ = pair.exchange()
        assert b"".join(event.data for event in to_server if isinstance(event, RequestData)) == b"".join(request)
        assert b"".join(event.data for event in to_client if isinstance(event, ResponseData)) == b"".join(response)
        assert to_server[-1] == RequestEnd(stream)
        assert to_client[-1] == ResponseEnd(stream)
    assert pair.client.idle
    assert pair.server.idle


@pytest.mark.parametrize("deflate", [True, False])
def test_a_socket_face_to_face(deflate: bool) -> None:
    pair = open_pair(Http1Connection, deflate=deflate)
    pair.server.send(TextMessage(ONE, "x" * 5000))
    sent = pair.server.data_to_send()
    assert feed(pair.client, sent) == [TextMessage(ONE, "x" * 5000)]
    assert (len(sent) < 1000) is deflate
