"""The cases of h2spec 2.6.0 as playbooks: for each, its frames and the expected answer in the form of `told`.

h2spec accepts several outcomes of some cases; here each has one. Sections are those of RFC 9113, or of RFC 7541 where
the text names it; h2spec names its cases after RFC 7540. The case about TLS is in `test_http2_preface`.
"""

import struct
from typing import NamedTuple

import pytest
from h2.errors import ErrorCodes
from hpack import Decoder, Encoder

from svc_proto.commands import CloseWrite, Command
from svc_proto.facts import Received, Sent
from svc_proto.wire.http2_frames import PREFACE, FrameType
from tests.engine.toy_service import open_book
from tests.support.playbook import CH, wire_bytes

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20
MANY = 101  # streams, one more than may be open
MOST = 2**31 - 1


class Case(NamedTuple):
    """A case: the frames that the client sends, one after the other, and the expected answer in the form of `told`."""

    section: str
    name: str
    frames: tuple[bytes, ...]
    wanted: str


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def block(*fields: tuple[str, str]) -> bytes:
    return Encoder().encode(list(fields), huffman=False)


def fields(method: str = "GET", path: str = "/hello", *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return ((":method", method), (":scheme", "http"), (":path", path), (":authority", "a"), *more)


def head(stream: int, payload: bytes, flags: int = END_STREAM | END_HEADERS) -> bytes:
    return frame(FrameType.HEADERS, flags, stream, payload)


def goes_on(stream: int, payload: bytes, flags: int = END_HEADERS) -> bytes:
    return frame(FrameType.CONTINUATION, flags, stream, payload)


def data(stream: int, payload: bytes, flags: int = END_STREAM) -> bytes:
    return frame(FrameType.DATA, flags, stream, payload)


def settings(*pairs: tuple[int, int], flags: int = 0, stream: int = 0) -> bytes:
    return frame(FrameType.SETTINGS, flags, stream, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def initial(*sizes: int) -> bytes:
    return settings(*((INITIAL_WINDOW, size) for size in sizes))


def number(kind: int, stream: int, value: int) -> bytes:
    return frame(kind, 0, stream, struct.pack(">I", value))


def priority(stream: int, on: int = 0, weight: int = 15) -> bytes:
    return frame(FrameType.PRIORITY, 0, stream, struct.pack(">IB", on, weight))


def window(stream: int, by: int) -> bytes:
    return number(FrameType.WINDOW_UPDATE, stream, by)


def reset(stream: int, code: int = ErrorCodes.CANCEL) -> bytes:
    return number(FrameType.RST_STREAM, stream, code)


PLAIN = block(*fields())
ECHO = block(*fields("POST", "/echo"))
SIZED = block(*fields("POST", "/echo", ("content-length", "1")))
GET = head(1, PLAIN)
POST = head(1, ECHO, END_HEADERS)
HALF = head(1, PLAIN, END_STREAM)  # of a header block
PING = frame(FrameType.PING, 0, 0, b"h2spec\0\0")
GOAWAY = frame(FrameType.GOAWAY, 0, 0, struct.pack(">II", 0, 0))
ENABLE_PUSH, MAX_STREAMS, INITIAL_WINDOW, MAX_FRAME = 2, 3, 4, 5
IN_THREE = (head(1, PLAIN[:5], END_STREAM), goes_on(1, PLAIN[5:9], 0), goes_on(1, PLAIN[9:]))
WITH_AN_EMPTY_ONE = (head(1, PLAIN[:5], END_STREAM), goes_on(1, b"", 0), goes_on(1, PLAIN[5:]))
TOO_MANY = (b"".join(head(2 * n + 1, ECHO, END_HEADERS) for n in range(MANY)),)
TOO_LONG = (head(1, SIZED, END_HEADERS), data(1, b"te", 0), data(1, b"st"))
STARVED = initial(0)
COMMON = b"\x82\x86\x41\x01a\x44\x06/hello"  # of the static table, and :authority and :path


def malformed(*more: tuple[str, str]) -> tuple[bytes, ...]:
    return (head(1, block(*fields("GET", "/hello", *more))),)


def odd(*pairs: tuple[str, str]) -> tuple[bytes, ...]:
    return (head(1, block(*pairs)),)


def wrong(why: str) -> str:
    return f"1: 400 bad_request: {why}…, 1: PROTOCOL_ERROR"


def whole(payload: bytes) -> tuple[bytes, ...]:
    return (head(1, payload),)


METHOD, SCHEME, PATH, AUTHORITY = fields()
HELLO, FINE, PONG = "1: 200 hello", "1: 200", "pong"
BROKEN, CLOSED = "GOAWAY PROTOCOL_ERROR", "GOAWAY STREAM_CLOSED"
SIZE, HPACK = "GOAWAY FRAME_SIZE_ERROR", "GOAWAY COMPRESSION_ERROR"
FLOW = "GOAWAY FLOW_CONTROL_ERROR"

GENERIC = [
    Case("3.4", "a preface is answered with SETTINGS", (), ""),
    Case("5.1", "PRIORITY on an idle stream", (priority(1), GET), HELLO),
    Case("5.1", "WINDOW_UPDATE on a half-closed stream", (STARVED, GET, window(1, 5)), HELLO),
    Case("5.1", "PRIORITY on a half-closed stream", (STARVED, GET, priority(1), window(1, 5)), HELLO),
    Case("5.1", "RST_STREAM on a half-closed stream", (STARVED, GET, reset(1), PING), "1: 200…, pong"),
    Case("5.1", "PRIORITY on a closed stream", (GET, priority(1), PING), f"{HELLO}, {PONG}"),
    Case("6.1", "one DATA", (POST, data(1, b"test")), "1: 200 test"),
    Case("6.1", "several DATA", (POST, data(1, b"te", 0), data(1, b"st")), "1: 200 test"),
    Case("6.1", "DATA with padding", (POST, data(1, b"\x06test" + bytes(6), PADDED | END_STREAM)), "1: 200 test"),
    Case("6.2", "HEADERS", (GET,), HELLO),
    Case("6.2", "HEADERS with padding", (head(1, b"\x06" + PLAIN + bytes(6), PADDED | 5),), HELLO),
    Case("6.2", "HEADERS with priority", (head(1, b"\0\0\0\0\xff" + PLAIN, PRIORITY | 5),), HELLO),
    Case("6.3", "PRIORITY of weight 1", (priority(1, 0, 0), GET), HELLO),
    Case("6.3", "PRIORITY of weight 256", (priority(1, 0, 255), GET), HELLO),
    Case("6.3", "PRIORITY that depends on a stream", (priority(1, 0), priority(3, 1), GET), HELLO),
    Case("6.3", "PRIORITY that is exclusive", (priority(1, 1 << 31), GET), HELLO),
    Case("6.3", "PRIORITY on an idle stream, then a lower one", (priority(3), GET), HELLO),
    Case("6.4", "RST_STREAM", (POST, reset(1), PING), PONG),
    Case("6.5", "SETTINGS", (settings((MAX_STREAMS, 100)),), ""),
    Case("6.7", "PING", (PING,), PONG),
    Case("6.8", "GOAWAY", (GOAWAY,), "FIN"),
    Case("6.9", "WINDOW_UPDATE of the connection", (window(0, 1), GET), HELLO),
    Case("6.9", "WINDOW_UPDATE of a stream", (STARVED, GET, window(1, 1), window(1, 4)), HELLO),
    Case("6.10", "CONTINUATION", (head(1, PLAIN[:5], END_STREAM), goes_on(1, PLAIN[5:])), HELLO),
    Case("6.10", "several CONTINUATION", IN_THREE, HELLO),
    Case("8.1", "GET", (GET,), HELLO),
    Case("8.1", "HEAD", (head(1, block(*fields("HEAD"))),), FINE),
    Case("8.1", "POST", (POST, data(1, b"test")), "1: 200 test"),
    Case("8.1", "POST with trailers", (POST, data(1, b"test", 0), head(1, block(("x-test", "ok")))), "1: 200 test"),
    Case("RFC 7541 6.1", "indexed", whole(COMMON), HELLO),
    Case("RFC 7541 6.2.1", "incremental, indexed name", whole(COMMON + b"\x7a\x01x"), HELLO),
    Case("RFC 7541 6.2.1", "incremental, indexed name, Huffman", whole(COMMON + b"\x7a\x81\xf3"), HELLO),
    Case("RFC 7541 6.2.1", "incremental, new name", whole(COMMON + b"\x40\x01b\x01x"), HELLO),
    Case("RFC 7541 6.2.1", "incremental, new name, Huffman", whole(COMMON + b"\x40\x81\x8f\x81\xf3"), HELLO),
    Case("RFC 7541 6.2.2", "not indexed, indexed name", whole(COMMON + b"\x0f\x2b\x01x"), HELLO),
    Case("RFC 7541 6.2.2", "not indexed, indexed name, Huffman", whole(COMMON + b"\x0f\x2b\x81\xf3"), HELLO),
    Case("RFC 7541 6.2.2", "not indexed, new name", whole(COMMON + b"\x00\x01b\x01x"), HELLO),
    Case("RFC 7541 6.2.2", "not indexed, new name, Huffman", whole(COMMON + b"\x00\x81\x8f\x81\xf3"), HELLO),
    Case("RFC 7541 6.2.3", "never indexed, indexed name", whole(COMMON + b"\x1f\x2b\x01x"), HELLO),
    Case("RFC 7541 6.2.3", "never indexed, indexed name, Huffman", whole(COMMON + b"\x1f\x2b\x81\xf3"), HELLO),
    Case("RFC 7541 6.2.3", "never indexed, new name", whole(COMMON + b"\x10\x01b\x01x"), HELLO),
    Case("RFC 7541 6.2.3", "never indexed, new name, Huffman", whole(COMMON + b"\x10\x81\x8f\x81\xf3"), HELLO),
    Case("RFC 7541 6.3", "a change of the table's size", whole(b"\x3f\x61" + COMMON), HELLO),
    Case("RFC 7541 6.3", "several changes of it", whole(b"\x20\x3f\x61" + COMMON), HELLO),
]

CONNECTION = [
    Case("3.4", "a preface, then SETTINGS", (), ""),
    Case("4.1", "an unknown type", (frame(0xFF, 0, 0, bytes(8)), PING), PONG),
    Case("4.1", "unknown flags", (frame(FrameType.PING, 0x16, 0, bytes(8)),), PONG),
    Case("4.1", "the reserved bit", (frame(FrameType.PING, 0, 1 << 31, bytes(8)),), PONG),
    Case("4.2", "DATA of 2^14 octets", (POST, data(1, bytes(16_384), 0), PING), PONG),
    Case("4.2", "DATA of more", (POST, data(1, bytes(16_385))), SIZE),
    Case("4.2", "HEADERS of more", (head(1, PLAIN + bytes(16_385)),), SIZE),
    Case("4.3", "a header block that is none", whole(b"\x00\x00\x00\x00\x00"), HPACK),
    Case("4.3", "PRIORITY within a header block", (HALF, priority(1)), BROKEN),
    Case("4.3", "HEADERS of another stream within one", (HALF, head(3, PLAIN)), BROKEN),
    Case("5.1", "idle: DATA", (data(1, b"x"),), BROKEN),
    Case("5.1", "idle: RST_STREAM", (reset(1),), BROKEN),
    Case("5.1", "idle: WINDOW_UPDATE", (window(1, 100),), BROKEN),
    Case("5.1", "idle: CONTINUATION", (goes_on(1, PLAIN),), BROKEN),
    Case("5.1", "half-closed: DATA", (STARVED, GET, data(1, b"x")), "1: 200…, 1: STREAM_CLOSED"),
    Case("5.1", "half-closed: HEADERS", (STARVED, GET, GET), "1: 200…, 1: STREAM_CLOSED"),
    Case("5.1", "half-closed: CONTINUATION", (STARVED, GET, goes_on(1, PLAIN)), f"1: 200…, {BROKEN}"),
    Case("5.1", "reset: DATA", (POST, reset(1), data(1, b"x")), "1: STREAM_CLOSED"),
    Case("5.1", "reset: HEADERS", (POST, reset(1), GET), "1: STREAM_CLOSED"),
    Case("5.1", "reset: CONTINUATION", (POST, reset(1), goes_on(1, PLAIN)), BROKEN),
    Case("5.1", "closed: DATA", (GET, data(1, b"x")), f"{HELLO}, 1: STREAM_CLOSED"),
    Case("5.1", "closed: HEADERS", (GET, GET), f"{HELLO}, {CLOSED}"),
    Case("5.1", "closed: CONTINUATION", (GET, goes_on(1, PLAIN)), f"{HELLO}, {BROKEN}"),
    Case("5.1.1", "an even stream", (head(2, PLAIN),), BROKEN),
    Case("5.1.1", "a stream below the last", (head(5, PLAIN), head(3, PLAIN)), f"5: 200 hello, {BROKEN}"),
    Case("5.1.2", "more streams than may be open", TOO_MANY, f"{2 * MANY - 1}: REFUSED_STREAM"),
    Case("5.3.1", "HEADERS that depend on themselves", (head(1, b"\0\0\0\x01\xff" + PLAIN, PRIORITY | 5),), BROKEN),
    Case("5.3.1", "PRIORITY that depends on itself", (priority(1, 1),), BROKEN),
    Case("5.4.1", "after GOAWAY comes the end", (frame(FrameType.PING, 0, 0, bytes(6)), PING), SIZE),
    Case("5.4.1", "GOAWAY comes first", (frame(FrameType.PING, 0, 0, bytes(6)),), SIZE),
    Case("5.5", "an extension", (frame(0xF0, 0, 1, bytes(8)), PING), PONG),
    Case("5.5", "an extension within a header block", (HALF, frame(0xF0, 0, 0, bytes(8))), BROKEN),
]

FRAMES = [
    Case("6.1", "DATA on stream 0", (data(0, b"x"),), BROKEN),
    Case("6.1", "DATA on a stream that is not open", (STARVED, GET, data(1, b"x")), "1: 200…, 1: STREAM_CLOSED"),
    Case("6.1", "DATA with more padding than payload", (POST, data(1, b"\x06test", PADDED | 1)), BROKEN),
    Case("6.2", "HEADERS that go on as PRIORITY", (HALF, priority(1)), BROKEN),
    Case("6.2", "HEADERS that go on as another stream's", (HALF, head(3, PLAIN)), BROKEN),
    Case("6.2", "HEADERS on stream 0", (head(0, PLAIN),), BROKEN),
    Case("6.2", "HEADERS with more padding than payload", (head(1, b"\xff" + PLAIN, PADDED | 5),), BROKEN),
    Case("6.3", "PRIORITY on stream 0", (priority(0),), BROKEN),
    Case("6.3", "PRIORITY of 4 octets", (frame(FrameType.PRIORITY, 0, 1, bytes(4)),), SIZE),
    Case("6.4", "RST_STREAM on stream 0", (reset(0),), BROKEN),
    Case("6.4", "RST_STREAM on an idle stream", (reset(1),), BROKEN),
    Case("6.4", "RST_STREAM of 3 octets", (POST, frame(FrameType.RST_STREAM, 0, 1, bytes(3))), SIZE),
    Case("6.5", "SETTINGS with ACK and a payload", (frame(FrameType.SETTINGS, ACK, 0, bytes(1)),), SIZE),
    Case("6.5", "SETTINGS on a stream", (settings((MAX_STREAMS, 100), stream=1),), BROKEN),
    Case("6.5", "SETTINGS of 3 octets", (frame(FrameType.SETTINGS, 0, 0, bytes(3)),), SIZE),
    Case("6.5.2", "ENABLE_PUSH of 2", (settings((ENABLE_PUSH, 2)),), BROKEN),
    Case("6.5.2", "INITIAL_WINDOW_SIZE over 2^31-1", (initial(1 << 31),), FLOW),
    Case("6.5.2", "MAX_FRAME_SIZE under 2^14", (settings((MAX_FRAME, 16_383)),), BROKEN),
    Case("6.5.2", "MAX_FRAME_SIZE over 2^24-1", (settings((MAX_FRAME, 1 << 24)),), BROKEN),
    Case("6.5.2", "an unknown setting", (settings((0xFF, 1)), PING), PONG),
    Case("6.5.3", "INITIAL_WINDOW_SIZE twice", (initial(100, 1), GET), "1: 200 h…"),
    Case("6.5.3", "SETTINGS are acknowledged", (settings(),), ""),
    Case("6.7", "PING is answered with its payload", (PING,), PONG),
    Case("6.7", "PING with ACK is not", (frame(FrameType.PING, ACK, 0, b"invalid\0"), PING), PONG),
    Case("6.7", "PING on a stream", (frame(FrameType.PING, 0, 1, bytes(8)),), BROKEN),
    Case("6.7", "PING of 6 octets", (frame(FrameType.PING, 0, 0, bytes(6)),), SIZE),
    Case("6.8", "GOAWAY on a stream", (frame(FrameType.GOAWAY, 0, 1, bytes(8)),), BROKEN),
    Case("6.9", "WINDOW_UPDATE by 0", (window(0, 0),), BROKEN),
    Case("6.9", "WINDOW_UPDATE by 0 on a stream", (POST, window(1, 0), PING), BROKEN),
    Case("6.9", "WINDOW_UPDATE of 3 octets", (frame(FrameType.WINDOW_UPDATE, 0, 0, bytes(3)),), SIZE),
    Case("6.9.1", "a window of one octet", (initial(1), GET), "1: 200 h…"),
    Case("6.9.1", "a window of the connection over 2^31-1", (window(0, MOST), window(0, MOST)), FLOW),
    Case("6.9.1", "a window of a stream over 2^31-1", (POST, window(1, MOST)), "1: FLOW_CONTROL_ERROR"),
    Case("6.9.2", "a window that changes after HEADERS", (STARVED, GET, initial(1)), "1: 200 h…"),
    Case("6.9.2", "a window that becomes negative", (initial(3), GET, initial(2), window(1, 2)), "1: 200 hell…"),
    Case("6.9.2", "INITIAL_WINDOW_SIZE over 2^31-1", (initial(1 << 31),), FLOW),
    Case("6.10", "several CONTINUATION behind HEADERS", WITH_AN_EMPTY_ONE, HELLO),
    Case("6.10", "CONTINUATION, then DATA", (HALF, goes_on(1, b"", 0), data(1, b"x")), BROKEN),
    Case("6.10", "CONTINUATION on stream 0", (HALF, goes_on(0, PLAIN)), BROKEN),
    Case("6.10", "CONTINUATION behind END_HEADERS", (POST, goes_on(1, PLAIN)), BROKEN),
    Case("6.10", "CONTINUATION behind END_HEADERS of one", (HALF, *[goes_on(1, b"")] * 2), f"{HELLO}, {BROKEN}"),
    Case("6.10", "CONTINUATION behind DATA", (POST, data(1, b"x", 0), goes_on(1, b"")), BROKEN),
    Case("7", "GOAWAY with an unknown code", (frame(FrameType.GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\xff"),), "FIN"),
    Case("7", "RST_STREAM with an unknown code", (POST, reset(1, 0xFF), PING), PONG),
]

PSEUDO = wrong("a pseudo-header field is unknown, misplaced or given twice")
HOP = wrong("a header that belongs to HTTP/1.1 alone")

MESSAGES = [
    Case("8.1", "a second HEADERS without END_STREAM", (POST, POST), BROKEN),
    Case("8.2.1", "a name in capitals", malformed(("X-TEST", "ok")), wrong("the name of a header is malformed")),
    Case("8.3", "an unknown pseudo-header field", malformed((":test", "ok")), PSEUDO),
    Case("8.3", "a pseudo-header field of responses", malformed((":status", "200")), PSEUDO),
    Case("8.3", "a pseudo-header field as trailer", (POST, head(1, block((":method", "GET")))), "1: PROTOCOL_ERROR"),
    Case("8.3", "a pseudo-header field behind others", odd(METHOD, SCHEME, PATH, ("x-test", "ok"), AUTHORITY), PSEUDO),
    Case("8.2.2", "a field of the connection", malformed(("connection", "keep-alive")), HOP),
    Case("8.2.2", "TE that is not trailers", malformed(("trailers", "test"), ("te", "trailers, deflate")), HOP),
    Case("8.3.1", ":path empty", whole(block(*fields("GET", ""))), wrong(":path is malformed")),
    Case("8.3.1", "no :method", odd(SCHEME, PATH, AUTHORITY), wrong(":method is malformed")),
    Case("8.3.1", "no :scheme", odd(METHOD, PATH, AUTHORITY), wrong(":scheme must be http or https")),
    Case("8.3.1", "no :path", odd(METHOD, SCHEME, AUTHORITY), wrong(":path is malformed")),
    Case("8.3.1", ":method twice", odd(METHOD, METHOD, SCHEME, PATH, AUTHORITY), PSEUDO),
    Case("8.3.1", ":scheme twice", odd(METHOD, SCHEME, SCHEME, PATH, AUTHORITY), PSEUDO),
    Case("8.3.1", ":path twice", odd(METHOD, SCHEME, PATH, PATH, AUTHORITY), PSEUDO),
    Case("8.1.1", "content-length, and a DATA of more", (head(1, SIZED, 4), data(1, b"test")), "1: PROTOCOL_ERROR"),
    Case("8.1.1", "content-length, and two", TOO_LONG, "1: PROTOCOL_ERROR, 1: STREAM_CLOSED"),
    Case("8.4", "PUSH_PROMISE of a client", (frame(FrameType.PUSH_PROMISE, 4, 1, b"\0\0\0\x02" + PLAIN),), BROKEN),
]

COMPRESSION = [
    Case("RFC 7541 2.3.3", "an index beyond the tables", whole(COMMON + b"\xc6"), HPACK),
    Case("RFC 7541 2.3.3", "a name beyond the tables", whole(COMMON + b"\x7f\x07\x01x"), HPACK),
    Case("RFC 7541 4.2", "a change of the table's size at the end", whole(COMMON + b"\x20"), HPACK),
    Case("RFC 7541 5.2", "padding of more than 7 bits", whole(COMMON + b"\x00\x01b\x82\xf3\xff"), HPACK),
    Case("RFC 7541 5.2", "padding by zeros", whole(COMMON + b"\x00\x01b\x81\xf0"), HPACK),
    Case("RFC 7541 5.2", "EOS within a string", whole(COMMON + b"\x00\x01b\x84\xff\xff\xff\xff"), HPACK),
    Case("RFC 7541 6.1", "index 0", whole(COMMON + b"\x80"), HPACK),
    Case("RFC 7541 6.3", "a table of more than was allowed", whole(b"\x3f\xe2\x1f" + COMMON), HPACK),
]

CASES = [*GENERIC, *CONNECTION, *FRAMES, *MESSAGES, *COMPRESSION]


def told(commands: list[Command]) -> str:
    """Return what a server sends, as text: responses (`…`: incomplete), resets, pongs, and GOAWAY or else the FIN.

    Settings and window updates are left out.
    """
    raw, decoder = wire_bytes(commands), Decoder()
    said: list[str] = []
    answers: dict[int, list[str]] = {}
    while raw:
        size, kind, flags, stream = int.from_bytes(raw[:3], "big"), raw[3], raw[4], int.from_bytes(raw[5:9], "big")
        payload, raw = raw[9 : 9 + size], raw[9 + size :]
        if kind == FrameType.HEADERS:
            answers[stream] = [f"{stream}: {dict(decoder.decode(payload, raw=True))[b':status'].decode()}", "", "…"]
            said.append(str(stream))
        elif kind == FrameType.DATA:
            answers[stream][1] = f"{answers[stream][1] or ' '}{payload.decode()}".rstrip()
        elif kind == FrameType.RST_STREAM:
            said.append(f"{stream}: {ErrorCodes(int.from_bytes(payload, 'big')).name}")
        elif kind == FrameType.GOAWAY:
            said.append(f"GOAWAY {ErrorCodes(int.from_bytes(payload[4:8], 'big')).name}")
        elif kind == FrameType.PING:
            assert (flags, payload) in [(ACK, PING[9:]), (ACK, bytes(8))]
            said.append("pong")
        if kind in (FrameType.HEADERS, FrameType.DATA) and flags & END_STREAM:
            answers[stream][2] = ""
    ended, goaway = CloseWrite(CH) in commands, any(word.startswith("GOAWAY") for word in said)
    assert ended or not goaway
    words = ["".join(answers[int(word)]) if word.isdigit() else word for word in said]
    return ", ".join([*words, "FIN"] if ended and not goaway else words)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.section}: {case.name}".replace(" ", "-"))
def test_a_case(case: Case) -> None:
    book = open_book()
    commands: list[Command] = []
    for step in (PREFACE + settings(), settings(flags=ACK), *case.frames):
        said = (book >> Received(CH, step)).drain_commands()
        commands += said
        while (written := len(wire_bytes(said))) and CloseWrite(CH) not in said:
            said = (book >> Sent(CH, written)).drain_commands()
            commands += said
    assert told(commands) == case.wanted


def test_how_many_cases_there_are() -> None:
    assert len({(case.section, case.name) for case in CASES}) == len(CASES)
    assert len(CASES) == 146  # and one about TLS
