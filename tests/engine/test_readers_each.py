"""Event streams as a client reads them."""

from __future__ import annotations

import pytest

from svc_proto.commands import Abort, Cancel, Connect, PauseReading, ResumeReading, Send
from svc_proto.engine.client import Fetched, fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.readers import MAX_UNREAD, SILENCE, BodyReader, EventReader, each_event, events, pieces
from svc_proto.facts import Closed, Done, Failed, Failure, FailureKind, OperationId, ReadClosed, Received, Sent, Started
from svc_proto.wire.sse import ServerSentEvent
from tests.engine.test_client import CONNECT, ONE, OP, PEER, Caller, calling
from tests.playbook import Playbook

URL = "http://127.0.0.1:8642/stream"
REQUEST = Send(
    ONE,
    b"POST /stream HTTP/1.1\r\nhost: 127.0.0.1:8642\r\nconnection: close\r\naccept: text/event-stream\r\n"
    b"x-a: b\r\ncontent-length: 2\r\n\r\nhi",
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"


class Reader:
    """What came, and the channel that it came on."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.channel: EventReader | None = None
        self.enough = False

    def take(self, event: ServerSentEvent) -> None:
        self.events.append(event.data)
        if self.enough and self.channel is not None:
            self.channel.drop()

    def opened(self, channel: EventReader) -> None:
        self.channel = channel


def chunk(data: bytes) -> Received:
    return Received(ONE, b"%x\r\n%s\r\n" % (len(data), data))


def reading(*, watch: bool = True) -> tuple[Playbook, Caller, Reader]:
    """A stream whose request is out."""
    reader = Reader()
    book, caller = calling(
        lambda engine: each_event(
            fetch(engine, "POST", URL, into=events(), headers=((b"x-a", b"b"),), body=b"hi", within=5.0),
            reader.take,
            reader.opened if watch else None,
        )
    )
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER) << [REQUEST]
    book >> Sent(ONE, len(REQUEST.data)) << []
    return book, caller, reader


def test_events_as_they_come() -> None:
    book, caller, reader = reading()
    book >> Received(ONE, HEAD) << []
    book >> chunk(b"data: on") << []
    assert reader.events == []
    book >> chunk(b"e\n\ndata: two\n\n") << []
    assert reader.events == ["one", "two"]
    book >> Received(ONE, b"0\r\n\r\n") << [Abort(ONE)]
    (answer,) = caller.results
    assert (answer.status, answer.body) == (200, b"")


def test_any_other_answer_is_collected() -> None:
    book, caller, reader = reading(watch=False)
    book >> Received(ONE, b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno") << [Abort(ONE)]
    (answer,) = caller.results
    assert isinstance(answer, Fetched)
    assert (answer.status, answer.body, reader.events) == (404, b"no", [])


def test_no_head_in_time() -> None:
    book, caller, _ = reading()
    book.after(5.0) << [Abort(ONE)]
    assert caller.results == [Failure(FailureKind.TIMED_OUT, "no answer in time")]


def test_silence_and_what_breaks_it() -> None:
    book, caller, reader = reading()
    book >> Received(ONE, HEAD) << []
    book >> chunk(b": keepalive\n\n") << []
    book.after(SILENCE - 1.0) << []
    book >> chunk(b": keepalive\n\n") << []
    book.after(SILENCE - 1.0) << []
    assert caller.results == []
    book.after(1.0) << [Abort(ONE)]
    assert caller.results[0].kind is FailureKind.TIMED_OUT
    assert reader.events == []


@pytest.mark.parametrize("end", [Closed(ONE, "reset"), ReadClosed(ONE)])
def test_a_stream_that_breaks_off(end: Closed | ReadClosed) -> None:
    book, caller, _ = reading()
    book >> Received(ONE, HEAD) << []
    book >> end
    book.take()
    assert isinstance(caller.results[0], Failure)


def test_a_stream_that_is_no_stream() -> None:
    book, caller, _ = reading()
    book >> Received(ONE, HEAD) << []
    for _ in range(3):
        book >> chunk(b"x" * 400_000)
        book.take()
    assert caller.results[0].kind is FailureKind.INVALID


def test_nowhere_to_connect() -> None:
    book, caller = calling(lambda engine: each_event(fetch(engine, "POST", URL, into=events()), Reader().take))
    book >> Started() << [CONNECT]
    book >> Failed(OP, Failure(FailureKind.UNREACHABLE)) << []
    assert caller.results == [Failure(FailureKind.UNREACHABLE)]


def test_holding_it() -> None:
    """However much is read on meanwhile: what was on its way comes nevertheless, and changes nothing."""
    book, _, reader = reading()
    book >> Received(ONE, HEAD) << []
    channel = reader.channel
    assert channel is not None
    book.act(lambda: channel.hold(True)) << [PauseReading(ONE)]
    book >> chunk(b"data: one\n\n") << []
    assert reader.events == ["one"]
    book.after(1.0) << []
    book.act(lambda: channel.hold(False)) << [ResumeReading(ONE)]
    book >> chunk(b"data: two\n\n") << []


def test_a_reader_that_has_had_enough() -> None:
    book, _, reader = reading()
    reader.enough = True
    book >> Received(ONE, HEAD + b"14\r\ndata: a\n\ndata: b\n\n\r\n")
    assert Abort(ONE) in book.take()
    assert reader.events == ["a"]


def test_giving_it_up() -> None:
    book, caller, _ = reading()
    book.act(caller.task.cancel) << [Abort(ONE)]
    book >> Closed(ONE) << []
    assert caller.results == []


def test_before_the_connection() -> None:
    book, caller = calling(lambda engine: each_event(fetch(engine, "POST", URL, into=events()), Reader().take))
    book >> Started() << [Connect(OperationId(1), ONE, "127.0.0.1", 8642)]
    book.act(caller.task.cancel) << [Cancel(OP)]


def test_a_hold_and_what_is_unread_stop_it_each_by_itself() -> None:
    readers: list[BodyReader] = []

    def flow(engine: Engine) -> Flow[None]:
        reader = yield from fetch(engine, "GET", URL, into=pieces())
        assert isinstance(reader, BodyReader)
        readers.append(reader)

    book, _ = calling(flow)
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER)
    book.take()
    book >> Received(ONE, HEAD) << []
    (reader,) = readers
    book.act(lambda: reader.hold(True)) << [PauseReading(ONE)]
    book >> chunk(bytes(MAX_UNREAD)) << []
    book.act(lambda: reader.hold(False)) << []
    book.act(lambda: list(reader.pieces(5.0))) << [ResumeReading(ONE)]
