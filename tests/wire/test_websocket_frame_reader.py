"""Frames read by the fast path and by wsproto, and the equality of both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import Frame, Opcode, ParseFailed

from fuzz.fast_path import compare_websocket
from fuzz.reference_parsers import ReferenceFrameReader
from fuzz.targets.websocket import CLIENT, DEFLATE
from fuzz.targets.websocket_fast_path import WebSocketPair
from svc_proto.wire.events import Event
from svc_proto.wire.websocket_deflate import DeflateParameters, InflateGuard
from svc_proto.wire.websocket_frame_reader import FrameReader
from tests.support.scenario_plan import some
from tests.wire.chunking import Cuts, cut
from tests.wire.connection_pair import WHOLE
from tests.wire.test_websocket import KEY, frame

LIMIT = 70_000


def reader(*, client: bool = False, deflate: bool = False) -> FrameReader:
    return FrameReader(client, InflateGuard(LIMIT, DeflateParameters() if deflate else None))


def read(frames: FrameReader | ReferenceFrameReader, data: bytes, sizes: Cuts = WHOLE) -> list[Frame | str]:
    """Read data in pieces of these sizes; return the frames, and the text of the error that ended it, if any."""
    found: list[Frame | str] = []
    for piece in cut(data, sizes):
        frames.receive_bytes(piece)
        try:
            while (each := frames.next_frame()) is not None:
                found.append(each)
        except ParseFailed as problem:
            return [*found, f"{problem.code} {problem}"]
    return found


@pytest.mark.parametrize("first", some(range(0, 2000, 500), 4))
def test_fixed_scripts_are_equal_in_both(first: int) -> None:
    """Compare the scripts of 500 fixed seeds; those of all 2,000 reach every branch of the reader."""
    assert sum(compare_websocket(seed) for seed in range(first, first + 500)) > 600


@given(st.integers(0, 2**40))
def test_nearly_simple_conversations_are_equal_in_both(seed: int) -> None:
    compare_websocket(seed)


PLAIN = [
    (frame(0x81, b"h\xc3\xa9"), Opcode.TEXT, "h\u00e9"),
    (frame(0x81), Opcode.TEXT, ""),
    (frame(0x82, b"x" * 125), Opcode.BINARY, b"x" * 125),
    (frame(0x82, b"x" * 126), Opcode.BINARY, b"x" * 126),
    (frame(0x82, b"x" * 65_536), Opcode.BINARY, b"x" * 65_536),
    (frame(0x89, b"p"), Opcode.PING, b"p"),
    (frame(0x8A), Opcode.PONG, b""),
]


@pytest.mark.parametrize(("data", "opcode", "payload"), PLAIN)
def test_a_plain_frame_needs_no_wsproto(data: bytes, opcode: Opcode, payload: bytes | str) -> None:
    frames = reader()
    assert read(frames, data + data) == [Frame(opcode, payload, True, True)] * 2
    assert frames._reference is None
    assert frames._buffer == b""


def test_frames_of_a_server_are_not_masked() -> None:
    frames = reader(client=True)
    assert read(frames, frame(0x81, b"hi", masked=False)) == [Frame(Opcode.TEXT, "hi", True, True)]
    assert frames._reference is None


def test_the_reference_reads_incomplete_messages_only() -> None:
    frames = reader()
    data = frame(0x81, b"hello")
    assert read(frames, data + data[:8]) == [
        Frame(Opcode.TEXT, "hello", True, True),
        Frame(Opcode.TEXT, "he", False, False),
    ]
    assert frames._reference is not None
    assert read(frames, data[8:] + data) == [
        Frame(Opcode.TEXT, "llo", True, True),
        Frame(Opcode.TEXT, "hello", True, True),
    ]
    assert read(frames, data[:6]) == []
    assert read(frames, data[6:]) == [Frame(Opcode.TEXT, "hello", True, True)]
    assert frames._reference is None  # it would keep the message


def test_an_incomplete_ping_is_awaited() -> None:
    frames, data = reader(), frame(0x89, b"hello")
    assert read(frames, data[:-1]) == []
    assert read(frames, data[-1:]) == [Frame(Opcode.PING, b"hello", True, True)]
    assert frames._reference is None


@pytest.mark.parametrize(
    "data",
    [
        frame(0x01, b"a") + frame(0x80, b"b"),
        frame(0x88, b"\x03\xe8"),
        frame(0x83),
        frame(0x91),
        frame(0xC1, b"x"),
        frame(0x81, b"hi", masked=False),
        frame(0x89, b"x" * 126),
        frame(0x81, b"\xff"),
        frame(0x81, size=LIMIT + 1),
        b"\x82\xfe\x00\x05" + KEY + b"hello",
        b"\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff" + KEY,
        b"\x82\xff\x80\x00\x00\x00\x00\x01\x00\x00" + KEY,
    ],
)
def test_other_frames_switch_to_the_reference_for_good(data: bytes) -> None:
    plain = frame(0x82, b"x")
    for sizes in ([1_000_000], [1], [3]):
        frames = reader()
        reference = ReferenceFrameReader(False, InflateGuard(LIMIT, None))
        assert read(frames, plain + data + plain, sizes) == read(reference, plain + data + plain, sizes)
        assert frames._reference is not None


@pytest.mark.parametrize("data", [b"", frame(0x81, b"hi")[:-1], frame(0x01, b"hi")])
def test_close_frees_the_buffer(data: bytes) -> None:
    frames = reader()
    read(frames, data)
    frames.close()
    assert frames._buffer == b""


@pytest.mark.parametrize("bits", [0, CLIENT, DEFLATE])
def test_both_sockets_can_be_released_within_a_message(bits: int) -> None:
    both = WebSocketPair(bits)
    both.feed(frame(0x81, b"hello", masked=not bits & CLIENT)[:-1])
    both.next_events()
    both.release()
    assert not isinstance(both.next_events(), Event)


@pytest.mark.parametrize("client", [False, True])
def test_simple_texts_are_read_at_once(client: bool) -> None:
    def whole(payload: bytes, first: int = 0x81) -> bytes:
        return frame(first, payload, masked=not client)

    frames = FrameReader(client, InflateGuard(300, None))
    for text in ("a", "b" * 126, "c" * 300, ""):
        assert frames.read_texts(whole(text.encode()) + whole(b"x")) == ([text, "x"], False)
    for behind in (
        whole(b"x", 0x82),
        whole(b"\xff"),
        whole(b"x" * (LIMIT + 1)),
        whole(b"x" * 66_000),
        whole(b"xyz")[:-1],
        frame(0x81, b"x", masked=client),
        b"\x81" + bytes([126 | (0 if client else 0x80)]) + b"\0\5" + b"abcdefghi",
    ):
        frames = reader(client=client)
        assert frames.read_texts(whole(b"a") + behind) == (["a"], True)
        assert frames.read_texts(whole(b"b")) == ([], True)
