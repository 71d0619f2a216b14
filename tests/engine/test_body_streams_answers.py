"""Responses that are written in pieces."""

from svc_proto import commands
from svc_proto.basics.moment import Moment
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.flow import Flow, run_operation, sleep, wait
from svc_proto.engine.message import StreamedResponse
from svc_proto.facts import Closed, Done, OperationId, ReadClosed, Received, Sent
from svc_proto.wire.limits import Limits
from tests.engine.streamed_answers import TEXT, file_answer, without_work
from tests.engine.toy_service import ToyPlaybook, get, open_book
from tests.support.playbook import CH, SendMatcher, wire_bytes


class Producer:
    """Producer of a streamed response, which writes the bytes that the test passes to `say`.

    Empty bytes end the response; another value makes the producer raise.
    """

    def __init__(self, book: ToyPlaybook) -> None:
        self.book = book
        self.written: list[bool] = []
        self.cleaned = 0
        self.op = OperationId(0)
        book.toy.answer = lambda request: StreamedResponse(200, TEXT, self.produce)

    def produce(self, writer: ResponseWriter) -> Flow[None]:
        engine = self.book.engine
        try:
            while True:
                self.op = engine.new_op()
                data = yield from run_operation(engine, commands.Compute(self.op, "work"), within=10_000.0)
                if not isinstance(data, bytes):
                    raise RuntimeError("a secret")
                if not data:
                    return
                self.written.append(writer.write(data))
                yield from writer.drained()
        finally:
            self.cleaned += 1

    def say(self, data: object) -> list[commands.Command]:
        self.book >> Done(self.op, data)
        return without_work(self.book)


def streaming(book: ToyPlaybook) -> Producer:
    """Request `/answer` and report its head as sent; return the producer of the response."""
    producer = Producer(book)
    commands = book.get(b"/answer").drain_commands()
    (book >> Sent(CH, len(wire_bytes(commands)))).drain_commands()
    return producer


def test_a_streamed_answer_is_chunked_and_ends(book: ToyPlaybook) -> None:
    producer = Producer(book)
    head = book.says(200, b"").data.replace(b"content-length: 0", b"Transfer-Encoding: chunked")
    book.get(b"/answer")
    assert without_work(book) == [commands.Send(CH, head)]
    book >> Sent(CH, len(head)) << []
    assert producer.say(b"hello") == [commands.Send(CH, b"5\r\nhello\r\n")]
    book >> Sent(CH, 10) << []
    book.after(1000.0) << []
    assert producer.say(b"") == [commands.Send(CH, b"0\r\n\r\n")]
    assert producer.cleaned == 1
    book.get(b"/hello") << [book.says(200, b"hello")]


def test_a_producer_with_an_incomplete_body_drops_the_connection() -> None:
    def produce(writer: ResponseWriter) -> Flow[bool]:
        yield from ()
        return not writer.write(b"half")

    book = open_book()
    book.toy.answer = lambda request: StreamedResponse(200, TEXT, produce)
    *_, last = book.get(b"/answer").drain_commands()
    assert last == commands.Abort(CH)


def test_head_of_a_streamed_answer_runs_no_producer(book: ToyPlaybook) -> None:
    producer = Producer(book)
    book >> Received(CH, get(b"/answer").replace(b"GET", b"HEAD"))
    book << [SendMatcher(CH, startswith=b"HTTP/1.1 200 OK\r\n")]
    assert producer.op == OperationId(0)
    book.get(b"/hello") << [book.says(200, b"hello")]


def test_http_1_0_responses_end_with_the_connection(book: ToyPlaybook) -> None:
    producer = Producer(book)
    book >> Received(CH, b"GET /answer HTTP/1.0\r\n\r\n")
    (head,) = without_work(book)
    assert b"chunked" not in wire_bytes([head])
    assert producer.say(b"hello") == [commands.Send(CH, b"hello")]
    assert producer.say(b"") == [commands.CloseWrite(CH)]


def test_a_producer_waits_for_the_peer_to_read() -> None:
    book = open_book(Limits(high_water=200, low_water=50))
    producer = streaming(book)
    first = producer.say(b"x" * 200)
    assert first == [commands.Send(CH, b"c8\r\n" + b"x" * 200 + b"\r\n"), commands.PauseReading(CH)]
    before = producer.op
    book >> Sent(CH, 100) << []
    book.after(59.0) << []
    book >> Sent(CH, 1) << []
    book.after(59.0) << []  # there was progress in between
    book >> Sent(CH, 80)
    assert without_work(book) == [commands.ResumeReading(CH)]
    assert producer.op != before
    assert producer.say(b"y") == [commands.Send(CH, b"1\r\ny\r\n")]


def test_a_producer_that_does_not_wait_is_dropped() -> None:
    book = open_book(Limits(max_unsent=1000))
    written: list[bool] = []

    def produce(writer: ResponseWriter) -> Flow[None]:
        for _ in range(4):
            yield from wait(book.engine.new_op(), book.engine.now.mono + 1.0)
            written.append(writer.write(b"x" * 1000))

    book.toy.answer = lambda request: StreamedResponse(200, TEXT, produce)
    book.get(b"/answer").sent() << []
    assert book.after(5.0).drain_commands() == [
        commands.Send(CH, b"3e8\r\n" + b"x" * 1000 + b"\r\n"),
        commands.Abort(CH),
    ]
    assert written == [True, False, False, False]


def test_a_disconnected_peer_cancels_the_producer_and_a_bug_cuts_the_connection(book: ToyPlaybook) -> None:
    producer = streaming(book)
    book >> Closed(CH, "reset") << [commands.Cancel(producer.op)]
    assert producer.cleaned == 1
    book = open_book()
    producer = streaming(book)
    assert producer.say(None) == [commands.Abort(CH)]
    assert [log.event for log in book.logs] == ["bug"]
    assert "secret" not in repr(book.logs)
    book >> Closed(CH) << []


def test_progress_does_not_resume_ordinary_responses() -> None:
    book = open_book(Limits(high_water=100, low_water=50))
    book.toy.answer = file_answer()
    order = book.get(b"/answer").order(commands.SendFile)
    book.sent() << [commands.ResumeReading(CH)]
    book >> Done(order.op, 5) << [commands.ReleaseFile(7)]


def test_writes_after_a_lost_channel_are_dropped(book: ToyPlaybook) -> None:
    over: list[bool] = []

    def produce(writer: ResponseWriter) -> Flow[None]:
        try:
            for text in (b"one", b"two"):
                writer.write(text)
                yield from writer.drained()
                yield from sleep(book.engine, 5.0)
        finally:
            over.append(True)

    book.toy.answer = lambda request: StreamedResponse(200, TEXT, produce)
    commands = book.get(b"/answer").drain_commands()
    assert b"one" in wire_bytes(commands)
    book >> Sent(CH, len(wire_bytes(commands))) << []
    later = Moment(book.now.mono + 5.0, book.now.wall + 5.0)
    assert book.engine.handle(Closed(CH, "reset by the peer"), later) == []
    assert over == [True]


def probing(book: ToyPlaybook) -> list[float]:
    """Make /answer write a probe at the half-close and in each second after it; return the list of their times."""
    times: list[float] = []

    def produce(writer: ResponseWriter) -> Flow[None]:
        ticket = book.engine.new_op()
        writer.on_half_close = lambda: book.engine.resume(ticket, None)
        while True:
            if writer.half_closed:
                times.append(book.engine.now.mono)
                writer.write(b":")
            yield from wait(ticket, book.engine.now.mono + (1.0 if writer.half_closed else 9.0))

    book.toy.answer = lambda request: StreamedResponse(200, TEXT, produce)
    return times


def test_a_producer_that_probes_a_half_closed_peer_goes_on(book: ToyPlaybook) -> None:
    times = probing(book)
    book.get(b"/answer").drain_commands()
    begun = book.engine.now.mono
    book.after(3.0) << []
    book >> ReadClosed(CH) << [commands.Send(CH, b"1\r\n:\r\n")]
    book.after(1.0) << [commands.Send(CH, b"1\r\n:\r\n")]
    assert [time - begun for time in times] == [3.0, 4.0]
    book >> Closed(CH, "reset") << []
    assert book.engine.flow_count == 0
    book = open_book()
    times = probing(book)
    (book >> Received(CH, get(b"/park") + get(b"/answer"))).drain_commands()
    book >> ReadClosed(CH) << []  # before the response
    book.engine.resume(book.toy.ticket, b"yes")
    book.after(0.0).drain_commands()
    assert len(times) == 1


def test_a_producer_without_probes_goes_on_at_a_half_close(book: ToyPlaybook) -> None:

    def produce(writer: ResponseWriter) -> Flow[None]:
        yield from wait(book.engine.new_op(), book.engine.now.mono + 3.0)
        writer.write(b"x")

    book.toy.answer = lambda request: StreamedResponse(200, TEXT, produce)
    book.get(b"/answer").drain_commands()
    book >> ReadClosed(CH) << []
    book.after(3.0) << [commands.Send(CH, b"1\r\nx\r\n0\r\n\r\n"), commands.CloseWrite(CH)]
