"""HTTP/2 server channel: the preface, ALPN, and a connection that begins during a stop."""

import pytest
from h2.errors import ErrorCodes

from svc_proto.commands import CloseWrite
from svc_proto.facts import ChannelId, ReadClosed, Received, Stopping
from svc_proto.wire.connection import Role
from svc_proto.wire.events import RequestEnd, RequestHead, ResponseHead
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.http2_frames import PREFACE, FrameType, encode_goaway
from tests.engine.http2_playbook import HOST, ONE, answers
from tests.engine.toy_service import ToyPlaybook, get, open_book
from tests.support.playbook import CH, PATIENT, accepted, wire_bytes
from tests.wire.connection_pair import drain, seeded, send_events


def test_the_preface_may_come_in_pieces(book: ToyPlaybook) -> None:
    client = Http2Connection(Role.CLIENT, entropy=seeded())
    send_events(client, RequestHead(ONE, "GET", "/hello", HOST), RequestEnd(ONE))
    data = client.data_to_send()
    for piece in (data[:1], data[1:3]):
        book >> Received(CH, piece) << []
    book >> Received(CH, data[3:])
    client.receive_data(wire_bytes(book.drain_commands()))
    assert answers(drain(client)) == {1: (200, b"hello")}


def test_http1_that_begins_like_it(book: ToyPlaybook) -> None:
    book >> Received(CH, b"P") << []
    book >> Received(CH, b"OST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi") << [book.says(200, b"hi")]
    book >> Received(CH, b"P") << []
    book >> Received(CH, b"RI") << []
    book >> Received(CH, get(b"/hello"))
    assert wire_bytes(book.drain_commands()).startswith(b"HTTP/1.1 405 ")
    book = open_book()
    book >> Received(CH, b"PR") << []
    book >> ReadClosed(CH)
    assert isinstance(book.drain_commands()[-1], CloseWrite)


@pytest.mark.parametrize("data", [get(b"/hello"), b"INVALID CONNECTION PREFACE\r\n\r\n", b"P"])
def test_the_alpn_protocol_is_final(book: ToyPlaybook, data: bytes) -> None:
    book >> accepted(4, tls=True, alpn="h2") << []
    book >> Received(ChannelId(4), data)
    said = wire_bytes(book.drain_commands(), 4)
    assert said[3] == FrameType.SETTINGS
    assert (said[-17:] == encode_goaway(0, ErrorCodes.PROTOCOL_ERROR)) is (data != b"P")
    assert (book.drain_commands()[-1] == CloseWrite(ChannelId(4))) is (data != b"P")
    book >> accepted(6, tls=True, alpn="http/1.1") << []
    book >> Received(ChannelId(6), b"P") << []
    book >> Received(ChannelId(6), PREFACE[1:])
    assert wire_bytes(book.drain_commands(), 6).startswith(b"HTTP/1.1 505 ")
    book >> accepted(8, tls=True, alpn="http/1.1") << []
    book >> Received(ChannelId(8), get(b"/hello")) << [book.says(200, b"hello", ch=8)]


def test_a_closed_connection_ignores_a_late_preface(book: ToyPlaybook) -> None:
    book >> accepted(4, tls=True, alpn="h2") << []
    book.after(PATIENT.head_timeout)
    assert CloseWrite(ChannelId(4)) in book.drain_commands()
    book >> Received(ChannelId(4), PREFACE) << []


def test_half_a_preface_times_out(book: ToyPlaybook) -> None:
    (book >> Received(CH, b"PRI * ")).drain_commands()
    book.after(14.9) << []
    book.after(0.2)
    assert b"\x07" in wire_bytes(book.drain_commands())
    assert book.drain_commands()[-1] == CloseWrite(CH)


def test_a_connection_that_begins_during_the_stop_is_closed_after_its_requests(book: ToyPlaybook) -> None:
    book >> Stopping(5.0) << []
    client = Http2Connection(Role.CLIENT, entropy=seeded())
    send_events(client, RequestHead(ONE, "GET", "/hello", HOST), RequestEnd(ONE))
    commands = (book >> Received(CH, client.data_to_send())).drain_commands()
    client.receive_data(wire_bytes(commands))
    assert [event.status for event in drain(client) if isinstance(event, ResponseHead)] == [200]
    assert CloseWrite(CH) in commands
