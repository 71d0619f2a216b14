"""What waits on one stream."""

from __future__ import annotations

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.events import RequestHead, StreamId
from svc_proto.wire.http2_stream import Stream


def stream(length: int | None = None) -> Stream:
    one = StreamId(1)
    return Stream(one, RequestHead(one, "GET", "/"), length=length)


def test_what_waits_is_cut_as_wanted() -> None:
    known = stream()
    for piece in (b"abc", b"de", b"f"):
        known.put(piece)
    assert (known.cut(2), known.queued) == (b"ab", 4)
    assert (known.cut(3), known.queued) == (b"cde", 1)
    assert (known.cut(9), known.queued) == (b"f", 0)
    known.fill()  # there is no WebSocket
    known.put(b"g")
    known.drop_queue()
    assert (known.cut(1), known.queued) == (b"", 0)


def test_the_announced_length_is_kept() -> None:
    known = stream(3)
    known.count(b"ab")
    with pytest.raises(LocalProtocolError, match="shorter"):
        known.ended()
    known.count(b"c")
    known.ended()
    assert known.said_end
    with pytest.raises(LocalProtocolError, match="longer"):
        known.count(b"d")
    muted = stream(3)
    muted.mute = True
    muted.ended()
    unknown = stream()
    unknown.count(b"anything")
    unknown.ended()
