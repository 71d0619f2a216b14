"""Response bodies with backpressure from the reader."""

from __future__ import annotations

from svc_proto.commands import Abort, CloseWrite, PauseReading, ResumeReading, Send
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, fetch
from svc_proto.engine.response_readers import MAX_UNREAD, BodyReader, streamed
from svc_proto.facts import Done, Received, Started
from tests.engine.test_http_client import CONNECT, ONE, OP, PEER, calling
from tests.engine.test_response_readers import END, URL, Slow, asking, chunk
from tests.support.playbook import FlowService, Playbook

REQUEST = Send(
    ONE, b"POST /stream HTTP/1.1\r\nhost: 127.0.0.1:8642\r\nconnection: close\r\nx-a: b\r\ncontent-length: 2\r\n\r\nhi"
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n"


def reading() -> tuple[Playbook, FlowService, Slow]:
    """Start to read a body whose request was sent."""
    slow = Slow(streamed(), 60.0)
    return *asking(slow, REQUEST), slow


def opened() -> tuple[Playbook, FlowService, Slow]:
    book, caller, slow = reading()
    book >> Received(ONE, HEAD) << []
    return book, caller, slow


def test_bytes_are_read_as_they_arrive() -> None:
    book, caller, slow = opened()
    assert isinstance(slow.reader, BodyReader)
    assert slow.reader.head.headers.get(b"content-type") == b"audio/pcm"
    book >> chunk(b"one") << []
    book >> chunk(b"two") << []
    book.act(slow.read) << []
    assert slow.kept == [b"onetwo"]
    book.act(slow.read) << []
    assert slow.kept == [b"onetwo"]  # it waits for more
    book >> chunk(b"three") << []
    assert slow.kept == [b"onetwo", b"three"]
    book.act(slow.read) << []
    book >> END << [CloseWrite(ONE), Abort(ONE)]
    assert caller.results == [None]


def test_a_part_is_read_the_same() -> None:
    book, _, slow = reading()
    book >> Received(ONE, HEAD.replace(b"200 OK", b"206 Partial Content")) << []
    book >> chunk(b"one") << []
    book.act(slow.read) << []
    assert slow.kept == [b"one"]


def test_reading_pauses_with_much_unread_data() -> None:
    book, _, slow = opened()
    book >> chunk(bytes(MAX_UNREAD - 1)) << []
    book >> chunk(b"x") << [PauseReading(ONE)]
    book.after(10.0) << []
    book.act(slow.read) << [ResumeReading(ONE)]
    assert slow.kept == [bytes(MAX_UNREAD - 1) + b"x"]


def test_an_error_response_is_returned_whole() -> None:
    book, caller, _ = reading()
    book >> Received(ONE, b"HTTP/1.1 429 No\r\nContent-Length: 4\r\n\r\nslow") << [CloseWrite(ONE), Abort(ONE)]
    (answer,) = caller.results
    assert isinstance(answer, HttpResult)
    assert (answer.status, answer.body) == (429, b"slow")


def test_a_hold_and_unread_data_pause_reading_independently() -> None:
    readers: list[BodyReader] = []

    def flow(engine: Engine) -> Flow[None]:
        reader = yield from fetch(engine, "GET", URL, into=streamed())
        assert isinstance(reader, BodyReader)
        readers.append(reader)

    book, _ = calling(flow)
    book >> Started() << [CONNECT]
    (book >> Done(OP, PEER)).drain_commands()
    book >> Received(ONE, HEAD) << []
    (reader,) = readers
    book.act(lambda: reader.set_paused(True)) << [PauseReading(ONE)]
    book >> chunk(bytes(MAX_UNREAD)) << []
    book.act(lambda: reader.set_paused(False)) << []
    book.act(lambda: list(reader.read(within=5.0))) << [ResumeReading(ONE)]
