"""Pending output of one stream."""

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.events import RequestHead, StreamId
from svc_proto.wire.http2_stream import Http2Stream


def stream(length: int | None = None) -> Http2Stream:
    one = StreamId(1)
    return Http2Stream(one, RequestHead(one, "GET", "/"), length=length)


def test_queued_data_is_cut_to_size() -> None:
    known = stream()
    for piece in (b"abc", b"de", b"f"):
        known.queue_data(piece)
    assert (known.cut(2), known.queued) == (b"ab", 4)
    assert (known.cut(3), known.queued) == (b"cde", 1)
    assert (known.cut(9), known.queued) == (b"f", 0)
    known.fill()  # there is no WebSocket
    known.queue_data(b"g")
    known.drop_queue()
    assert (known.cut(1), known.queued) == (b"", 0)


def test_the_announced_length_is_enforced() -> None:
    known = stream(3)
    known.count(b"ab")
    with pytest.raises(LocalProtocolError, match="shorter"):
        known.ended()
    known.count(b"c")
    known.ended()
    assert known.sent_end
    with pytest.raises(LocalProtocolError, match="longer"):
        known.count(b"d")
    muted = stream(3)
    muted.no_body = True
    muted.ended()
    unknown = stream()
    unknown.count(b"anything")
    unknown.ended()
