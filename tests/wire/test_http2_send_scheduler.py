"""Round robin of streams with output."""

from h2.events import DataReceived, StreamEnded, TrailersReceived

from svc_proto.wire.events import Headers, RequestHead, StreamId
from svc_proto.wire.h2_optimized import OptimizedH2Connection
from svc_proto.wire.http2_send_scheduler import SendScheduler
from svc_proto.wire.http2_settings import new_h2
from svc_proto.wire.http2_stream import Http2Stream
from svc_proto.wire.limits import Limits

ONE, THREE = StreamId(1), StreamId(3)
POST = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")]


def test_frames_in_turn_before_the_ends() -> None:
    client, server = new_h2(client=True, limits=Limits()), new_h2(client=False, limits=Limits())
    outgoing = SendScheduler(client)
    streams = [Http2Stream(stream, RequestHead(stream, "POST", "/")) for stream in (ONE, THREE)]
    for known in streams:
        client.send_headers(known.id, POST)
        known.queue_data(bytes(20_000))
        known.sent_end = True
        outgoing.add(known)
    streams[1].trailers = Headers(((b"t", b"v"),))
    assert outgoing.write(30_000) == (30_000, [])
    assert [known.queued for known in streams] == [3616, 6384]
    total, ended = outgoing.write(1_000_000)
    assert (total, [known.id for known in ended]) == (10_000, [ONE, THREE])
    assert not outgoing
    events = server.receive_data(client.data_to_send().removeprefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
    order = [event.stream_id for event in events if isinstance(event, DataReceived)]
    assert order == [1, 3, 1, 3]
    kinds = [type(event) for event in events if isinstance(event, TrailersReceived | StreamEnded)]
    assert kinds == [StreamEnded, TrailersReceived, StreamEnded]


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
