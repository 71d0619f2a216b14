import pytest

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.commands import Abort, CloseWrite, Level, Send
from svc_proto.engine.websocket import (
    WEBSOCKET_CONNECTION_TABLE,
    WebSocketConnection,
    WebSocketConnectionState,
    WebSocketConnectionTrigger,
)
from svc_proto.facts import Closed, ReadClosed, Received, Sent
from svc_proto.machines.transitions import step
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.engine.toy_service import HANDSHAKE, RecordingWebSocketHandler, ToyPlaybook, open_book
from tests.support.playbook import CH, SendMatcher, accepted

S, T = WebSocketConnectionState, WebSocketConnectionTrigger
MASK = b"\0\0\0\0"  # a masking key that leaves the payload as it is
ACCEPTED = SendMatcher(CH, startswith=b"HTTP/1.1 101", contains=b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")


def frame(opcode: int, payload: bytes, *, final: bool = True) -> Received:
    return Received(CH, bytes([(0x80 if final else 0) | opcode, 0x80 | len(payload)]) + MASK + payload)


def text(payload: bytes) -> Received:
    return frame(1, payload)


def close(code: int, reason: bytes = b"") -> Received:
    return frame(8, code.to_bytes(2, "big") + reason)


def socket_book(limits: Limits = DEFAULT_LIMITS, raises: dict[str, Exception] | None = None) -> ToyPlaybook:
    book = open_book(limits)
    book.toy.handler = RecordingWebSocketHandler(raises)
    book >> Received(CH, HANDSHAKE % b"/ws") << [ACCEPTED]
    return book


@pytest.fixture
def book() -> ToyPlaybook:
    return socket_book()


@pytest.fixture
def socket(book: ToyPlaybook) -> WebSocketConnection:
    return book.toy.handler.open_socket


def test_the_table_crossed() -> None:
    expected = {(S.OPEN, T.CLOSE): S.CLOSING, (S.OPEN, T.END): S.CLOSED, (S.CLOSING, T.END): S.CLOSED}
    for state in S:
        for trigger in T:
            if (state, trigger) in expected:
                assert step(WEBSOCKET_CONNECTION_TABLE, state, trigger) is expected[state, trigger]
            else:
                with pytest.raises(LocalProtocolError):
                    step(WEBSOCKET_CONNECTION_TABLE, state, trigger)


def test_messages_both_ways(book: ToyPlaybook, socket: WebSocketConnection) -> None:
    assert (socket.number, socket.ch, socket.writable) == (2, 2, True)
    book >> text(b"hi") << []
    book >> frame(2, b"\x01") << []
    assert book.toy.handler.told == [("open",), ("text", "hi"), ("binary", b"\x01")]
    assert socket.send_text("yo")
    assert socket.send_text("ü".encode())
    book.after(0.0) << [Send(CH, b"\x81\x02yo\x81\x02\xc3\xbc")]
    assert socket.send_binary(b"\x01")
    book.after(0.0) << [Send(CH, b"\x82\x01\x01")]
    book >> frame(9, b"p") << [Send(CH, b"\x8a\x01p")]
    book >> frame(10, b"p") << []


def test_messages_after_a_close_are_not_delivered() -> None:
    class Closing(RecordingWebSocketHandler):
        def on_text(self, text: str) -> None:
            super().on_text(text)
            self.open_socket.close()

    book = open_book()
    handler = book.toy.handler = Closing()
    book >> Received(CH, HANDSHAKE % b"/ws") << [ACCEPTED]
    book >> Received(CH, text(b"one").data + text(b"two").data) << [Send(CH, b"\x88\x02\x03\xe8")]
    assert handler.told[1:] == [("text", "one")]


def test_a_long_message_in_parts() -> None:
    parts: list[tuple[str, bool]] = []
    book = socket_book()
    socket = book.toy.handler.open_socket
    socket.receive_fragments(200, lambda part, is_last: parts.append((part, is_last)))
    book >> frame(1, b"a" * 90, final=False) << []
    book >> frame(0, b"b" * 90, final=False) << []
    book >> frame(0, b"c") << []
    assert parts == [("a" * 90 + "b" * 90, False), ("c", True)]
    assert socket.send_fragment("d", False)
    assert socket.send_fragment("e", True)
    book.after(0.0) << [Send(CH, b"\x01\x01d\x80\x01e")]
    socket.close()
    assert not socket.send_fragment("late", True)


def test_the_peer_closes(book: ToyPlaybook, socket: WebSocketConnection) -> None:
    book >> close(1000, b"bye") << [Send(CH, b"\x88\x02\x03\xe8"), CloseWrite(CH)]
    assert book.toy.handler.told[-1] == ("closed", 1000, "bye")
    assert not socket.send_text("late")
    socket.close()
    book >> Closed(CH) << []
    assert len(book.toy.handler.told) == 2


def test_we_close_and_the_peer_answers_or_does_not(book: ToyPlaybook, socket: WebSocketConnection) -> None:
    with pytest.raises(LocalProtocolError):
        socket.close(1006)  # a code that cannot be sent changes nothing
    assert socket.state is S.OPEN
    socket.close(1008, "no")
    socket.close(1000)
    assert not socket.send_text("late")
    book.after(0.0) << [Send(CH, b"\x88\x04\x03\xf0no")]
    book >> text(b"still here") << []
    book >> frame(2, b"\x01") << []
    book.after(4.9) << []
    book >> close(1008) << [CloseWrite(CH)]
    assert book.toy.handler.told == [("open",), ("closed", 1008, "")]
    book = socket_book()
    book.toy.handler.open_socket.close()
    book.after(0.0) << [Send(CH, b"\x88\x02\x03\xe8")]
    book.after(5.0) << [Abort(CH)]
    book >> Closed(CH, "aborted") << []
    assert book.toy.handler.told[-1] == ("closed", 1006, "aborted")


def test_the_peer_vanishes_or_breaks_a_rule(book: ToyPlaybook) -> None:
    book >> ReadClosed(CH) << [CloseWrite(CH)]
    assert book.toy.handler.told[-1] == ("closed", 1006, "the peer closed without a close frame")
    book = socket_book()
    book >> Closed(CH, "reset") << []
    assert book.toy.handler.told[-1] == ("closed", 1006, "reset")
    book = socket_book()
    book >> Received(CH, b"\x81\x01a") << [SendMatcher(CH, startswith=b"\x88"), CloseWrite(CH)]
    assert book.toy.handler.told[-1][:2] == ("closed", 1006)


def test_keepalive(book: ToyPlaybook) -> None:
    book.sent() << []
    book.after(29.0) << []
    book >> text(b"a") << []
    book.after(29.9) << []
    book.after(0.1) << [Send(CH, b"\x89\x00")]
    book.sent() << []
    book.after(19.0) << []
    book >> frame(10, b"") << []
    book.after(30.0) << [Send(CH, b"\x89\x00")]
    book.sent() << []
    book.after(19.9) << []
    book.after(0.1) << [Abort(CH)]
    book.after(100.0) << []
    assert not book.toy.handler.open_socket.send_text("to no peer")
    book >> Closed(CH) << []


def test_an_unread_socket_is_not_writable(book: ToyPlaybook, socket: WebSocketConnection) -> None:
    socket.send_text("é" * 150_000)
    book.after(0.0) << [SendMatcher(CH)]  # and reading goes on: the peer may be blocked in the same way
    writable = [socket.writable]
    book >> Sent(CH, 200_000) << []
    book >> Sent(CH, 50_000) << []
    assert [*writable, socket.writable] == [False, True]
    assert book.toy.handler.told[-1] == ("writable",)


def test_too_much_unsent_output_drops_the_peer() -> None:
    book = socket_book(Limits(max_unsent=1000))
    socket = book.toy.handler.open_socket
    assert socket.send_text("x" * 1001)
    book.after(0.0) << [SendMatcher(CH)]
    assert not socket.send_text("y")
    assert not socket.send_text("z")
    book.after(0.0) << []
    book >> Closed(CH) << []
    assert book.toy.handler.told[-1] == ("closed", 1006, "")


def test_a_closing_socket_gets_no_on_writable(book: ToyPlaybook, socket: WebSocketConnection) -> None:
    socket.send_text("x" * 300_000)
    socket.close()
    book.after(0.0).drain_commands()
    book >> Sent(CH, 290_000) << []
    assert book.toy.handler.told == [("open",)]


def test_a_peer_that_only_pings_and_never_reads_is_dropped() -> None:
    book = socket_book(Limits(max_unsent=1000))
    ping = frame(9, b"p" * 100)
    for _ in range(9):
        book >> ping << [SendMatcher(CH, startswith=b"\x8a")]
    book >> ping << [Abort(CH)]


def test_the_ping_interval_can_be_shortened(book: ToyPlaybook, socket: WebSocketConnection) -> None:
    socket.set_ping_interval(5.0)
    book.after(4.9) << []
    book.after(0.1) << [SendMatcher(CH, startswith=b"\x89")]
    book >> frame(10, b"") << []
    book.after(5.0) << [SendMatcher(CH, startswith=b"\x89")]
    book.after(DEFAULT_LIMITS.ping_timeout) << [Abort(CH)]


def test_a_socket_that_is_closing_gets_no_later_deadline(book: ToyPlaybook, socket: WebSocketConnection) -> None:
    socket.close()
    socket.set_ping_interval(500.0)
    book.after(0.0) << [SendMatcher(CH, startswith=b"\x88")]
    book.after(DEFAULT_LIMITS.close_timeout) << [Abort(CH)]


@pytest.mark.parametrize("place", ["text", "binary"])
def test_a_bug_in_a_handler_closes_its_socket(place: str) -> None:
    book = socket_book(raises={place: RuntimeError("a secret"), "closed": RuntimeError()})
    book >> frame(1 if place == "text" else 2, b"x") << [Send(CH, b"\x88\x21\x03\xf3internal error, reference bug-1")]
    assert "secret" not in repr(book.logs)
    book >> close(1011) << [CloseWrite(CH)]
    assert book.toy.handler.told[-1] == ("closed", 1011, "")
    assert [log.fields["reference"] for log in book.logs] == ["bug-1", "bug-2"]


def test_a_bug_at_the_very_beginning() -> None:
    book = open_book()
    book.toy.handler = RecordingWebSocketHandler({"open": RuntimeError()})
    book >> Received(CH, HANDSHAKE % b"/ws")
    book << [SendMatcher(CH, startswith=b"HTTP/1.1 101"), SendMatcher(CH, startswith=b"\x88\x21\x03\xf3internal error")]
    book >> close(1011) << [CloseWrite(CH)]
    assert [log.fields["reference"] for log in book.logs] == ["bug-1"]


def test_a_handler_that_blames_the_peer() -> None:
    book = socket_book(raises={"text": RemoteProtocolError("no envelope", close_code=1003)})
    book >> text(b"x") << [Send(CH, b"\x88\x0d\x03\xebno envelope")]
    assert book.logs == []


def test_a_route_that_returns_no_handler() -> None:
    book = open_book()
    book.logs.bugs = True
    book.toy.handler = None  # type: ignore[assignment]  # the bug
    book >> Received(CH, HANDSHAKE % b"/ws") << [ACCEPTED, CloseWrite(CH)]
    book >> Closed(CH) << []
    book >> accepted(4) << []
    assert [log.fields["error"] for log in book.logs] == ["AttributeError", "AttributeError"]


def test_on_closed_is_called_once(book: ToyPlaybook, socket: WebSocketConnection) -> None:
    socket.end(1006, "first")
    socket.end(1006, "second")
    book >> Closed(CH) << []
    assert book.toy.handler.told == [("open",), ("closed", 1006, "first")]


# --- peers that do not read --------------------------------------------------------------------------------------


class Speaker(RecordingWebSocketHandler):
    """WebSocket handler that echoes text messages, and closes the WebSocket on the text `close`."""

    def on_text(self, text: str) -> None:
        if text == "close":
            self.open_socket.close()
        else:
            self.open_socket.send_text(text)


def reader_book() -> ToyPlaybook:
    book = open_book(DEFAULT_LIMITS)
    book.toy.handler = Speaker()
    book >> Received(CH, HANDSHAKE % b"/ws") << [ACCEPTED]
    book >> Sent(CH, 129) << []
    return book


@pytest.mark.parametrize("sent", [frame(10, b""), text(b"heard")], ids=["pong", "text"])
def test_a_peer_that_sends_but_does_not_read_stays_connected(book: ToyPlaybook, sent: Received) -> None:
    book >> Sent(CH, 129) << []
    book.toy.handler.open_socket.send_text("unread")
    book.after(0.0) << [Send(CH, b"\x81\x06unread")]
    for _ in range(360):
        book.after(10.0) << []
        book >> sent << []
    book.after(30.0) << [Send(CH, b"\x89\x00")]
    book.after(20.0) << [Abort(CH)]


def test_half_a_message_is_no_sign_of_life_and_no_frame_extends_the_close_timeout() -> None:
    book = reader_book()
    book >> text(b"unread") << [Send(CH, b"\x81\x06unread")]
    for byte in text(b"hello").data[:6]:
        book.after(9.9) << []
        book >> Received(CH, bytes([byte])) << []
    book.after(0.7) << [Abort(CH)]
    book = reader_book()
    book >> text(b"close") << [Send(CH, b"\x88\x02\x03\xe8")]
    book.after(4.0) << []
    book >> frame(9, b"") << []
    book.after(1.0) << [Abort(CH)]


# --- the access log -----------------------------------------------------------------------------------------------


def test_the_end_of_a_socket_is_logged_on_demand() -> None:
    for level, lines in ((Level.DEBUG, 1), (Level.INFO, 0)):
        book = open_book(DEFAULT_LIMITS, log_level=level)
        book.toy.handler = RecordingWebSocketHandler()
        book >> Received(CH, HANDSHAKE % b"/ws") << [ACCEPTED]
        book.after(2.5) << []
        book >> close(1000) << [Send(CH, b"\x88\x02\x03\xe8"), CloseWrite(CH)]
        book >> Closed(CH) << []
        noted = [record for record in book.logs if record.event == "socket"]
        assert len(noted) == lines
        for record in noted:
            assert record.fields == {"route": "/ws", "code": 1000, "peer": "127.0.0.1", "ms": 2500}
