from svc_proto.commands import Abort, CloseWrite, PauseReading
from svc_proto.engine.http_channel import HttpChannel
from svc_proto.facts import Closed, ReadClosed, Received, Sent
from svc_proto.wire.limits import Limits
from tests.engine.toy_service import ToyPlaybook, get, open_book
from tests.support.playbook import CH, SendMatcher, wire_bytes


def channel_of(book: ToyPlaybook) -> HttpChannel:
    assert book.toy.channel is not None
    return book.toy.channel


def test_output_of_one_call_is_one_send(book: ToyPlaybook) -> None:
    book >> Received(CH, get(b"/hello") * 3)
    (send,) = book.drain_commands()
    assert repr(send).count("HTTP/1.1 200 OK") == 3


def test_many_requests_at_once_are_taken_one_after_another(book: ToyPlaybook) -> None:
    book >> Received(CH, get(b"/hello") * 400)
    assert wire_bytes(book.drain_commands()).count(b"HTTP/1.1 200 OK") == 400


def test_shutting_twice_and_after_a_drop(book: ToyPlaybook) -> None:
    channel = channel_of(book)
    channel.close_gracefully()
    channel.close_gracefully()
    book.after(0.0) << [CloseWrite(CH)]
    channel.abort()
    channel.abort()
    book.after(0.0).drain_commands()
    channel.close_gracefully()
    book.after(9.0) << []


def test_a_dropped_channel_sends_nothing(book: ToyPlaybook) -> None:
    channel = channel_of(book)
    book.get(b"/park") << []
    channel.abort()
    book.engine.resume(book.toy.ticket, b"late")
    book.after(0.0) << []
    book >> Sent(CH, 1) << []
    book >> ReadClosed(CH) << []
    book >> Closed(CH) << []


def test_a_peer_that_floods_during_the_linger_is_read_no_more() -> None:
    book = open_book(limits=Limits(max_linger=1000))
    book >> Received(CH, get(b"/hello", b"Connection: close"))
    book.sent() << []
    book >> Received(CH, b"x" * 1000) << []
    book >> Received(CH, b"x") << [PauseReading(CH)]
    book >> Received(CH, b"x") << []  # was in flight
    book.after(2.0) << [Abort(CH)]


def test_a_peer_that_closes_during_the_linger(book: ToyPlaybook) -> None:
    book >> Received(CH, b"\0") << [SendMatcher(CH, startswith=b"HTTP/1.1 400"), CloseWrite(CH)]
    book >> ReadClosed(CH) << []
    book >> Closed(CH) << []
    book.after(9.0) << []
