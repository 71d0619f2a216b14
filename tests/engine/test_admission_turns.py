"""Read scheduling of unauthenticated connections: slices in turn, for their data and their ends."""

import pytest
from attrs import evolve

from svc_proto.commands import Abort, CloseWrite, PauseReading, ResumeReading
from svc_proto.facts import Address, ChannelId, Closed, ReadClosed, Received
from svc_proto.wire.connection import Role
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.engine.admission_harness import EIGHT, FOUR, KIB, OPEN, SIX, channel_count, connect, some
from tests.engine.http2_playbook import FIVE, ONE, THREE, Http2Playbook, answers
from tests.engine.toy_service import ToyPlaybook, get, open_book
from tests.support.playbook import CH, SendMatcher, accepted, wire_bytes
from tests.wire.connection_pair import seeded
from tests.wire.test_websocket import frame

TURNS = evolve(DEFAULT_LIMITS, unauthenticated_burst=4 * KIB, unauthenticated_rate=1000.0 * KIB)
PING = frame(0x89, b"")


def busy() -> ToyPlaybook:
    """Return a playbook whose budget for immediate reads is spent."""
    book = open_book(TURNS)
    for size in (4000, 200):
        book >> Received(CH, get(b"/open", b"X: " + b"x" * size)) << [book.says(200, b"")]
    return book


def test_large_input_is_read_in_slices() -> None:
    book = open_book(TURNS)
    connect(book, FOUR)
    pongs = SendMatcher(FOUR, startswith=b"\x8a\x00")
    book >> Received(FOUR, PING * 1000) << [pongs]
    left = 1000 * len(PING) - (4 * KIB - len(OPEN))
    assert left <= channel_count(book) < left + len(PING)
    book.after(1.0) << [pongs, pongs]
    assert channel_count(book) == 0


def test_buffered_input_of_a_waiting_connection_is_limited() -> None:
    book = busy()
    book >> accepted(FOUR, Address("192.0.2.9", 5)) << []
    said = OPEN + PING * 10_000 + some(30 * KIB)
    for at in range(0, 64 * KIB - 1024, 1024):
        book >> Received(FOUR, said[at : at + 1024]) << []
    book >> Received(FOUR, said[63 * KIB : 70 * KIB]) << [PauseReading(FOUR)]
    assert channel_count(book) == 70 * KIB
    book >> Received(FOUR, said[70 * KIB :]) << []  # in flight already
    book.after(1.0)
    assert book.drain_commands().count(ResumeReading(FOUR)) == 1
    assert 30 * KIB < channel_count(book) < 31 * KIB


def test_input_of_queued_connections_counts_towards_the_budget() -> None:
    book = open_book(evolve(TURNS, unauthenticated_budget=100 * KIB, unauthenticated_share=100 * KIB))
    connect(book, FOUR, "192.0.2.4")
    book >> Received(FOUR, some(60 * KIB)) << []
    for ch in (SIX, EIGHT):
        book >> accepted(ch, Address(f"192.0.2.{ch}", 5)) << []
    book >> Received(SIX, bytes(30 * KIB)) << []
    book >> Received(EIGHT, bytes(30 * KIB)) << [PauseReading(EIGHT)]
    book >> ReadClosed(EIGHT) << []  # in flight already
    book >> Closed(SIX, "") << [ResumeReading(EIGHT)]
    book >> Closed(EIGHT, "") << []
    book >> Closed(FOUR, "") << []
    assert channel_count(book) == 0


def test_a_connection_without_budget_is_read_in_turn_and_dropped() -> None:
    book = open_book(evolve(TURNS, unauthenticated_budget=100 * KIB, unauthenticated_share=100 * KIB))
    for ch in (FOUR, SIX):
        connect(book, ch, f"192.0.2.{ch}")
    said = some(60 * KIB)[: 55 * KIB]
    book >> Received(FOUR, said) << []
    book >> Received(SIX, said) << [PauseReading(SIX)]
    book >> ReadClosed(SIX) << []
    book.after(TURNS.unauthenticated_timeout)
    assert Abort(SIX) in book.drain_commands()


def test_new_connections_queue_but_authenticated_ones_do_not() -> None:
    book = open_book(TURNS)
    book >> Received(CH, get(b"/hello")) << [book.says(200, b"hello")]  # authenticated from here on
    connect(book, FOUR)
    book >> Received(FOUR, some(60 * KIB)[: 10 * KIB]) << []
    book >> accepted(SIX, Address("192.0.2.9", 5)) << []
    for _ in range(2):
        book >> Received(SIX, get(b"/open")) << []
    book >> Received(CH, get(b"/hello")) << [book.says(200, b"hello")]
    book.after(0.004)
    assert wire_bytes(book.drain_commands(), 6).count(b"HTTP/1.1 200") == 2
    book.after(1.0) << []


def test_a_queued_connection_that_authenticates_is_read_at_once() -> None:
    book = busy()
    book >> accepted(FOUR, Address("192.0.2.9", 5)) << []
    book >> Received(FOUR, get(b"/hello") + get(b"/hello", b"X: " + b"x" * 3000)) << []
    book.after(1.0)
    assert wire_bytes(book.drain_commands(), 4).count(b"HTTP/1.1 200") == 2
    book >> Received(FOUR, get(b"/hello")) << [SendMatcher(FOUR, startswith=b"HTTP/1.1 200")]


def test_an_answered_queued_request_holds_no_memory() -> None:
    book = busy()
    book >> accepted(FOUR, Address("192.0.2.9", 5)) << []
    asked = get(b"/open")
    book >> Received(FOUR, asked) << []
    assert channel_count(book) == len(asked)
    book.after(1.0) << [SendMatcher(FOUR, startswith=b"HTTP/1.1 200")]
    assert channel_count(book) == 0


def test_queued_connections_are_read_once_per_round() -> None:
    book = open_book(TURNS)
    connect(book, FOUR)
    book >> Received(FOUR, PING * 10_000) << [SendMatcher(FOUR, startswith=b"\x8a\x00")]
    left = channel_count(book)
    for _ in range(10):  # facts of one round of the loop, each later than the one before
        book.now = book.now.at(book.now.mono + 0.002)
        book >> Closed(ChannelId(99)) << []
    assert channel_count(book) == left
    book.core.handle(None, book.now)
    assert left - 22 * KIB < channel_count(book) < left - 18 * KIB


@pytest.mark.parametrize("ends", [False, True], ids=["open", "half-closed"])
def test_authentication_within_queued_input_reads_all_of_it(ends: bool) -> None:
    book = open_book(TURNS)
    book >> Received(CH, get(b"/open", b"X: " + b"x" * 3900)) << [book.says(200, b"")]
    book >> Received(CH, get(b"/hello", b"X: " + b"x" * 3000) + get(b"/hello") * 2) << []
    if ends:
        book >> ReadClosed(CH) << []
    commands = book.after(1.0).drain_commands()
    assert wire_bytes(commands, 2).count(b"hello") == 3
    assert not book.toy.admission.budget.held
    assert (commands[-1] == CloseWrite(CH)) is ends


def test_authentication_within_queued_http2_input_reads_all_of_it() -> None:
    book = Http2Playbook(TURNS)
    streams = (ONE, THREE, FIVE)
    for stream in streams:
        book.send_request(stream, "/hello", None, (b"x", b"%d" % stream * 3000))
    said = book.client.data_to_send()
    assert len(said) > 5 * KIB  # more than one slice; the first request authenticates
    book.book >> Received(CH, said)
    assert answers(book.feed(book.book.drain_commands())) == dict.fromkeys(streams, (200, b"hello"))
    assert not book.pauses
    assert channel_count(book.book) == 0


def test_a_fin_after_queued_input_is_handled_in_turn() -> None:
    book = busy()
    book >> Received(CH, get(b"/open")) << []
    book >> ReadClosed(CH) << []
    book.after(0.5) << [book.says(200, b""), CloseWrite(CH)]


def test_a_half_closed_connection_does_not_wait_for_long() -> None:
    book = busy()
    for ch in (FOUR, SIX):
        book >> accepted(ch, Address(f"192.0.2.{ch}", 5)) << []
        book >> Received(ch, get(b"/open", b"X: " + b"x" * 3000)) << []
        book >> ReadClosed(ch) << []
    book.toy.admission.read_scheduler.charge(30_000 * KIB, book.now.mono)  # read for other connections
    book.after(TURNS.unauthenticated_timeout) << [Abort(FOUR), Abort(SIX)]
    assert not book.logs
    for ch in (FOUR, SIX):
        book >> Closed(ch, "") << []
    assert channel_count(book) == 0


@pytest.mark.parametrize("ends", [False, True], ids=["whole", "in pieces with a FIN"])
def test_a_queued_http2_connection_is_read_further(ends: bool) -> None:
    book = busy()
    book >> accepted(FOUR, Address("192.0.2.9", 5)) << []
    said = Http2Connection(Role.CLIENT, entropy=seeded()).data_to_send()
    for piece in (said[:10], said[10:]) if ends else (said,):
        book >> Received(FOUR, piece) << []
    if ends:
        book >> ReadClosed(FOUR) << []
    commands = book.after(0.1).drain_commands()
    assert wire_bytes(commands, 4)[3:4] == b"\x04"  # SETTINGS
    assert (CloseWrite(FOUR) in commands) is ends


def test_a_paused_http2_connection_is_read_further() -> None:
    book = busy()
    book >> accepted(FOUR, Address("192.0.2.9", 5)) << []
    said = Http2Connection(Role.CLIENT, entropy=seeded()).data_to_send()
    said += b"\0\0\x08\x06\0\0\0\0\0abcdefgh" * (64 * KIB // 17)  # PING, RFC 9113 section 6.7
    book >> Received(FOUR, said[: 64 * KIB]) << [PauseReading(FOUR)]
    book.after(1.0)
    assert book.drain_commands().count(ResumeReading(FOUR)) == 1
    assert channel_count(book) < 50 * KIB


def test_a_closed_queued_connection_is_removed() -> None:
    book = open_book(TURNS)
    connect(book, FOUR)
    book >> Received(FOUR, some(60 * KIB)[: 10 * KIB]) << []
    book >> Closed(FOUR, "") << []
    assert channel_count(book) == 0
    book.after(1.0) << []
