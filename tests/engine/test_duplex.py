"""Responses that start before the request has ended, over both versions: a handler that writes while it reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from svc_proto.commands import Abort, Command, Compute, PauseReading, ReadFile, ReleaseFile, ResumeReading, SendFile
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import Request, StreamedResponse
from svc_proto.facts import Closed, Done, OperationId, Received
from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http2 import Http2Connection
from tests.engine.streamed_answers import TEXT, file_answer
from tests.engine.toy_service import STREAM_LIMIT, Answer, open_book
from tests.engine.wire_peer import WirePeerDialogue
from tests.support.playbook import CH

CHUNKED = events.Headers(((b"host", b"x"), (b"transfer-encoding", b"chunked")))
S = events.StreamId(1)


@pytest.fixture(params=["1.1", "2"])
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(request.param)


class Talk(WirePeerDialogue):
    """Dialogue of an HTTP client of either version with the toy service; `loud` and `deaf` are handlers for it."""

    def __init__(self, version: str) -> None:
        book = open_book()
        super().__init__(book, version, Role.CLIENT)
        self.toy = book.toy
        self.op = OperationId(0)
        self.cleaned = 0

    @property
    def others(self) -> list[Command]:
        return [order for order in self.orders if not isinstance(order, Compute)]

    def begin(self, handler: Callable[[Request], Answer]) -> None:
        self.toy.answer = handler
        self.send_from_peer(events.RequestHead(S, "POST", "/stream", CHUNKED))

    def resume(self, answer: object = None) -> None:
        self.handle(Done(self.op, answer))

    @property
    def body(self) -> bytes:
        return b"".join(event.data for event in self.heard if isinstance(event, events.ResponseData))

    @property
    def ended(self) -> bool:
        return isinstance(self.heard[-1], events.ResponseEnd)

    def cut(self) -> bool:
        """Report whether the response was cut off: over HTTP/2 by a stream reset, else by an abort of the channel."""
        if self.version == "2":
            return isinstance(self.heard[-1], events.StreamReset) and Abort(CH) not in self.others
        return Abort(CH) in self.others

    def goes_on(self) -> bool:
        stream = events.StreamId(3 if self.version == "2" else 2)
        self.send_from_peer(
            events.RequestHead(stream, "GET", "/hello", events.Headers(((b"host", b"x"),))), events.RequestEnd(stream)
        )
        return self.heard[-2:] == [events.ResponseData(stream, b"hello"), events.ResponseEnd(stream)]

    # --- handlers ---

    def loud(self, request: Request) -> StreamedResponse:
        """Respond with each received piece in capitals, as it arrives."""

        def produce(writer: ResponseWriter) -> Flow[None]:
            try:
                while piece := (yield from request.stream.read()):
                    writer.write(piece.upper())
                    yield from writer.drained()
            finally:
                self.cleaned += 1

        return StreamedResponse(200, TEXT, produce)

    def deaf(self, request: Request) -> StreamedResponse:
        """Respond with `first`, without reading the body, and with ` last` when the test resumes the handler with None.

        If it is resumed with another value, the producer raises.
        """

        def produce(writer: ResponseWriter) -> Flow[None]:
            try:
                writer.write(b"first")
                self.op = self.toy.engine.new_op()
                if (yield from run_operation(self.toy.engine, Compute(self.op, "work"), within=10_000.0)) is not None:
                    raise RuntimeError("a secret")
                writer.write(b" last")
            finally:
                self.cleaned += 1

        return StreamedResponse(200, TEXT, produce)


def test_writing_while_reading(talk: Talk) -> None:
    talk.begin(talk.loud)
    assert [type(event) for event in talk.heard] == [events.ResponseHead]
    for piece in (b"one ", b"two "):
        talk.send_from_peer(events.RequestData(S, piece))
        assert talk.body.endswith(piece.upper())
    talk.send_from_peer(events.RequestData(S, b"three"), events.RequestEnd(S))
    assert (talk.body, talk.ended) == (b"ONE TWO THREE", True)
    assert talk.goes_on()


def test_large_bodies_in_both_directions(talk: Talk) -> None:
    talk.begin(talk.loud)
    for _ in range(19):
        talk.send_from_peer(events.RequestData(S, b"x" * 100_000))
    talk.send_from_peer(events.RequestEnd(S))
    assert (talk.body, talk.ended) == (b"X" * 1_900_000, True)
    assert talk.goes_on()


def test_the_answer_or_the_body_ends_first(talk: Talk) -> None:
    talk.begin(talk.deaf)
    talk.send_from_peer(events.RequestData(S, b"x" * 1000))
    talk.resume()
    assert (talk.body, talk.ended, talk.cleaned) == (b"first last", True, 1)
    talk.send_from_peer(events.RequestData(S, b"x" * 1000), events.RequestEnd(S))
    assert talk.goes_on()
    talk = Talk(talk.version)
    talk.begin(talk.deaf)
    talk.send_from_peer(events.RequestData(S, b"x"), events.RequestEnd(S))
    talk.after(100.0)
    assert not talk.ended
    talk.resume()
    assert (talk.body, talk.ended) == (b"first last", True)
    assert talk.goes_on()


def test_a_handler_that_does_not_read_holds_the_peer(talk: Talk) -> None:
    talk.begin(talk.deaf)
    for _ in range(8):
        talk.send_from_peer(events.RequestData(S, b"x" * 100_000))
    if talk.version == "2":
        assert isinstance(talk.peer, Http2Connection)
        assert talk.peer.unsent(S) > 200_000
    else:
        assert talk.others == [PauseReading(CH)]
    talk.after(300.0)  # the handler is slow, not the peer
    assert not talk.cut()
    talk.resume()
    assert talk.ended
    if talk.version == "1.1":
        assert talk.others[-1] == ResumeReading(CH)
    talk.send_from_peer(events.RequestEnd(S))
    assert talk.goes_on()


# --- errors after the head, which only a cut can show ---


def test_a_bug_in_the_middle(talk: Talk) -> None:
    talk.begin(talk.deaf)
    talk.resume("wrong")
    assert talk.cut()
    assert [log.event for log in talk.book.logs] == ["bug"]


def test_a_body_over_the_limit(talk: Talk) -> None:
    talk.begin(talk.loud)
    for _ in range(STREAM_LIMIT // 100_000):
        talk.send_from_peer(events.RequestData(S, b"x" * 100_000))
    assert not talk.cut()
    talk.send_from_peer(events.RequestData(S, b"x"))
    assert talk.cut()
    assert (talk.cleaned, talk.book.logs) == (1, [])


@pytest.mark.parametrize("way", ["late", "malformed", "lost"])
def test_a_body_that_does_not_come(talk: Talk, way: str) -> None:
    talk.begin(talk.loud)
    if way == "late":
        talk.after(29.0)
        assert not talk.cut()
        talk.after(2.0)
    elif way == "lost":
        talk.handle(Closed(CH))
    elif talk.version == "2":
        talk.handle(Received(CH, b"\x00\x00\x04\x01\x05\x00\x00\x00\x01\x00\x01A\x00"))  # trailers with a bad name
    else:
        talk.handle(Received(CH, b"nonsense\r\n"))
    assert way == "lost" or talk.cut()
    assert (talk.cleaned, talk.book.logs) == (1, [])


# --- files ---


def test_a_file_before_the_body_has_ended(talk: Talk) -> None:
    talk.begin(file_answer())
    (order,) = [command for command in talk.others if isinstance(command, SendFile | ReadFile)]
    if isinstance(order, ReadFile):
        talk.handle(Done(order.op, b"hello"))
    else:
        talk.peer.receive_data(b"hello")
        talk.handle(Done(order.op, 5))
    assert (talk.body, talk.ended) == (b"hello", True)
    assert ReleaseFile(7) in talk.others
    talk.send_from_peer(events.RequestData(S, b"x"), events.RequestEnd(S))
    assert talk.goes_on()
