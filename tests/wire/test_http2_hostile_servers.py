"""HTTP/2 servers that break rules, with our client."""

import struct

import pytest

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import RequestEnd, RequestHead, ResponseEnd, ResponseHead, StreamReset
from svc_proto.wire.http2 import Http2Connection
from tests.wire.connection_pair import HOST, ONE, THREE, feed, seeded, send_events, signs
from tests.wire.http2_pair import SETTINGS, BareServer, frame, resets

Fields = list[tuple[bytes, bytes]]


def asked(*, websocket: bool = False, deflate: bool = True) -> BareServer:
    bare = BareServer(deflate=deflate)
    send_events(bare.us, RequestHead(ONE, "GET", "/", HOST, websocket), RequestEnd(ONE))
    bare.talk()
    return bare


@pytest.mark.parametrize(
    "fields",
    [
        [(b":status", b"2000")],
        [(b"a", b"b")],
        [(b":status", b"101")],
        [(b":status", b"200"), (b"connection", b"close")],
        [(b":status", b"200"), (b"content-length", b"3")],
    ],
)
def test_a_malformed_answer(fields: Fields) -> None:
    bare = asked()
    bare.h2.send_headers(1, fields, end_stream=fields[0] != (b":status", b"101"))
    assert resets(bare.talk()) == [ONE]
    assert "idle" in signs(bare.us)


@pytest.mark.parametrize(("body", "end"), [(b"ab", True), (b"abcd", False)])
def test_a_response_of_another_length_than_announced(body: bytes, end: bool) -> None:
    bare = asked()
    bare.h2.send_headers(1, [(b":status", b"200"), (b"content-length", b"3")])
    bare.talk()
    bare.h2.send_data(1, body, end_stream=end)
    assert resets(bare.talk()) == [ONE]
    assert "idle" in signs(bare.us)


@pytest.mark.parametrize("status", [b"204", b"304"])
def test_a_response_without_body_may_have_a_content_length(status: bytes) -> None:
    bare = asked()
    bare.h2.send_headers(1, [(b":status", status), (b"content-length", b"3")])
    bare.h2.end_stream(1)
    assert [type(event) for event in bare.talk()] == [ResponseHead, ResponseEnd]
    send_events(bare.us, RequestHead(THREE, "GET", "/", HOST), RequestEnd(THREE))
    bare.talk()
    bare.h2.send_headers(3, [(b":status", status)])
    bare.h2.send_data(3, b"a", end_stream=True)
    assert resets(bare.talk()) == [THREE]


DEFLATE = (b"sec-websocket-extensions", b"permessage-deflate")


@pytest.mark.parametrize(
    ("field", "deflate"),
    [((b"sec-websocket-protocol", b"other"), True), ((DEFLATE[0], b"other"), True), (DEFLATE, False)],
)
def test_a_websocket_with_an_unoffered_field(field: tuple[bytes, bytes], deflate: bool) -> None:
    bare = asked(websocket=True, deflate=deflate)
    bare.h2.send_headers(1, [(b":status", b"200"), field])
    assert resets(bare.talk()) == [ONE]


def test_a_server_that_opens_no_websockets() -> None:
    us = Http2Connection(Role.CLIENT, entropy=seeded(), secure=True)
    us.send(RequestHead(ONE, "GET", "/ws", HOST, websocket=True))
    us.send(RequestEnd(ONE))
    us.send(RequestHead(THREE, "GET", "/", HOST))
    us.send(RequestEnd(THREE))
    events = feed(us, frame(SETTINGS))
    assert resets(events) == [ONE]
    assert "idle" not in signs(us)


def test_a_server_that_goes_away() -> None:
    bare = BareServer()
    for stream in (ONE, THREE):
        bare.us.send(RequestHead(stream, "POST", "/", HOST))
    bare.talk()
    assert bare.talk(frame(7, struct.pack(">LL", 1, 0))) == [
        StreamReset(THREE, "the server did not look at the request before it went away")
    ]
    assert "ready" not in signs(bare.us)
    assert "must_close" not in signs(bare.us)
    bare.h2.send_headers(1, [(b":status", b"200")], end_stream=True)
    assert len(bare.talk()) == 2
    bare.h2.reset_stream(1)
    assert bare.talk() == []  # the answer is complete
    assert "must_close" in signs(bare.us)


def test_a_server_that_pushes() -> None:
    bare = asked()
    with pytest.raises(RemoteProtocolError):
        bare.talk(frame(5, b"\x00\x00\x00\x02\x88", flags=4, stream=1))
