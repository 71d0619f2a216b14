import pytest

from svc_proto.commands import Abort, CloseWrite, Exit, Level, PauseReading, ResumeReading, Send
from svc_proto.engine.server_channel import LAST_REQUEST
from svc_proto.facts import Closed, ReadClosed, Received, Sent, Stopping
from svc_proto.wire.limits import Limits
from tests.engine.toy_service import HANDSHAKE, ToyPlaybook, get, open_book, post
from tests.support.playbook import CH, SendMatcher, wire_bytes

CLOSE = b"connection: close"


# --- deadlines of each phase ---


@pytest.mark.parametrize("late", [b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
def test_a_silent_connection_is_closed_without_a_response(book: ToyPlaybook, late: bytes) -> None:
    book.after(14.9) << []
    book.after(0.2) << [CloseWrite(CH)]
    book >> Received(CH, late) << []  # discarded
    book.after(2.0) << [Abort(CH)]
    book >> Closed(CH) << []
    assert book.engine.channel_count == 0


def test_a_slow_head_gets_408(book: ToyPlaybook) -> None:
    book.after(5.0) << []
    book >> Received(CH, b"GET /hello HTTP") << []
    book.after(9.9) << []
    book.after(0.1) << [book.says(408, b"request_timeout: the request head took too long", CLOSE), CloseWrite(CH)]
    book = open_book()
    book.get(b"/hello").sent() << []
    book.after(70.0) << []
    book >> Received(CH, b"G") << []  # of a second head
    book.after(14.0) << []
    book.after(1.0) << [SendMatcher(CH, startswith=b"HTTP/1.1 408"), CloseWrite(CH)]


def test_each_head_has_its_own_deadline(book: ToyPlaybook) -> None:
    whole = get(b"/hello")
    book >> Received(CH, whole[:9]) << []
    for _ in range(3):
        book.after(10.0) << []
        book >> Received(CH, whole[9:] + whole[:9]) << [book.says(200, b"hello")]
    book.after(14.9) << []
    book.after(0.1) << [SendMatcher(CH, startswith=b"HTTP/1.1 408"), CloseWrite(CH)]


def test_a_slow_body_gets_408_and_bytes_buy_time(book: ToyPlaybook) -> None:
    book >> Received(CH, post(b"/echo", b"", length=100_000)) << []
    book.after(29.0) << []
    book >> Received(CH, b"x" * 10_240) << []
    book.after(10.9) << []
    book.after(0.1) << [book.says(408, b"request_timeout: the request body took too long", CLOSE), CloseWrite(CH)]


def test_a_slow_drained_body_gets_no_second_response(book: ToyPlaybook) -> None:
    book >> Received(CH, post(b"/nowhere", b"", length=100)) << [SendMatcher(CH, startswith=b"HTTP/1.1 404")]
    book.after(30.0) << [CloseWrite(CH)]


def test_the_idle_time_counts_from_the_last_request(book: ToyPlaybook) -> None:
    for _ in range(3):
        book.get(b"/hello").sent() << []
        book.after(60.0) << []
    book.after(14.9) << []
    book.after(0.1) << [CloseWrite(CH)]


def test_our_own_work_has_no_deadline_here(book: ToyPlaybook) -> None:
    book >> Received(CH, post(b"/echo", b"", length=1)) << []
    book.after(5.0) << []
    book >> Received(CH, b"x" + get(b"/park"))
    assert wire_bytes(book.drain_commands()).endswith(b"x")
    book >> Sent(CH, len(wire_bytes(book.drain_commands()))) << []
    book.after(19.9) << []
    book.after(0.1) << [book.says(200, b"late")]


# --- pipelining ---


def test_pipelined_requests_wait_their_turn(book: ToyPlaybook) -> None:
    book >> Received(CH, get(b"/park") + get(b"/hello") + get(b"/hello")) << [PauseReading(CH)]
    book.engine.resume(book.toy.ticket, b"first")
    three = [book.says(200, body).data for body in (b"first", b"hello", b"hello")]
    book.after(0.0) << [Send(CH, b"".join(three))]
    book = open_book()
    book >> Received(CH, get(b"/park") + get(b"/hello")) << [PauseReading(CH)]
    book.after(20.0) << [ResumeReading(CH), SendMatcher(CH, contains=b"hello")]


# --- errors ---


def test_invalid_http_gets_one_response() -> None:
    book = open_book(log_level=Level.DEBUG)
    book >> Received(CH, b"\x16\x03\x01")
    book << [book.says(400, b"bad_request: the request line is missing", CLOSE), CloseWrite(CH)]
    assert book.logs[0].fields["problem"] == "the request line is missing"


def test_a_malformed_body_is_answered_if_nothing_was() -> None:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    book = open_book()
    book >> Received(CH, head % b"/echo" + b"zz\r\n")
    book << [book.says(400, b"bad_request: a malformed chunk size or extension", CLOSE), CloseWrite(CH)]
    book = open_book()
    book >> Received(CH, head % b"/nowhere" + b"zz\r\n")
    book << [SendMatcher(CH, startswith=b"HTTP/1.1 404"), CloseWrite(CH)]


@pytest.mark.parametrize("begun", [post(b"/echo", b"a", length=2), b"GET /hel"], ids=["a body", "a head"])
def test_a_request_that_is_cut_off(book: ToyPlaybook, begun: bytes) -> None:
    book.get(b"/hello").drain_commands()
    book >> Received(CH, begun) << []
    book >> ReadClosed(CH) << [CloseWrite(CH)]
    book >> Closed(CH) << []
    assert book.toy.seen == []


# --- the end of the process ---


def test_stopping_finishes_what_has_begun(book: ToyPlaybook) -> None:
    book.get(b"/park") << []
    book >> Stopping(10.0) << []
    book.engine.resume(book.toy.ticket, b"yes")
    book.after(0.0) << [book.says(200, b"yes", CLOSE), CloseWrite(CH)]
    book >> Closed(CH) << [Exit(0)]
    book = open_book()
    book >> Received(CH, post(b"/nowhere", b"", length=2)) << [SendMatcher(CH, startswith=b"HTTP/1.1 404")]
    book >> Stopping(10.0) << []
    book >> Received(CH, b"ab") << [CloseWrite(CH)]  # the rest of a body is drained first
    book = open_book()
    book.get(b"/park") << []
    book >> Stopping(10.0) << []
    book.after(9.75) << [Abort(CH), Exit(0)]  # the grace is over
    assert book.toy.cleaned == ["park"]


def test_stopping_closes_idle_connections(book: ToyPlaybook) -> None:
    book.get(b"/hello").drain_commands()
    book >> Stopping(10.0) << [CloseWrite(CH)]
    book >> Stopping(10.0) << []
    book >> Closed(CH) << [Exit(0)]


@pytest.mark.parametrize("received", [b"", b"GET /hel"])
def test_stopping_waits_for_the_request_of_a_new_connection(received: bytes) -> None:
    request = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
    for answered in (True, False):
        book = open_book()
        if received:
            book >> Received(CH, received) << []
        book >> Stopping(10.0) << []
        if answered:
            book >> Received(CH, request.removeprefix(received)) << [book.says(200, b"hello", CLOSE), CloseWrite(CH)]
        else:
            book.after(LAST_REQUEST - 0.1) << []
            assert CloseWrite(CH) in book.after(0.1).drain_commands()
        book >> Closed(CH) << [Exit(0)]


def test_stopping_closes_websockets_with_1001(book: ToyPlaybook) -> None:
    book >> Received(CH, HANDSHAKE % b"/ws") << [SendMatcher(CH, startswith=b"HTTP/1.1 101")]
    book >> Stopping(10.0) << [SendMatcher(CH, startswith=b"\x88", contains=b"\x03\xe9the server is shutting down")]
    book.after(5.0) << [Abort(CH)]
    book >> Closed(CH) << [Exit(0)]
    assert book.toy.handler.told == [("open",), ("closed", 1006, "")]


# --- backpressure ---


def test_a_peer_that_does_not_read_is_paused_then_dropped() -> None:
    book = open_book(Limits(idle_timeout=1000.0))
    book.get(b"/big") << [SendMatcher(CH, startswith=b"HTTP/1.1 200"), PauseReading(CH)]
    size = len(book.says(200, b"b" * 600_000).data)
    book.after(59.0) << []
    book >> Sent(CH, 100_000) << []
    book.after(59.0) << []
    book >> Sent(CH, size - 100_000 - 65_536) << [ResumeReading(CH)]
    book.after(10.0) << []


def test_the_linger_begins_when_all_has_left(book: ToyPlaybook) -> None:
    (book >> Received(CH, get(b"/big", b"Connection: close"))).drain_commands()
    size = len(wire_bytes(book.drain_commands()))
    assert CloseWrite(CH) in book.drain_commands()
    book.after(30.0) << []
    book >> Sent(CH, size - 1) << [ResumeReading(CH)]
    book.after(30.0) << []
    book >> Sent(CH, 1) << []
    book.after(1.9) << []
    book.after(0.1) << [Abort(CH)]


def test_requests_wait_until_their_predecessors_were_read(book: ToyPlaybook) -> None:
    book >> Received(CH, get(b"/big") * 2 + get(b"/hello")) << [SendMatcher(CH, contains=b"bbb"), PauseReading(CH)]
    size = len(wire_bytes(book.drain_commands()))
    for _ in range(5):
        book >> Sent(CH, 50_000) << []
        book.after(59.0) << []
    book >> Sent(CH, size - 250_000) << [ResumeReading(CH), SendMatcher(CH, contains=b"bbb"), PauseReading(CH)]
    book >> Sent(CH, size) << [ResumeReading(CH), SendMatcher(CH, contains=b"hello")]


def test_a_half_closed_peer_that_reads_slowly_gets_all_its_answers(book: ToyPlaybook) -> None:
    book >> Received(CH, get(b"/big") + get(b"/hello")) << [SendMatcher(CH, contains=b"bbb"), PauseReading(CH)]
    size = len(wire_bytes(book.drain_commands()))
    book >> ReadClosed(CH) << []
    book >> Sent(CH, size) << [ResumeReading(CH), SendMatcher(CH, contains=b"hello"), CloseWrite(CH)]


@pytest.mark.parametrize("path", [b"/hangs-up", b"/leaves"], ids=["by its route", "by its handler"])
def test_a_fin_cancels_a_request_that_stops_with_its_client(book: ToyPlaybook, path: bytes) -> None:
    book.get(path) << []
    book >> ReadClosed(CH) << [Abort(CH)]
    book >> Closed(CH) << []
    assert book.toy.cleaned == ["park"]


@pytest.mark.parametrize("path", [b"/leaves", b"/leaves-late"])
def test_a_client_that_prefers_a_half_close_gets_its_answer(book: ToyPlaybook, path: bytes) -> None:
    book >> Received(CH, get(path, b"Prefer: wait=5, Half-Close")) << []
    book >> ReadClosed(CH) << []
    for _ in range(path.count(b"late")):
        book.engine.resume(book.toy.ticket, b"")
    book.engine.resume(book.toy.ticket, b"yes")
    book.after(0.0) << [book.says(200, b"yes", CLOSE), CloseWrite(CH)]


def test_a_client_that_closed_its_end_early_is_told_how_to_get_the_answer(book: ToyPlaybook) -> None:
    book >> Received(CH, get(b"/leaves-late")) << []
    book >> ReadClosed(CH) << []
    book.engine.resume(book.toy.ticket, b"")
    text = b"the connection was closed at the client's end before the answer: send Prefer: half-close to get it"
    book.after(0.0) << [book.says(400, b"bad_request: " + text, CLOSE), CloseWrite(CH)]


def test_a_fin_before_the_request_is_known_to_its_handler(book: ToyPlaybook) -> None:
    (book >> Received(CH, get(b"/park") + get(b"/leaves"))).drain_commands()
    book >> ReadClosed(CH) << []
    book.engine.resume(book.toy.ticket, b"yes")
    book.after(0.0)
    sent = wire_bytes(book.drain_commands())
    assert sent.startswith(b"HTTP/1.1 200")
    assert b"bad_request" in sent
