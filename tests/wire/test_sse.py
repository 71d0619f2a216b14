"""Server-sent events: decoding, cuts, limits and the written form."""

import pytest

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent, encode_comment, encode_event, encode_retry
from tests.wire.chunking import Cuts, cut


def decode(data: bytes, sizes: Cuts | None = None, **limits: int) -> list[ServerSentEvent]:
    decoder = EventStreamDecoder(**limits)
    return [event for piece in cut(data, sizes or [1_000_000]) for event in decoder.receive_data(piece)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        # WHATWG HTML, section 9.2.6: the examples
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [ServerSentEvent("YHOO\n+2\n10")]),
        (
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [ServerSentEvent("first event", id="1"), ServerSentEvent("second event"), ServerSentEvent(" third event")],
        ),
        (b"data\n\ndata\ndata\n\ndata:", [ServerSentEvent(""), ServerSentEvent("\n")]),
        (b"data:test\n\ndata: test\n\n", [ServerSentEvent("test"), ServerSentEvent("test")]),
        # lines end in CR, LF or CRLF
        (b"data: a\rdata: b\r\ndata: c\n\r\n", [ServerSentEvent("a\nb\nc")]),
        (b"data: a\r\r", [ServerSentEvent("a")]),
        # one byte order mark is dropped, at the start alone
        (b"\xef\xbb\xbfdata: a\n\n", [ServerSentEvent("a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [ServerSentEvent("b")]),
        # fields
        (b"event: add\ndata: 1\n\ndata: 2\n\n", [ServerSentEvent("1", "add"), ServerSentEvent("2")]),
        (b"event: add\n\ndata: 2\n\n", [ServerSentEvent("2")]),
        (b"id: 7\ndata: a\n\ndata: b\n\n", [ServerSentEvent("a", id="7"), ServerSentEvent("b", id="7")]),
        (b"id: 7\ndata: a\n\nid: 8\x00\ndata: b\n\n", [ServerSentEvent("a", id="7"), ServerSentEvent("b", id="7")]),
        (b"retry: 300\ndata: a\n\n", [ServerSentEvent("a", retry=300)]),
        (b"retry: 3e2\nretry: -1\nretry:\ndata: a\n\n", [ServerSentEvent("a")]),
        (b"retry: " + b"9" * 15 + b"\ndata: a\n\n", [ServerSentEvent("a", retry=10**15 - 1)]),
        (b"retry: " + b"9" * 16 + b"\ndata: a\n\n", [ServerSentEvent("a")]),
        (b"unknown: x\n:comment\nDATA: x\ndata: a\n\n", [ServerSentEvent("a")]),
        (b"data: a:b: c\n\n", [ServerSentEvent("a:b: c")]),
        # invalid UTF-8 is replaced
        (b"data: \xffa\xe2\x82\n\n", [ServerSentEvent("\ufffda\ufffd")]),
        # cut off: never dispatched
        (b"data: a\n", []),
        (b"data: a", []),
    ],
)
def test_reading(stream: bytes, events: list[ServerSentEvent]) -> None:
    assert decode(stream) == events
    assert decode(stream, [1]) == events


def test_last_event_id_is_set_at_the_end_of_its_event() -> None:
    decoder = EventStreamDecoder()
    assert decoder.receive_data(b"id: 5\nretry: 10\n") == []
    assert decoder.last_event_id == ""
    assert decoder.receive_data(b"\n") == []  # nothing to dispatch, but the id is kept
    assert decoder.last_event_id == "5"
    assert decoder.retry == 10
    for text in (b"data: a\n\n", b"event: b\ndata: b\n\n"):  # later events repeat both
        assert [(event.id, event.retry) for event in decoder.receive_data(text)] == [("5", 10)]


@pytest.mark.parametrize("sizes", [[1], [1_000_000]])
@pytest.mark.parametrize("stream", [b"data: " + b"x" * 95, b"data: " + b"x" * 95 + b"\n\n"])
def test_a_line_and_an_event_have_limits(stream: bytes, sizes: Cuts) -> None:
    """The limits apply to each line and each event anew."""
    assert decode((b"data: " + b"x" * 94 + b"\n\n") * 3, sizes, max_line=100) == [ServerSentEvent("x" * 94)] * 3
    with pytest.raises(RemoteProtocolError, match="100 characters"):
        decode(stream, sizes, max_line=100)
    assert len(decode(b"data: 1234\ndata: 1234\n\n" * 3, sizes, max_event=10)) == 3
    with pytest.raises(RemoteProtocolError, match="10 characters of data"):
        decode(b"data: 12345\n" * 2, sizes, max_event=10)


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\x00b"])
def test_ambiguous_event_names_are_refused(bad: str) -> None:
    with pytest.raises(LocalProtocolError, match="event"):
        encode_event("x", event=bad)
    with pytest.raises(LocalProtocolError, match="id"):
        encode_event("x", id=bad)


def test_written_form() -> None:
    assert encode_event("a\nb", event="e", id="1", retry=5) == b"event: e\nid: 1\nretry: 5\ndata: a\ndata: b\n\n"
    assert encode_comment("") == b": \n\n"
    assert encode_event("\ud800") == b"data: ?\n\n"
    assert encode_retry(250) == b"retry: 250\n\n"  # no event, since it has no data


@pytest.mark.parametrize("at", range(1, 40))
def test_a_cut_before_events_of_both_ways(at: int) -> None:
    stream = b"data: a\n\ndata: b\n\nevent: x\ndata: c\n\ndata: d\n\n"
    decoder = EventStreamDecoder()
    told = decoder.receive_data(stream[:at]) + decoder.receive_data(stream[at:])
    assert told == [ServerSentEvent("a"), ServerSentEvent("b"), ServerSentEvent("c", "x"), ServerSentEvent("d")]


@pytest.mark.parametrize(
    ("begun", "first", "second"),
    [
        (b"event: a\n", ServerSentEvent("b", "a"), ServerSentEvent("c")),
        (b"id: 5\n", ServerSentEvent("b", id="5"), ServerSentEvent("c", id="5")),
        (b"data: a\n", ServerSentEvent("a\nb"), ServerSentEvent("c")),
        (b"dat", ServerSentEvent("c"), None),
    ],
)
def test_a_data_line_belongs_to_a_started_event(
    begun: bytes, first: ServerSentEvent, second: ServerSentEvent | None
) -> None:
    decoder = EventStreamDecoder()
    assert decoder.receive_data(begun) == []
    assert decoder.receive_data(b"data: b\n\ndata: c\n\n") == [each for each in (first, second) if each]


@pytest.mark.parametrize(
    ("streams", "between"),
    [
        ([b""], False),  # a byte order mark may follow
        ([b"data: a\n\n", b": comment\n", b"id: 7\ndata: a\n\n"], True),
        ([b"data: a\n\nid: 7\n", b"data: a\n\nevent: b\n", b"data: a\n", b"data: a\n\nda", b"data: a\r\n\r"], False),
        ([b"data: a\n\n\xc3"], False),
    ],
)
def test_whether_an_event_begins_with_the_next_byte(streams: list[bytes], between: bool) -> None:
    for stream in streams:
        decoder = EventStreamDecoder()
        decoder.receive_data(stream)
        assert decoder.is_between_events is between
