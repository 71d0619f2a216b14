"""Pending output of one stream."""

from svc_proto.wire.events import RequestHead, StreamId
from svc_proto.wire.http2_stream import Http2Stream


def test_queued_data_is_cut_to_size() -> None:
    known = Http2Stream(StreamId(1), RequestHead(StreamId(1), "GET", "/"))
    for piece in (b"abc", b"de", b"f"):
        known.queue_data(piece)
    assert (known.cut(2), known.queued) == (b"ab", 4)
    assert (known.cut(3), known.queued) == (b"cde", 1)
    assert (known.cut(9), known.queued) == (b"f", 0)
    known.fill()  # there is no WebSocket
    known.queue_data(b"g")
    known.drop_queue()
    assert (known.cut(1), known.queued) == (b"", 0)
