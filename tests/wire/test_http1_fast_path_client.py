"""Fast path of HTTP/1.1 clients: its range, its fallbacks, and its equality with the reference implementation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.fast_path import compare_client
from fuzz.targets.http1_client_fast_path import ClientPair
from svc_proto.wire import events
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.support.scenario_plan import some
from tests.wire.connection_pair import ONE

FIELDS = ((b"host", b"a:80"), (b"connection", b"close"))
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nServer: x\r\n\r\n"
WHOLE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"


def sent(*events: events.Event) -> ClientPair:
    """Return a pair of client connections, with fast path and with h11 alone, that have sent these events."""
    both = ClientPair(DEFAULT_LIMITS)
    both.send_events(*events)
    return both


def asked(*fields: tuple[bytes, bytes], method: str = "GET") -> ClientPair:
    both = sent(events.RequestHead(ONE, method, "/v1", events.Headers((*FIELDS, *fields))), events.RequestEnd(ONE))
    both.flush()
    return both


def rest(both: ClientPair) -> list[events.Event]:
    return list(iter(both.next_events, None))


@pytest.mark.parametrize("first", some(range(0, 2000, 500), 4))
def test_fixed_scripts_are_equal_in_both_and_use_the_fast_path(first: int) -> None:
    """Compare the scripts of 500 fixed seeds; those of all 2,000 reach nearly every branch of the fast path."""
    assert sum(compare_client(seed) for seed in range(first, first + 500)) > 80


@given(st.integers(0, 2**40))
def test_nearly_simple_calls_are_equal_in_both(seed: int) -> None:
    compare_client(seed)


def test_chunks_are_read_as_they_arrive() -> None:
    both = asked()
    both.feed(HEAD + b"2\r\nok\r\n")
    assert both.fast_path.has_partial_head
    assert rest(both) == [
        events.ResponseHead(ONE, 200, events.Headers(((b"transfer-encoding", b"chunked"), (b"server", b"x")))),
        events.ResponseData(ONE, b"ok"),
    ]
    both.feed(b"3\r\nab")
    assert both.fast_path.buffered_bytes == 5
    both.feed(b"c\r\n0\r\n\r\n")
    assert rest(both) == [events.ResponseData(ONE, b"abc"), events.ResponseEnd(ONE)]
    assert both.fast_path.must_close
    both.feed(b"more")
    both.end()
    both.send_events(events.RequestEnd(ONE))
    assert both.fast_path._reference is None


def test_an_answer_in_one_piece() -> None:
    both = asked()
    both.feed(WHOLE)
    assert [type(event) for event in rest(both)] == [events.ResponseHead, events.ResponseData, events.ResponseEnd]
    assert both.fast_path._reference is None
    empty = asked()
    empty.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert [type(event) for event in rest(empty)] == [events.ResponseHead, events.ResponseEnd]
    assert empty.fast_path._reference is None


def test_a_request_body_is_sent_in_pieces() -> None:
    both = ClientPair(DEFAULT_LIMITS)
    both.send_events(events.RequestHead(ONE, "POST", "/v1", events.Headers((*FIELDS, (b"Content-Length", b"4")))))
    both.send_events(events.RequestData(ONE, b"abc"), events.RequestData(ONE, b""))
    assert both.flush().endswith(b"Content-Length: 4\r\n\r\nabc")
    both.send_events(events.RequestData(ONE, b"d"), events.RequestEnd(ONE))
    both.feed(WHOLE)
    rest(both)
    assert both.fast_path._reference is None


def test_release_and_lift_limits_without_the_reference() -> None:
    both = ClientPair(DEFAULT_LIMITS)
    assert both.fast_path.idle
    assert not both.fast_path.paused
    both.lift_limits()
    both.fast_path.release()
    both.feed(b"")
    assert both.next_events(1) is None
    assert both.fast_path._reference is None


def test_try_whole_body_recognizes_a_single_chunk() -> None:
    chunk = b"2\r\nok\r\n"

    def tried(both: ClientPair) -> tuple[bytes | None, bytes | None]:
        return both.fast_path.try_whole_body(chunk), both.reference.try_whole_body(chunk)

    both = asked()
    assert tried(both) == (None, None)  # there is no head
    both.feed(HEAD)
    rest(both)
    assert (*tried(both), both.fast_path._reference) == (b"ok", b"ok", None)
    both.fast_path._obey()
    assert both.fast_path.try_whole_body(chunk) == b"ok"
    both.feed(chunk)
    assert (both.fast_path.try_whole_body(chunk), rest(both)) == (None, [events.ResponseData(ONE, b"ok")])
    both.end()
    assert both.reference.try_whole_body(chunk) is None
    over = asked()
    over.feed(HEAD + b"0\r\n\r\n")
    rest(over)
    assert tried(over) == (None, None)


@pytest.mark.parametrize(
    "answer",
    [
        HEAD[:20],
        b"HTTP/1.1 204 x\r\na: b\r\n\r\n",
        b"HTTP/1.1 200 x\r\na: b\r\n\r\n",
        b"HTTP/1.1 200 x\r\na: b\r\na: b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 x\r\nupgrade: b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 x\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 x\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 100 x\r\na: b\r\n\r\n",
        WHOLE + b"x",
        b"HTTP/1.1 200 x\r\n" + b"".join(b"f%d: f\r\n" % n for n in range(101)) + b"content-length: 0\r\n\r\n",
        b"HTTP/1.1 200 x\r\nf: " + b"f" * DEFAULT_LIMITS.max_head + b"\r\ncontent-length: 0\r\n\r\n",
    ],
)
def test_complex_responses_need_the_reference(answer: bytes) -> None:
    both = asked()
    both.feed(answer)
    rest(both)
    assert both.fast_path._reference is not None
    both.lift_limits()
    both.fast_path.release()


def test_head_requests_need_the_reference() -> None:
    both = asked(method="HEAD")
    both.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert [type(event) for event in rest(both)] == [events.ResponseHead, events.ResponseEnd]
