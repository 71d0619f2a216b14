"""Frames as RFC 6455 defines them, and as wsproto reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import FrameProtocol, Opcode

from svc_proto.wire.websocket_frame_writer import MAX_CONTROL, encode_close_payload, encode_frame

KEY = b"\x37\xfa\x21\x3d"


def test_the_examples_of_the_rfc() -> None:
    assert encode_frame(Opcode.TEXT, b"Hello") == b"\x81\x05Hello"
    assert encode_frame(Opcode.TEXT, b"Hello", key=KEY) == b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
    assert encode_frame(Opcode.PING, b"Hello") == b"\x89\x05Hello"
    assert encode_frame(Opcode.BINARY, b"x" * 256) == b"\x82\x7e\x01\x00" + b"x" * 256
    assert encode_frame(Opcode.BINARY, b"x" * 65536) == b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00" + b"x" * 65536
    assert encode_frame(Opcode.TEXT, b"", packed=True) == b"\xc1\x00"


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536])
@pytest.mark.parametrize("key", [b"", KEY])
def test_wsproto_reads_our_frames(size: int, key: bytes) -> None:
    reader = FrameProtocol(client=not key, extensions=[])
    reader.receive_bytes(
        encode_frame(Opcode.BINARY, bytes(range(256)) * 256 + b"x" if size > 65535 else b"x" * size, key=key)
    )
    pieces = list(reader.received_frames())
    whole = b"".join(bytes(piece.payload) for piece in pieces if isinstance(piece.payload, bytes))
    assert whole == (bytes(range(256)) * 256 + b"x" if size > 65535 else b"x" * size)


@given(st.integers(1000, 4999), st.text(max_size=200))
def test_a_reason_fits_and_stays_text(code: int, reason: str) -> None:
    payload = encode_close_payload(code, reason)
    assert len(payload) <= MAX_CONTROL
    assert int.from_bytes(payload[:2], "big") == code
    cut = payload[2:].decode("utf-8")
    assert reason.encode("utf-8", "replace").decode("utf-8").startswith(cut)
    assert cut == reason.encode("utf-8", "replace").decode("utf-8") or len(payload) > MAX_CONTROL - 4
