"""Bodies that are not held in memory: requests read in pieces, and files sent past the core."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto import facts
from svc_proto.basics.errors import Refused
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Compute,
    Exit,
    PauseReading,
    ReleaseFile,
    ResumeReading,
    Send,
    SendFile,
)
from svc_proto.engine.flow import Deferred, Flow, run_operation, wait
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.wire.events import Headers
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.engine.streamed_answers import file_answer, sending, without_work
from tests.engine.toy_service import STREAM_LIMIT, ToyPlaybook, get, open_book, plain, post
from tests.support.playbook import CH, wire_bytes
from tests.wire.chunking import Cuts, cut, cuts

CLOSE = b"connection: close"
MEG = 1024 * 1024


class Reader:
    """Handler that reads a request's body in pieces; if `slow`, it waits after each one until `go_on`."""

    def __init__(self, book: ToyPlaybook, *, slow: bool = False) -> None:
        self.book = book
        self.slow = slow
        self.pieces: list[bytes] = []
        self.cleaned = 0
        self.op = facts.OperationId(0)
        book.toy.answer = self.handle

    def handle(self, request: Request) -> Flow[Response | StreamedResponse]:
        engine = self.book.engine
        try:
            while piece := (yield from request.stream.read()):
                self.pieces.append(piece)
                if self.slow:
                    self.op = engine.new_op()
                    yield from run_operation(engine, Compute(self.op, "work"), within=10_000.0)
            assert (yield from request.stream.read()) == b""
        finally:
            self.cleaned += 1
        return plain(b"%d" % sum(map(len, self.pieces)))

    def go_on(self) -> list[Command]:
        self.book >> facts.Done(self.op, None)
        return without_work(self.book)


# --- requests ---


def test_the_handler_starts_at_the_head_and_reads_pieces(book: ToyPlaybook) -> None:
    reader = Reader(book)
    book >> facts.Received(CH, post(b"/stream", b"")) << [book.says(200, b"0")]  # an empty body
    book >> facts.Received(CH, post(b"/stream", b"ab", length=5)) << []
    assert reader.pieces == [b"ab"]
    book >> facts.Received(CH, b"cde") << [book.says(200, b"5")]
    assert (reader.pieces, reader.cleaned) == ([b"ab", b"cde"], 2)
    book >> facts.Received(CH, post(b"/stream", b"x") + get(b"/hello"))
    book << [Send(CH, book.says(200, b"6").data + book.says(200, b"hello").data)]


@given(st.binary(max_size=300), cuts(), st.booleans())
def test_pieces_make_up_the_body_however_it_was_cut(body: bytes, sizes: Cuts, slow: bool) -> None:
    book = open_book()
    reader = Reader(book, slow=slow)
    commands: list[Command] = []
    for piece in cut(post(b"/stream", body), sizes):
        book >> facts.Received(CH, piece)
        commands = without_work(book)
    while slow and not commands:
        commands = reader.go_on()
    assert commands == [book.says(200, b"%d" % len(body))]
    assert b"".join(reader.pieces) == body


def test_a_slow_handler_holds_the_reading() -> None:
    book = open_book(Limits(high_water=1000))
    reader = Reader(book, slow=True)
    book >> facts.Received(CH, post(b"/stream", b"x" * 10, length=4000))
    assert without_work(book) == []
    book >> facts.Received(CH, b"x" * 1000) << []
    book >> facts.Received(CH, b"x") << [PauseReading(CH)]
    book >> facts.Received(CH, b"x" * 9) << []  # was in flight
    assert reader.go_on() == [ResumeReading(CH)]
    assert list(map(len, reader.pieces)) == [10, 1010]
    book >> facts.Received(CH, b"x" * 2980) << []  # the whole rest: there is no more to pause
    assert reader.go_on() == []
    assert reader.go_on() == [book.says(200, b"4000")]


def test_handler_time_does_not_count_towards_the_body_timeout() -> None:
    book = open_book(Limits(high_water=1000))
    reader = Reader(book, slow=True)
    book >> facts.Received(CH, post(b"/stream", b"x" * 10, length=40000))
    assert without_work(book) == []
    book.after(20.0) << []
    book >> facts.Received(CH, b"x" * 1014) << [PauseReading(CH)]
    book.after(500.0) << []
    assert reader.go_on() == [ResumeReading(CH)]
    book.after(10.9) << []  # 30 s, and one for a kibibyte
    book.after(0.2) << [
        Cancel(reader.op),
        book.says(408, b"request_timeout: the request body took too long", CLOSE),
        CloseWrite(CH),
    ]
    assert reader.cleaned == 1


def test_a_large_piece_read_at_once_does_not_stop_the_body_timeout() -> None:
    book = open_book(Limits(high_water=1000))
    reader = Reader(book)
    book >> facts.Received(CH, post(b"/stream", b"x" * 10, length=40000)) << []
    book.after(20.0) << []
    book >> facts.Received(CH, b"x" * 1014) << []
    assert list(map(len, reader.pieces)) == [10, 1014]
    book.after(10.9) << []  # 30 s from the head, and one for a kibibyte
    book.after(0.2) << [book.says(408, b"request_timeout: the request body took too long", CLOSE), CloseWrite(CH)]


@pytest.mark.parametrize(("sent", "length"), [(b"", 4), (b"x" * 1_000_000, 1_000_001)])
def test_a_slow_peer_gets_408_and_the_handler_is_cancelled(book: ToyPlaybook, sent: bytes, length: int) -> None:
    reader = Reader(book)
    book >> facts.Received(CH, post(b"/stream", sent, length=length)) << []
    book.after(29.9) << []  # also after much data: the credit of time is limited
    book.after(0.2) << [book.says(408, b"request_timeout: the request body took too long", CLOSE), CloseWrite(CH)]
    assert reader.cleaned == 1


def test_reading_continues_within_a_long_body_timeout() -> None:
    book = open_book(Limits(body_timeout=500.0))
    Reader(book)
    book >> facts.Received(CH, post(b"/stream", b"", length=1)) << []
    book.after(400.0) << []
    book >> facts.Received(CH, b"x") << [book.says(200, b"1")]


TOO_LARGE = b"body_too_large: the body may have at most %d bytes" % STREAM_LIMIT


def test_a_body_that_is_too_large_by_counting_or_by_its_length(book: ToyPlaybook) -> None:
    reader = Reader(book)
    book >> facts.Received(CH, b"POST /stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n") << []
    book >> facts.Received(CH, b"%x\r\n" % STREAM_LIMIT + b"x" * STREAM_LIMIT) << []
    book >> facts.Received(CH, b"\r\n1\r\nx") << [book.says(413, TOO_LARGE, CLOSE), CloseWrite(CH)]
    assert reader.cleaned == 1  # the handler is cancelled
    book = open_book()
    reader = Reader(book)
    book >> facts.Received(CH, post(b"/stream", b"", length=STREAM_LIMIT + 1))
    book << [book.says(413, TOO_LARGE, CLOSE), CloseWrite(CH)]
    assert reader.cleaned == 0  # it never runs


def test_a_handler_that_answers_early_has_the_rest_drained() -> None:
    book = open_book(Limits(max_drain=100, high_water=1000))

    def refuse(request: Request) -> Flow[Response | StreamedResponse]:
        yield from request.stream.read()
        raise Refused(418, "teapot", "no more")

    book.toy.answer = refuse
    teapot = book.says(418, b"teapot: no more")
    book >> facts.Received(CH, post(b"/stream", b"x" * 500, length=600)) << [teapot]
    book >> facts.Received(CH, b"x" * 100 + get(b"/hello")) << [book.says(200, b"hello")]
    last = book.says(418, b"teapot: no more", CLOSE)  # the rest exceeds what is drained
    book >> facts.Received(CH, post(b"/stream", b"x" * 500, length=700)) << [last, CloseWrite(CH)]
    book >> facts.Received(CH, b"x" * 200) << []


def test_a_response_resumes_paused_reading() -> None:
    book = open_book(Limits(high_water=1000))

    def handle(request: Request) -> Flow[Response | StreamedResponse]:
        yield from run_operation(book.engine, Compute(book.engine.new_op(), "work"))
        return plain(b"enough")

    book.toy.answer = handle
    work, pause = (book >> facts.Received(CH, post(b"/stream", b"x" * 1060, length=1070))).drain_commands()
    assert isinstance(work, Compute)
    assert pause == PauseReading(CH)
    book >> facts.Done(work.op, None) << [ResumeReading(CH), book.says(200, b"enough")]
    book >> facts.Received(CH, b"x" * 10 + get(b"/hello")) << [book.says(200, b"hello")]


def test_a_plain_handler_of_a_streamed_route_that_raises(book: ToyPlaybook) -> None:
    def handle(request: Request) -> Response:
        raise errors.pop(0)

    errors = [Refused(418, "teapot", "short"), RuntimeError("a secret")]
    book.toy.answer = handle
    book >> facts.Received(CH, post(b"/stream", b"", length=3)) << [book.says(418, b"teapot: short")]
    book >> facts.Received(CH, b"abc" + post(b"/stream", b"", length=3))
    book << [book.says(500, b"internal_error: internal error, reference bug-1", CLOSE), CloseWrite(CH)]


@pytest.mark.parametrize("fact", [facts.Closed(CH, "reset"), facts.ReadClosed(CH)])
def test_a_disconnected_peer_cancels_the_handler(book: ToyPlaybook, fact: facts.Closed | facts.ReadClosed) -> None:
    reader = Reader(book)
    book >> facts.Received(CH, post(b"/stream", b"x", length=3)) << []
    book >> fact << ([] if isinstance(fact, facts.Closed) else [CloseWrite(CH)])
    assert reader.cleaned == 1


# --- files ---


def file_head(book: ToyPlaybook, length: int, *more: bytes) -> Send:
    whole = book.says(200, b"x" * length, *more)
    return Send(CH, whole.data[:-length] if length else whole.data)


def test_a_file_is_sent_after_its_head_and_then_released() -> None:
    book, order = sending()
    book << [file_head(book, 5), SendFile(order.op, CH, 7, 2, 5)]
    book >> facts.Done(order.op, 5) << [ReleaseFile(7)]
    book.get(b"/hello") << [book.says(200, b"hello")]


def test_slow_request_after_a_file_has_no_deadline() -> None:
    book, order = sending()
    for size in (len(file_head(book, 5).data), 5):
        book >> facts.Sent(CH, size)
    book >> facts.Done(order.op, 5) << [ReleaseFile(7)]
    book.toy.answer = lambda request: Deferred()
    book.get(b"/answer").drain_commands()
    book.after(2 * DEFAULT_LIMITS.file_timeout) << []


def test_a_flow_answers_with_a_file_too(book: ToyPlaybook) -> None:
    def handle(request: Request) -> Flow[Response | StreamedResponse]:
        if book.toy.known:
            yield from wait(book.engine.new_op(), book.engine.now.mono + 1.0)
        return file_answer()(request)

    book.toy.answer = handle
    book.toy.known = True
    book.get(b"/answer") << []
    order = book.after(1.0).order(SendFile)
    book >> facts.Done(order.op, 5) << [ReleaseFile(7)]
    book.toy.known = False  # a flow that never waits
    order = book.get(b"/answer").order(SendFile)
    book >> facts.Closed(CH) << [Cancel(order.op), ReleaseFile(7)]


def test_a_large_file_is_sent_in_parts() -> None:
    book, order = sending(2 * MEG + 3)
    parts = []
    while True:
        parts.append((order.offset, order.n))
        commands = (book >> facts.Done(order.op, order.n)).drain_commands()
        if commands == [ReleaseFile(7)]:
            break
        order = book.order(SendFile)
    assert parts == [(2, MEG), (2 + MEG, MEG), (2 + 2 * MEG, 3)]


def test_requests_after_a_file_wait(book: ToyPlaybook) -> None:
    book.toy.answer = file_answer()
    commands = (book >> facts.Received(CH, get(b"/answer") + get(b"/hello"))).drain_commands()
    assert commands[-1] == PauseReading(CH)
    order = book.order(SendFile)
    book.after(50.0) << []  # no deadline runs
    book >> facts.Done(order.op, 5) << [ReleaseFile(7), ResumeReading(CH), book.says(200, b"hello")]


def test_head_requests_and_empty_files(book: ToyPlaybook) -> None:
    book.toy.answer = file_answer()
    book >> facts.Received(CH, get(b"/answer").replace(b"GET", b"HEAD")) << [ReleaseFile(7), file_head(book, 5)]
    book.toy.answer = file_answer(0)
    book.get(b"/answer") << [file_head(book, 0), ReleaseFile(7)]


def test_a_peer_that_does_not_read_is_cut() -> None:
    book, order = sending(50 * MEG)
    book.sent() << []
    book.after(299.9) << []
    book.after(0.2) << [Abort(CH)]
    book >> facts.Closed(CH) << [Cancel(order.op), ReleaseFile(7)]
    book >> facts.Failed(order.op, facts.Failure(facts.FailureKind.CANCELLED)) << []
    assert book.logs == []


def test_a_peer_that_reads_slowly_gets_all_of_a_file() -> None:
    book, order = sending(64)
    book.sent() << []
    for _ in range(4):
        book.after(299.0) << []
        book >> facts.Sent(CH, 16) << []
    book >> facts.Done(order.op, 64) << [ReleaseFile(7)]
    book.get(b"/hello") << [book.says(200, b"hello")]
    book.sent() << []
    book.after(74.0) << []  # only a new request is awaited


def test_a_file_after_unsent_bytes() -> None:
    book, order = sending(64)
    head = len(wire_bytes(book.drain_commands()))
    book >> facts.Done(order.op, 64) << [ReleaseFile(7)]  # reported before the head was sent
    book.after(59.0) << []
    book >> facts.Sent(CH, head + 64) << []
    book.after(14.0) << []
    book.after(2.0) << [CloseWrite(CH)]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (facts.Failure(facts.FailureKind.INVALID, "shorter than it was"), "invalid"),
        (facts.Failure(facts.FailureKind.CANCELLED), None),
        ("nonsense", "internal"),
    ],
)
def test_a_file_that_cannot_be_sent_cuts_the_connection(answer: object, problem: str | None) -> None:
    book, order = sending()
    book >> (facts.Failed(order.op, answer) if isinstance(answer, facts.Failure) else facts.Done(order.op, answer))
    book << [ReleaseFile(7), Abort(CH)]
    assert [log.fields["problem"] for log in book.logs] == ([] if problem is None else [problem])


def test_stopping_cuts_a_file_at_the_end_of_the_grace() -> None:
    book, order = sending()
    book >> facts.Stopping(5.0) << []
    book.after(5.0) << [Abort(CH), Cancel(order.op), ReleaseFile(7), Exit(0)]


def test_a_malformed_head_of_a_file_is_a_bug_and_releases_it(book: ToyPlaybook) -> None:
    book.logs.bugs = True
    book.toy.answer = file_answer(headers=Headers([(b"x", b"a\r\nb")]))
    book.get(b"/answer") << [
        ReleaseFile(7),
        book.says(500, b"internal_error: internal error, reference bug-1", CLOSE),
        CloseWrite(CH),
    ]
