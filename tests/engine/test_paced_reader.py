"""What every reader that sets its own pace does; bodies and event streams have tests of their own."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.commands import Abort, Command, Connect, PauseReading, ResumeReading, Send
from svc_proto.engine.client import Fetched
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.paced_reader import PacedReader, open_reader
from svc_proto.facts import Done, Failure, Received, Sent, Started
from svc_proto.wire.events import ResponseHead
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.urls import Url
from tests.engine.test_client import CONNECT, ONE, OP, PEER, Caller, calling
from tests.playbook import Playbook

REQUEST = Send(ONE, b"GET /lengths HTTP/1.1\r\nhost: 127.0.0.1:8642\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
HEAD = b"HTTP/1.1 206 Some\r\nContent-Length: 100\r\n\r\n"


class Lengths(PacedReader[int]):
    """Keeps how long each piece was, and bears two of them."""

    def __init__(self, engine: Engine, order: Connect, url: Url, limits: Limits, *, http2: bool = False) -> None:
        super().__init__(engine, order, url, limits, most=2, http2=http2)

    def wants(self, head: ResponseHead) -> bool:
        return head.status == 206

    def collect(self, data: bytes) -> None:
        self.keep([len(data)], 1)


def opened(then: Callable[[Lengths], Flow[object]], head: bytes = HEAD) -> tuple[Playbook, Caller]:
    """An answer has begun, and `then` is what the reader does."""

    def flow(engine: Engine) -> Flow[object]:
        reader = yield from open_reader(
            Lengths,
            engine,
            "GET",
            "http://127.0.0.1:8642/lengths",
            headers=(),
            body=b"",
            connect_within=5.0,
            answer_within=5.0,
            limits=DEFAULT_LIMITS,
            prior_knowledge=False,
        )
        return (yield from then(reader)) if isinstance(reader, Lengths) else reader

    book, caller = calling(flow)
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER) << [REQUEST]
    book >> Sent(ONE, len(REQUEST.data)) << []
    book >> Received(ONE, head)
    return book, caller


def test_the_kind_says_what_is_read_bit_by_bit() -> None:
    def read(reader: Lengths) -> Flow[object]:
        return (yield from reader.pieces(1.0))

    book, caller = opened(read)
    book.take()
    book >> Received(ONE, b"abc") << []
    assert caller.results == [[3]]
    book, caller = opened(read, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    book << [Abort(ONE)]
    (answer,) = caller.results
    assert isinstance(answer, Fetched)
    assert answer.body == b"ok"


def test_a_hold_and_what_is_unread_stop_it_each_by_itself() -> None:
    readers: list[Lengths] = []

    def read(reader: Lengths) -> Flow[object]:
        readers.append(reader)
        return (yield from reader.pieces(5.0))

    def hold(holding: bool) -> list[Command]:
        reader.engine._out = []
        reader.hold(holding)
        return list(reader.engine._out)

    book, caller = opened(read)
    book.take()
    (reader,) = readers
    assert hold(True) == [PauseReading(ONE)]
    book >> Received(ONE, b"a") << []  # read at once, and held all the same
    assert caller.results == [[1]]
    assert hold(False) == [ResumeReading(ONE)]
    for _ in range(2):
        book >> Received(ONE, b"b") << []
    book >> Received(ONE, b"c") << [PauseReading(ONE)]  # the third that nobody reads
    assert hold(True) == []
    assert hold(False) == []
    assert list(reader.pieces(5.0)) == []
    assert reader.engine._out == [ResumeReading(ONE)]


def test_silence_ends_it() -> None:
    def read(reader: Lengths) -> Flow[object]:
        return (yield from reader.pieces(7.0))

    book, caller = opened(read)
    book.take()
    book.after(6.5) << []
    book.after(0.5) << []
    (failure,) = caller.results
    assert isinstance(failure, Failure)
