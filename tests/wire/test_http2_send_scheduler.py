"""Round robin of streams with output."""

from svc_proto.wire.events import RequestHead, StreamId
from svc_proto.wire.h2_optimized import OptimizedH2Connection
from svc_proto.wire.http2_send_scheduler import SendScheduler
from svc_proto.wire.http2_settings import new_h2
from svc_proto.wire.http2_stream import Http2Stream
from svc_proto.wire.limits import Limits

ONE, THREE = StreamId(1), StreamId(3)
POST = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")]


def one_byte() -> tuple[OptimizedH2Connection, SendScheduler, Http2Stream]:
    """Return a client, its scheduler, and a stream with one byte to send."""
    client = new_h2(client=True, limits=Limits())
    outgoing = SendScheduler(client)
    known = Http2Stream(ONE, RequestHead(ONE, "POST", "/"))
    client.send_headers(ONE, POST)
    known.queue_data(b"x")
    outgoing.add(known)
    return client, outgoing, known


def test_an_end_needs_no_window() -> None:
    client, outgoing, known = one_byte()
    assert outgoing.write(10) == (1, [])
    client.receive_data(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00" + b"\x00\x04\x00\x00\x00\x00")  # no window at all
    assert client.local_flow_control_window(ONE) == -1
    known.sent_end = True
    outgoing.add(known)
    assert outgoing.write(10) == (0, [known])


def test_a_removed_stream_sends_nothing() -> None:
    _, outgoing, known = one_byte()
    outgoing.remove(known)
    outgoing.remove(known)
    assert outgoing.write(10) == (0, [])
    outgoing.add(known)
    outgoing.clear()
    assert not outgoing
