"""HTTP/2 server channel: many requests on one connection, each with its own phases, deadlines and credit."""

import struct

import pytest
from hpack import Decoder, Encoder

from svc_proto.commands import Abort, CloseWrite, Exit, Level, PauseReading, ReadFile, ReleaseFile, ResumeReading
from svc_proto.engine.body_streams import FilePart, ResponseWriter
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.engine.responses import http_date
from svc_proto.facts import Closed, Done, Failed, Failure, FailureKind, ReadClosed, Received, Sent, Stopping
from svc_proto.wire import events
from svc_proto.wire.limits import Limits
from tests.engine.http2_playbook import FIVE, HOST, ONE, THREE, Http2Playbook, answers
from tests.support.playbook import CH, wire_bytes
from tests.wire.connection_pair import merged, send_events
from tests.wire.http2_pair import resets


@pytest.fixture
def book() -> Http2Playbook:
    return Http2Playbook()


def test_a_peer_that_breaks_the_rules() -> None:
    book = Http2Playbook(log_level=Level.DEBUG)
    book.send_request(ONE, "/park")
    book.open(THREE)
    book.book >> Received(CH, bytes(9))
    book.feed(book.book.drain_commands())
    assert CloseWrite(CH) in book.others
    assert book.toy.cleaned == ["park"]
    assert book.toy.handler.told[-1] == ("closed", 1006, "the stream is over")
    problems = [log.fields["problem"] for log in book.book.logs if "problem" in log.fields]
    assert problems[-1] == "HTTP/2: protocol error"
    book.book >> Received(CH, b"more") << []
    book.book.after(3.0) << [Abort(CH)]


def test_writes_on_a_reset_stream_are_dropped(book: Http2Playbook) -> None:

    def answer(request: Request) -> StreamedResponse:
        def produce(writer: ResponseWriter) -> Flow[None]:
            writer.write(b"x" * 600_000)  # more than the peer's window: the stream stalls
            yield from wait(book.book.engine.new_op(), book.book.engine.now.mono + 60.5)
            writer.write(b"late")

        return StreamedResponse(200, events.Headers(), produce)

    book.toy.answer = answer
    book.send_request(ONE, "/answer")
    book.talk()
    book.book.now = book.book.now.at(book.book.now.mono + 61.0)  # both are due, and the stall comes first
    assert events.StreamReset(ONE, "the peer reset the stream") in book.after(0.0)
    assert [log.event for log in book.book.logs] == []
    book.send_request(THREE, "/hello")
    assert answers(book.talk()) == {3: (200, b"hello")}


def test_stopping_sends_nothing_on_a_lingering_connection(book: Http2Playbook) -> None:
    book.book >> ReadClosed(CH) << [CloseWrite(CH)]
    book.book >> Stopping(5.0) << []
    book.book.after(2.0) << [Abort(CH)]
    book.book >> Closed(CH) << [Exit(0)]


# --- requests -------------------------------------------------------------------------------------------------------


def test_requests_at_the_same_time(book: Http2Playbook) -> None:
    book.send_request(ONE, "/park")
    book.send_request(THREE, "/hello")
    book.send_request(FIVE, "/echo", b"body")
    assert answers(book.talk()) == {3: (200, b"hello"), 5: (200, b"body")}
    book.toy.engine.resume(book.toy.ticket, b"at last")
    book.send_request(events.StreamId(7), "/nowhere")
    heard = answers(book.talk())
    assert (heard[1], heard[7][0]) == ((200, b"at last"), 404)
    assert book.toy.seen[0].headers == events.Headers(((b"host", b"x"),))
    book.send_request(events.StreamId(9), "/private")
    book.send_request(events.StreamId(11), "/empty")
    book.send_request(events.StreamId(13), "/small", b"x" * 11)
    book.send_request(events.StreamId(15), "/small", b"x" * 11, (b"content-length", b"11"))
    heard = answers(book.talk())
    assert [heard[stream][0] for stream in (9, 11, 13, 15)] == [401, 204, 413, 413]
    assert heard[11][1] == b""
    assert book.others == []


def test_the_connection_waits_for_requests_for_a_while(book: Http2Playbook) -> None:
    for stream in (ONE, THREE):
        book.send_request(stream, "/hello")
        book.talk()
        assert book.after(74.0) == []
    assert book.others == []
    book.after(2.0)
    assert book.others == [CloseWrite(CH)]
    assert book.client.must_close


def test_the_peer_that_only_begins_a_head(book: Http2Playbook) -> None:
    book.send_request(ONE, "/park")
    book.talk()
    book.book >> Received(CH, b"\x00\x00\x09\x01") << []
    book.after(14.0)
    assert book.others == []
    book.after(1.5)
    assert book.others == [CloseWrite(CH)]
    assert book.toy.cleaned == ["park"]


def test_a_slow_body_ends_its_stream_only(book: Http2Playbook) -> None:
    send_events(book.client, events.RequestHead(ONE, "POST", "/echo", HOST), events.RequestData(ONE, b"begun"))
    book.send_request(THREE, "/hello")
    assert list(answers(book.talk())) == [3]
    heard = book.after(36.0)
    assert answers(heard)[1][0] == 408
    book.send_request(FIVE, "/hello")
    assert list(answers(book.talk())) == [5]
    assert book.others == []


def test_a_request_ends_with_its_stream_or_its_client(book: Http2Playbook) -> None:
    book.send_request(ONE, "/park")
    book.talk()
    book.client.send(events.StreamReset(ONE))
    assert book.talk() == []
    assert book.toy.cleaned == ["park"]
    book.send_request(THREE, "/leaves")
    book.send_request(FIVE, "/hello")
    book.talk()
    book.book >> ReadClosed(CH)
    assert book.toy.cleaned == ["park"] * 2
    assert book.book.drain_commands()[-1] == CloseWrite(CH)


def test_the_body_of_a_refused_request() -> None:
    book = Http2Playbook(Limits(max_drain=1000))
    send_events(book.client, events.RequestHead(ONE, "POST", "/small", HOST), events.RequestData(ONE, bytes(11)))
    assert [type(event) for event in book.talk()][:1] == [events.ResponseHead]
    book = Http2Playbook(Limits(max_drain=1000))
    book.client.send(events.RequestHead(ONE, "POST", "/small", events.Headers((*HOST, (b"expect", b"100-continue")))))
    assert book.talk() == [events.Informational(ONE, 100)]
    book.client.send(events.RequestData(ONE, bytes(11)))
    book.talk()
    book.client.send(events.RequestData(ONE, bytes(3000)))
    book.talk()
    assert not book.client.idle
    book.after(2.0)
    assert book.client.idle


def test_refused_uploads_are_read_further_for_a_while() -> None:
    book = Http2Playbook(Limits(max_linger=400_000))
    book.client.send(events.RequestHead(ONE, "POST", "/small", events.Headers((*HOST, (b"content-length", b"900000")))))
    heard = book.talk()
    assert answers(heard) == {1: (413, b"body_too_large: the body may have at most 10 bytes")}
    assert resets(heard) == []
    for _ in range(4):  # more than the window, which is refilled
        book.client.send(events.RequestData(ONE, bytes(100_000)))
        assert book.talk() == []
    assert book.client.unsent(ONE) == 0
    book.client.send(events.RequestData(ONE, bytes(400_000)))
    assert book.talk() == []
    assert book.client.unsent(ONE) > 0  # but with a limit
    assert book.after(1.9) == []
    assert book.after(0.2) == []
    assert not book.client.knows(ONE)
    assert book.others == []
    book.send_request(THREE, "/hello")
    assert answers(book.talk()) == {3: (200, b"hello")}


@pytest.mark.parametrize(
    "end", [[events.RequestData(ONE, bytes(300_000)), events.RequestEnd(ONE)], [events.StreamReset(ONE)]]
)
def test_an_upload_that_ends_after_its_refusal_leaves_no_stream(book: Http2Playbook, end: list[events.Event]) -> None:
    book.client.send(events.RequestHead(ONE, "POST", "/small", events.Headers((*HOST, (b"content-length", b"300000")))))
    book.talk()
    send_events(book.client, *end)
    assert book.talk() == []
    assert book.client.idle
    book.book >> Stopping(5.0)
    assert CloseWrite(CH) in book.book.drain_commands()  # no stream is left


@pytest.mark.parametrize("whole", [False, True], ids=["half a request", "a whole request"])
def test_an_early_answer_that_the_peer_is_slow_to_read_waits_for_it(book: Http2Playbook, whole: bool) -> None:
    book.toy.answer = lambda request: Response(200, body=b"x" * 300_000)  # more than the window
    book.client.send(
        events.RequestHead(ONE, "POST", "/stream", events.Headers((*HOST, (b"content-length", b"300000"))))
    )
    data = [event for event in book.talk() if isinstance(event, events.ResponseData)]
    assert sum(len(event.data) for event in data) < 300_000
    if whole:
        send_events(book.client, events.RequestData(ONE, bytes(300_000)), events.RequestEnd(ONE))
        book.talk()
    assert book.after(3.0) == []
    assert book.client.knows(ONE)
    book.client.acknowledge_data(ONE, 200_000)
    assert isinstance(book.talk()[-1], events.ResponseEnd)
    assert book.client.knows(ONE) is not whole
    if not whole:
        book.after(2.0)
    assert not book.client.knows(ONE)
    book.book >> Stopping(5.0)
    assert CloseWrite(CH) in book.book.drain_commands()  # no stream is left


def test_a_malformed_request_is_answered_as_any_refusal_is() -> None:
    book = Http2Playbook(log_level=Level.DEBUG)
    book.toy.extra_fields = ((b"x-everywhere", b"1"),)
    bare = Encoder().encode([(":method", "GET"), (":scheme", "http"), (":path", "x"), (":authority", "a")])
    book.client.receive_data(b"")
    book.book >> Received(CH, struct.pack(">HBBBL", 0, len(bare), 1, 5, 1) + bare)
    raw = wire_bytes(book.book.drain_commands())
    assert b"bad_request: :path is malformed" in raw
    fields = dict(Decoder().decode(raw[9 : 9 + raw[2]], raw=True))
    assert fields[b":status"] == b"400"
    assert (fields[b"date"], fields[b"x-everywhere"]) == (http_date(int(book.book.now.wall)), b"1")
    assert raw.endswith(struct.pack(">BHBBLL", 0, 4, 3, 0, 1, 1))
    assert book.book.logs[-2].fields["problem"] == ":path is malformed"


def test_a_handler_with_a_bug(book: Http2Playbook) -> None:
    book.book.logs.bugs = True
    book.send_request(ONE, "/boom")
    book.send_request(THREE, "/header")
    book.send_request(FIVE, "/hello")
    heard = answers(book.talk())
    assert (heard[1][0], heard[5]) == (500, (200, b"hello"))


# --- bodies ---------------------------------------------------------------------------------------------------------


def test_an_unread_body_pauses_its_stream_only(book: Http2Playbook) -> None:
    got: list[bytes] = []

    def reader(request: Request) -> Flow[Response]:
        yield from book.toy._park(request)
        while data := (yield from request.stream.read()):
            got.append(data)
        return Response(200, body=b"%d" % sum(map(len, got)))

    book.toy.answer = reader
    book.send_request(ONE, "/stream", bytes(1_500_000))
    book.talk()
    assert 900_000 < book.client.unsent(ONE) < 1_300_000
    book.send_request(THREE, "/echo", b"still")
    assert answers(book.talk()) == {3: (200, b"still")}
    assert book.after(10.0) == []
    book.book.core.handle(None, book.book.now)
    book.toy.engine.resume(book.toy.ticket, b"")
    heard = answers(book.talk() + book.after(0.0) + book.talk())
    assert heard == {1: (200, b"1500000")}


def test_unauthenticated_websocket_messages_are_limited(book: Http2Playbook) -> None:
    for stream, path in ((ONE, "/open-ws"), (THREE, "/ws"), (FIVE, "/open-ws")):
        book.client.send(events.RequestHead(stream, "GET", path, HOST, websocket=True))
    book.talk()
    book.toy.handler.open_socket.mark_authenticated()  # of the last request
    book.toy.handler.told.clear()
    for stream in (THREE, FIVE):
        book.client.send(events.TextMessage(stream, "x" * 70_000))
        assert book.talk() == []
    assert book.toy.handler.told == [("text", "x" * 70_000)] * 2
    book.client.send(events.TextMessage(ONE, "x" * 70_000))
    (closed,) = book.talk()
    assert isinstance(closed, events.WebSocketClosed)
    assert (closed.stream, closed.code) == (ONE, 1009)
    book.toy.handler.open_socket.mark_authenticated()  # harmless after the end
    book.client.send(events.TextMessage(THREE, "still here"))
    assert book.talk() == []


def test_a_stream_whose_window_stays_shut_is_reset(book: Http2Playbook) -> None:
    book.send_request(ONE, "/big")
    book.talk()
    book.send_request(THREE, "/park")
    book.talk()
    assert book.after(19.0) == []
    heard = book.after(45.0)
    assert events.StreamReset(ONE, "the peer reset the stream") in heard
    assert answers(heard) == {3: (200, b"late")}
    assert book.others == []


def test_the_socket_is_not_filled_beyond_the_mark(book: Http2Playbook) -> None:
    book.client.set_time(0.0)
    for stream in (ONE, THREE, FIVE):
        book.send_request(stream, "/big")
    heard = book.talk(sent=False)
    assert 262_144 < book.unsent < 300_000
    assert book.pauses == [PauseReading(CH)]
    book.book >> Sent(CH, book.unsent)
    book.unsent = 0
    heard += book.feed(book.book.drain_commands())
    assert ResumeReading(CH) in book.pauses
    assert sum(len(event.data) for event in heard if isinstance(event, events.ResponseData)) == 3 * 262_144


def streamed(book: Http2Playbook, pieces: int) -> None:
    def produce(writer: ResponseWriter) -> Flow[None]:
        for _ in range(pieces):
            assert writer.write(bytes(100_000))
            yield from writer.drained()

    book.toy.answer = lambda request: StreamedResponse(200, events.Headers(), produce)


def test_a_producer_waits_for_its_own_reader_and_resumes_when_the_socket_drains(book: Http2Playbook) -> None:
    streamed(book, 10)
    book.send_request(ONE, "/answer")
    heard = book.talk()
    assert sum(len(event.data) for event in heard if isinstance(event, events.ResponseData)) == 262_144
    for _ in range(4):
        book.client.acknowledge_data(ONE, 262_144)
        heard += book.talk()
    assert answers(merged(heard)) == {1: (200, bytes(1_000_000))}
    book = Http2Playbook()
    streamed(book, 4)
    book.send_request(ONE, "/answer")
    book.send_request(THREE, "/answer")
    heard = book.talk(sent=False)
    while book.unsent:
        n, book.unsent = book.unsent, 0
        book.book >> Sent(CH, n)
        heard += book.feed(book.book.drain_commands(), sent=False)
    for stream in (ONE, THREE):
        book.client.acknowledge_data(stream, 262_144)
    assert answers(merged(heard + book.talk())) == {1: (200, bytes(400_000)), 3: (200, bytes(400_000))}


def test_a_producer_that_does_not_wait_loses_its_stream() -> None:
    book = Http2Playbook(Limits(max_unsent=500_000))

    def produce(writer: ResponseWriter) -> Flow[None]:
        while writer.write(bytes(100_000)):
            writer._channel.write_pending()
        yield from ()

    book.toy.answer = lambda request: StreamedResponse(200, events.Headers(), produce)
    book.send_request(ONE, "/answer")
    heard = book.talk()
    assert events.StreamReset(ONE, "the peer reset the stream") in heard
    book.send_request(THREE, "/hello")
    assert answers(book.talk()) == {3: (200, b"hello")}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_file_passes_through_the_core(book: Http2Playbook, method: str) -> None:
    book.toy.answer = lambda request: Response(200, file=FilePart(7, 10, 100_000))
    send_events(book.client, events.RequestHead(ONE, method, "/answer", HOST), events.RequestEnd(ONE))
    heard = book.talk()
    if method == "HEAD":
        assert book.others == [ReleaseFile(7)]
        return
    for offset, size in ((10, 65_536), (65_546, 34_464)):
        order = book.others.pop()
        assert isinstance(order, ReadFile)
        assert (order.handle, order.offset, order.n) == (7, offset, size)
        book.book >> Done(order.op, b"f" * size)
        heard += book.talk()
    assert answers(merged(heard)) == {1: (200, b"f" * 100_000)}
    assert book.others == [ReleaseFile(7)]


@pytest.mark.parametrize("empty", [True, False])
def test_a_file_that_cannot_be_read_to_its_end(book: Http2Playbook, empty: bool) -> None:
    book.toy.answer = lambda request: Response(200, file=FilePart(7, 0, 10))
    book.send_request(ONE, "/answer")
    book.talk()
    order = book.others.pop()
    assert isinstance(order, ReadFile)
    book.book >> (Done(order.op, b"") if empty else Failed(order.op, Failure(FailureKind.INTERNAL)))
    assert events.StreamReset(ONE, "the peer reset the stream") in book.talk()
    assert book.book.logs[-1].event == "file not sent"


# --- the end --------------------------------------------------------------------------------------------------------


def test_stopping(book: Http2Playbook) -> None:
    book.book >> Stopping(10.0)
    book.talk()
    assert book.others == [CloseWrite(CH)]  # there is nothing to do
    book = Http2Playbook()
    book.send_request(ONE, "/park")
    book.open(THREE)
    book.book >> Stopping(10.0)
    heard = book.talk()
    assert heard == [events.WebSocketClosed(THREE, 1001, "the server is shutting down")]
    book.toy.engine.resume(book.toy.ticket, b"done")
    assert answers(book.after(0.0) + book.talk()) == {1: (200, b"done")}
    assert CloseWrite(CH) in book.others
    book.book >> Closed(CH, "")
    assert isinstance(book.book.drain_commands()[-1], Exit)


def test_the_connection_is_lost(book: Http2Playbook) -> None:
    book.send_request(ONE, "/park")
    book.open(THREE)
    book.book >> Closed(CH, "reset") << []
    assert book.toy.cleaned == ["park"]
    assert book.toy.handler.told[-1] == ("closed", 1006, "reset")


def test_a_client_that_does_not_read_at_all() -> None:
    book = Http2Playbook(Limits(max_unsent=2000))
    book.open(ONE)
    for _ in range(500):
        book.client.send(events.Ping(ONE, b"x" * 100))
        book.talk(sent=False)
        if book.others:
            break
    assert book.others == [Abort(CH)]


def test_a_half_closed_client_gets_its_response_and_a_handler_learns_of_it(book: Http2Playbook) -> None:
    book.send_request(ONE, "/park")
    book.talk()
    book.book >> ReadClosed(CH) << []
    book.toy.engine.resume(book.toy.ticket, b"done")
    assert answers(book.after(0.0) + book.talk()) == {1: (200, b"done")}
    assert book.others == [CloseWrite(CH)]
    book = Http2Playbook()
    book.send_request(ONE, "/leaves-late")
    book.talk()
    book.book >> ReadClosed(CH) << []
    book.toy.engine.resume(book.toy.ticket, b"")
    (status, body) = answers(book.after(0.0) + book.talk())[1]
    assert (status, body[:11]) == (400, b"bad_request")
