import hashlib
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from svc_proto.commands import Abort, Cancel, CloseWrite, Connect, Connected, Send
from svc_proto.engine.client_channel import ResponseMode
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.http_client import HttpResult, UploadBody, bearer_header, buffered, fetch, websocket_upgrade
from svc_proto.engine.response_readers import streamed
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import (
    Address,
    ChannelId,
    Closed,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    OperationId,
    ReadClosed,
    Received,
    Sent,
    Started,
    Stopping,
)
from svc_proto.wire.events import Headers
from tests.engine.toy_service import RecordingWebSocketHandler
from tests.support.playbook import FlowService, Playbook, SendMatcher, counting_entropy, wire_bytes

ONE = ChannelId(1)
OP = OperationId(1)
URL = "http://127.0.0.1:8642/v1/models"
WS = "ws://127.0.0.1:8767/ws"
REQUEST = Send(ONE, b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1:8642\r\nconnection: close\r\n\r\n")
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n"
)
CONNECT = Connect(OP, ONE, "127.0.0.1", 8642)
PEER = Connected(Address("127.0.0.1", 8642))


def calling(flow: Callable[[Engine], Flow[Any]]) -> tuple[Playbook, FlowService]:
    caller = FlowService(flow)
    return Playbook(Engine(caller, entropy=counting_entropy())), caller


def fetching() -> tuple[Playbook, FlowService]:
    """Start a fetch and send its request; return the playbook and the service that fetches."""
    book, caller = calling(lambda engine: fetch(engine, "GET", URL, within=5.0))
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER) << [REQUEST]
    return book, caller


def opening(handler: RecordingWebSocketHandler) -> tuple[Playbook, FlowService, bytes]:
    """Request a WebSocket; return the playbook, the service, and the bytes of a response that accepts it."""
    book, caller = calling(lambda engine: fetch(engine, "GET", WS, into=websocket_upgrade(handler), within=5.0))
    book >> Started() << [Connect(OP, ONE, "127.0.0.1", 8767)]
    book >> Done(OP, PEER)
    key = wire_bytes(book.drain_commands(), ONE).partition(b"sec-websocket-key: ")[2].partition(b"\r\n")[0]
    digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()  # RFC 6455 section 1.3
    return book, caller, SWITCH % b64encode(digest)


# --- fetch ---


def test_a_fetch() -> None:
    book, caller = fetching()
    book >> Received(ONE, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe") << []
    book >> Received(ONE, b"llo") << [Abort(ONE)]
    book >> Closed(ONE) << []
    answer = HttpResult(200, Headers([(b"content-length", b"5")]), b"hello")
    assert caller.results == [answer]
    assert (answer.members, evolve(answer, body=b'{"a":1}').members) == ({}, {"a": 1})


def test_a_chunked_response_and_one_that_ends_with_the_connection() -> None:
    book, caller = fetching()
    head = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    book >> Received(ONE, head + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n") << [Abort(ONE)]
    assert caller.results[0].body == b"hello"
    book, caller = fetching()
    book >> Received(ONE, b"HTTP/1.1 200 OK\r\n\r\nhello") << []
    book >> ReadClosed(ONE) << [Abort(ONE)]
    assert caller.results[0].body == b"hello"


def test_a_body_to_send() -> None:
    book, caller = calling(lambda engine: fetch(engine, "POST", "http://[::1]/x", body=b"{}"))
    book >> Started() << [Connect(OP, ONE, "::1", 80)]
    book >> Done(OP, PEER)
    book << [Send(ONE, b"POST /x HTTP/1.1\r\nhost: [::1]:80\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")]
    book >> Sent(ONE, 50) << []
    assert caller.results == []


def test_an_unusable_url_and_a_refused_connection() -> None:
    book, caller = calling(lambda engine: fetch(engine, "GET", "ftp://x/"))
    book >> Started() << []
    assert caller.results == [Failure(FailureKind.INVALID, "the URL is not one of http, https, ws, wss")]
    book, caller = calling(lambda engine: fetch(engine, "GET", URL))
    book >> Started() << [CONNECT]
    book >> Failed(OP, Failure(FailureKind.UNREACHABLE, "refused")) << []
    assert caller.results == [Failure(FailureKind.UNREACHABLE, "refused")]
    book, caller = calling(
        lambda engine: fetch(engine, "GET", "ws://", into=websocket_upgrade(RecordingWebSocketHandler()))
    )
    book >> Started() << []
    assert caller.results[0].kind is FailureKind.INVALID


def test_connecting_and_the_response_time_out() -> None:
    book, caller = calling(lambda engine: fetch(engine, "GET", URL, within=5.0))
    book >> Started() << [CONNECT]
    book.after(5.0) << [Cancel(OP)]
    assert caller.results[0].kind is FailureKind.TIMED_OUT
    book >> Done(OP, PEER) << [Abort(ONE)]
    book >> Closed(ONE) << []
    book, caller = fetching()
    book.after(5.0) << [Abort(ONE)]
    assert caller.results[0].kind is FailureKind.TIMED_OUT
    book >> Closed(ONE) << []


def test_a_cancelled_caller_drops_the_connection() -> None:
    book, caller = fetching()
    caller.task.cancel()
    book.after(0.0).drain_commands()
    book >> Received(ONE, b"HTTP/1.1 200 OK\r\n\r\n") << []
    book >> Closed(ONE) << []
    assert caller.results == caller.errors == []
    assert caller.engine.channel_count == 0


def test_answers_that_end_early_and_one_that_is_no_http() -> None:
    begun = Received(ONE, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
    scripts: tuple[list[Fact], ...] = ([ReadClosed(ONE)], [begun, ReadClosed(ONE)])
    for facts in scripts:
        book, caller = fetching()
        for fact in facts:
            (book >> fact).drain_commands()
        assert caller.results[0].kind is FailureKind.UNREACHABLE
    book, caller = fetching()
    book >> Closed(ONE) << []
    assert caller.results == [Failure(FailureKind.UNREACHABLE, "the connection was closed")]
    book, caller = fetching()
    book >> Received(ONE, b"SSH-2.0\r\n\r\n") << [Abort(ONE)]
    assert caller.results[0].kind is FailureKind.INVALID


@pytest.mark.parametrize("limit", [4, 5])
def test_an_answer_that_is_too_large(limit: int) -> None:
    chunked = b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    for answer in (b"Content-Length: 5\r\n\r\nhello", chunked):
        book, caller = calling(lambda engine: fetch(engine, "GET", URL, into=buffered(limit), within=5.0))
        book >> Started() << [CONNECT]
        book >> Done(OP, PEER) << [REQUEST]
        book >> Received(ONE, b"HTTP/1.1 200 OK\r\n" + answer) << [Abort(ONE)]
        (result,) = caller.results
        if limit == 5:
            assert result.body == b"hello"
        else:
            assert result == Failure(FailureKind.TOO_LARGE, "the answer has more than 4 bytes")


def test_a_malformed_header_leaves_no_connection_behind() -> None:
    book, caller = calling(lambda engine: fetch(engine, "GET", URL, headers=((b"x", b"a\r\nb"),)))
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER) << [Abort(ONE)]
    assert len(caller.errors) == 1
    book, caller = calling(
        lambda engine: fetch(
            engine, "GET", WS, into=websocket_upgrade(RecordingWebSocketHandler()), headers=((b"x", b"a\r\nb"),)
        )
    )
    (connect,) = (book >> Started()).drain_commands()
    assert isinstance(connect, Connect)
    book >> Done(OP, PEER) << [Abort(ONE)]


def test_stopping_leaves_a_fetch_to_its_flow() -> None:
    book, caller = fetching()
    book >> Stopping(5.0) << []
    book >> Received(ONE, b"HTTP/1.1 204 No Content\r\n\r\n") << [Abort(ONE)]
    assert caller.results[0].status == 204


# --- open_socket ---


def test_a_websocket() -> None:
    handler = RecordingWebSocketHandler()
    book, caller, accepted = opening(handler)
    book >> Received(ONE, accepted + b"\x81\x02hi") << []
    (socket,) = caller.results
    assert isinstance(socket, WebSocketConnection)
    assert socket is handler.socket
    assert handler.told == [("open",), ("text", "hi")]
    socket.send_text("yo")
    book.after(0.0) << [SendMatcher(ONE, startswith=b"\x81\x82")]
    book >> Stopping(5.0) << [SendMatcher(ONE, startswith=b"\x88")]
    book >> Received(ONE, b"\x88\x02\x03\xe9") << [CloseWrite(ONE)]
    book >> ReadClosed(ONE) << []
    assert handler.told[-1] == ("closed", 1001, "")


def test_the_linger_of_a_client() -> None:
    handler = RecordingWebSocketHandler()
    book, _, accepted = opening(handler)
    book >> Sent(ONE, len(wire_bytes(book.drain_commands(), ONE))) << []
    data, fin = (book >> Received(ONE, accepted + b"\x88\x02\x03\xe8")).drain_commands()
    assert isinstance(data, Send)
    assert fin == CloseWrite(ONE)
    book >> Sent(ONE, len(data.data)) << []
    book.after(2.0) << [Abort(ONE)]
    assert handler.told == [("open",), ("closed", 1000, "")]


def test_a_websocket_that_is_declined_refused_or_cut_off() -> None:
    handler = RecordingWebSocketHandler()
    book, caller, _ = opening(handler)
    book >> Received(ONE, b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\nno") << [Abort(ONE)]
    assert (caller.results[0].status, caller.results[0].body) == (429, b"no")
    book, caller, accepted = opening(handler)
    book >> Received(ONE, accepted.replace(b"Accept: ", b"Accept: x")) << [Abort(ONE)]
    assert caller.results[0].kind is FailureKind.INVALID
    assert handler.told == []
    book, caller, accepted = opening(handler)
    book >> Received(ONE, accepted) << []
    book >> ReadClosed(ONE) << [CloseWrite(ONE)]
    assert handler.told[-1] == ("closed", 1006, "the peer closed without a close frame")


def test_bearer_header_omits_invalid_tokens() -> None:
    assert bearer_header("1c2d-3e4f") == ((b"authorization", b"Bearer 1c2d-3e4f"),)
    for wrong in ("", "a b", "a\r\nhost: x", "tökén"):
        assert bearer_header(wrong) == ()


class Source:
    """A request body of `size` bytes, of which each piece is read when the test resumes `ticket`."""

    def __init__(self, engine: Engine, size: int, piece: int = 100_000) -> None:
        self.engine, self.size, self.piece = engine, size, piece
        self.asked: list[int] = []
        self.ticket = OperationId(0)
        self.instead: bytes | Failure | None = None

    def read(self, offset: int) -> Flow[bytes | Failure]:
        self.asked.append(offset)
        self.ticket = self.engine.new_op()
        yield from wait(self.ticket, 1e9)
        return bytes(min(self.piece, self.size - offset)) if self.instead is None else self.instead


def uploading(
    size: int, within: float = 600.0, into: ResponseMode[Any] | None = None
) -> tuple[Playbook, FlowService, Source]:
    """Start a PUT and send its head; return the playbook, the service, and the source of the body."""
    made: list[Source] = []

    def flow(engine: Engine) -> Flow[Any]:
        made.append(Source(engine, size))
        return (yield from fetch(engine, "PUT", URL, body=UploadBody(size, made[0].read), within=within, into=into))

    book, caller = calling(flow)
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER)
    head = b"PUT /v1/models HTTP/1.1\r\nhost: 127.0.0.1:8642\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % size
    assert wire_bytes(book.drain_commands(), ONE) == head
    book >> Sent(ONE, len(head)) << []
    return book, caller, made[0]


def reads(book: Playbook, source: Source) -> int:
    return len(wire_bytes(book.act(lambda: source.engine.resume(source.ticket, None)).drain_commands(), ONE))


def test_a_body_is_sent_as_it_is_read_and_waits_for_the_server() -> None:
    book, caller, source = uploading(1_000_000)
    sent = 0
    while sent < 1_000_000:
        before = len(source.asked)
        n = reads(book, source)
        assert n == 100_000
        sent += n
        if len(source.asked) == before and sent < 1_000_000:  # the buffer limit is reached
            (book >> Sent(ONE, n)).drain_commands()
            (book >> Sent(ONE, 200_000)).drain_commands()
            assert len(source.asked) == before + 1
    assert source.asked == list(range(0, 1_000_000, 100_000))
    (book >> Received(ONE, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).drain_commands()
    assert [answer.status for answer in caller.results] == [200]


@pytest.mark.parametrize("late", [False, True])
def test_an_answer_before_all_was_sent(late: bool) -> None:
    book, caller, source = uploading(300_000)
    for _ in range(3 * late):  # then it waits for the server
        reads(book, source)
    book >> Received(ONE, b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
    if not late:
        assert not caller.results
        book >> Closed(ONE, "reset")  # what came before counts
        assert reads(book, source) == 0
    assert [answer.status for answer in caller.results] == [403]


def test_an_upload_that_stalls_and_one_that_is_cut() -> None:
    book, caller, source = uploading(1_000_000, within=5.0)
    for _ in range(3):
        reads(book, source)
    book.after(5.0)
    assert [failure.kind for failure in caller.results] == [FailureKind.TIMED_OUT]
    book, caller, source = uploading(1_000_000)
    for _ in range(3):
        reads(book, source)
    book >> Closed(ONE, "reset")
    assert [failure.kind for failure in caller.results] == [FailureKind.UNREACHABLE]


@pytest.mark.parametrize(
    ("instead", "kind"),
    [(b"", FailureKind.INVALID), (bytes(11), FailureKind.INVALID), (Failure(FailureKind.DENIED), FailureKind.DENIED)],
)
def test_a_body_source_that_changes_fails_the_request(instead: bytes | Failure, kind: FailureKind) -> None:
    book, caller, source = uploading(10)
    source.instead = instead
    assert reads(book, source) == 0
    assert [failure.kind for failure in caller.results] == [kind]


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_response_before_the_end_of_the_upload(gives_up: bool) -> None:
    book, caller, source = uploading(10, into=streamed())
    book >> Received(ONE, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n") << []
    if gives_up:
        book.act(caller.task.cancel) << [Abort(ONE)]
    else:
        source.instead = Failure(FailureKind.DENIED)
        book.act(lambda: source.engine.resume(source.ticket, None)) << [Abort(ONE)]
        assert caller.results == [source.instead]


def test_a_given_host_field_is_sent_unchanged_and_the_default_timeout_is_30_seconds() -> None:
    book, _ = calling(lambda engine: fetch(engine, "GET", URL, headers=((b"host", b"x.example"),)))
    book >> Started() << [CONNECT]
    assert book.core.next_deadline() == book.now.mono + 30
    book >> Done(OP, PEER) << [Send(ONE, b"GET /v1/models HTTP/1.1\r\nhost: x.example\r\nconnection: close\r\n\r\n")]
