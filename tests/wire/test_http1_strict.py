"""Prohibitions of HTTP/1.1, rule by rule, with bytes whole, singly and split in two; and permitted similar input."""

from collections.abc import Callable

import pytest

from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.wire.connection_pair import ONE, TWO, ConnectionOutcome, feed, outcome, seeded, send_events
from tests.wire.http1_server import answer, server

SMALL = Limits(max_head=200, max_fields=5)
PAD = b"x" * 300


def converse(connection: Http1Connection, pieces: list[bytes], *, eof: bool = False) -> ConnectionOutcome:
    """Pass pieces to a connection and answer each request at its end; return the outcome."""

    def attend(event: events.Event) -> None:
        if isinstance(event, events.RequestEnd):
            answer(connection, event.stream)

    return outcome(connection, pieces, attend, eof=eof)


def however_cut(run: Callable[[list[bytes]], ConnectionOutcome], data: bytes) -> ConnectionOutcome:
    """Return the outcome of `data`; check that it is the same whole, byte by byte and at every split."""
    whole = run([data])
    assert run([bytes([byte]) for byte in data]) == whole, "byte by byte"
    for at in range(1, len(data)):
        assert run([data[:at], data[at:]]) == whole, f"split at {at}"
    return whole


def as_server(data: bytes, limits: Limits = DEFAULT_LIMITS, *, eof: bool = False) -> ConnectionOutcome:
    """Return the outcome of `data` at a server; check by `however_cut` that pieces do not change it."""
    return however_cut(lambda pieces: converse(server(limits), pieces, eof=eof), data)


def as_client(data: bytes, method: str = "GET", limits: Limits = SMALL, *, eof: bool = False) -> ConnectionOutcome:
    """Return the outcome of `data` as a response at a client; check by `however_cut` that pieces do not change it."""

    def run(pieces: list[bytes]) -> ConnectionOutcome:
        connection = Http1Connection(Role.CLIENT, limits=limits, entropy=seeded())
        send_events(
            connection, events.RequestHead(ONE, method, "/", events.Headers(((b"host", b"a"),))), events.RequestEnd(ONE)
        )
        return converse(connection, pieces, eof=eof)

    return however_cut(run, data)


def body(heard: tuple[events.Event, ...]) -> bytes:
    return b"".join(event.data for event in heard if isinstance(event, events.RequestData | events.ResponseData))


# --- heads ------------------------------------------------------------------------------------------------------

TOP = b"GET / HTTP/1.1\r\nHost: a\r\n"
EMBEDDED = b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n"

REST = b"\r\nHost: a\r\n\r\n"  # of a head, after its first line
BARE, LINE, MALFORMED, HOST = "bare CR or LF", "request line", "malformed", "Host is malformed"
TARGET, FOLDED, CODING = "request target", "folded", "does not end in one chunked"
TWICE, NUMBER, CONTROL = "given twice", "not a number", "control character"

REFUSED_LINES: list[tuple[int, str, tuple[bytes, ...]]] = [
    # RFC 9112 section 2.2: line ends
    (400, BARE, (b"GET / HTTP/1.1\r",)),
    (400, LINE, (b"\nGET / HTTP/1.1", b"\r\n\r\nGET / HTTP/1.1", b"\r\n \r\nGET / HTTP/1.1", b"\rGET / HTTP/1.1")),
    (400, LINE, (b" GET / HTTP/1.1",)),
    # section 2.3: the version
    (505, "HTTP/1.0 and HTTP/1.1", (b"GET / HTTP/2.0", b"GET / HTTP/1.2", b"GET / HTTP/0.9")),
    (400, LINE, (b"GET / HTTP/1", b"GET / HTTP/1.10", b"GET / HTTP/01.1", b"GET / HTTP/+1.1", b"GET / http/1.1")),
    (400, LINE, (b"GET / HTTP/1.1 ", b"GET /")),
    # section 3: the request line
    (400, LINE, (b"GET  / HTTP/1.1",)),
    (400, MALFORMED, (b"GET /  HTTP/1.1", b"GET\t/ HTTP/1.1", b"GET /a b HTTP/1.1", b"GET HTTP/1.1", b"/ HTTP/1.1")),
    (400, MALFORMED, (b"GET /\xe9 HTTP/1.1", b"GE\xe9 / HTTP/1.1", b"GET: / HTTP/1.1")),
    (414, "first line", (b"GET /" + PAD + b" HTTP/1.1",)),
    # section 3.2.1 to 3.2.4: the four forms of a target
    (400, "OPTIONS", (b"GET * HTTP/1.1", b"options * HTTP/1.1")),
    (400, TARGET, (b"GET a:80 HTTP/1.1", b"GET path HTTP/1.1", b"GET ?query HTTP/1.1", b"GET ** HTTP/1.1")),
    (400, TARGET, (b"GET ftp://a/ HTTP/1.1", b"GET http:/// HTTP/1.1", b"GET http:a HTTP/1.1")),
    (400, TARGET, (b"GET http://user@a/ HTTP/1.1", b"GET http://a#f HTTP/1.1", b"GET http://[:::]/ HTTP/1.1")),
    (501, "CONNECT", (b"CONNECT a:443 HTTP/1.1", b"CONNECT / HTTP/1.1")),
    # RFC 9110 section 5.5: control characters
    (400, CONTROL, (b"GET /\x00 HTTP/1.1", b"GET /\x7f HTTP/1.1")),
]
REFUSED_FIELDS: list[tuple[int, str, tuple[bytes, ...]]] = [
    # RFC 9112 section 2.2: line ends
    (400, BARE, (b"X: a\rb", b"X: a\r")),
    # section 3.2: Host; its other forms are in `test_authority`
    (400, "Host is given twice", (b"Host: a", b"hOsT: b")),
    # section 5.1: no blank before a colon
    (400, MALFORMED, (b"X : b", b"Content-Length : 5", b"Transfer-Encoding\t: chunked")),
    (400, MALFORMED, (b": b", b"no colon", b"X\xe9: b", b"X(: b")),
    # section 5.2: obsolete line folding
    (400, FOLDED, (b"X: a\r\n b", b"X: a\r\n\tb", b"Content-Length:\r\n 5")),
    # section 6.1: Transfer-Encoding
    (400, "together", (b"Content-Length: 4\r\nTransfer-Encoding: chunked",)),
    (400, "together", (b"Transfer-Encoding: chunked\r\nContent-Length: 4",)),
    (400, "together", (b"Transfer-Encoding: identity\r\nContent-Length: 4",)),
    (501, "only chunked", (b"Transfer-Encoding: gzip, chunked",)),
    (501, "only chunked", (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",)),
    (400, CODING, (b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunked, gzip", b"Transfer-Encoding: gzip")),
    (400, CODING, (b"Transfer-Encoding: identity", b"Transfer-Encoding:", b"Transfer-Encoding: chunked,")),
    (400, CODING, (b"Transfer-Encoding: chunked;q=1", b'Transfer-Encoding: "chunked"')),
    (400, CODING, (b"Transfer-Encoding: chunked, chunked",)),
    (400, CODING, (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",)),
    (400, CONTROL, (b"Transfer-Encoding: \x0bchunked",)),
    # section 6.3: Content-Length
    (400, TWICE, (b"Content-Length: 5\r\nContent-Length: 5", b"Content-Length: 5\r\ncontent-length: 6")),
    (400, NUMBER, (b"Content-Length: 5, 5", b"Content-Length: 5,", b"Content-Length: -5", b"Content-Length: +5")),
    (400, NUMBER, (b"Content-Length: 5 5", b"Content-Length: 0x5", b"Content-Length: 1_0", b"Content-Length: 5.0")),
    (400, NUMBER, (b"Content-Length:", b"Content-Length: \xb2")),
    (400, MALFORMED, (b"Content-Length: " + b"9" * 30,)),
    # RFC 9110 section 5.5: control characters
    (400, CONTROL, (b"X: a\x00b", b"X: a\x01b", b"X: a\x07", b"X: a\x0bb", b"X: \x0ca", b"X: a\x1b[0m", b"X: a\x7fb")),
    # RFC 6585 section 5: too much data
    (431, "5 fields", (b"\r\n".join([b"X: 1"] * 5),)),
    (431, "200 bytes", (b"X: " + PAD, b"X: " + PAD + b"\n")),
]
REFUSED_HEADS = [
    *((line + REST, status, text) for status, text, lines in REFUSED_LINES for line in lines),
    *(
        (TOP + field + b"\r\n\r\n" + EMBEDDED, status, text)
        for status, text, fields in REFUSED_FIELDS
        for field in fields
    ),
    (b"GET / HTTP/1.1\nHost: a\n\n", 400, BARE),
    (b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, BARE),
    (TOP + b"X: b\n\r\n", 400, BARE),
    (TOP + b"X: \n" + PAD, 400, BARE),
    (b"\x16\x03\x01\x02\x00\x01\x00", 400, LINE),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/1.0 and HTTP/1.1"),
    (b"GET / HTTP/1.1\r\n\r\n", 400, "Host is missing"),
    (b"GET / HTTP/1.1\r\nX-Host: a\r\n\r\n", 400, "Host is missing"),
    (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, "Host is missing"),
    (b"GET http://a/ HTTP/1.1\r\n\r\n", 400, "Host is missing"),
    *((b"GET / HTTP/1.1\r\nHost:" + host + b"\r\n\r\n", 400, HOST) for host in (b"", b" \t ", b" user@a", b" a:65536")),
    (b"GET / HTTP/1.1\r\nHost: [:::]:80\r\n\r\n", 400, HOST),
    (b"GET / HTTP/1.0\r\nHost:\r\n\r\n", 400, HOST),
    (b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400, "Host is given twice"),
    (b"GET ** HTTP/1.0\r\n\r\n", 400, TARGET),
    (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, FOLDED),
    (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "HTTP/1.0"),
    (TOP + PAD, 431, "200 bytes"),
    (PAD, 414, "first line"),
]


@pytest.mark.parametrize(("data", "status", "text"), REFUSED_HEADS)
def test_a_head_is_refused(data: bytes, status: int, text: str) -> None:
    refused = as_server(data, SMALL)
    assert refused.heard == ()
    assert refused.status == status
    assert text in refused.text


def test_both_lengths_close_the_connection(connection: Http1Connection) -> None:
    attack = TOP + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + EMBEDDED
    assert converse(connection, [attack]).heard == ()
    assert converse(connection, [EMBEDDED]) == ConnectionOutcome(())
    assert b"\r\nconnection: close\r\n" in answer(connection, events.StreamId(0))
    assert connection.must_close
    assert converse(connection, [EMBEDDED], eof=True) == ConnectionOutcome(())


def test_one_empty_line_before_a_request_is_ignored() -> None:
    assert [type(event) for event in as_server(b"\r\n" + TOP + b"\r\n").heard] == [
        events.RequestHead,
        events.RequestEnd,
    ]


@pytest.mark.parametrize(
    ("line", "target", "host"),
    [
        (b"GET http://b/c?d HTTP/1.1", "http://b/c?d", b"b"),
        (b"GET HTTP://B:80/ HTTP/1.1", "HTTP://B:80/", b"b:80"),
        (b"GET https://[::1]:8080 HTTP/1.1", "https://[::1]:8080", b"[::1]:8080"),
        (b"GET http://b?d HTTP/1.1", "http://b?d", b"b"),
        (b"GET http://b/ HTTP/1.0", "http://b/", b"b"),
        (b"OPTIONS * HTTP/1.1", "*", b"a"),
        (b"GET /http://b/ HTTP/1.1", "/http://b/", b"a"),
        (b"GET //b/ HTTP/1.1", "//b/", b"a"),
    ],
)
def test_the_authority_of_an_absolute_target_is_the_host(line: bytes, target: str, host: bytes) -> None:
    head = head_of(line + b"\r\nX: 1\r\nHost: a\r\n\r\n")
    assert head.target == target
    assert head.headers.all(b"host") == [host]
    assert head.headers.get(b"x") == b"1"


def head_of(data: bytes) -> events.RequestHead:
    """Return the head that a server receives from `data`; check by `as_server` that pieces do not change it."""
    head = as_server(data).heard[0]
    assert isinstance(head, events.RequestHead)
    return head


def test_heads_with_rare_forms() -> None:
    assert head_of(b"GET http://b/ HTTP/1.0\r\n\r\n").headers == events.Headers(((b"host", b"b"),))  # no Host beside it
    assert head_of(b"G#T / HTTP/1.1\r\nHost: a\r\nX: #\r\n\r\n").method == "G#T"
    assert head_of(b"GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n").target == "/a?b#c"  # a fragment is part of it


@pytest.mark.parametrize("value", [b"caf\xc3\xa9", b"a\tb", b"", b'"(),/:;<=>?@[\\]{}'])
def test_values_that_are_allowed(value: bytes) -> None:
    assert head_of(TOP + b"X: " + value + b" \t\r\n\r\n").headers.get(b"x") == value


# --- bodies in chunks ---------------------------------------------------------------------------------------------

CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED_ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

EXTENSIONS = "chunk extensions"

REFUSED_GROUPS: list[tuple[int, str, tuple[bytes, ...]]] = [
    # RFC 9112 section 7.1: the size
    (400, "chunk size", (b"x\r\n", b"\r\n", b" 2\r\nok\r\n", b"-2\r\nok\r\n", b"+2\r\nok\r\n", b"0x2\r\nok\r\n")),
    (400, "chunk size", (b"2_0\r\nok\r\n", b"2 \r\nok\r\n", b"2\t\r\nok\r\n", b"2 2\r\nok\r\n", b"2.\r\nok\r\n")),
    (400, "chunk size", (b"2,\r\nok\r\n", b"2\x00\r\nok\r\n", b"1" * 17 + b"\r\nok\r\n")),
    (431, EXTENSIONS, (b"1" * 300,)),
    # section 7.1: the data
    (400, "longer than its size", (b"1\r\nok\r\n", b"2\r\nokk", b"2\r\nok0\r\n\r\n", b"2\r\nok\r0\r\n\r\n")),
    (400, "longer than its size", (b"2\r\nok\n0\r\n\r\n", b"2\r\nok\r\r\n0\r\n\r\n")),
    # section 2.2: line ends
    (400, BARE, (b"2\nok\r\n0\r\n\r\n", b"2\rok\r\n0\r\n\r\n", b"2\r\r\nok\r\n0\r\n\r\n")),
    (400, BARE, (b"2;a\n\r\nok\r\n0\r\n\r\n", b"2;a=b\rc\r\nok\r\n", b"0\n\r\n", b"0\r\n\n", b"0\r\n\r\r\n")),
    (400, BARE, (b"0\r\nT: v\n\r\n", b"0\r\nT: v\r\n\n", b"0\r\nT: a\rb\r\n\r\n")),
    # section 7.1.1: extensions
    (400, "extension", (b"2;\r\nok\r\n", b"2;a;\r\nok\r\n", b"2;;a\r\nok\r\n", b"2;=b\r\nok\r\n", b"2;a=\r\nok\r\n")),
    (
        400,
        "extension",
        (b"2;a=b c\r\nok\r\n", b"2;a b\r\nok\r\n", b"2;a \r\nok\r\n", b"2 a\r\nok\r\n", b"2 ;a\r\nok\r\n"),
    ),
    (400, "extension", (b'2;a="b\r\nok\r\n', b'2;a="b"c\r\nok\r\n', b'2;a="b\x00"\r\nok\r\n', b"2;a=\xe9\r\nok\r\n")),
    (431, EXTENSIONS, (b"2;" + PAD, b"2;" + PAD + b"\r\nok\r\n", b"2;" + PAD + b"\n")),
    (431, EXTENSIONS, (b"1;" + b"x" * 120 + b"\r\na\r\n1;" + b"x" * 120 + b"\r\nb\r\n",)),
    # section 7.1.2 and RFC 9110 section 6.5: trailers
    (400, "content-length among", (b"0\r\nContent-Length: 5\r\n\r\n",)),
    (400, "transfer-encoding among", (b"0\r\nT: v\r\nTRANSFER-ENCODING: chunked\r\n\r\n",)),
    (400, "host among", (b"0\r\nHost: b\r\n\r\n",)),
    (400, "connection among", (b"0\r\nConnection: close\r\n\r\n",)),
    (400, "upgrade among", (b"0\r\nUpgrade: websocket\r\n\r\n",)),
    (400, "te among", (b"0\r\nTE: trailers\r\n\r\n",)),
    (400, "expect among", (b"0\r\nExpect: 100-continue\r\n\r\n",)),
    (400, "keep-alive among", (b"0\r\nKeep-Alive: 5\r\n\r\n",)),
    (400, MALFORMED, (b"0\r\nContent-Length : 5\r\n\r\n", b"0\r\nno colon\r\n\r\n")),
    (400, FOLDED, (b"0\r\n T: v\r\n\r\n", b"0\r\nT: v\r\n w\r\n\r\n")),
    (400, CONTROL, (b"0\r\nT: \x00\r\n\r\n", b"0\r\nT: \x7f\r\n\r\n")),
    (431, "5 fields", (b"0\r\n" + b"T: 1\r\n" * 6 + b"\r\n",)),
    (431, "trailers", (b"0\r\nT: " + PAD, b"0\r\nT: " + PAD + b"\r\n\r\n", b"0\r\n" + b"T: 1\r\n" * 50)),
]
REFUSED_CHUNKS = [(chunks, status, text) for status, text, group in REFUSED_GROUPS for chunks in group]


@pytest.mark.parametrize(("chunks", "status", "text"), REFUSED_CHUNKS)
def test_a_body_is_refused(chunks: bytes, status: int, text: str) -> None:
    refused = as_server(CHUNKED + b"3\r\nabc\r\n" + chunks + EMBEDDED, SMALL)
    assert refused.status == status
    assert text in refused.text
    assert isinstance(refused.heard[0], events.RequestHead)
    assert body(refused.heard).startswith(b"abc")  # earlier data is still reported
    assert not any(isinstance(event, events.RequestEnd) for event in refused.heard)


@pytest.mark.parametrize(("chunks", "status", "text"), REFUSED_CHUNKS)
def test_a_response_body_is_refused(chunks: bytes, status: int, text: str) -> None:
    refused = as_client(CHUNKED_ANSWER + chunks + EMBEDDED)
    assert (refused.status, text in refused.text) == (status, True)
    assert isinstance(refused.heard[0], events.ResponseHead)
    assert not any(isinstance(event, events.ResponseEnd) for event in refused.heard)


@pytest.mark.parametrize(
    ("chunks", "whole", "trailers"),
    [
        (b"2\r\nok\r\n0\r\n\r\n", b"ok", ()),
        (b"0\r\n\r\n", b"", ()),
        (b"000\r\n\r\n", b"", ()),
        (b"0002\r\nok\r\n0\r\n\r\n", b"ok", ()),
        (b"a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n", b"0123456789abcdefghij", ()),
        (b"2;a\r\nok\r\n0;b=c\r\n\r\n", b"ok", ()),
        (b"2; a = b\t;c\r\nok\r\n0\r\n\r\n", b"ok", ()),
        (b'2;a="b; c=\\"d\\" \xe9";e=f\r\nok\r\n0\r\n\r\n', b"ok", ()),
        (b'2;a=""\r\n\r\n\r\n0\r\n\r\n', b"\r\n", ()),
        (b"2;" + b"x" * 150 + b"\r\nok\r\n0\r\n\r\n", b"ok", ()),
        (b"2\r\nok\r\n0\r\nT: v\r\nU:\tw \r\n\r\n", b"ok", ((b"t", b"v"), (b"u", b"w"))),
        (b"0\r\n" + b"T: 1\r\n" * 5 + b"\r\n", b"", ((b"t", b"1"),) * 5),
        (b"0\r\nX-Host: v\r\n\r\n", b"", ((b"x-host", b"v"),)),
    ],
)
def test_a_body_in_chunks(chunks: bytes, whole: bytes, trailers: tuple[tuple[bytes, bytes], ...]) -> None:
    asked = as_server(CHUNKED + chunks + EMBEDDED, SMALL)
    assert asked.status is None
    assert body(asked.heard) == whole
    ends = [event for event in asked.heard if isinstance(event, events.RequestEnd)]
    assert ends == [events.RequestEnd(ONE, events.Headers(trailers)), events.RequestEnd(TWO)]
    told = as_client(CHUNKED_ANSWER + chunks)
    assert body(told.heard) == whole
    assert told.heard[-1] == events.ResponseEnd(ONE, events.Headers(trailers))


@pytest.mark.parametrize("cut", [b"", b"2", b"2\r\n", b"2\r\nok", b"2\r\nok\r", b"0\r\n", b"0\r\n\r", b"0\r\nT: v\r\n"])
def test_a_body_that_breaks_off(cut: bytes) -> None:
    reset = events.StreamReset(ONE, "the connection ended within a message")
    assert as_server(CHUNKED + cut, eof=True).heard[-1] == reset
    assert as_client(CHUNKED_ANSWER + cut, eof=True).heard[-1] == reset


def test_an_early_response_to_a_client_that_does_not_wait_for_100(connection: Http1Connection) -> None:
    head = CHUNKED.replace(b"Host", b"Expect: 100-continue\r\nHost")
    converse(connection, [head + b"2\r\n"])
    assert b"onnection: close" not in answer(connection, ONE)
    assert feed(connection, b"ok\r\n0\r\n\r\n" + EMBEDDED)[-1] == events.RequestEnd(TWO)


# --- responses ----------------------------------------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("responses", "text"),
    [
        ([OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], "together"),
        ([OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok"], "given twice"),
        ([OK + b"Content-Length: 2, 2\r\n\r\nok", OK + b"Content-Length: +2\r\n\r\nok"], "not a number"),
        ([OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"], "only chunked"),
        ([OK + b"Transfer-Encoding: chunked, gzip\r\n\r\n"], "does not end"),
        ([b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], "HTTP/1.0 response"),
        ([b"HTTP/2.0 200 OK\r\n\r\n", b"HTTP/1.1200 OK\r\n\r\n", b"ICY 200 OK\r\n\r\n"], "status line"),
        ([b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", OK + b"X : a\r\n\r\n"], "malformed"),
        ([OK + b"X: a\x01\r\n\r\n"], "control character"),
        ([OK + b"X: a\r\n b\r\n\r\n"], "folded"),
        ([OK + b"X: a\n\r\n"], "bare CR or LF"),
        ([b"\r\n" + OK + b"\r\n"], "request line"),
        ([OK + b"X: " + PAD], "200 bytes"),
        ([OK + b"X: 1\r\n" * 6 + b"\r\n"], "5 fields"),
    ],
)
def test_a_response_is_refused(responses: list[bytes], text: str) -> None:
    for data in responses:
        refused = as_client(data)
        assert refused.heard == ()
        assert refused.status is not None
        assert text in refused.text


@pytest.mark.parametrize(("method", "status"), [("HEAD", b"200"), ("GET", b"204"), ("GET", b"304")])
def test_responses_that_never_have_a_body(method: str, status: bytes) -> None:
    head = b"HTTP/1.1 " + status + b" X\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert [type(event) for event in as_client(head, method).heard] == [events.ResponseHead, events.ResponseEnd]
