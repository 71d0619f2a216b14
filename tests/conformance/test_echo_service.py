"""The echo service in memory: the behaviour that suites and external clients rely on."""

from __future__ import annotations

import pytest

from svc_proto.facts import Started
from svc_proto.wire.events import (
    BinaryMessage,
    CloseWebSocket,
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseHead,
    StreamId,
    TextMessage,
    WebSocketAccepted,
    WebSocketClosed,
)
from svc_proto.wire.limits import DEFAULT_LIMITS
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from tests.conformance.echo_service import LIMITS, PIECE, EchoService
from tests.support.http_client import Http2Client, new_client
from tests.support.http_harness import HttpHarness, HttpPeer
from tests.wire.connection_pair import seeded

ONE = StreamId(1)


class Caller:
    """HTTP client of an echo service, both in memory."""

    def __init__(self, version: str = "1.1") -> None:
        self.service = EchoService()
        self.book = HttpHarness(self.service)
        self.book.feed(Started())
        assert self.book.ready
        self.client = new_client(seeded(), http2=version == "2")
        self.peer: HttpPeer = self.book.accept(lambda node, ch: HttpPeer(node, ch, conn=self.client))

    def say(self, *events: Event) -> list[Event]:
        """Send events to the echo service and return the events of its answer."""
        before = len(self.peer.events)
        self.peer.send_events(*events)
        return self.peer.events[before:]

    def ask(self, method: str, target: str, *fields: tuple[bytes, bytes], body: bytes = b"") -> list[Event]:
        headers = Headers([(b"host", b"a"), (b"content-length", b"%d" % len(body)), *fields])
        return self.say(RequestHead(ONE, method, target, headers), RequestData(ONE, body), RequestEnd(ONE))

    def fetch(self, method: str, target: str, *fields: tuple[bytes, bytes], body: bytes = b"") -> tuple[int, bytes]:
        events = self.ask(method, target, *fields, body=body)
        assert isinstance(events[0], ResponseHead)
        return events[0].status, b"".join(event.data for event in events if isinstance(event, ResponseData))

    def wait(self, seconds: float) -> list[Event]:
        """Let time pass and return the events received meanwhile."""
        before = len(self.peer.events)
        self.book.after(seconds)
        return self.peer.events[before:]


@pytest.mark.parametrize(
    ("method", "target", "body", "answer"),
    [
        ("GET", "/", b"", (200, b"hello\n")),
        ("HEAD", "/", b"", (200, b"")),
        ("POST", "/any/path", b"\x00abc", (200, b"\x00abc")),
        ("GET", "/", b"abc", (200, b"abc")),
        ("PUT", "/echo", b"abc", (200, b"abc")),
        ("DELETE", "/x", b"", (200, b"")),
        ("OPTIONS", "*", b"", (200, b"")),
        ("BREW", "/pot", b"", (200, b"")),
        ("GET", "/nothing", b"", (200, b"hello\n")),
        ("GET", "/big?n=100000", b"", (200, b"x" * 100_000)),
        ("GET", "/big", b"", (400, b"n must be a number up to 67108864\n")),
        ("GET", "/big?n=99999999", b"", (400, b"n must be a number up to 67108864\n")),
        ("GET", "/sse-open", b"", (200, b"0\n")),
    ],
)
@pytest.mark.parametrize("version", ["1.1", "2"])
def test_http(version: str, method: str, target: str, body: bytes, answer: tuple[int, bytes]) -> None:
    assert Caller(version).fetch(method, target, body=body) == answer


def test_the_header_lines_and_the_cookies() -> None:
    fields = ((b"x-one", b"1"), (b"cookie", b"a=b; c=d"), (b"x-one", b"2"))
    lines = b"host: a\ncontent-length: 0\nx-one: 1\ncookie: a=b; c=d\nx-one: 2\n"
    assert Caller().fetch("GET", "/echo", *fields) == (200, lines)
    assert Caller().fetch("GET", "/cookie", *fields) == (200, b"a=b\nc=d\n")
    assert Caller().fetch("GET", "/cookie") == (200, b"")


def decoded(events: list[Event]) -> list[ServerSentEvent]:
    decoder = EventStreamDecoder()
    return [event for each in events if isinstance(each, ResponseData) for event in decoder.receive_data(each.data)]


FIVE = [
    ServerSentEvent("hello", "greet", "1"),
    ServerSentEvent("line one\nline two", id="2"),
    ServerSentEvent("café", id="2"),
    ServerSentEvent("", id="2", retry=250),
    ServerSentEvent("last", id="3", retry=250),
]


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_five_events_in_pieces_of_seven_bytes(version: str) -> None:
    caller = Caller(version)
    events = caller.ask("GET", "/sse") + caller.wait(1.0)
    pieces = [event.data for event in events if isinstance(event, ResponseData)]
    assert pieces[0] == b": a com"
    assert max(map(len, pieces)) == PIECE
    assert decoded(events) == FIVE


def test_slow_events_arrive_one_by_one() -> None:
    caller = Caller()
    assert decoded(caller.ask("GET", "/sse?slow")) == []
    events: list[Event] = []
    for count in range(1, 6):
        events += caller.wait(0.21)
        assert len(decoded(events)) == count
    assert decoded(events) == FIVE


def test_a_reconnected_client_gets_one_event() -> None:
    caller = Caller()
    events = caller.ask("GET", "/sse", (b"last-event-id", b"3")) + caller.wait(0.1)
    assert decoded(events) == [ServerSentEvent("3", "resumed")]


def test_ticks_until_the_client_disconnects() -> None:
    caller = Caller()
    events = caller.ask("GET", "/sse?endless")
    events += caller.wait(1.05)
    assert decoded(events) == [ServerSentEvent("tick", "tick")] * 11
    assert caller.service.streams == 1
    caller.peer.vanish()
    assert caller.service.streams == 0


@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize("path", ["/", "/any?x", "/version"])
def test_sockets_on_every_path(path: str, version: str) -> None:
    caller = Caller(version)
    head = RequestHead(ONE, "GET", path, Headers([(b"host", b"a")]), websocket=True)
    accepted, *rest = caller.say(head, RequestEnd(ONE))
    assert isinstance(accepted, WebSocketAccepted)
    assert rest == ([TextMessage(ONE, version)] if path == "/version" else [])
    said: list[Event] = [TextMessage(ONE, "hé"), BinaryMessage(ONE, bytes(9 * 1024 * 1024))]
    assert caller.say(*said) == said
    assert caller.service.greetings == {}
    assert DEFAULT_LIMITS.max_message < 9 * 1024 * 1024 < LIMITS.max_message


def test_an_http2_connection_outlives_its_websocket() -> None:
    caller = Caller("2")
    caller.say(RequestHead(ONE, "GET", "/", Headers([(b"host", b"a")]), websocket=True), RequestEnd(ONE))
    assert caller.say(CloseWebSocket(ONE, 3001, "enough")) == [WebSocketClosed(ONE, 3001, "")]
    assert isinstance(caller.client, Http2Client)
    assert not caller.client.is_open(ONE)
    assert caller.client.is_ready


def test_a_bad_handshake_is_refused() -> None:
    caller = Caller()
    status, text = caller.fetch("GET", "/", (b"upgrade", b"websocket"), (b"connection", b"upgrade"))
    assert (status, text) == (400, b"Sec-WebSocket-Version is missing\n")
