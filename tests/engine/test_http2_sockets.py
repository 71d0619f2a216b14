"""WebSockets over HTTP/2, in the server's role: beside requests, silent, cut, and unread."""

import pytest

from svc_proto.wire import events
from svc_proto.wire.limits import Limits
from tests.engine.http2_playbook import FIVE, ONE, THREE, Http2Playbook, answers
from tests.wire.connection_pair import seeded, send_events


@pytest.fixture
def book() -> Http2Playbook:
    return Http2Playbook()


def test_sockets_beside_requests(book: Http2Playbook) -> None:
    (accepted,) = book.open(ONE)
    assert isinstance(accepted, events.WebSocketAccepted)
    first = book.toy.handler.open_socket
    book.client.send(events.TextMessage(ONE, "hi"))
    book.send_request(THREE, "/hello")
    assert answers(book.talk()) == {3: (200, b"hello")}
    assert book.toy.handler.told == [("open",), ("text", "hi")]
    book.open(FIVE)
    second = book.toy.handler.open_socket
    assert first.number != second.number
    assert first.send_text("one")
    assert first.send_text("dós".encode())
    assert first.send_binary(b"\xff")
    second.close(1001, "enough")
    said = [events.TextMessage(ONE, "one"), events.TextMessage(ONE, "dós"), events.BinaryMessage(ONE, b"\xff")]
    assert book.after(0.0) + book.talk() == [*said, events.WebSocketClosed(FIVE, 1001, "enough")]
    assert book.toy.handler.told[-1] == ("closed", 1001, "")
    book.client.send(events.CloseWebSocket(ONE))
    assert book.talk() == [events.WebSocketClosed(ONE, 1000)]
    assert book.toy.handler.told[-1] == ("closed", 1000, "")
    assert book.client.idle
    assert book.others == []


def test_a_socket_is_kept_alive_and_a_silent_one_is_dropped(book: Http2Playbook) -> None:
    book.open(ONE)
    assert book.after(30.5) == [events.Ping(ONE)]
    book.talk()
    book.after(29.0)
    book.client.send(events.Pong(ONE))
    book.talk()
    heard = book.after(60.0)
    assert isinstance(heard[-1], events.WebSocketClosed)
    assert book.toy.handler.told[-1][:2] == ("closed", 1006)
    assert book.others == []


def test_messages_are_delivered_whole_until_the_stream_ends(book: Http2Playbook) -> None:
    book.open(ONE)
    book.toy.handler.open_socket.receive_fragments(1, lambda part, is_last: None)
    book.client.send(events.TextMessage(ONE, "a" * 100_000))
    book.talk()
    assert book.toy.handler.told == [("open",), ("text", "a" * 100_000)]
    book.client.reset_stream(ONE)
    book.talk()
    assert book.toy.handler.told[-1][:2] == ("closed", 1006)


def test_a_socket_that_is_not_read() -> None:
    book = Http2Playbook(Limits(max_unsent=1_000_000))
    book.open(ONE)
    socket = book.toy.handler.open_socket
    text = seeded()(200_000).hex()
    while socket.send_text(text):
        socket._carrier.write_pending()
    book.after(0.0)
    assert book.toy.handler.told[-1][:2] == ("closed", 1006)
    assert not socket.send_text("late")
    socket._carrier.abort()
    book.send_request(THREE, "/hello")
    assert answers(book.talk()) == {3: (200, b"hello")}


def test_an_unread_socket_with_pings() -> None:
    book = Http2Playbook(Limits(max_unsent=1_000_000))
    book.open(ONE)
    socket = book.toy.handler.open_socket
    for _ in range(8):  # they shrink by half
        assert socket.send_text(seeded()(200_000).hex())
    book.after(0.0)
    book.client.send(events.Ping(ONE))
    book.talk(sent=False)
    assert book.toy.handler.told[-1][:2] == ("closed", 1006)


def test_input_of_a_cut_stream_is_ignored(book: Http2Playbook) -> None:
    book.open(ONE)
    socket = book.toy.handler.open_socket
    texts: list[str] = []

    def once(text: str) -> None:
        texts.append(text)
        socket._carrier.abort()

    book.toy.handler.on_text = once  # type: ignore[method-assign] # what a service in trouble would do
    send_events(book.client, events.TextMessage(ONE, "one"), events.TextMessage(ONE, "two"))
    book.talk()
    assert texts == ["one"]
    assert book.toy.handler.told[-1][:2] == ("closed", 1006)
