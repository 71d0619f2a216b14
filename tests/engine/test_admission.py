"""Admission of new connections, and the memory budget of unauthenticated connections."""

import gc
import tracemalloc
import zlib

import pytest
from attrs import evolve

from svc_proto.commands import Abort, CloseWrite, Compute, Level, Log, PauseReading, ResumeReading
from svc_proto.engine import admission
from svc_proto.engine.admission import BUSY_CONNECTIONS, RELEASE_DELAY
from svc_proto.engine.http2_channel import MAX_HEADS_PER_READ, MAX_STREAM_READ, Http2Channel
from svc_proto.engine.message import Request
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.facts import Address, ChannelId, Closed, Done, ReadClosed, Received
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Headers, RequestData, RequestEnd, RequestHead, StreamId, TextMessage
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.engine.admission_harness import (
    AGREED,
    EIGHT,
    FOUR,
    KIB,
    SIX,
    TIGHT,
    channel_count,
    connect,
    many,
    nearly_full,
    some,
)
from tests.engine.http2_playbook import FIVE, HOST, ONE, THREE, Http2Playbook, answers
from tests.engine.toy_service import ToyPlaybook, get, open_book, post
from tests.support.playbook import CH, PATIENT, SendMatcher, accepted, wire_bytes
from tests.wire.connection_pair import seeded, send_events
from tests.wire.test_websocket import frame, packed

# --- admission ------------------------------------------------------------------------------------------------------


def test_too_many_from_one_address() -> None:
    book = open_book(TIGHT)
    told = Log(Level.WARNING, "too many connections of one address", {"limit": 3})
    for number in range(4, 10, 2):
        book >> accepted(number, Address("192.0.2.7", number)) << []
    book >> accepted(10, Address("192.0.2.7", 10)) << [Abort(ChannelId(10))]
    book >> accepted(12, Address("192.0.2.7", 12)) << [Abort(ChannelId(12))]
    assert book.logs == [told]
    book >> accepted(14, Address("192.0.2.8", 14)) << []
    for number in range(16, 30, 2):
        book >> accepted(number, Address("127.0.0.1", number)) << []
    book >> Closed(FOUR, "") << []
    book >> accepted(30, Address("192.0.2.7", 30)) << []
    book.get(b"/hello", ch=6) << [book.says(200, b"hello", ch=6)]  # an authenticated request
    book >> accepted(32, Address("192.0.2.7", 32)) << []
    book.after(14.0) << []


@pytest.mark.parametrize("reserve", [1, 32])
def test_connections_are_reserved_for_this_host(reserve: int) -> None:
    book = open_book(Limits(max_connections=8, local_connections=reserve, head_timeout=100.0))
    elsewhere = [Address(f"192.0.2.{number}", 7) for number in range(8)]
    for number in range(4, 4 + 2 * 6, 2):
        book >> accepted(number, elsewhere[0]) << []
    assert book.engine.channel_count == 7
    book >> accepted(20, elsewhere[1]) << [Abort(ChannelId(20))]
    book >> accepted(22, Address("::1", 7)) << []
    book >> accepted(24, Address("127.0.0.1", 7)) << [Abort(ChannelId(24))]


def test_refusal_warning_repeats_after_a_minute() -> None:
    book = open_book(Limits(unauthenticated_connections=0, max_connections=5, head_timeout=100.0))
    for number in (4, 6):
        book >> accepted(number, Address("192.0.2.7", number)) << [Abort(ChannelId(number))]
    assert len(book.logs) == 1
    book.after(60.0) << []
    book >> accepted(8, Address("192.0.2.7", 8)) << [Abort(EIGHT)]
    assert len(book.logs) == 2


def test_connections_behind_a_proxy_count_by_forwarded_address() -> None:
    def behind(request: Request) -> str:
        return (request.headers.get(b"x-forwarded-for") or b"absent").decode()

    book = open_book(TIGHT, behind=behind)
    head = get(b"/park", b"X-Forwarded-For: 192.0.2.1").replace(b"/park", b"/open")
    for number in range(4, 12, 2):
        book >> accepted(number, Address("192.0.2.7", number)) << []
    for number in (4, 6, 8):
        book >> Received(ChannelId(number), head) << [book.says(200, b"", ch=number)]
    book >> Received(ChannelId(10), head)
    assert wire_bytes(book.drain_commands(), 10).startswith(b"HTTP/1.1 429")
    assert book.logs == [Log(Level.WARNING, "too many connections of one address", {"limit": 3})]
    other = head.replace(b"192.0.2.1", b"192.0.2.2")
    book >> Received(ChannelId(10), other) << [book.says(200, b"", ch=10)]
    book.get(b"/hello", ch=4) << [book.says(200, b"hello", ch=4)]
    book >> Received(ChannelId(4), head) << [book.says(200, b"", ch=4)]  # authenticated: it no longer counts


# --- memory that counts ----------------------------------------------------------------------------------------------


def test_http1_bytes_that_count_towards_the_budget(book: ToyPlaybook) -> None:
    book >> Received(CH, b"GET /open HTTP/1.1\r\nHost: ") << []
    assert channel_count(book) == 26
    book >> Received(CH, b"x\r\n\r\n") << [book.says(200, b"")]
    assert channel_count(book) == 0
    book >> Received(CH, post(b"/keyless", b"abc", length=5)) << []
    assert channel_count(book) == 3
    book >> Received(CH, b"de") << [book.says(200, b"abcde")]
    assert channel_count(book) == 0
    chunked = b"POST /keyless HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    book >> Received(CH, chunked + b"3\r\nabc\r\n5") << []
    assert channel_count(book) == 4
    book >> Received(CH, b"\r\nabcde\r\n0\r\n\r\n") << [book.says(200, b"abcabcde")]
    book >> Received(CH, post(b"/open", b"", length=5).replace(b"POST", b"GET")) << []
    book >> Received(CH, b"abc") << []
    assert channel_count(book) == 0  # discarded
    book >> Received(CH, b"de") << [book.says(200, b"")]
    book >> Received(CH, post(b"/nowhere", b"abc", length=5)) << [SendMatcher(CH, startswith=b"HTTP/1.1 404")]
    assert channel_count(book) == 0
    (book >> ReadClosed(CH)).drain_commands()
    book >> Closed(CH, "") << []
    assert channel_count(book) == 0


def test_a_request_counts_until_its_policy_has_decided(book: ToyPlaybook) -> None:
    (book >> Received(CH, post(b"/slow", b"abc", length=5))).drain_commands()
    assert channel_count(book) == 3
    book.after(5.0)
    assert channel_count(book) == 0


def test_websocket_bytes_that_count_towards_the_budget(book: ToyPlaybook) -> None:
    book >> Received(CH, AGREED) << [SendMatcher(CH, startswith=b"HTTP/1.1 101")]
    book >> Received(CH, frame(0x42, packed(bytes(1000)))) << []
    assert 40 * KIB < channel_count(book) < 43 * KIB  # a window of 32 KiB, and the state of zlib
    book >> Received(CH, frame(0x80)) << []
    assert 40 * KIB <= channel_count(book) < 41 * KIB
    book >> Received(CH, frame(0x01, "\N{GRINNING FACE}".encode() * 1000)) << []
    assert 43 * KIB < channel_count(book) < 44 * KIB
    book.toy.handler.open_socket.mark_authenticated()
    book >> Received(CH, frame(0x00, bytes(1000))) << []
    assert channel_count(book) == 0


def test_http2_bytes_that_count_towards_the_budget() -> None:
    book = Http2Playbook(PATIENT)
    for stream, path in ((ONE, "/open-ws"), (THREE, "/open-ws")):
        book.client.send(RequestHead(stream, "GET", path, HOST, websocket=True))
    book.talk()
    book.client.send(TextMessage(ONE, "x" * 1000))
    whole = book.client.data_to_send()
    book.book >> Received(CH, whole[:500])
    assert MAX_STREAM_READ + 300 < channel_count(book.book) < MAX_STREAM_READ + 600  # the first is free
    book.book >> Received(CH, whole[500:])
    assert channel_count(book.book) == MAX_STREAM_READ
    send_events(book.client, RequestHead(FIVE, "POST", "/keyless", HOST), RequestData(FIVE, bytes(5000)))
    book.talk()
    assert channel_count(book.book) == 2 * MAX_STREAM_READ + 5000
    book.client.reset_stream(FIVE)
    book.talk()
    assert channel_count(book.book) == MAX_STREAM_READ
    book.toy.handler.open_socket.mark_authenticated()
    assert channel_count(book.book) == 0


def test_heads_count_until_their_requests_end() -> None:
    book = open_book(PATIENT)
    large = b"x" * 9 * KIB
    book >> Received(CH, b"POST /keyless HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX: " + large + b"\r\n\r\n") << []
    assert channel_count(book) == 9 * KIB
    book >> Received(CH, b"abcde") << [book.says(200, b"abcde")]
    assert channel_count(book) == 0

    other = Http2Playbook(PATIENT)
    fields = Headers((*HOST, (b"x", large)))
    for stream in (ONE, THREE):
        other.client.send(RequestHead(stream, "POST", "/keyless", fields))
        other.talk()
    assert channel_count(other.book) == MAX_STREAM_READ + 2 * 9 * KIB
    for stream in (ONE, THREE):
        other.client.send(RequestEnd(stream))
        other.talk()
    assert channel_count(other.book) == 0


def test_immediately_answered_http2_requests_never_wait() -> None:
    book = Http2Playbook(evolve(PATIENT, unauthenticated_budget=0, unauthenticated_share=0))
    for stream in (ONE, THREE):
        send_events(book.client, RequestHead(stream, "GET", "/open", HOST), RequestEnd(stream))
    book.talk()
    book.client.send(RequestHead(FIVE, "GET", "/open-ws", HOST, websocket=True))
    book.talk()
    assert book.pauses == []


def test_requests_started_in_one_burst_are_limited() -> None:
    book = Http2Playbook(DEFAULT_LIMITS)
    book.after(1.0)
    data = many(book, 3 * MAX_HEADS_PER_READ + 1)
    assert len(data) < 2 * KIB
    book.book >> Received(CH, data)
    # the end of the last one waits, too
    assert len(answers(book.feed(book.book.drain_commands()))) == MAX_HEADS_PER_READ - 1
    send_events(book.client, RequestHead(StreamId(101), "GET", "/open", HOST), RequestEnd(StreamId(101)))
    book.book >> Received(CH, book.client.data_to_send())  # after them
    assert book.feed(book.book.drain_commands()) == []
    assert [len(answers(book.after(0.001))) for _ in range(3)] == [MAX_HEADS_PER_READ, MAX_HEADS_PER_READ + 3, 0]
    assert book.others == []


def test_authenticated_requests_are_read_at_once_and_authenticate_their_connection() -> None:
    book = Http2Playbook(DEFAULT_LIMITS)
    book.book >> Received(CH, many(book, 50, "/hello"))
    assert len(answers(book.feed(book.book.drain_commands()))) == 50
    book = Http2Playbook(TIGHT)
    send_events(book.client, RequestHead(ONE, "POST", "/keyless", HOST), RequestData(ONE, bytes(5000)))
    book.talk()
    book.send_request(THREE, "/hello")
    for _ in range(2):
        book.talk()
        assert channel_count(book.book) == 0
        book.client.send(RequestData(ONE, bytes(5000)))


# In the first row: 8 x 32 KiB at 16 MiB/s.
@pytest.mark.parametrize(
    ("others", "answered"),
    [
        (BUSY_CONNECTIONS, [MAX_HEADS_PER_READ, MAX_HEADS_PER_READ, MAX_HEADS_PER_READ, MAX_HEADS_PER_READ, 1, 0]),
        (BUSY_CONNECTIONS - 1, [4 * MAX_HEADS_PER_READ + 1, 0, 0, 0, 0, 0]),  # below the limit for a crowd
    ],
)
def test_requests_cost_more_with_many_unauthenticated_connections(others: int, answered: list[int]) -> None:
    book = Http2Playbook(DEFAULT_LIMITS)
    book.after(1.0)
    for number in range(others):
        book.book >> accepted(4 + 2 * number, Address("127.0.0.1", number)) << []
    book.book >> Received(CH, many(book, 5 * MAX_HEADS_PER_READ))
    assert len(answers(book.feed(book.book.drain_commands()))) == MAX_HEADS_PER_READ - 1
    assert [len(answers(book.after(0.016))) for _ in range(6)] == answered
    book.book >> Closed(ChannelId(4)) << []
    assert book.book.toy.admission.budget.peers == others


def test_waiting_requests_are_answered_after_a_fin() -> None:
    book = Http2Playbook(DEFAULT_LIMITS)
    book.after(1.0)
    book.book >> Received(CH, many(book, MAX_HEADS_PER_READ + 3))
    heard = book.feed(book.book.drain_commands())
    book.book >> ReadClosed(CH)
    heard += book.feed(book.book.drain_commands())
    assert book.others == []
    heard += book.after(0.001)
    assert len(answers(heard)) == MAX_HEADS_PER_READ + 3
    assert book.others == [CloseWrite(CH)]


def test_limits_can_be_lifted_after_release() -> None:
    for connection in (Http1Connection(Role.SERVER, entropy=seeded()), Http2Connection(Role.SERVER, entropy=seeded())):
        connection.lift_limits(ONE)
        assert connection.buffered_bytes == 0
        connection.release()


def test_backpressure_pauses_the_whole_http2_connection() -> None:
    book = Http2Playbook(TIGHT)
    for stream in (ONE, THREE):
        send_events(book.client, RequestHead(stream, "POST", "/keyless", HOST), RequestData(stream, bytes(50 * KIB)))
        book.talk()
    assert book.pauses == [PauseReading(CH)]
    book.after(5.0)
    assert Abort(CH) in book.others
    book.book >> Closed(CH, "")
    assert channel_count(book.book) == 0


def test_a_channel_without_admission_is_served(book: ToyPlaybook) -> None:
    book.engine.attach(ServerChannel(book.engine, accepted(4), book.toy, DEFAULT_LIMITS, http2=Http2Channel))
    client = Http2Connection(Role.CLIENT, entropy=seeded())
    send_events(client, RequestHead(ONE, "GET", "/hello", HOST), RequestEnd(ONE))
    book >> Received(FOUR, client.data_to_send()) << [SendMatcher(FOUR, contains=b"hello")]
    assert channel_count(book) == 0


# --- over the budget -------------------------------------------------------------------------------------------------


def test_the_newest_connection_is_paused_and_resumed() -> None:
    book = nearly_full()
    book >> Received(SIX, some(39 * KIB)) << [PauseReading(SIX)]
    book >> Closed(FOUR, "") << [ResumeReading(SIX)]
    book.after(5.0) << []
    book >> Received(SIX, frame(0x80)) << []
    assert ("binary", bytes(39 * KIB)) in book.toy.handler.told


@pytest.mark.parametrize("again", [False, True])
def test_the_newest_connection_is_paused_and_dropped(again: bool) -> None:
    book = nearly_full()
    if again:  # it was paused before, and resumed in time
        book >> Received(SIX, some(39 * KIB)) << [PauseReading(SIX)]
        book >> Received(FOUR, frame(0x80)) << [ResumeReading(SIX)]
        book >> Received(SIX, frame(0x80)) << []
        for piece in (some(32 * KIB), frame(0x00, bytes(30 * KIB))):
            book >> Received(FOUR, piece) << []
    book >> Received(SIX, some(39 * KIB)) << [PauseReading(SIX)]
    book.after(4.9) << []
    book >> Received(SIX, frame(0x00, b"x")) << []  # it was in flight, and does not extend the time
    size = channel_count(book)
    book.after(0.1) << [Abort(SIX)]
    assert book.logs == [Log(Level.WARNING, "no memory left for strangers", {"held": size})]
    book >> Closed(SIX, "") << []
    assert channel_count(book) < size


def test_a_message_read_at_once_is_not_paused() -> None:
    book = nearly_full()
    book >> Received(SIX, some(37 * KIB)) << []
    connect(book, EIGHT, "192.0.2.8")
    book >> Received(EIGHT, frame(0x82, bytes(60 * KIB))) << []
    assert book.toy.handler.told[-1] == ("binary", bytes(60 * KIB))


def test_a_paused_connection_resumes_when_authenticated() -> None:
    book = nearly_full()
    book >> Received(SIX, some(39 * KIB)) << [PauseReading(SIX)]
    book.act(book.toy.handler.open_socket.mark_authenticated) << [ResumeReading(SIX)]
    book.after(6.0) << []


def test_connections_far_over_budget_are_dropped_at_once() -> None:
    book = nearly_full()
    book >> Received(SIX, some(62 * KIB)) << [PauseReading(SIX)]
    connect(book, EIGHT, "192.0.2.8")
    book >> Received(EIGHT, some(KIB)) << [Abort(EIGHT)]
    book >> Closed(EIGHT, "") << []
    book.after(1.0) << []
    http2 = Http2Playbook(TIGHT)
    for stream in (ONE, THREE, FIVE):
        send_events(http2.client, RequestHead(stream, "POST", "/keyless", HOST), RequestData(stream, bytes(60 * KIB)))
    http2.talk()
    assert http2.others[-1] == Abort(CH)


def test_freed_memory_of_many_connections_is_trimmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    book = open_book(PATIENT)
    crowd = [ChannelId(4 + 2 * number) for number in range(200)]
    for ch in crowd:
        connect(book, ch, f"192.0.{ch}.1")
        book >> Received(ch, some(60 * KIB)) << []
    for ch in crowd:
        book >> Closed(ch, "") << []
    assert len(book.engine.timers._heap) > 100  # of peers that have disconnected
    book.after(RELEASE_DELAY)
    assert len(book.engine.timers._heap) == 2  # of the first connection, and of the schedule
    (order,) = book.drain_commands()
    assert isinstance(order, Compute)
    assert order == Compute(order.op, "memory.give_back")
    book >> Done(order.op, None) << []
    book.after(3.0) << []
    connect(book, ChannelId(1000))
    book >> Received(ChannelId(1000), some(60 * KIB)) << []
    book >> Closed(ChannelId(1000), "") << []
    book.after(3.0) << []
    connect(book, FOUR)
    book >> Received(FOUR, some(60 * KIB)) << []
    monkeypatch.setattr(admission, "MIN_RELEASE_BYTES", channel_count(book))
    book >> Closed(FOUR, "") << []
    assert len(book.after(3.0).drain_commands()) == 1


def test_bytes_in_flight_do_not_resume_reading_while_the_policy_decides(book: ToyPlaybook) -> None:
    book >> Received(CH, post(b"/slow", b"", length=4))
    assert PauseReading(CH) in book.drain_commands()
    book.toy.admission.read_scheduler.fast_credit = 0
    book >> Received(CH, b"abcd") << []


def test_the_last_byte_of_the_fast_credit_is_spent(book: ToyPlaybook) -> None:
    scheduler, request = book.toy.admission.read_scheduler, get(b"/open")
    scheduler.fast_credit = len(request)
    book >> Received(CH, request) << [book.says(200, b"")]
    assert scheduler.fast_credit == 0


def test_memory_is_trimmed_until_all_small_connections_have_closed() -> None:
    book = open_book(PATIENT)
    crowd = [ChannelId(4 + 2 * number) for number in range(2 * BUSY_CONNECTIONS)]
    for ch in crowd:
        connect(book, ch, f"192.0.{ch}.1")
    for part in (crowd[:BUSY_CONNECTIONS], crowd[BUSY_CONNECTIONS:]):
        for ch in part:
            book >> Closed(ch, "") << []
        (order,) = book.after(RELEASE_DELAY).drain_commands()
        assert isinstance(order, Compute)
        book >> Done(order.op, None) << []
    book.after(60.0).drain_commands()


# --- memory -----------------------------------------------------------------------------------------------------------

WORST = AGREED + frame(0x41, packed(b'{"a":"' + b"A" * 8_388_000))


def deflated() -> bytes:
    """Return a WebSocket handshake with compression, and a fragment that inflates to 65,006 bytes."""
    deflater = zlib.compressobj(wbits=-15)
    return AGREED + frame(0x41, deflater.compress(b'{"a":"' + b"A" * 65_000) + deflater.flush(zlib.Z_SYNC_FLUSH))


@pytest.mark.parametrize("first", [WORST, deflated()], ids=["too large", "unfinished"])
def test_unauthenticated_connections_stay_within_the_memory_budget(first: bytes) -> None:
    limits = evolve(
        PATIENT, unauthenticated_budget=1024 * KIB, unauthenticated_share=512 * KIB, unauthenticated_connections=50
    )
    book = open_book(limits)
    tracemalloc.start()
    try:
        for number in range(200):
            ch = ChannelId(4 + 2 * number)
            book >> accepted(ch, Address(f"192.0.2.{number % 5}", 7))
            book >> Received(ch, first)
            if Abort(ch) in book.drain_commands():
                book >> Closed(ch, "") << []
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 200 * 12 * KIB + 1280 * KIB
    assert most < 200 * 12 * KIB + 1280 * KIB + 1024 * KIB
    assert channel_count(book) <= 1280 * KIB


@pytest.mark.parametrize(
    "said",
    [
        AGREED + frame(0x41, packed(b"A" * 60_000)),
        b"GET /" + b"a" * 30_000,
        post(b"/keyless", bytes(60_000), length=100_000),
        post(b"/echo", bytes(60_000), length=100_000),
    ],
    ids=["socket", "head", "body", "body of a client"],
)
def test_a_closed_connection_frees_its_memory_at_once(said: bytes) -> None:
    # everything is read, nothing waits
    book = open_book(evolve(DEFAULT_LIMITS, unauthenticated_burst=64 * 1024 * KIB))

    def wave(first: int) -> None:
        for ch in range(first, first + 100, 2):
            book >> accepted(ch)
            (book >> Received(ChannelId(ch), said)).drain_commands()
        for ch in range(first, first + 100, 2):
            (book >> Closed(ChannelId(ch), "")).drain_commands()
        book.toy.handler.told.clear()

    wave(100)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        wave(1000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert kept < 50 * 3 * KIB
