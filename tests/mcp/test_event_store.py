from types import SimpleNamespace
from typing import Any

import pytest

from svc_proto.mcp.event_store import KEEPALIVE_INTERVAL, MAX_EVENTS, EventStore, NotificationStore
from svc_proto.mcp.pending_request import OutgoingMessage
from svc_proto.mcp.streamable_http import STREAM_AFTER
from svc_proto.wire.sse import encode_comment, encode_event
from tests.engine.toy_service import open_book
from tests.mcp.http_harness import McpHttpHarness, events, status, stream_messages


def test_each_call_becomes_a_stream_after_its_own_delay(web: McpHttpHarness) -> None:
    first = web.stateless("tools/call", name="wait")
    web.book.after(STREAM_AFTER - 1)
    other = web.stateless("tools/call", name="wait")
    web.book.after(1)
    assert (status(first), status(other)) == (200, 0)
    web.book.after(STREAM_AFTER - 2)
    assert status(other) == 0
    web.book.after(1)
    assert (status(other), stream_messages(other)) == (200, [])
    web.book.after(KEEPALIVE_INTERVAL)
    assert encode_comment("keepalive") in bytes(other.heard)


def test_repeated_notification_is_sent_once() -> None:
    notices = NotificationStore(open_book().engine, 0)
    for text in (b"A", b"B", b"A"):
        notices.append(OutgoingMessage(text))
    told: list[bytes] = []
    writer: Any = SimpleNamespace(write=told.append, drained=lambda: iter(()))
    for _ in range(2):  # without a reader the replay starts at the beginning
        next(notices.stream_to(writer, notices.last_received))
    next(notices.stream_to(writer, 2))
    assert told == [encode_event("B", id="0-2"), encode_event("A", id="0-3"), encode_event("A", id="0-3")]


@pytest.mark.parametrize("kind", [EventStore, NotificationStore])
def test_a_message_after_the_end_opens_no_stream_again(kind: type[EventStore]) -> None:
    log = kind(open_book().engine)
    log.end()
    log.append(OutgoingMessage(b"A"))
    assert log.over


def test_slow_reader_is_waited_for() -> None:
    log = EventStore(open_book().engine, 1)
    log.append(OutgoingMessage(b"A"))
    told: list[bytes] = []
    writer: Any = SimpleNamespace(write=told.append, drained=lambda: iter(("full",)))
    telling: Any = log.stream_to(writer, 0)
    assert next(telling) == "full"
    log.append(OutgoingMessage(b"B"))
    assert (next(telling), told) == ("full", [encode_event("A", id="1-1"), encode_event("B", id="1-2")])


def test_progress_and_resumption(web: McpHttpHarness) -> None:
    session = web.open()
    call = session.tool("wait", 7, token="p")
    web.book.after(STREAM_AFTER + 5)
    first, second = stream_messages(call)
    assert (first["params"]["progress"], second["params"]["progress"]) == (5, 10)
    assert [event.id for event in events(call)] == ["1-0", "1-1", "1-2"]  # the first event has a number only
    call.vanish()
    web.book.after(5)
    back = session.listen("1-1")
    assert [note["params"]["progress"] for note in stream_messages(back)] == [10, 15]
    later = session.listen("1-2")
    assert back.answer is not None  # the newer reader replaces the older
    assert session.cancel(7) == 202
    assert later.answer is not None
    assert [note["params"]["progress"] for note in stream_messages(later)] == [15]
    whole = session.listen("1-3")
    assert (whole.result.status, whole.result.body) == (200, b"")


@pytest.mark.parametrize("last", ["", "x", "9-1", "1-", "-1", "1-1-1", "1234567890-1"])
def test_invalid_resumption(web: McpHttpHarness, last: str) -> None:
    session = web.open()
    assert session.listen(last).result.status == 400


def test_versions_without_empty_events(web: McpHttpHarness) -> None:
    session = web.open(version="2025-06-18")
    call = session.tool("wait")
    web.book.after(STREAM_AFTER)
    assert (status(call), b"id: " in bytes(call.heard)) == (200, False)
    session = web.open()
    call = session.tool("wait")
    web.book.after(STREAM_AFTER)
    assert b"id: 1-0\ndata: \n\n" in bytes(call.heard)


def test_reader_too_far_behind(web: McpHttpHarness) -> None:
    session = web.open()
    call = session.tool("wait", token="p")
    web.book.after(STREAM_AFTER * (MAX_EVENTS + 2))
    call.vanish()
    behind = session.listen("1-0")
    assert (behind.result.status, behind.result.body) == (200, b"")


def test_stored_events_are_limited(web: McpHttpHarness) -> None:
    log = EventStore(web.book.engine, 1)
    for number in range(1, MAX_EVENTS + 1):
        log.append(OutgoingMessage(b"%d" % number))
    assert [at for at, _ in log._after(0)] == list(range(1, MAX_EVENTS + 1))
    log.append(OutgoingMessage(b"one more"))
    assert log._after(MAX_EVENTS) == [(MAX_EVENTS + 1, b"one more")]
    assert log.size == sum(len(str(number)) for number in range(2, MAX_EVENTS + 1)) + len("one more")


def test_server_message_stream(web: McpHttpHarness) -> None:
    session = web.open()
    listening = session.listen()
    assert status(listening) == 200
    web.book.after(KEEPALIVE_INTERVAL)
    assert encode_comment("keepalive") in bytes(listening.heard)
    assert session.call("GET", headers={"accept": "application/json"}).result.status == 406
    session.end()
    assert listening.answer is not None
