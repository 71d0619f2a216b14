"""Access policies that are flows: a request waits for the decision, unless the flow ends without a wait."""

import random
from collections.abc import Callable

from svc_proto.commands import Cancel, CloseWrite, PauseReading, ReadConfig, ResumeReading, Send
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response
from svc_proto.facts import Closed, ReadClosed, Received
from svc_proto.wire.events import StreamId
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.engine.http2_playbook import Http2Playbook, answers
from tests.engine.toy_service import HANDSHAKE, ToyPlaybook, get, open_book, plain, post
from tests.support.playbook import CH, SendMatcher

PAUSED, RESUMED = PauseReading(CH), ResumeReading(CH)


def asked(book: ToyPlaybook, data: bytes) -> ReadConfig:
    """Send a request whose access policy reads a file; return the `ReadConfig` operation that is pending."""
    order, paused = (book >> Received(CH, data)).drain_commands()
    assert paused == PAUSED
    assert isinstance(order, ReadConfig)
    return order


def test_a_request_waits_for_its_policy(book: ToyPlaybook) -> None:
    order = asked(book, post(b"/slow", b"abc") + get(b"/hello"))
    both = book.says(200, b"abc").data + book.says(200, b"hello").data
    book.answer(order, "Ada") << [RESUMED, Send(CH, both)]
    book.answer(asked(book, post(b"/slow", b"ab", length=4)), "Bo") << [RESUMED]
    book >> Received(CH, b"cd") << [book.says(200, b"abcd")]  # the body may arrive after the decision
    order = asked(book, post(b"/slow", b"", b"Expect: 100-continue", length=2))
    book.answer(order, "Cy") << [RESUMED, Send(CH, b"HTTP/1.1 100 Continue\r\n\r\n")]
    book >> Received(CH, b"ab") << [book.says(200, b"ab")]
    assert book.toy.cleaned == ["access"] * 3
    book.toy.known = True  # a cached decision needs no wait
    book >> Received(CH, post(b"/slow", b"abc")) << [book.says(200, b"abc")]
    assert [request.principal for request in book.toy.seen] == ["Ada", "Bo", "Cy", "known"]


def test_policy_time_does_not_count_towards_timeouts() -> None:
    book = open_book(Limits(head_timeout=1.0, body_timeout=2.0))
    order = asked(book, post(b"/slow", b"", length=4))
    book.after(4.0) << []
    book.answer(order, "Ada") << [RESUMED]
    book.after(1.9) << []
    book.after(0.1) << [SendMatcher(CH, startswith=b"HTTP/1.1 408"), CloseWrite(CH)]


def test_refusals_by_and_after_the_policy(book: ToyPlaybook) -> None:
    book.fail(asked(book, post(b"/slow", b"abc"))) << [RESUMED, book.says(403, b"no: not you")]
    order = asked(book, post(b"/slow", b"abc"))
    book.after(5.0) << [Cancel(order.op), RESUMED, book.says(403, b"no: not you")]  # a timeout refuses, too
    answer = book.says(413, b"body_too_large: the body may have at most 10 bytes")
    book.answer(asked(book, post(b"/slow", b"", length=11)), "Ada") << [RESUMED, answer]
    book >> Received(CH, b"x" * 11 + get(b"/hello")) << [book.says(200, b"hello")]
    order = asked(book, post(b"/slow", b"", b"Expect: 100-continue", length=2))
    book.fail(order) << [RESUMED, book.says(403, b"no: not you", b"connection: close"), CloseWrite(CH)]
    assert book.toy.seen == []


def test_a_bug_of_the_policy(book: ToyPlaybook) -> None:
    order = asked(book, post(b"/slow", b"abc"))
    problem = book.says(500, b"internal_error: internal error, reference bug-1", b"connection: close")
    book.answer(order, "bug") << [RESUMED, problem, CloseWrite(CH)]


def reader(got: bytearray) -> Callable[[Request], Flow[Response]]:
    """Return a handler that reads the body in pieces into `got`."""

    def answer(request: Request) -> Flow[Response]:
        while data := (yield from request.stream.read()):
            got.extend(data)
        return plain(b"%d" % len(got))

    return answer


def test_a_streamed_body_over_the_read_burst() -> None:
    book = open_book(DEFAULT_LIMITS)
    sent, got = random.Random(1).randbytes(200_000), bytearray()
    book.toy.answer = reader(got)
    paused, order = (book >> Received(CH, post(b"/slow-stream", sent))).drain_commands()
    assert isinstance(order, ReadConfig)
    book.answer(order, "Ada") << [RESUMED, book.says(200, b"200000")]
    assert paused == PAUSED
    assert got == sent


def test_the_same_over_http2() -> None:
    book = Http2Playbook()
    sent, got = random.Random(1).randbytes(60_000), bytearray()
    book.toy.answer = reader(got)
    book.send_request(StreamId(1), "/slow-stream", sent)
    assert book.talk() == []
    (order,) = [order for order in book.others if isinstance(order, ReadConfig)]
    book.book.answer(order, "Ada")
    assert answers(book.talk()) == {1: (200, b"60000")}
    assert got == sent


def test_a_websocket(book: ToyPlaybook) -> None:
    order = asked(book, HANDSHAKE % b"/slow-ws")
    book.answer(order, "Ada") << [SendMatcher(CH, startswith=b"HTTP/1.1 101"), RESUMED]
    assert book.toy.handler.told == [("open",)]


def test_a_disconnected_peer_cancels_the_policy(book: ToyPlaybook) -> None:
    order = asked(book, post(b"/slow", b"abc"))
    book >> Closed(CH, "reset") << [Cancel(order.op)]
    assert book.toy.cleaned == ["access"]
    book.answer(order, "Ada") << []


def test_a_half_closed_peer_waits_for_the_policy(book: ToyPlaybook) -> None:
    order = asked(book, post(b"/slow", b"abc"))
    book >> ReadClosed(CH) << []
    book.answer(order, "Ada") << [RESUMED, book.says(200, b"abc", b"connection: close"), CloseWrite(CH)]


def test_a_waiting_stream_does_not_delay_others() -> None:
    book = Http2Playbook()
    book.send_request(StreamId(1), "/slow", b"abc")
    book.send_request(StreamId(3), "/hello")
    book.send_request(StreamId(5), "/slow", b"abc")
    assert answers(book.talk()) == {3: (200, b"hello")}
    first, second = [order for order in book.others if isinstance(order, ReadConfig)]
    book.book.answer(second, "Ada")
    assert answers(book.talk()) == {5: (200, b"abc")}
    book.book.fail(first)
    assert answers(book.talk()) == {1: (403, b"no: not you")}
    assert len(book.others) == 2
