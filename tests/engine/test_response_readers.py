"""Event streams and bodies with backpressure from the reader; observers of single events and pieces."""

from collections.abc import Callable

import pytest

from svc_proto.commands import Abort, Cancel, CloseWrite, PauseReading, ResumeReading, Send
from svc_proto.engine.client_channel import ResponseMode
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep, wait
from svc_proto.engine.http_client import HttpResult, fetch
from svc_proto.engine.response_readers import (
    MAX_OBSERVED_EVENT,
    MAX_UNREAD,
    OVERHEAD,
    SILENCE_TIMEOUT,
    BodyReader,
    EventReader,
    event_stream,
    streamed,
)
from svc_proto.facts import Closed, Done, Failure, FailureKind, ReadClosed, Received, Sent, Started
from tests.engine.test_http_client import CONNECT, ONE, OP, PEER, calling
from tests.support.playbook import FlowService, Playbook

URL = "http://127.0.0.1:8642/stream"
REQUEST = Send(
    ONE,
    b"POST /stream HTTP/1.1\r\nhost: 127.0.0.1:8642\r\nconnection: close\r\naccept: text/event-stream\r\n"
    b"x-a: b\r\ncontent-length: 2\r\n\r\nhi",
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = Received(ONE, b"0\r\n\r\n")


class Slow:
    """Flow that fetches a response and reads its next batch when the test calls `read`; it records what it has read."""

    tap: Callable[[str, str], bool] | None = None

    def __init__(self, into: ResponseMode[EventReader] | ResponseMode[BodyReader], within: float) -> None:
        self.into = into
        self.within = within
        self.kept: list[object] = []
        self.engine: Engine
        self.reader: EventReader | BodyReader

    def read(self) -> None:
        self.engine.resume(self.ticket, None)

    def flow(self, engine: Engine) -> Flow[object]:
        self.engine = engine
        reader = yield from fetch(
            engine, "POST", URL, into=self.into, headers=((b"x-a", b"b"),), body=b"hi", connect_within=5.0, within=20.0
        )
        if not isinstance(reader, EventReader | BodyReader):
            return reader
        self.reader = reader
        if self.tap is not None and isinstance(reader, EventReader):
            reader.observe(self.tap)
        try:
            while True:
                self.ticket = engine.new_op()
                yield from wait(self.ticket, engine.now.mono + 10_000.0)
                came = yield from reader.read(within=self.within)
                if not isinstance(came, tuple | bytes):
                    return came
                self.kept.append(came if isinstance(came, bytes) else [event.data for event in came])
        finally:
            reader.abandon()


def asking(slow: Slow, request: Send) -> tuple[Playbook, FlowService]:
    """Start the flow of `slow`, connect it and send its request; return the playbook and the service."""
    book, caller = calling(slow.flow)
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER) << [request]
    book >> Sent(ONE, len(request.data)) << []
    return book, caller


def reading(*, within: float = SILENCE_TIMEOUT) -> tuple[Playbook, FlowService, Slow]:
    """Start to read an event stream whose request was sent."""
    slow = Slow(event_stream(), within)
    return *asking(slow, REQUEST), slow


def opened(*, within: float = SILENCE_TIMEOUT) -> tuple[Playbook, FlowService, Slow]:
    book, caller, slow = reading(within=within)
    book >> Received(ONE, HEAD) << []
    return book, caller, slow


def chunk(data: bytes) -> Received:
    return Received(ONE, b"%x\r\n%s\r\n" % (len(data), data))


def test_complete_stream_stays_complete_when_its_connection_breaks() -> None:
    book, caller, slow = opened()
    book >> chunk(b"data: last\n\n") << []
    book >> END << []
    book >> Closed(ONE, "reset") << []
    for _ in range(2):
        book.act(slow.read) << []
    assert (slow.kept, caller.results) == ([["last"]], [None])


def test_events_in_batches() -> None:
    book, caller, slow = opened()
    book >> chunk(b"data: one\n\ndata: two\n\ndata: th") << []
    book.act(slow.read) << []
    assert slow.kept == [["one", "two"]]
    book.act(slow.read) << []
    assert len(slow.kept) == 1  # it waits for more
    book >> chunk(b"ree\n\n") << []
    assert slow.kept == [["one", "two"], ["three"]]
    book >> chunk(b"data: last\n\n") << []
    book >> END << []  # the events before it can be read
    book.act(slow.read) << []
    assert slow.kept[2:] == [["last"]]
    book.act(slow.read) << [CloseWrite(ONE), Abort(ONE)]
    assert caller.results == [None]


def test_reading_pauses_with_much_unread_data() -> None:
    book, _, slow = opened()
    big = b"data: " + b"x" * (MAX_UNREAD // 2) + b"\n\n"
    book >> chunk(big) << []
    book >> chunk(b"data: y\n\n") << []
    book >> chunk(big) << [PauseReading(ONE)]
    book.after(10.0) << []
    book.act(slow.read) << [ResumeReading(ONE)]
    assert [len(batch) for batch in slow.kept if isinstance(batch, list)] == [3]


def test_empty_events_count_too() -> None:
    book, _, slow = opened()
    few = b"data:\n\n" * (MAX_UNREAD // OVERHEAD)
    book >> chunk(few) << []
    book >> chunk(b"data:\n\n") << [PauseReading(ONE)]
    book.act(slow.read) << [ResumeReading(ONE)]
    book >> chunk(few) << []


def test_silence_is_counted_from_the_last_byte_or_the_question() -> None:
    book, caller, slow = opened(within=60.0)
    book.after(500.0) << []  # no read is pending: the server may see a slow reader
    book.act(slow.read) << []
    book.after(50.0) << []
    book >> chunk(b": keepalive\n\n") << []
    book.after(59.0) << []
    assert caller.results == []
    book.after(1.0) << [Abort(ONE)]
    assert caller.results == [Failure(FailureKind.TIMED_OUT, "the stream fell silent")]


@pytest.mark.parametrize("end", [Closed(ONE, "reset"), Closed(ONE), ReadClosed(ONE)])
@pytest.mark.parametrize("asked", [True, False])
def test_a_stream_that_breaks_off(end: Closed | ReadClosed, asked: bool) -> None:
    book, caller, slow = opened()
    book >> chunk(b"data: a\n\n") << []
    book.act(slow.read).drain_commands()
    if asked:
        book.act(slow.read).drain_commands()
    (book >> end).drain_commands()
    if not asked:
        book.act(slow.read).drain_commands()
    assert slow.kept == [["a"]]
    (failure,) = caller.results
    assert failure.kind is FailureKind.UNREACHABLE


def test_a_body_that_is_no_event_stream_and_invalid_chunks() -> None:
    book, caller, slow = opened()
    book.act(slow.read) << []
    for _ in range(3):
        (book >> chunk(b"x" * 400_000)).drain_commands()
    assert caller.results[0].kind is FailureKind.INVALID
    book, caller, slow = opened()
    book.act(slow.read) << []
    book >> Received(ONE, b"zz\r\n")
    assert Abort(ONE) in book.drain_commands()
    assert caller.results[0].kind is FailureKind.INVALID


def test_any_other_answer_is_collected() -> None:
    for head in (b"HTTP/1.1 404 Not Found\r\nContent-Type: text/event-stream", b"HTTP/1.1 200 OK"):
        book, caller, _ = reading()
        book >> Received(ONE, head + b"\r\nContent-Length: 2\r\n\r\nno") << [CloseWrite(ONE), Abort(ONE)]
        (answer,) = caller.results
        assert isinstance(answer, HttpResult)
        assert answer.body == b"no"


def test_cancelling_the_reader() -> None:
    book, caller, slow = opened()
    book.act(slow.read) << []
    book.act(caller.task.cancel) << [Abort(ONE)]
    book >> Closed(ONE) << []
    book, caller, slow = reading()
    book.act(caller.task.cancel) << [Abort(ONE)]
    book, caller = calling(Slow(event_stream(), 1.0).flow)
    book >> Started() << [CONNECT]
    book.act(caller.task.cancel) << [Cancel(OP)]


def tapped() -> tuple[Playbook, Slow, list[tuple[str, str]]]:
    """Start to read an event stream with an observer, which consumes the events of type `a`.

    Return the playbook, the reader, and the list of consumed events.
    """
    book, _, slow = reading(within=60.0)
    taken: list[tuple[str, str]] = []

    def tap(kind: str, data: str) -> bool:
        taken.extend([(kind, data)] if kind == "a" else [])
        return kind == "a"

    slow.tap = tap
    book >> Received(ONE, HEAD) << []
    book >> chunk(b"event: begun\ndata: 0\n\n") << []
    book.act(slow.read) << []
    return book, slow, taken


@pytest.mark.fast_path
def test_a_single_event_is_observed_before_it_is_buffered() -> None:
    book, slow, taken = tapped()
    book.act(slow.read) << []
    book >> chunk("event: a\ndata: ü\n\n".encode()) << []
    assert (taken, slow.kept) == ([("a", "ü")], [["0"]])
    book >> chunk(b"event: b\ndata: 1\n\n") << []
    assert slow.kept == [["0"], ["1"]]


@pytest.mark.parametrize(
    ("reads", "batch"),
    [
        ([b"event: b\ndata: 1\n\n", b"event: a\ndata: 2\n\n"], ["1", "2"]),  # the one before is still unread
        ([b"event: a\ndata: 1\n\nevent: a\ndata: 2\n\n"], ["1", "2"]),
        ([b"event: a\nid: 5\ndata: 1\n\n"], ["1"]),
        ([b": x", b"event: a\ndata: 1\n\n", b"data: 2\n\n"], ["1", "2"]),
        ([b"event: a\r\ndata: 1\r\n\r\n"], ["1"]),
        ([b"event: a\ndata: \xff\n\n"], ["\ufffd"]),
        ([b"event: a\ndata: " + b"x" * MAX_OBSERVED_EVENT + b"\n\n"], ["x" * MAX_OBSERVED_EVENT]),
    ],
)
def test_events_read_together_are_buffered_in_order(reads: list[bytes], batch: list[str]) -> None:
    book, slow, taken = tapped()
    for data in reads:
        book >> chunk(data) << []
    book.act(slow.read) << []
    assert (taken, slow.kept[1:]) == ([], [batch])


@pytest.mark.fast_path
def test_the_longest_observed_event() -> None:
    book, _, taken = tapped()
    text = "x" * (MAX_OBSERVED_EVENT - len("event: a\ndata: \n\n"))
    book >> chunk(f"event: a\ndata: {text}\n\n".encode()) << []
    assert taken == [("a", text)]


@pytest.mark.fast_path
def test_consumed_events_reset_the_timeout() -> None:
    book, slow, _ = tapped()
    book.act(slow.read) << []
    book.after(50.0) << []
    book >> chunk(b"event: a\ndata: 1\n\n") << []
    book.after(59.0) << []
    book.after(1.0) << [Abort(ONE)]


def test_split_chunks_and_chunks_after_a_pause() -> None:
    book, slow, taken = tapped()
    whole = chunk(b"event: a\ndata: 1\n\n").data
    for part in (whole[:5], whole[5:]):
        book >> Received(ONE, part) << []
    book.act(slow.read) << []
    assert (taken, slow.kept[1:]) == ([], [["1"]])


@pytest.mark.fast_path
def test_a_single_body_piece_is_observed_first() -> None:
    shown: list[bytes] = []
    read: list[object] = []

    def tap(data: bytes) -> bool:
        shown.append(data)
        return data == b"mine"

    def flow(engine: Engine) -> Flow[object]:
        reader = yield from fetch(engine, "GET", URL, into=streamed(), connect_within=5.0, within=20.0)
        assert isinstance(reader, BodyReader)
        reader.observe(tap)
        while isinstance(data := (yield from reader.read(within=60.0)), bytes):
            read.append(data)
            yield from sleep(engine, 10.0)
        before = reader.gone
        reader.abandon()
        assert (before, reader.gone) == (False, True)
        return data

    book, caller = calling(flow)
    book >> Started() << [CONNECT]
    book >> Done(OP, PEER)
    book >> Sent(ONE, sum(len(order.data) for order in book.drain_commands() if isinstance(order, Send))) << []
    book >> Received(ONE, HEAD) << []
    book >> chunk(b"mine") << []
    book >> chunk(b"yours") << []
    book >> chunk(b"mine") << []  # shown also while no read is pending: the callback allows for that
    book >> chunk(b"unread") << []
    book >> chunk(b"mine") << []  # after a waiting piece, it waits too
    assert (shown, read) == ([b"mine", b"yours", b"mine", b"unread"], [b"yours"])
    book.after(10.0) << []
    assert read == [b"yours", b"unreadmine"]
    book.after(50.0) << []
    book >> chunk(b"mine") << []
    book.after(59.0) << []
    assert caller.results == []  # consumed bytes count as progress
    book.after(1.0) << [Abort(ONE)]
    assert caller.results == [Failure(FailureKind.TIMED_OUT, "the stream fell silent")]


# --- bodies ---

BODY_REQUEST = Send(
    ONE, b"POST /stream HTTP/1.1\r\nhost: 127.0.0.1:8642\r\nconnection: close\r\nx-a: b\r\ncontent-length: 2\r\n\r\nhi"
)
BODY_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n"


def reading_body() -> tuple[Playbook, FlowService, Slow]:
    """Start to read a body whose request was sent."""
    slow = Slow(streamed(), 60.0)
    return *asking(slow, BODY_REQUEST), slow


@pytest.mark.parametrize("status", [b"200 OK", b"206 Partial Content"])
def test_bytes_are_read_as_they_arrive(status: bytes) -> None:
    book, caller, slow = reading_body()
    book >> Received(ONE, BODY_HEAD.replace(b"200 OK", status)) << []
    assert isinstance(slow.reader, BodyReader)
    assert slow.reader.head.headers.get(b"content-type") == b"audio/pcm"
    book >> chunk(b"one") << []
    book >> chunk(b"two") << []
    book.act(slow.read) << []
    assert slow.kept == [b"onetwo"]
    book.act(slow.read) << []
    assert slow.kept == [b"onetwo"]  # it waits for more
    book >> chunk(b"three") << []
    assert slow.kept == [b"onetwo", b"three"]
    book.act(slow.read) << []
    book >> END << [CloseWrite(ONE), Abort(ONE)]
    assert caller.results == [None]


def test_reading_pauses_with_much_unread_body() -> None:
    book, _, slow = reading_body()
    book >> Received(ONE, BODY_HEAD) << []
    book >> chunk(bytes(MAX_UNREAD - 1)) << []
    book >> chunk(b"x") << [PauseReading(ONE)]
    book.after(10.0) << []
    book.act(slow.read) << [ResumeReading(ONE)]
    assert slow.kept == [bytes(MAX_UNREAD - 1) + b"x"]


def test_an_error_response_is_returned_whole() -> None:
    book, caller, _ = reading_body()
    book >> Received(ONE, b"HTTP/1.1 429 No\r\nContent-Length: 4\r\n\r\nslow") << [CloseWrite(ONE), Abort(ONE)]
    (answer,) = caller.results
    assert isinstance(answer, HttpResult)
    assert (answer.status, answer.body) == (429, b"slow")


def test_a_hold_and_unread_data_pause_reading_independently() -> None:
    readers: list[BodyReader] = []

    def flow(engine: Engine) -> Flow[None]:
        reader = yield from fetch(engine, "GET", URL, into=streamed())
        assert isinstance(reader, BodyReader)
        readers.append(reader)

    book, _ = calling(flow)
    book >> Started() << [CONNECT]
    (book >> Done(OP, PEER)).drain_commands()
    book >> Received(ONE, BODY_HEAD) << []
    (reader,) = readers
    book.act(lambda: reader.set_paused(True)) << [PauseReading(ONE)]
    book >> chunk(bytes(MAX_UNREAD)) << []
    book.act(lambda: reader.set_paused(False)) << []
    book.act(lambda: list(reader.read(within=5.0))) << [ResumeReading(ONE)]
