"""Output of HTTP/2 connections in each role: forbidden events, and limits of streams and windows."""

import gc
import weakref

import h2.events
import pytest
from h2.settings import SettingCodes

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    AcceptWebSocket,
    Event,
    Headers,
    Informational,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
)
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.http2_settings import CONNECTION_WINDOW, STREAM_WINDOW
from tests.wire.connection_pair import HOST, ONE, THREE, open_pair, seeded, send_events
from tests.wire.http2_pair import POST, BareClient, BareServer


def test_events_that_a_server_must_not_send(bare: BareClient) -> None:
    bare.h2.send_headers(1, POST)
    bare.talk()
    us = bare.us
    for event in (
        ResponseData(ONE, b"x"),
        ResponseEnd(ONE),
        AcceptWebSocket(ONE),
        RequestEnd(ONE),
        ResponseEnd(THREE),
        ResponseHead(ONE, 200, Headers(((b"a", b"\n"),))),
        ResponseHead(ONE, 200, Headers(((b"content-length", b"x"),))),
        ResponseHead(ONE, 103),
        Informational(ONE, 101),
        Informational(ONE, 200),
    ):
        with pytest.raises(LocalProtocolError):
            us.send(event)
    us.send(ResponseHead(ONE, 200, Headers(((b"Connection", b"close"), (b"content-length", b"2")))))
    with pytest.raises(LocalProtocolError, match="shorter"):
        us.send(ResponseEnd(ONE))
    with pytest.raises(LocalProtocolError, match="longer"):
        us.send(ResponseData(ONE, b"abc"))
    bare.talk()
    (answer,) = bare.last(h2.events.ResponseReceived)
    assert answer.headers == [(b":status", b"200"), (b"content-length", b"2")]


def test_a_client_respects_max_concurrent_streams() -> None:
    bare = BareServer()
    bare.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 2})
    bare.talk()
    for stream, ready in ((ONE, True), (THREE, False)):
        bare.us.send(RequestHead(stream, "GET", "/", HOST))
        assert bare.us.ready is ready


def test_events_that_a_client_must_not_send() -> None:
    bare = BareServer()
    us = bare.us
    early: tuple[Event, ...] = (
        *(RequestHead(ONE, "GET", "/"), RequestHead(ONE, "GET", "/\xfc", HOST), RequestHead(ONE, "G T", "/", HOST)),
        *(RequestHead(StreamId(2), "GET", "/", HOST), RequestEnd(ONE)),
    )
    for event in early:
        with pytest.raises(LocalProtocolError):
            us.send(event)
    send_events(us, RequestHead(ONE, "GET", "/", HOST), RequestEnd(ONE))
    late: tuple[Event, ...] = (
        *(RequestEnd(ONE), RequestData(ONE, b""), ResponseEnd(ONE), RequestHead(ONE, "GET", "/", HOST)),
    )
    for event in late:
        with pytest.raises(LocalProtocolError):
            us.send(event)


def test_a_closed_connection_frees_its_websockets() -> None:
    us = open_pair(Http2Connection).server
    socket = us._streams[ONE].socket
    assert socket is not None
    socket.receive_data(b"\x01\x80\0\0\0\0")  # the beginning of a message, which wsproto reads
    assert socket.next_event() is None
    assert socket._reader is not None
    reader = weakref.ref(socket._reader._reference)
    gc.disable()
    try:
        us.release()
        assert reader() is None  # at once, not with the next collection of cycles
    finally:
        gc.enable()


def test_a_reset_stream_returns_its_part_of_the_window_of_the_connection(bare: BareClient) -> None:
    for stream in range(1, 2 * CONNECTION_WINDOW // STREAM_WINDOW + 4, 2):
        bare.h2.send_headers(stream, POST)
        for start in range(0, STREAM_WINDOW, 16_384):
            bare.h2.send_data(stream, bytes(min(16_384, STREAM_WINDOW - start)))
        bare.h2.reset_stream(stream)
        bare.talk()
    assert bare.h2.outbound_flow_control_window > CONNECTION_WINDOW // 2


def test_plain_requests_do_not_wait_for_the_settings() -> None:
    us = Http2Connection(Role.CLIENT, entropy=seeded())
    us.data_to_send()
    for event in (RequestHead(ONE, "POST", "/", HOST), RequestData(ONE, b"abc"), RequestEnd(ONE)):
        us.send(event)
        assert us.data_to_send()
    us.send(RequestHead(THREE, "GET", "/", HOST, websocket=True))
    assert not us.data_to_send()
