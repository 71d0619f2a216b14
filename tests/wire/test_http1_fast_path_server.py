"""Fast path of HTTP/1.1 servers: its range, its fallbacks, and its equality with the reference implementation."""

from contextlib import suppress

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from fuzz.fast_path import compare_server
from fuzz.targets.differential import LocalMisuseError
from fuzz.targets.http1_server_fast_path import DATE, JSON, ServerPair
from svc_proto import wire
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire import http1_fast_path_server
from svc_proto.wire.connection import ServerConnection
from svc_proto.wire.http1_fast_path_server import MAX_SHARED, FastPathServerConnection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.support.scenario_plan import some
from tests.wire.connection_pair import ONE, THREE, TWO, seeded
from tests.wire.http1_server import CHUNKED, EXPECTING, GET, GET_HEAD, LENGTH_2, POST, TEXT_HI, UPGRADE

ZERO = wire.StreamId(0)
HEALTH = b"HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-type: application/json\r\n"


def plain_server(limits: Limits = DEFAULT_LIMITS) -> FastPathServerConnection:
    return FastPathServerConnection(limits=limits, entropy=seeded())


@pytest.fixture
def both() -> ServerPair:
    return ServerPair(DEFAULT_LIMITS)


# --- both implementations are equal ---


@given(st.integers(0, 2**40))
def test_nearly_simple_traffic_is_equal_in_both(seed: int) -> None:
    compare_server(seed)


@pytest.mark.parametrize("first", some(range(0, 2000, 500), 4))
def test_fixed_scripts_are_equal_in_both_and_use_the_fast_path(first: int) -> None:
    """Compare the scripts of 500 fixed seeds; those of all 2,000 reach nearly every branch of the fast path."""
    assert sum(compare_server(seed) for seed in range(first, first + 500)) > 150


# --- a whole exchange ---


def test_whole_exchanges() -> None:
    connection: ServerConnection = plain_server()
    for stream in (ONE, TWO):
        head = wire.RequestHead(stream, GET_HEAD.method, GET_HEAD.target, GET_HEAD.headers)
        assert connection.receive_simple_request(GET) == (head, b"")
        assert connection.next_event() is None
        assert connection.send_simple_response(stream, 200, DATE, (JSON,), b"ok")
        assert connection.idle
        assert connection.data_to_send() == HEALTH + b"content-length: 2\r\n\r\nok"
        assert connection.data_to_send() == b""
    assert connection.receive_simple_request(POST) == (
        wire.RequestHead(THREE, "POST", "/", wire.Headers(((b"host", b"a"), (b"content-length", b"5")))),
        b"hello",
    )


def said(connection: FastPathServerConnection, target: bytes, fields: bytes, body: bytes = b"") -> wire.Headers | None:
    """Pass a PUT to the fast path and answer it with 204; return its header fields, None if it is declined."""
    taken = connection.receive_simple_request(b"PUT %b HTTP/1.1\r\n%b\r\n%b" % (target, fields, body))
    if taken is None:
        return None
    assert (taken[0].target.encode(), taken[1]) == (target, body)
    assert connection.send_simple_response(taken[0].stream, 204, DATE, (), b"")
    return taken[0].headers


def test_repeated_fields_are_parsed_once() -> None:
    connection = plain_server(evolve(DEFAULT_LIMITS, max_head=100))
    fields = b"Host: a\r\nContent-Length: 5\r\n"
    first = said(connection, b"/a", fields, b"hello")
    assert first == ((b"host", b"a"), (b"content-length", b"5"))
    assert said(connection, b"/bb", fields, b"world") is first
    for body in (b"", b"four", b"sixsix"):
        assert said(connection, b"/a", fields, body) is None
    longest = b"/" + b"a" * (100 - len(b"PUT / HTTP/1.1\r\n" + fields + b"\r\n"))
    assert said(connection, longest, fields, b"hello") is first
    assert said(connection, longest + b"a", fields, b"hello") is None
    assert said(connection, b"/", b"Host: b\r\n") == ((b"host", b"b"),)
    again = said(connection, b"/", fields, b"hello")
    assert again == first
    assert again is not first


def test_fields_without_a_credential_are_parsed_once_for_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_fast_path_server, "_shared", {})
    fields = b"Host: shared\r\nUser-Agent: curl/8.5.0\r\nAccept: a\r\nAccept-Encoding: a\r\nConnection: keep-alive\r\n"
    first = said(plain_server(), b"/a", fields)
    assert said(plain_server(evolve(DEFAULT_LIMITS, max_fields=5)), b"/b", fields) is first
    assert said(plain_server(evolve(DEFAULT_LIMITS, max_fields=4)), b"/", fields) is None
    with_token = fields + b"Authorization: Bearer secret\r\n"
    assert said(plain_server(), b"/", with_token) is not said(plain_server(), b"/", with_token)
    for n in range(MAX_SHARED):
        assert said(plain_server(), b"/", b"Host: h%d\r\n" % n) == ((b"host", b"h%d" % n),)
    assert said(plain_server(), b"/", fields) is not first


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        (b"".join(b"f%d: x\r\n" % n for n in range(15)), True),
        (b"".join(b"f%d: x\r\n" % n for n in range(16)), False),
        (b"f: %b\r\n" % (b"x" * (1024 - len(b"Host: a\r\nf: \r\n\r\n"))), True),
        (b"f: %b\r\n" % (b"x" * (1025 - len(b"Host: a\r\nf: \r\n\r\n"))), False),
    ],
)
def test_many_fields_are_not_cached(fields: bytes, kept: bool) -> None:
    connection = plain_server()
    first = said(connection, b"/", b"Host: a\r\n" + fields)
    assert first is not None
    assert (said(connection, b"/", b"Host: a\r\n" + fields) is first) is kept


# --- simple requests ---

PLAIN = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"DELETE /a?b HTTP/1.1\r\nHost: a.b:65535\r\nConnection: Keep-Alive\r\n\r\n",
    b"OPTIONS //x#y HTTP/1.1\r\nhost: 127.0.0.1:\r\nX: !  ~\r\n\r\n",
    b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 003\r\n\r\nabc",
    b"PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
]
NOT_PLAIN = [
    GET[:-1],
    GET + b"x",
    GET + GET,
    b"\r\n" + GET,
    POST[:-1],
    *(POST + b"x", CHUNKED, UPGRADE, EXPECTING, b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"),
    *(b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    *(b"GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
    *(b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX: a\r\n\r\n"),
    *(
        b"GET / HTTP/1.1\r\nHost: a\r\n" + field + b"\r\n\r\n"
        for field in (
            *(b"Host: a", b"X: a\r\nx: b", b"X:a", b"X:  a", b"X: a ", b"X: a\tb", b"X: \xe9", b"X:", b"X : a"),
            *(b"X: a\r\n b", b"X: a\nY: b", b"TE: trailers", b"Trailer: x", b"Upgrade: h2c", b"Expect: 100-continue"),
            *(b"Connection: close, close", b"Connection: keep-alive, keep-alive", b"Transfer-Encoding: chunked"),
            *(b"Content-Length: 1", b"Content-Length: +0", b"Content-Length: 0000000000000000000"),
        )
    ),
    *(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n" for host in (b"[::1]", b":1", b"a,b", b"u@h", b"a:65536")),
]


@pytest.mark.parametrize("data", PLAIN)
def test_simple_requests(both: ServerPair, data: bytes) -> None:
    assert both.hear_request(data)
    assert both.answer(ONE, 200, (), b"")


CLOSING = [
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nhi",
    *(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n", b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"),
]


@pytest.mark.parametrize("data", CLOSING)
@pytest.mark.parametrize("status", [200, 204])
def test_response_to_a_closing_request_ends_the_connection(both: ServerPair, data: bytes, status: int) -> None:
    assert both.hear_request(data)
    assert both.answer(ONE, status, (JSON,), b"ok")
    assert both.fast_path.must_close
    assert not both.hear_request(GET)
    both.next_events(2)
    assert both.fast_path._reference is None
    with suppress(LocalMisuseError):
        both.answer(ONE, 200, (), b"")
    both.end()
    both.next_events(2)


@pytest.mark.parametrize("data", NOT_PLAIN)
def test_complex_requests(both: ServerPair, data: bytes) -> None:
    assert not both.hear_request(data)
    both.next_events(5)
    both.answer(ONE, 200, (), b"")
    both.end()
    both.next_events(5)


# --- fallback and return ---


def test_the_reference_handles_complex_requests_only(both: ServerPair) -> None:
    for data in (GET, CHUNKED, POST, GET + POST, GET):
        assert both.hear_request(data) is (data in (GET, POST))
        both.next_events(5)
        both.answer(wire.StreamId(both.stream), 200, (JSON,), b"ok")
        if data == GET + POST:
            both.next_events(5)
            both.answer(wire.StreamId(both.stream), 200, (JSON,), b"ok")
    assert both.alone == 3
    assert both.fast_path._reference is None
    assert both.stream == 6


@pytest.mark.parametrize("requests", [0, 1])
@pytest.mark.parametrize("events", [0, 1])
def test_an_end_between_requests_needs_no_reference(both: ServerPair, requests: int, events: int) -> None:
    for _ in range(requests):
        both.hear_request(GET)
        both.answer(ONE, 200, (JSON,), b"ok")
    both.end()
    both.next_events(events)
    assert not both.hear_request(GET)
    assert both.fast_path._reference is None
    assert both.fast_path.must_close is bool(events)
    with suppress(LocalMisuseError):
        both.send_events(wire.ResponseHead(ZERO, 400, LENGTH_2), wire.ResponseData(ZERO, b"no"), wire.ResponseEnd(ZERO))
    both.next_events(1)
    assert both.fast_path.must_close


def test_field_names_keep_their_capitals(both: ServerPair) -> None:
    named = (b"X-Svc-Run-Id", b"1")
    both.hear_request(GET)
    assert both.answer(ONE, 200, (named,), b"ok")
    both.hear_request(GET)
    both.send_events(wire.ResponseHead(TWO, 200, wire.Headers(((b"date", DATE), named))))
    assert both.flush().endswith(b"\r\nX-Svc-Run-Id: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert both.fast_path._reference is None


def test_a_connection_can_be_released_at_any_time() -> None:
    for data in (b"", GET, GET[:-1]):
        connection = plain_server()
        connection.receive_data(data)
        connection.release()
        connection.lift_limits(ONE)


def test_chunked_responses_use_the_fast_path(both: ServerPair) -> None:
    both.feed(POST)
    both.next_events(4)
    both.send_events(wire.ResponseHead(ONE, 200, wire.Headers(((b"date", DATE), JSON))))
    assert both.flush() == HEALTH + b"Transfer-Encoding: chunked\r\n\r\n"
    both.send_events(
        wire.ResponseData(ONE, b"0123456789abcdef"), wire.ResponseData(ONE, b""), wire.ResponseData(ONE, b"x")
    )
    assert both.flush() == b"10\r\n0123456789abcdef\r\n1\r\nx\r\n"
    both.send_events(wire.ResponseEnd(ONE))
    assert both.flush() == b"0\r\n\r\n"
    assert both.fast_path.idle
    assert both.fast_path._reference is None
    both.hear_request(GET)
    assert both.answer(TWO, 200, (JSON,), b"ok")


@pytest.mark.parametrize("data", CLOSING)
def test_chunked_response_to_a_closing_request_ends_the_connection(both: ServerPair, data: bytes) -> None:
    assert both.hear_request(data)
    head = wire.ResponseHead(ONE, 200, wire.Headers(((b"date", DATE), JSON)))
    both.send_events(head, wire.ResponseData(ONE, b"ok"), wire.ResponseEnd(ONE))
    assert both.fast_path.must_close
    assert (both.fast_path._reference is None) is (b"HTTP/1.1" in data)


def test_heads_over_the_limits_need_the_reference() -> None:
    for limits in (Limits(max_head=len(GET)), Limits(max_fields=2)):
        assert plain_server(limits).receive_simple_request(GET) is not None
    for limits in (Limits(max_head=len(GET) - 1), Limits(max_fields=1)):
        connection = plain_server(limits)
        assert connection.receive_simple_request(GET) is None
        connection.receive_data(GET)
        with pytest.raises(RemoteProtocolError) as caught:
            connection.next_event()
        assert caught.value.status == 431


def test_websockets_need_the_reference(both: ServerPair) -> None:
    both.hear_request(GET)
    both.answer(ONE, 200, (), b"")
    both.hear_request(UPGRADE)
    both.next_events(2)
    both.send_events(wire.AcceptWebSocket(TWO))
    both.lift_limits()
    both.hear_request(TEXT_HI)
    assert both.next_events(1) == wire.TextMessage(TWO, "hi")
    both.fast_path.release()
    assert both.fast_path.next_event() is None
