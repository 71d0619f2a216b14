"""HPACK table size updates of our encoder: announced when the peer's setting changes, and within the peer's limit."""

import struct

import pytest
from hpack import Decoder

from svc_proto.wire.connection import Role
from svc_proto.wire.events import Headers, ResponseEnd, ResponseHead
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.http2_frames import PREFACE, FrameType, Http2FrameSplitter
from tests.wire.connection_pair import ONE, THREE, feed, seeded, send_events

GET = bytes.fromhex("82868401") + b"\x01a"  # :authority as a literal


def settings(*sizes: int) -> bytes:
    """Return a SETTINGS frame that sets the header table size to each of `sizes` in turn."""
    payload = b"".join(struct.pack(">HL", 1, size) for size in sizes)
    return len(payload).to_bytes(3, "big") + struct.pack(">BBL", FrameType.SETTINGS, 0, 0) + payload


def asked(stream: int) -> bytes:
    return len(GET).to_bytes(3, "big") + struct.pack(">BBL", FrameType.HEADERS, 5, stream) + GET


def block(us: Http2Connection) -> bytes:
    """Return the header block in the HEADERS frames that a connection has to send."""
    cutter = Http2FrameSplitter(server=False, max_block=10_000)
    cutter.receive(settings() + us.data_to_send())
    found = b""
    while (frame := cutter.next()) is not None:
        if frame.type == FrameType.HEADERS:
            found += frame.raw[-frame.size :]
    return found


def updates(data: bytes) -> list[int]:
    """Return the sizes in the table size updates at the start of a header block (RFC 7541 section 6.3)."""
    sizes: list[int] = []
    at = 0
    while data[at] & 0xE0 == 0x20:
        size, shift = data[at] & 0x1F, 0
        at += 1
        if size == 0x1F:
            while True:
                size += (data[at] & 0x7F) << shift
                shift += 7
                at += 1
                if not data[at - 1] & 0x80:
                    break
        sizes.append(size)
    return sizes


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([[()], [(4096,)]], []),
        ([[(100,)], [(200, 100)], [(100,), (100,)], [(100,), ()]], [100]),
        ([[(100, 4096)], [(100,), (4096,)]], [100, 4096]),
        ([[(0, 200), (300,)]], [0, 200, 300]),
        ([[(100, 2**20)]], [100, 2**20, 4096]),
    ],
)
def test_the_smallest_and_the_last_size_are_announced(cases: list[list[tuple[int, ...]]], said: list[int]) -> None:
    # RFC 7541 section 4.2: "the smallest maximum table size that occurs in that interval MUST be signaled"
    for frames in cases:
        us = Http2Connection(Role.SERVER, entropy=seeded())
        feed(us, PREFACE + settings() + b"".join(settings(*sizes) for sizes in frames) + asked(1))
        send_events(us, ResponseHead(ONE, 200), ResponseEnd(ONE))
        assert updates(block(us)) == said


def test_entries_are_evicted_with_the_table() -> None:
    us = Http2Connection(Role.SERVER, entropy=seeded())
    answer = Headers(((b"x-name", b"a value that is worth a place in the table"),))
    decoder = Decoder()
    decoded = []
    feed(us, PREFACE + settings() + asked(1))
    for stream, between in ((ONE, settings(0, 4096) + asked(3)), (THREE, b"")):
        send_events(us, ResponseHead(stream, 200, answer), ResponseEnd(stream))
        said = block(us)
        decoded.append((updates(said), decoder.decode(said, raw=True)))
        feed(us, between)
    assert decoded == [([], [(b":status", b"200"), *answer]), ([0, 4096], [(b":status", b"200"), *answer])]


def test_a_malformed_frame_is_left_to_h2() -> None:
    us = Http2Connection(Role.SERVER, entropy=seeded())
    torn = settings(100)
    with pytest.raises(Exception, match="frame size"):
        feed(us, PREFACE + settings() + (len(torn) - 10).to_bytes(3, "big") + torn[3:-1])
