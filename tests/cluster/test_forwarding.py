"""Forwarding to another node: the request, the answer, and their ends."""

from typing import Any, cast

import pytest

from svc_proto.cluster import forwarding
from svc_proto.cluster.forwarding import FILE_FORWARD_RULE, forward, is_forwarded
from svc_proto.commands import Abort, Cancel, CloseWrite, Connect, PauseReading, ResumeReading
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.engine.response_readers import MAX_UNREAD
from svc_proto.facts import Address, Closed, Done, Failed, Failure, FailureKind, ReadClosed, Received, Sent, Started
from svc_proto.wire.events import Headers
from tests.engine.test_http_client import ONE, OP, PEER, calling
from tests.support.playbook import FlowService, Playbook, wire_bytes

URL = "http://10.0.0.2:8767/media/abc"
CONNECT = Connect(OP, ONE, "10.0.0.2", 8767)
FIELDS = ((b"authorization", b"Bearer t"), (b"range", b"bytes=1-"), (b"cookie", b"a=b"), (b"if-match", b'"x"'))


def asking(*fields: tuple[bytes, bytes], method: str = "GET") -> Request:
    return Request(
        method=method,
        path="/media/abc",
        raw_query="",
        headers=Headers(fields),
        peer=Address("10.0.8.1", 5),
        secure=False,
        params={"token": "abc"},
    )


class Slow:
    """Client of a forwarding node: it records each piece of the response, and accepts more once `read` is called."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ends: list[object] = []

    def flow(self, engine: Engine, request: Request) -> Flow[object]:
        self.engine = engine
        answer = yield from forward(engine, request, URL, FILE_FORWARD_RULE)
        if isinstance(answer, StreamedResponse) and request.method != "HEAD":
            self.ends.append((yield from answer.producer(cast("ResponseWriter", self))))
        return answer

    def write(self, data: bytes) -> bool:
        self.pieces.append(data)
        return True

    def drained(self) -> Flow[None]:
        self.ticket = self.engine.new_op()
        yield from wait(self.ticket, self.engine.now.mono + 10_000.0)

    def read(self) -> None:
        self.engine.resume(self.ticket, None)


def passed(request: Request) -> tuple[Playbook, FlowService, Slow, bytes]:
    """Forward a request; return the playbook, the service, the client, and the bytes sent to the other node."""
    slow = Slow()
    book, caller = calling(lambda engine: slow.flow(engine, request))
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER)
    said = wire_bytes(book.drain_commands(), ONE)
    book >> Sent(ONE, len(said)) << []
    return book, caller, slow, said


def test_request_and_answer_are_forwarded() -> None:
    book, caller, slow, said = passed(asking(*FIELDS))
    assert said == (
        b"GET /media/abc HTTP/1.1\r\nhost: 10.0.0.2:8767\r\nconnection: close\r\nauthorization: Bearer t\r\n"
        b'range: bytes=1-\r\nif-match: "x"\r\nvia: 1.1 svc-node\r\n\r\n'
    )
    head = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 6\r\nETag: t\r\nDate: x\r\nConnection: close, X-Hop\r\n"
    book >> Received(ONE, head + b"X-Hop: 1\r\n\r\nabc") << []
    book >> Received(ONE, b"def")
    book.act(slow.read).drain_commands()
    book.act(slow.read) << [CloseWrite(ONE), Abort(ONE)]
    assert (slow.pieces, slow.ends) == ([b"abc", b"def"], [True])
    (answer,) = caller.results
    assert (answer.status, answer.headers) == (206, Headers([(b"content-length", b"6"), (b"etag", b"t")]))


def test_slow_caller_pauses_the_other_node() -> None:
    book, _, slow, _ = passed(asking())
    book >> Received(ONE, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\na") << []
    book >> Received(ONE, bytes(MAX_UNREAD)) << [PauseReading(ONE)]
    book.after(1_000.0) << []
    book.act(slow.read) << [ResumeReading(ONE)]
    assert [len(piece) for piece in slow.pieces] == [1, MAX_UNREAD]


@pytest.mark.parametrize("end", [Closed(ONE, "reset"), ReadClosed(ONE), None])
def test_broken_answer_is_not_completed(end: Closed | ReadClosed | None) -> None:
    book, _, slow, _ = passed(asking())
    book >> Received(ONE, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
    book.drain_commands()
    if end is not None:
        book >> end
        book.drain_commands()
    book.act(slow.read).drain_commands()
    book.after(forwarding.SILENCE_TIMEOUT).drain_commands()
    assert (slow.pieces, slow.ends) == ([b"abc"], [False])


def test_cancelled_callers_and_heads_end_the_request() -> None:
    book, caller, _, _ = passed(asking())
    book >> Received(ONE, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc") << []
    book.act(caller.task.cancel) << [Abort(ONE)]
    book, caller, _, said = passed(asking(method="HEAD"))
    assert said.startswith(b"HEAD /media/abc ")
    book >> Received(ONE, b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n") << [Abort(ONE)]
    (answer,) = caller.results
    assert (answer.status, answer.headers) == (200, Headers([(b"content-length", b"999999999")]))


@pytest.mark.parametrize(("status", "comes_back"), [(304, True), (412, True), (416, True), (401, False), (404, False)])
def test_answers_without_the_file(status: int, comes_back: bool) -> None:
    book, caller, _, _ = passed(asking())
    length = b"" if status == 304 else b"Content-Length: 2\r\n"
    book >> Received(ONE, b"HTTP/1.1 %d X\r\n%sETag: t\r\n\r\n" % (status, length) + b"{}" * bool(length))
    answer = Response(status, Headers([(b"etag", b"t")]), b"{}" * bool(length))
    assert caller.results == [answer if comes_back else None]


def test_unreachable_node_gives_no_answer() -> None:
    for end in (Failed(OP, Failure(FailureKind.UNREACHABLE)), None):
        slow = Slow()
        book, caller = calling(lambda engine, slow=slow: slow.flow(engine, asking()))  # type: ignore[misc]
        book >> Started() << [CONNECT]
        if end is None:
            book.after(forwarding.CONNECT_TIMEOUT) << [Cancel(OP)]
        else:
            book >> end << []
        assert caller.results == [None]
    book, caller, _, _ = passed(asking())
    book.after(FILE_FORWARD_RULE.within) << [Abort(ONE)]
    assert caller.results == [None]


def test_forwarded_requests_are_marked_and_limited() -> None:
    assert is_forwarded(asking((b"via", b"1.0 fred, 1.1 SVC-node")))
    marks: list[Any] = [(), ((b"via", b"1.1 fred"),), ((b"x", b"1.1 svc-node"),)]
    assert not any(is_forwarded(asking(*fields)) for fields in marks)
    assert (forwarding.CONNECT_TIMEOUT, FILE_FORWARD_RULE.within, forwarding.SILENCE_TIMEOUT) == (2.0, 10.0, 60.0)
