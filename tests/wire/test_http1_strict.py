"""Prohibitions of HTTP/1.1, rule by rule, with bytes whole, singly and split in two; and permitted similar input."""

from collections.abc import Callable

import pytest

from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.support.tables import read_table
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
    """Return the outcome of `data`; check that it is the same whole, byte by byte and at a third of all splits."""
    whole = run([data])
    assert run([bytes([byte]) for byte in data]) == whole, "byte by byte"
    for at in range(1 + len(data) % 3, len(data), 3):
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

AROUND = {"head": (b"", b""), "line": (b"", b"\r\nHost: a\r\n\r\n"), "field": (TOP, b"\r\n\r\n" + EMBEDDED)}


def read_refused(*parts: str) -> list[tuple[bytes, int, str]]:
    """Return the refused bytes of these parts in `http1_refused.tsv`, completed, each with its status and reason.

    Their rules are in the named sections of RFC 6585, RFC 9110 and RFC 9112.
    """
    refused = []
    for row in read_table("tests/wire/http1_refused.tsv"):
        before, after = AROUND.get(row["part"], (b"", b""))
        data = row["bytes"].encode().decode("unicode_escape").encode("latin-1").replace(b"{PAD}", PAD)
        if row["part"] in parts:
            refused.append((before + data + after, int(row["status"]), row["text"]))
    return refused


@pytest.mark.parametrize(("data", "status", "text"), read_refused(*AROUND))
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

LONG_EXTENSION = b"1;" + b"x" * 120 + b"\r\n"
REFUSED_CHUNKS = [
    *read_refused("chunks"),
    (b"1" * 300, 431, "chunk extensions"),
    (LONG_EXTENSION + b"a\r\n" + LONG_EXTENSION + b"b\r\n", 431, "chunk extensions"),
    (b"0\r\n" + b"T: 1\r\n" * 50, 431, "trailers"),
]


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
