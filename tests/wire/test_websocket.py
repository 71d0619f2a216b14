"""WebSocket framing: playbooks from RFC 6455, limits, floods, and both roles together."""

import struct
import tracemalloc
import zlib
from itertools import product

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    BinaryMessage,
    CloseWebSocket,
    Event,
    Ping,
    Pong,
    ResponseData,
    TextFragment,
    TextMessage,
    WebSocketClosed,
)
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.websocket import MAX_PONGS, WEBSOCKET_TABLE, WebSocket, WebSocketState, WebSocketTrigger
from svc_proto.wire.websocket_deflate import MAX_FRAGMENTS, DeflateParameters
from tests.wire.chunking import Cuts
from tests.wire.connection_pair import ONE, WHOLE, drain, feed, seeded, send_events

KEY = b"\x37\xfa\x21\x3d"  # the masking key of RFC 6455 section 5.7
SMALL = Limits(max_message=1000)


def socket(
    role: Role = Role.SERVER, limits: Limits = DEFAULT_LIMITS, deflate: DeflateParameters | None = None
) -> WebSocket:
    return WebSocket(role, ONE, limits=limits, entropy=seeded(), deflate=deflate)


@pytest.fixture
def ws() -> WebSocket:
    return socket()


def frame(first: int, payload: bytes = b"", *, masked: bool = True, size: int | None = None) -> bytes:
    """Return a WebSocket frame; `size`, if given, replaces the announced length of the payload."""
    n = len(payload) if size is None else size
    if n < 126:
        head = bytes([n])
    elif n < 65_536:
        head = b"\x7e" + struct.pack("!H", n)
    else:
        head = b"\x7f" + struct.pack("!Q", n)
    if not masked:
        return bytes([first]) + head + payload
    body = bytes(byte ^ KEY[at % 4] for at, byte in enumerate(payload))
    return bytes([first, head[0] | 0x80]) + head[1:] + KEY + body


def closing(code: int, reason: bytes = b"") -> bytes:
    return frame(0x88, struct.pack("!H", code) + reason)


def refusal(events: list[Event]) -> int | None:
    """Return the code with which we closed the WebSocket; check that this is the only event."""
    (closed,) = events
    assert isinstance(closed, WebSocketClosed)
    return closed.closed_by_us


# --- messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[1], [2, 3], WHOLE])
def test_messages(ws: WebSocket, sizes: Cuts) -> None:
    assert feed(ws, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", sizes) == [TextMessage(ONE, "Hello")]  # 5.7
    assert feed(ws, frame(0x82, b"x" * 256) + frame(0x82, b"y" * 65536), sizes) == [
        BinaryMessage(ONE, b"x" * 256),
        BinaryMessage(ONE, b"y" * 65536),
    ]
    assert feed(ws, frame(0x81) + frame(0x82), sizes) == [TextMessage(ONE, ""), BinaryMessage(ONE, b"")]


@pytest.mark.parametrize("sizes", [[1], [2, 3], WHOLE])
def test_fragments_with_control_frames_between(ws: WebSocket, sizes: Cuts) -> None:
    euro = "\N{EURO SIGN}".encode()
    data = frame(0x01, b"a" + euro[:1]) + frame(0x89, b"p") + frame(0x00) + frame(0x8A, b"q") + frame(0x80, euro[1:])
    assert feed(ws, data, sizes) == [Ping(ONE, b"p"), Pong(ONE, b"q"), TextMessage(ONE, "a\N{EURO SIGN}")]


def test_a_message_of_very_many_pieces(ws: WebSocket) -> None:
    data = b"".join([frame(0x02, b"ab"), *[frame(0x00, b"c")] * 5000, frame(0x00), frame(0x80)])
    assert feed(ws, data) == [BinaryMessage(ONE, b"ab" + b"c" * 5000)]
    data = b"".join([frame(0x01, b"ab"), *[frame(0x00, b"c")] * 1023, frame(0x80)])
    assert feed(ws, data) == [TextMessage(ONE, "ab" + "c" * 1023)]


@pytest.mark.parametrize("sizes", [[1], [7, 300], WHOLE])
def test_a_long_text_is_read_in_parts(sizes: Cuts) -> None:
    long = "\N{EURO SIGN}a" * 500
    events: list[Event] = []
    ws = socket()
    ws.enable_fragments(400)
    binary = frame(0x02, b"b" * 600) + frame(0x80, b"b")
    data = frame(0x01, long.encode()[:901]) + frame(0x89, b"p") + frame(0x80, long.encode()[901:])
    events = feed(ws, data + frame(0x81, b"short") + binary, sizes)
    assert events[-2:] == [TextMessage(ONE, "short"), BinaryMessage(ONE, b"b" * 601)]
    parts = [event for event in events if isinstance(event, TextFragment)]
    assert "".join(part.text for part in parts) == long
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert ws.buffered_bytes == 0


def test_a_text_is_read_in_parts_above_the_size_only(ws: WebSocket) -> None:
    assert feed(ws, frame(0x01, b"a" * 400)) == []
    ws.enable_fragments(ws.buffered_bytes)
    assert feed(ws, frame(0x00)) == []
    assert feed(ws, frame(0x00, b"b")) == [TextFragment(ONE, "a" * 400 + "b", False)]


def test_a_long_text_is_sent_in_parts() -> None:
    ws = socket(Role.CLIENT)
    texts = ["a" * 1200, "", "\N{EURO SIGN}"]
    for number, part in enumerate(texts):
        ws.send(TextFragment(ONE, part, number == len(texts) - 1))
        if number == 0:
            with pytest.raises(LocalProtocolError, match="among the parts"):
                ws.send(TextMessage(ONE, "b"))
            with pytest.raises(LocalProtocolError, match="surrogate"):
                ws.send(TextFragment(ONE, "\ud800", False))
            ws.send(Ping(ONE, b"p"))
    ws.send(TextMessage(ONE, "b"))
    assert feed(socket(), ws.data_to_send()) == [
        Ping(ONE, b"p"),
        TextMessage(ONE, "".join(texts)),
        TextMessage(ONE, "b"),
    ]


def test_sent_frames(ws: WebSocket) -> None:
    send_events(ws, TextMessage(ONE, "Hello"), BinaryMessage(ONE, b"x" * 126), Ping(ONE, b"p"), Pong(ONE, b"q" * 125))
    assert ws.data_to_send() == b"\x81\x05Hello\x82\x7e\x00\x7e" + b"x" * 126 + b"\x89\x01p\x8a\x7d" + b"q" * 125
    assert ws.data_to_send() == b""


@pytest.mark.parametrize("size", [0, 5, 125, 126, 65535, 65536])
def test_a_client_masks_with_its_entropy(size: int) -> None:
    ws = socket(Role.CLIENT)
    ws.send(BinaryMessage(ONE, b"x" * size))
    data = ws.data_to_send()
    again = socket(Role.CLIENT)
    again.send(BinaryMessage(ONE, b"x" * size))
    assert again.data_to_send() == data
    assert seeded()(4) in data
    assert feed(socket(), data) == [BinaryMessage(ONE, b"x" * size)]


@pytest.mark.parametrize(
    "event",
    [
        TextMessage(ONE, "\ud800"),
        Ping(ONE, b"x" * 126),
        Pong(ONE, b"x" * 126),
        *(CloseWebSocket(ONE, code) for code in (999, 1004, 1006, 1015, 2999, 5000)),
        WebSocketClosed(ONE, 1000),
        ResponseData(ONE, b"x"),
    ],
)
def test_events_that_cannot_be_sent(ws: WebSocket, event: Event) -> None:
    with pytest.raises(LocalProtocolError):
        ws.send(event)
    ws.send(TextMessage(ONE, "still open"))
    assert ws.data_to_send() == b"\x81\x0astill open"


def test_bytes_are_sent_as_text_by_default(ws: WebSocket) -> None:
    for message in ("é", "é".encode()):
        ws.send_message(message)
    ws.send_message("é".encode(), binary=True)
    assert ws.data_to_send() == b"\x81\x02\xc3\xa9" * 2 + b"\x82\x02\xc3\xa9"
    with pytest.raises(LocalProtocolError, match="lone surrogate"):
        ws.send_message("\ud800")


# --- the closing handshake --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("received", "echo", "event"),
    [
        (closing(1000, b"bye"), b"\x88\x02\x03\xe8", WebSocketClosed(ONE, 1000, "bye")),
        (closing(4999), b"\x88\x02\x13\x87", WebSocketClosed(ONE, 4999)),
        (frame(0x88), b"\x88\x00", WebSocketClosed(ONE, 1005)),
    ],
)
def test_the_peer_closes(ws: WebSocket, received: bytes, echo: bytes, event: WebSocketClosed) -> None:
    assert feed(ws, frame(0x81, b"x") + received + frame(0x81, b"late"), [1]) == [TextMessage(ONE, "x"), event]
    assert ws.data_to_send() == echo
    assert ws.state is WebSocketState.CLOSED
    ws.receive_eof()
    assert ws.next_event() is None
    ws.send(CloseWebSocket(ONE))  # does nothing
    with pytest.raises(LocalProtocolError, match="closed"):
        ws.send(TextMessage(ONE, "x"))
    with pytest.raises(LocalProtocolError, match="closed"):
        ws.send_message("x")
    assert ws.data_to_send() == b""


@pytest.mark.parametrize("code", [1000, 1003, 1007, 1014, 3000, 4999])
def test_codes_that_may_be_sent(ws: WebSocket, code: int) -> None:
    ws.send(CloseWebSocket(ONE, code))
    assert ws.data_to_send() == b"\x88\x02" + code.to_bytes(2, "big")


def test_we_close(ws: WebSocket) -> None:
    ws.send(CloseWebSocket(ONE, 1001, "x" * 200))
    assert ws.data_to_send() == b"\x88\x7d\x03\xe9" + b"x" * 123
    ws.send(CloseWebSocket(ONE, 1000))  # once is enough
    assert ws.data_to_send() == b""
    with pytest.raises(LocalProtocolError, match="closing"):
        ws.send(Ping(ONE))
    late = frame(0x81, b"late") + frame(0x02, b"late") + frame(0x89, b"p") + frame(0x80, b"late")
    assert feed(ws, late) == []
    assert feed(ws, closing(1001)) == [WebSocketClosed(ONE, 1001)]
    assert ws.must_close
    assert ws.data_to_send() == b""


def test_a_close_frame_without_a_code_and_one_with_a_lone_surrogate(ws: WebSocket) -> None:
    client = socket(Role.CLIENT)
    client.send(CloseWebSocket(ONE, 1005))
    assert client.data_to_send() == b"\x88\x80" + seeded()(4)
    ws.send(CloseWebSocket(ONE, 1000, "a\ud800"))
    assert ws.data_to_send() == b"\x88\x04\x03\xe8a?"


@pytest.mark.parametrize("ours", [False, True])
def test_the_end_without_a_close_frame(ws: WebSocket, ours: bool) -> None:
    if ours:
        ws.send(CloseWebSocket(ONE))
    ws.receive_data(frame(0x81, b"last") + b"\x81")
    ws.receive_eof()
    events = drain(ws)
    closed = events.pop()
    assert isinstance(closed, WebSocketClosed)
    assert (closed.code, closed.clean, closed.closed_by_us) == (1006, False, None)
    assert events == ([] if ours else [TextMessage(ONE, "last")])
    assert ws.next_event() is None


# --- violations -------------------------------------------------------------------------------------------------

INVALID = [  # closed with 1002
    *(frame(0x81, b"x", masked=False), frame(0xC1, b"x"), frame(0xA1, b"x"), frame(0x91, b"x")),
    *(frame(0x83), frame(0x8B), frame(0x09), frame(0x89, b"x" * 126), frame(0x80, b"x")),
    frame(0x01, b"x") + frame(0x81, b"y"),
    b"\x82\xfe\x00\x05" + b"\x00" * 9,
    b"\x82\xff" + b"\x00" * 6 + b"\x00\x05" + b"\x00" * 9,
    frame(0x88, b"x"),
    *(closing(code) for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)),
]
NO_TEXT = [  # closed with 1007
    *(closing(1000, b"\xff"), frame(0x81, b"\xff"), frame(0x81, b"\xed\xa0\x80")),
    frame(0x01, b"\xe2\x82") + frame(0x80),
]
TOO_BIG = [  # closed with 1009
    frame(0x82, b"x" * 1001),
    frame(0x82, b"x" * 1001)[:8],  # the announced size alone
    frame(0x02, b"x" * 600) + frame(0x80, b"x" * 401),
    b"\x82\xff\x7f" + b"\xff" * 7,
]
VIOLATIONS = [(data, code) for code, group in ((1002, INVALID), (1007, NO_TEXT), (1009, TOO_BIG)) for data in group]


@pytest.mark.parametrize("sizes", [[1], WHOLE])
@pytest.mark.parametrize(("data", "code"), VIOLATIONS)
def test_a_violation_is_reported_once(data: bytes, code: int, sizes: Cuts) -> None:
    ws = socket(limits=SMALL)
    (closed,) = feed(ws, data, sizes)
    assert isinstance(closed, WebSocketClosed)
    assert (closed.code, closed.clean, closed.closed_by_us) == (1006, False, code)
    sent = ws.data_to_send()
    assert sent[0] == 0x88
    assert struct.unpack("!H", sent[2:4]) == (code,)
    ws.receive_eof()
    assert feed(ws, frame(0x81, b"x")) == []


def test_a_violation_while_closing_sends_no_second_close_frame(ws: WebSocket) -> None:
    ws.send(CloseWebSocket(ONE))
    ws.data_to_send()
    assert refusal(feed(ws, frame(0x83))) is None
    assert ws.data_to_send() == b""
    assert refusal(feed(socket(Role.CLIENT), frame(0x81, b"x"))) == 1002  # a server must not mask


# --- floods -----------------------------------------------------------------------------------------------------


def test_pings_are_answered_with_a_bound_and_before_the_close_frame(ws: WebSocket) -> None:
    assert feed(ws, frame(0x89, b"a") + frame(0x89)) == [Ping(ONE, b"a"), Ping(ONE)]
    assert ws.data_to_send() == b"\x8a\x01a\x8a\x00"
    assert len(feed(ws, frame(0x89, b"x") * 5000 + frame(0x89, b"last"))) == 5001
    sent = ws.data_to_send()
    assert sent.count(b"\x8a") == MAX_PONGS
    assert sent.endswith(b"\x8a\x04last")
    feed(ws, frame(0x89, b"a") + closing(1000))
    assert ws.data_to_send() == b"\x8a\x01a\x88\x02\x03\xe8"


def test_empty_fragments_have_a_bound(ws: WebSocket) -> None:
    assert feed(ws, frame(0x01) + frame(0x00) * (MAX_FRAGMENTS - 1)) == []
    assert refusal(feed(ws, frame(0x00))) == 1009


# --- compression ------------------------------------------------------------------------------------------------

AGREED = DeflateParameters()
ALONE = DeflateParameters(server_no_context_takeover=True, client_no_context_takeover=True)
TAIL = b"\x00\x00\xff\xff"


def packed(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return (deflater.compress(data) + deflater.flush(zlib.Z_SYNC_FLUSH)).removesuffix(TAIL)


@pytest.mark.parametrize("sizes", [[1], [7], WHOLE])
def test_compressed_messages(sizes: Cuts) -> None:
    ws = socket(deflate=ALONE)
    # RFC 7692 section 7.2.3.1, then uncompressed, then compressed in fragments with a ping between
    hello, final = b"\xf2\x48\xcd\xc9\xc9\x07\x00", b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00"
    data = frame(0xC1, hello) + frame(0x81, b"plain") + frame(0x41, hello[:3]) + frame(0x89) + frame(0x80, hello[3:])
    event = TextMessage(ONE, "Hello")
    assert feed(ws, data, sizes) == [event, TextMessage(ONE, "plain"), Ping(ONE), event]
    assert feed(ws, frame(0xC1, final) + frame(0xC1, hello), sizes) == [event] * 2  # 7.2.3.4: a final block
    assert feed(socket(deflate=AGREED), frame(0xC1, final) * 2, sizes) == [event] * 2
    taken_over = frame(0xC1, hello) + frame(0xC1, b"\xf2\x00\x11\x00\x00")
    assert feed(socket(deflate=AGREED), taken_over, sizes) == [event] * 2


@pytest.mark.parametrize("sizes", [[1], WHOLE])
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(0xC2, packed(b"\x00" * 1_000_000)), 1009),
        (frame(0x42, packed(b"\x00" * 900) + TAIL) + frame(0x80, packed(b"\x00" * 900)), 1009),
        (frame(0xC2, b"\xff\xff\xff"), 1007),
        (frame(0xC2, b"\x03\x00" + b"junk" * 5), 1007),
        (frame(0xC1, packed(b"\xff")), 1007),
        (frame(0x42, b"") + frame(0xC0, b""), 1002),
        (frame(0xC9, b""), 1002),
        (frame(0xA2, b""), 1002),
    ],
)
def test_bad_compressed_messages(data: bytes, code: int, sizes: Cuts) -> None:
    assert refusal(feed(socket(limits=SMALL, deflate=AGREED), data, sizes)) == code


STRANGE = 64 * 1024  # bytes of a message


@pytest.mark.parametrize("agreed", [AGREED, None])
@pytest.mark.parametrize("fin", [0x80, 0])
def test_unauthenticated_messages_are_limited(agreed: DeflateParameters | None, fin: int) -> None:
    def said(size: int) -> bytes:
        return frame(fin | 0x42, packed(bytes(size))) if agreed else frame(fin | 0x02, bytes(size))

    def strange() -> WebSocket:
        return WebSocket(Role.SERVER, ONE, entropy=seeded(), deflate=agreed, max_message=STRANGE)

    assert feed(strange(), said(STRANGE)) == ([BinaryMessage(ONE, bytes(STRANGE))] if fin else [])
    assert refusal(feed(strange(), said(STRANGE + 1))) == 1009
    ws = strange()
    ws.lift_limits(ONE)
    assert feed(ws, said(STRANGE + 1)) == ([BinaryMessage(ONE, bytes(STRANGE + 1))] if fin else [])


def test_unauthenticated_messages_are_inflated_only_to_the_limit() -> None:
    data = frame(0x41, packed(b'{"a":"' + b"A" * 8_000_000))
    sockets = [WebSocket(Role.SERVER, ONE, entropy=seeded(), deflate=AGREED, max_message=STRANGE) for _ in range(50)]
    half = len(data) // 2
    for ws in sockets:
        assert len(feed(ws, data[:100])) <= 1
    tracemalloc.start()
    try:
        for ws in sockets:
            feed(ws, data[100:half])
            assert ws.state is WebSocketState.CLOSED
            feed(ws, data[half:])
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 50 * 2000  # bytes
    assert most < 50 * 2000 + 1_000_000


@pytest.mark.parametrize("role", list(Role))
def test_short_messages_and_those_of_an_unsupported_window_are_not_compressed(role: Role) -> None:
    ws = socket(role, deflate=AGREED)
    ws.send(TextMessage(ONE, "x" * 1023))
    assert ws.data_to_send()[0] == 0x81
    ws.send(TextMessage(ONE, "x" * 1024))
    assert ws.data_to_send()[0] == 0xC1
    for bits, first in ((8, 0x81), (9, 0xC1)):
        ws = socket(deflate=DeflateParameters(server_max_window_bits=bits))
        ws.send(TextMessage(ONE, "x" * 5000))
        assert ws.data_to_send()[0] == first


# --- both roles --------------------- --------------------------------------------------------------------------------


@pytest.mark.parametrize(("client_alone", "server_alone"), list(product([False, True], repeat=2)))
def test_both_roles_agree_on_the_context(client_alone: bool, server_alone: bool) -> None:
    agreed = DeflateParameters(
        server_max_window_bits=9,
        client_max_window_bits=10,
        client_no_context_takeover=client_alone,
        server_no_context_takeover=server_alone,
    )
    client, server = socket(Role.CLIENT, deflate=agreed), socket(Role.SERVER, deflate=agreed)
    for index in range(5):
        message = BinaryMessage(ONE, b"%d-hello" % index * 500)
        for one, other in ((client, server), (server, client)):
            one.send(message)
            assert feed(other, one.data_to_send()) == [message]


def test_the_table_covers_every_state_that_can_move() -> None:
    moving = {WebSocketState.OPEN, WebSocketState.CLOSING}
    assert set(WEBSOCKET_TABLE) == set(product(moving, WebSocketTrigger)) - {
        (WebSocketState.CLOSING, WebSocketTrigger.CLOSE)
    }
