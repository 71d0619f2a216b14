"""The splitter of HTTP/2 frames: cuts, cleared bytes, header blocks and limits."""

import pytest
from h2.errors import ErrorCodes
from hypothesis import given

from svc_proto.wire.http2_frames import PREFACE, FrameType, Http2ConnectionError, Http2Frame, Http2FrameSplitter
from tests.wire.chunking import Cuts, cut, cuts

SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
OPENED = b"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82"
CONTINUED = b"\x00\x00\x02\x09\x04\x80\x00\x00\x01\x86\x84"  # the reserved bit is ignored
UNKNOWN = b"\x00\x00\x03\xfa\x07\x00\x00\x00\x05abc"


def frames(cutter: Http2FrameSplitter, data: bytes, sizes: Cuts) -> list[Http2Frame]:
    found: list[Http2Frame] = []
    for piece in cut(data, sizes):
        cutter.receive(piece)
        while (frame := cutter.next()) is not None:
            found.append(frame)
    return found


@given(cuts())
def test_cuts_do_not_matter(sizes: Cuts) -> None:
    cutter = Http2FrameSplitter(server=True, max_block=100)
    found = frames(cutter, PREFACE + SETTINGS + OPENED + CONTINUED + UNKNOWN, sizes)
    assert [(frame.type, frame.flags, frame.stream, frame.size) for frame in found] == [
        (FrameType.SETTINGS, 0, 0, 0),
        (FrameType.HEADERS, 0, 1, 1),
        (FrameType.CONTINUATION, 4, 1, 2),
        (0xFA, 7, 5, 3),
    ]
    assert b"".join(frame.raw for frame in found) == SETTINGS + OPENED + CONTINUED + UNKNOWN
    assert not cutter.has_partial_head


def test_a_client_gets_no_preface() -> None:
    assert len(frames(Http2FrameSplitter(server=False, max_block=9), SETTINGS, [1])) == 1


def test_a_partial_head_starts_with_its_frame_type() -> None:
    cutter = Http2FrameSplitter(server=True, max_block=9)
    assert frames(cutter, PREFACE, [1000]) == []
    assert cutter.buffered_bytes == 0  # the preface is read as soon as it is complete
    frames(cutter, SETTINGS + OPENED[:3], [1000])
    assert not cutter.has_partial_head
    frames(cutter, OPENED[3:4], [1000])
    assert cutter.has_partial_head


def test_clear_drops_buffered_bytes() -> None:
    cutter = Http2FrameSplitter(server=True, max_block=9)
    cutter.receive(PREFACE)
    cutter.clear()
    assert not cutter.has_partial_head
    assert cutter.next() is None


def header(size: int, kind: FrameType, stream: int = 0) -> bytes:
    return size.to_bytes(3, "big") + bytes((kind, 0)) + stream.to_bytes(4, "big")


HEAD, MORE = header(0, FrameType.HEADERS, 1), header(0, FrameType.CONTINUATION, 1)


@pytest.mark.parametrize(
    ("largest", "one_more", "code"),
    [
        (header(16_384, FrameType.DATA, 1), header(16_385, FrameType.DATA, 1), ErrorCodes.FRAME_SIZE_ERROR),
        (header(32 * 6, FrameType.SETTINGS), header(33 * 6, FrameType.SETTINGS), ErrorCodes.ENHANCE_YOUR_CALM),
        (HEAD + MORE * 63, HEAD + MORE * 64, ErrorCodes.ENHANCE_YOUR_CALM),
    ],
    ids=["a frame", "settings", "pieces of a block"],
)
def test_the_limits_reached_exactly_and_passed_by_one(largest: bytes, one_more: bytes, code: ErrorCodes) -> None:
    frames(Http2FrameSplitter(server=False, max_block=9), SETTINGS + largest, [1000])
    with pytest.raises(Http2ConnectionError) as caught:
        frames(Http2FrameSplitter(server=False, max_block=9), SETTINGS + one_more, [1000])
    assert caught.value.code is code


def test_the_limits_of_a_block_apply_to_each_block_anew() -> None:
    block = OPENED + MORE * 62 + CONTINUED
    assert len(frames(Http2FrameSplitter(server=False, max_block=3), SETTINGS + block * 2, [1000])) == 1 + 2 * 64
