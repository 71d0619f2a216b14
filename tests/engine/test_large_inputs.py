from collections.abc import Callable

import pytest
from attrs import evolve

from svc_proto.commands import Abort, Command, PauseReading, ResumeReading, Send
from svc_proto.facts import ChannelId, Closed, Received
from tests.engine.toy_service import HANDSHAKE, ToyPlaybook, open_book, post
from tests.support.playbook import CH, PATIENT, SendMatcher, accepted
from tests.wire.test_websocket import frame

KIB = 1024
ONE = evolve(PATIENT, large_input=16 * KIB, large_inputs=1, write_timeout=1e6)
FOUR, SIX, EIGHT = ChannelId(4), ChannelId(6), ChannelId(8)
BEGIN, END = frame(0x01, b"x" * 20 * KIB), frame(0x80, b"y")  # a message of two fragments


def sockets(*channels: ChannelId) -> ToyPlaybook:
    """Return a playbook with a WebSocket on each channel; one of them may receive a large message at a time."""
    book = open_book(ONE)
    for ch in channels:
        book >> accepted(ch) << []
        book >> Received(ch, HANDSHAKE % b"/ws") << [SendMatcher(ch, startswith=b"HTTP/1.1 101")]
    return book


def within(book: ToyPlaybook, call: Callable[[], None]) -> set[Command]:
    """Call a function from within the core; return the resulting commands."""
    book.engine.timers.timer(call).set(book.engine.now.mono)
    return set(book.after(0.0).drain_commands())


def messages(book: ToyPlaybook) -> int:
    return sum(each[0] == "text" for each in book.toy.handler.told)


def test_one_large_message_at_a_time() -> None:
    book = sockets(FOUR, SIX, EIGHT)
    book >> Received(FOUR, BEGIN) << []
    book >> Received(SIX, BEGIN) << [PauseReading(SIX)]
    book >> Received(EIGHT, frame(0x81, b"small")) << []
    book >> Received(EIGHT, BEGIN) << [PauseReading(EIGHT)]
    book >> Received(FOUR, frame(0x00, b"z" * 20 * KIB)) << []
    book >> Received(FOUR, END) << [ResumeReading(SIX)]
    book >> Received(SIX, END) << [ResumeReading(EIGHT)]
    book >> Received(EIGHT, END) << []
    assert messages(book) == 4
    assert not book.engine.large_inputs.holders
    assert not book.engine.large_inputs.waiting


def test_the_end_of_a_connection_returns_its_permit() -> None:
    book = sockets(FOUR, SIX, EIGHT)
    book >> Received(FOUR, BEGIN) << []
    book >> Received(SIX, BEGIN) << [PauseReading(SIX)]
    book >> Received(EIGHT, BEGIN) << [PauseReading(EIGHT)]
    book >> Closed(SIX, "") << []
    book >> Closed(FOUR, "") << [ResumeReading(EIGHT)]
    book >> Closed(EIGHT, "") << []
    assert not book.engine.large_inputs.holders


@pytest.mark.parametrize("grown", [False, True])
def test_a_peer_that_stalls_within_a_large_message_is_dropped(grown: bool) -> None:
    book = sockets(FOUR, SIX)
    book >> Received(FOUR, BEGIN) << []
    book >> Received(FOUR, frame(0x00, b"z" * 16 * KIB * grown)) << []
    book >> Received(SIX, BEGIN) << [PauseReading(SIX)]
    commands: list[Command] = []
    for _ in range(12):
        book >> Received(FOUR, frame(0x00, b"z"))
        commands = book.after(ONE.large_input_timeout / 12).drain_commands()
    assert [each for each in commands if not isinstance(each, Send)] == [Abort(FOUR), ResumeReading(SIX)]
    book >> Received(SIX, END) << []
    assert messages(book) == 1


def test_a_slow_peer_is_not_dropped_while_its_message_grows() -> None:
    book = sockets(FOUR)
    book >> Received(FOUR, BEGIN) << []
    for _ in range(20):
        assert Abort(FOUR) not in book.after(25.0).drain_commands()
        book >> Received(FOUR, frame(0x00, b"z" * 4 * KIB))
    book >> Received(FOUR, END)
    assert messages(book) == 1


def test_a_body_that_grows_by_16_kib_is_not_dropped() -> None:
    book = open_book(evolve(ONE, body_timeout=1e6, min_body_rate=1))
    book >> Received(CH, post(b"/echo", b"b" * 20 * KIB, length=60_000)) << []
    for _ in range(2):
        book.after(0.75 * ONE.large_input_timeout) << []
        book >> Received(CH, b"b" * 16 * KIB) << []


def test_a_handler_that_pauses_keeps_the_permit() -> None:
    book = sockets(FOUR, SIX)
    book >> Received(SIX, b"") << []
    socket = book.toy.handler.open_socket  # of SIX
    book >> Received(SIX, BEGIN) << []
    assert within(book, lambda: socket.set_read_paused(True)) == {PauseReading(SIX)}
    book >> Received(SIX, END) << []  # was on its way
    book >> Received(FOUR, BEGIN) << [PauseReading(FOUR)]
    assert within(book, lambda: socket.set_read_paused(False)) == {ResumeReading(FOUR), ResumeReading(SIX)}
    assert within(book, lambda: socket.set_read_paused(False)) == set()
    book >> Received(FOUR, END) << []
    socket.close(1000, "")
    assert not any(isinstance(each, PauseReading) for each in within(book, lambda: socket.set_read_paused(True)))


def test_a_handler_that_pauses_without_a_large_message_needs_no_permit() -> None:
    book = sockets(FOUR, SIX)
    socket = book.toy.handler.open_socket
    book >> Received(FOUR, BEGIN) << []
    assert within(book, lambda: socket.set_read_paused(True)) == {PauseReading(SIX)}
    assert not book.engine.large_inputs.waiting
    assert within(book, lambda: socket.set_read_paused(False)) == {ResumeReading(SIX)}


def test_a_peer_that_waits_is_not_dropped_as_silent() -> None:
    book = sockets(FOUR, SIX)
    book >> Received(FOUR, BEGIN) << []
    book >> Received(SIX, BEGIN) << [PauseReading(SIX)]
    for _ in range(3):
        book >> Received(FOUR, frame(0x00, b"z")) << []
        assert Abort(SIX) not in book.after(29.0).drain_commands()
    book >> Received(FOUR, END) << [ResumeReading(SIX)]
    book >> Received(SIX, END)
    for _ in range(9):  # nor later, for it has returned its permit
        book >> Received(SIX, frame(0x81, b"z"))
        assert Abort(SIX) not in book.after(ONE.large_input_timeout / 6).drain_commands()


def test_a_large_body_needs_a_permit() -> None:
    book = sockets(FOUR)
    book >> Received(FOUR, BEGIN) << []
    book >> accepted(SIX) << []
    head = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n"
    book >> Received(SIX, head + b"b" * 16 * KIB) << []
    book >> Received(SIX, b"b") << [PauseReading(SIX)]
    book >> Received(FOUR, END) << [ResumeReading(SIX)]
    book >> Received(SIX, b"b" * (40_000 - 16 * KIB - 1)) << [SendMatcher(SIX, startswith=b"HTTP/1.1 200")]
    assert not book.engine.large_inputs.holders
