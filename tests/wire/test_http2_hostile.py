"""HTTP/2 peers that break rules: stream errors, connection errors, and their cost.

The cases of h2spec are in `tests/engine/test_h2spec.py`.
"""

import h2.events
import pytest
from h2.errors import ErrorCodes

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http2 import KILOBYTE, Http2Connection
from svc_proto.wire.http2_frames import PREFACE
from tests.wire.chunking import Cuts
from tests.wire.connection_pair import ONE, THREE, WHOLE, feed, seeded, send_events, signs
from tests.wire.http2_pair import CONNECT, GET, POST, SETTINGS, BareClient, frame, resets

PING, RST, PRIORITY, WINDOW = 6, 3, 2, 8
Fields = list[tuple[bytes, bytes]]


HELLO = PREFACE + frame(SETTINGS)


def ends(data: bytes, code: ErrorCodes, *, hello: bytes = HELLO, sizes: Cuts = WHOLE) -> str:
    """Return the text of the error that these bytes cause at a server.

    Check that the connection ends with a GOAWAY of this code.
    """
    us = Http2Connection(Role.SERVER, entropy=seeded())
    with pytest.raises(RemoteProtocolError) as caught:
        feed(us, hello + data, sizes)
    said = us.data_to_send()
    assert said[-17:-8] == frame(7, bytes(8))[:9]
    assert said[-4:] == code.to_bytes(4, "big")
    us.receive_data(HELLO)
    assert us.next_event() is None
    assert "must_close" in signs(us)
    assert "idle" not in signs(us)
    assert us.data_to_send() == b""
    us.reset_stream(ONE)
    us.acknowledge_data(ONE, 1)
    us.go_away()
    assert us.data_to_send() == b""
    with pytest.raises(LocalProtocolError, match="over"):
        us.send(events.ResponseEnd(ONE))
    return str(caught.value)


# --- the connection -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[1], [1000]])
def test_invalid_prefaces_and_first_frames(sizes: list[int]) -> None:
    assert "preface" in ends(b"PRI * HTTP/2.0\r\n\r\nXX", ErrorCodes.PROTOCOL_ERROR, hello=b"", sizes=sizes)
    assert "SETTINGS" in ends(frame(PING, bytes(8)), ErrorCodes.PROTOCOL_ERROR, hello=PREFACE, sizes=sizes)
    assert "SETTINGS" in ends(frame(SETTINGS, flags=1), ErrorCodes.PROTOCOL_ERROR, hello=PREFACE, sizes=sizes)
    assert "16384" in ends(b"\x00\x40\x01\x00\x00\x00\x00\x00\x01", ErrorCodes.FRAME_SIZE_ERROR, sizes=sizes)
    assert "protocol error" in ends(frame(WINDOW, bytes(4)), ErrorCodes.PROTOCOL_ERROR, sizes=sizes)
    assert "GOAWAY on a stream" in ends(frame(7, bytes(8), stream=1), ErrorCodes.PROTOCOL_ERROR, sizes=sizes)
    assert "too short" in ends(frame(7, bytes(7)), ErrorCodes.FRAME_SIZE_ERROR, sizes=sizes)
    assert "acknowledgement" in ends(frame(SETTINGS, bytes(6), flags=1), ErrorCodes.FRAME_SIZE_ERROR, sizes=sizes)
    for block in (b"\xff" * 9, b"\x82\x86\xfe\x00", b"\x82\x41\x81\xff", b"\x3f\xe2\x1f\x82"):  # RFC 9113 section 4.3
        head = frame(1, block, flags=5, stream=1)
        assert "compression error" in ends(head, ErrorCodes.COMPRESSION_ERROR, sizes=sizes)
    assert "protocol error" in ends(frame(1, b"\x05\x82", flags=13, stream=1), ErrorCodes.PROTOCOL_ERROR, sizes=sizes)


def test_the_limits_of_a_header_block() -> None:
    opened = frame(1, b"\x82", stream=1)
    more = frame(9, bytes(16_000), stream=1)
    assert "65536" in ends(opened + more * 5, ErrorCodes.ENHANCE_YOUR_CALM)
    assert "frames" in ends(opened + frame(9, stream=1) * 70, ErrorCodes.ENHANCE_YOUR_CALM)


def test_a_head_in_pieces_is_pending() -> None:
    us = Http2Connection(Role.SERVER, entropy=seeded())
    assert "has_partial_head" not in signs(us)
    us.receive_data(PREFACE[:1])
    assert us.next_event() is None
    assert "has_partial_head" in signs(us)
    assert feed(us, PREFACE[1:] + frame(SETTINGS)) == []
    assert "has_partial_head" not in signs(us)
    for piece in (b"\x00\x00\x04\x01", b"\x00\x00\x00\x00\x01\x82\x86\x84\x41"):
        us.receive_data(piece)
        assert us.next_event() is None
        assert "has_partial_head" in signs(us)
    assert "idle" not in signs(us)
    assert feed(us, frame(9, b"\x01a", flags=4, stream=1)) == [
        events.RequestHead(ONE, "GET", "/", events.Headers(((b"host", b"a"),)), http_version="2")
    ]
    assert "has_partial_head" not in signs(us)


def test_a_header_compression_bomb(bare: BareClient) -> None:
    big = b"x" * 4000
    bare.h2.send_headers(1, [*GET, (b"a", big)] + [(b"a", big)] * 20)
    with pytest.raises(RemoteProtocolError, match="enhance your calm"):
        bare.talk()


# --- messages -------------------------------------------------------------------------------------------------------

MALFORMED: list[tuple[Fields, int]] = [
    ([*GET, (b"", b"1")], 400),
    ([*GET, (b"a", b"b\r\nc: d")], 400),
    ([*GET, (b"a", b" b")], 400),
    ([*GET, (b"transfer-encoding", b"chunked")], 400),
    ([*GET, (b"a", b"1"), (b":late", b"1")], 400),
    ([*GET, (b":protocol", b"websocket")], 400),
    ([(b":method", b"G T"), *GET[1:]], 400),
    ([GET[0], (b":scheme", b"ftp"), *GET[2:]], 400),
    ([GET[0], GET[1], (b":path", b"x"), GET[3]], 400),
    ([GET[0], GET[1], (b":path", b"/#x"), GET[3]], 400),
    ([GET[0], GET[1], (b":path", b"*"), GET[3]], 400),
    (GET[:3], 400),
    ([*GET, (b"host", b"b")], 400),
    ([*GET, (b"host", b"a"), (b"host", b"a")], 400),
    ([*GET[:3], (b":authority", b"u@a")], 400),
    ([*GET, (b"content-length", b"1"), (b"content-length", b"1")], 400),
    ([*GET, (b"content-length", b"1"), (b"content-length", b"2")], 400),
    ([*GET, (b"content-length", b"1" * 19)], 400),
    ([*GET, (b"content-length", b"x")], 400),
    ([*GET, (b"content-length", b"-1")], 400),
    ([*GET, (b"content-length", b"1,1")], 400),
    ([*GET, (b"Content-Length", b"1")], 400),
    ([*GET, (b"a", b"1")] + [(b"a", b"1")] * 100, 431),
    ([(b":method", b"CONNECT"), GET[3]], 501),
    ([*CONNECT[:4], (b":protocol", b"other")], 501),
    ([*CONNECT, (b"content-length", b"1")], 400),
]


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize(("fields", "status"), MALFORMED)
def test_a_request_that_cannot_be_served_ends_its_stream_only(
    bare: BareClient, fields: Fields, status: int, ended: bool
) -> None:
    bare.h2.send_headers(1, fields, end_stream=ended)
    bad, *rest = bare.talk()
    assert isinstance(bad, events.BadRequest)
    assert rest == [events.RequestEnd(ONE)] * ended
    assert (bad.stream, bad.status, bad.method) == (ONE, status, "GET")
    for event in (events.ResponseHead(ONE, status), events.ResponseData(ONE, b"no"), events.ResponseEnd(ONE)):
        bare.us.send(event)
    assert bare.us.awaits_request_end(ONE) is not (ended or status == 400)
    bare.talk()
    (answer,) = bare.last(h2.events.ResponseReceived)
    assert answer.headers == [(b":status", b"%d" % status)]
    assert len(bare.last(h2.events.DataReceived)) == 1
    assert len(bare.last(h2.events.StreamEnded)) == (status != 400)
    codes = [event.error_code for event in bare.last(h2.events.StreamReset)]
    assert codes == ([ErrorCodes.PROTOCOL_ERROR] if status == 400 else [])
    bare.h2.send_headers(3, GET, end_stream=True)
    assert len(bare.talk()) == 2


@pytest.mark.parametrize("fields", [CONNECT[:5], [*CONNECT[:5], (b"sec-websocket-version", b"8")]])
def test_a_websocket_of_another_version(bare: BareClient, fields: Fields) -> None:
    bare.h2.send_headers(1, fields)
    why = "Sec-WebSocket-Version: only 13 is spoken here"
    assert bare.talk() == [events.BadRequest(ONE, 426, "upgrade_required", why, "GET")]


def test_a_body_that_was_announced_and_does_not_come(bare: BareClient) -> None:
    request = [*GET, (b"content-length", b"1")]
    for stream in (1, 3):  # the second head is as short as all later ones
        bare.h2.send_headers(stream, request)
        bare.h2.send_data(stream, b"x", end_stream=True)
    assert len(bare.talk()) == 6
    bare.h2.send_headers(5, request, end_stream=True)
    (bad, _) = bare.talk()
    stream_id = events.StreamId(5)
    assert bad == events.BadRequest(stream_id, 400, None, "the body is shorter than Content-Length", "GET")


@pytest.mark.parametrize("status", [200, 204])
def test_the_answer_to_a_malformed_request_may_have_no_body(bare: BareClient, status: int) -> None:
    bare.h2.send_headers(1, [(b":method", b"HEAD"), *GET[1:], (b"Upper", b"1")], end_stream=True)
    bad, _ = bare.talk()
    assert isinstance(bad, events.BadRequest)
    assert bad.method == "HEAD"
    send_events(bare.us, events.ResponseHead(ONE, status), events.ResponseEnd(ONE))
    bare.talk()
    assert [type(event).__name__ for event in bare.heard[-2:]] == ["ResponseReceived", "StreamReset"]
    assert "idle" in signs(bare.us)


def test_a_refused_head_still_updates_the_header_table(bare: BareClient) -> None:
    bare.h2.send_headers(1, [*GET, (b"kept", b"in the table"), (b"a", b"x" * 33_000)])
    assert bare.talk() == [events.BadRequest(ONE, 431, None, "the head has more than 32768 bytes", "GET")]
    bare.h2.send_headers(3, [*GET, (b"kept", b"in the table")], end_stream=True)
    (head, _) = bare.talk()
    assert isinstance(head, events.RequestHead)
    assert head.headers.get(b"kept") == b"in the table"


def test_request_fields_have_the_form_of_http1(bare: BareClient) -> None:
    cookie_fields = [(b"cookie", b"a=1"), (b"te", b"trailers"), (b"cookie", b"b=2"), (b"expect", b"100-continue")]
    bare.h2.send_headers(1, [*POST[:3], (b"host", b"A:1"), *cookie_fields])
    fields = events.Headers(
        ((b"host", b"A:1"), (b"te", b"trailers"), (b"expect", b"100-continue"), (b"cookie", b"a=1; b=2"))
    )
    assert bare.talk() == [events.RequestHead(ONE, "POST", "/health?x=1", fields, False, True, "2")]
    bare.h2.send_headers(3, [(b":method", b"OPTIONS"), GET[1], (b":path", b"*"), GET[3], (b"cookie", b"a")], True)
    (head, end) = bare.talk()
    assert isinstance(head, events.RequestHead)
    assert (head.target, head.headers[1:], end) == ("*", ((b"cookie", b"a"),), events.RequestEnd(THREE))


@pytest.mark.parametrize(
    ("trailers", "why"),
    [
        ([(b"a", b"1")] * 101, "the head has more than 100 fields"),
        ([(b"content-length", b"3")], "content-length among the trailers"),
        ([(b"host", b"b")], "host among the trailers"),
    ],
)
def test_trailers_that_are_malformed(bare: BareClient, trailers: Fields, why: str) -> None:
    bare.h2.send_headers(1, POST)
    bare.talk()
    bare.h2.send_headers(1, trailers, end_stream=True)
    assert bare.talk() == [events.StreamReset(ONE, why)]
    assert "idle" in signs(bare.us)


@pytest.mark.parametrize(
    ("pieces", "trailers"),
    [([b"hell"], False), ([b"hell"], True), ([], False), ([b"hello", b"!"], False), ([b"hello!"], True)],
)
def test_a_body_of_another_length_than_announced(bare: BareClient, pieces: list[bytes], trailers: bool) -> None:
    bare.h2.send_headers(1, [*POST, (b"content-length", b"5")])
    for piece in pieces:
        bare.h2.send_data(1, piece)
    if trailers:
        bare.h2.send_headers(1, [(b"a", b"b")], end_stream=True)
    else:
        bare.h2.end_stream(1)
    assert resets(bare.talk()) == [ONE]
    (reset,) = bare.last(h2.events.StreamReset)
    assert reset.error_code is ErrorCodes.PROTOCOL_ERROR
    bare.h2.send_headers(3, [*POST, (b"content-length", b"5")])
    bare.h2.send_data(3, b"hello", end_stream=True)
    assert bare.talk()[1:] == [events.RequestData(THREE, b"hello"), events.RequestEnd(THREE)]


def test_padding_is_given_back(bare: BareClient) -> None:
    bare.h2.send_headers(1, POST)
    for _ in range(600):
        bare.h2.send_data(1, b"", pad_length=255)
        bare.talk()
    for _ in range(1200):
        bare.h2.send_data(1, b"xy", pad_length=255)
        assert bare.talk() == [events.RequestData(ONE, b"xy")]
    assert bare.h2.local_flow_control_window(1) > 100_000


def test_data_before_the_websocket_is_open(bare: BareClient) -> None:
    bare.h2.send_headers(1, CONNECT)
    bare.h2.send_data(1, b"early")
    assert resets(bare.talk()) == [ONE]
    assert "idle" in signs(bare.us)
    bare.h2.send_headers(3, CONNECT)
    bare.h2.end_stream(3)
    assert len(bare.talk()) == 2
    send_events(bare.us, events.AcceptWebSocket(THREE), events.TextMessage(THREE, "hi"))
    (closed,) = bare.talk()
    assert getattr(closed, "code", None) == 1006
    assert "idle" in signs(bare.us)


def test_a_websocket_with_content_length_0(bare: BareClient) -> None:
    bare.h2.send_headers(1, [*CONNECT, (b"content-length", b"0")])
    assert len(bare.talk()) == 2
    bare.us.send(events.AcceptWebSocket(ONE))
    bare.talk()
    bare.h2.send_data(1, b"\x81\x82\0\0\0\0hi")
    assert bare.talk() == [events.TextMessage(ONE, "hi")]


def test_half_a_message_counts(bare: BareClient) -> None:
    half = b"\x01\xfe" + (9_000).to_bytes(2, "big") + bytes(4) + bytes(5_000)
    for stream, most in ((ONE, None), (THREE, 64 * 1024)):
        bare.h2.send_headers(stream, CONNECT)
        bare.talk()
        bare.us.send(events.AcceptWebSocket(stream, max_message=most))
        bare.talk()
        bare.h2.send_data(stream, half)
        bare.talk()
    assert bare.us.buffered_bytes >= 10_000
    bare.us.lift_limits(THREE)
    assert bare.us.buffered_bytes >= 10_000
    for stream in (ONE, THREE):
        bare.h2.reset_stream(stream)
        bare.talk()
    assert bare.us.buffered_bytes == 0  # a lost WebSocket holds nothing


# --- floods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "piece",
    [
        frame(PING, bytes(8)),
        frame(SETTINGS),
        frame(SETTINGS, b"\x00\x04\x00\x00\x00\x00"),
        frame(SETTINGS, b"\x00\x04\x00\x00\x00\x00" * 33),  # at once
        frame(PRIORITY, b"\x00\x00\x00\x00\x01", stream=3),
        frame(WINDOW, b"\x00\x00\x00\x01"),
        frame(RST, bytes(4), stream=9),
        frame(0x2A, b"what"),
        frame(0, b"", stream=1),
    ],
)
def test_floods_of_useless_frames(piece: bytes) -> None:
    request = frame(1, b"\x83\x86\x84\x41\x01a", flags=4, stream=1)
    assert "too m" in ends(request + piece * 1003, ErrorCodes.ENHANCE_YOUR_CALM)


def test_a_quiet_peer_may_ping_for_ever() -> None:
    us = Http2Connection(Role.SERVER, entropy=seeded())
    feed(us, HELLO)
    for second in range(100):
        us.set_time(float(second))
        feed(us, frame(PING, bytes(8)) * 90)
    us.set_time(100.0)
    with pytest.raises(RemoteProtocolError, match="nothing"):
        feed(us, frame(PING, bytes(8)) * 1001)


def test_requests_that_are_reset_at_once(bare: BareClient) -> None:
    for stream in range(1, 203, 2):
        bare.h2.send_headers(stream, GET)
        bare.h2.reset_stream(stream)
        if stream < 200:
            bare.talk()
    with pytest.raises(RemoteProtocolError, match="reset"):
        bare.talk()


def test_requests_reset_after_their_response_are_no_attack(bare: BareClient) -> None:
    for stream in range(1, 601, 2):
        bare.h2.send_headers(stream, GET, end_stream=True)
        bare.talk()
        bare.us.send(events.ResponseHead(events.StreamId(stream), 200))
        bare.talk()
        bare.h2.reset_stream(stream)
        assert resets(bare.talk()) == [events.StreamId(stream)]
    assert "idle" in signs(bare.us)


def test_too_many_provoked_resets(bare: BareClient) -> None:
    for stream in range(1, 203, 2):
        bare.h2.send_headers(stream, GET[:2])
        if stream < 200:
            bare.talk()
            send_events(
                bare.us, events.ResponseHead(events.StreamId(stream), 400), events.ResponseEnd(events.StreamId(stream))
            )
    with pytest.raises(RemoteProtocolError, match="cannot be served"):
        bare.talk()


def test_a_window_that_stays_shut_and_one_that_opens_by_a_byte(bare: BareClient) -> None:
    bare.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
    bare.h2.send_headers(1, GET, end_stream=True)
    bare.talk()
    send_events(bare.us, events.ResponseHead(ONE, 200), events.ResponseData(ONE, b"abc"), events.ResponseEnd(ONE))
    bare.talk()
    assert bare.us.unsent(ONE) == 3
    for left in (2, 1, 0):
        bare.h2.increment_flow_control_window(1, 1)
        bare.talk()
        assert bare.us.unsent(ONE) == left
    assert "idle" in signs(bare.us)
    bare.h2.send_headers(3, GET, end_stream=True)
    bare.talk()
    send_events(bare.us, events.ResponseHead(THREE, 200), events.ResponseData(THREE, bytes(5000)))
    with pytest.raises(RemoteProtocolError, match="nothing"):
        bare.talk(frame(WINDOW, b"\x00\x00\x00\x01", stream=3) * 1100)


def test_a_long_response_pays_for_the_window_updates_of_its_reader(bare: BareClient) -> None:
    bare.h2.send_headers(1, GET, end_stream=True)
    bare.talk()
    size = 65_535 + 1_100 * 2 * KILOBYTE  # the initial window, and the updates
    send_events(bare.us, events.ResponseHead(ONE, 200), events.ResponseData(ONE, bytes(size)), events.ResponseEnd(ONE))
    for _ in range(1_100):
        bare.h2.increment_flow_control_window(2 * KILOBYTE)
        bare.h2.increment_flow_control_window(2 * KILOBYTE, 1)
        bare.talk()
    assert sum(len(event.data or b"") for event in bare.last(h2.events.DataReceived)) == size


def test_a_window_that_is_overrun() -> None:
    us = Http2Connection(Role.SERVER, entropy=seeded())
    feed(us, HELLO + frame(1, b"\x83\x86\x84\x41\x01a", flags=4, stream=1))
    with pytest.raises(RemoteProtocolError, match="flow control"):
        feed(us, frame(0, bytes(16_384), stream=1) * 17)


def test_a_huge_header_table_is_not_filled(bare: BareClient) -> None:
    bare.h2.update_settings({h2.settings.SettingCodes.HEADER_TABLE_SIZE: 2**30})
    bare.h2.send_headers(1, GET, end_stream=True)
    bare.talk()
    bare.us.send(events.ResponseHead(ONE, 200, events.Headers(((b"a", b"b"),))))
    bare.talk()
    (answer,) = bare.last(h2.events.ResponseReceived)
    assert answer.headers == [(b":status", b"200"), (b"a", b"b")]


def test_a_client_gets_pending_responses_after_its_goaway(bare: BareClient) -> None:
    bare.h2.send_headers(1, GET, end_stream=True)
    bare.talk()
    bare.h2.close_connection()
    assert bare.talk() == []
    assert "must_close" not in signs(bare.us)
    send_events(bare.us, events.ResponseHead(ONE, 200), events.ResponseEnd(ONE))
    assert len(bare.us.data_to_send()) > 9
    assert "must_close" in signs(bare.us)
