"""Playbooks of the toy service with unauthenticated connections under small limits, and the bytes that they send."""

from attrs import evolve

from svc_proto.facts import Address, ChannelId, Received
from svc_proto.wire.events import RequestEnd, RequestHead, StreamId
from svc_proto.wire.limits import Limits
from tests.engine.http2_playbook import HOST, Http2Playbook
from tests.engine.toy_service import HANDSHAKE, ToyPlaybook, open_book
from tests.support.playbook import PATIENT, SendMatcher, accepted
from tests.wire.connection_pair import send_events
from tests.wire.test_websocket import frame

KIB = 1024
TIGHT = evolve(
    PATIENT, unauthenticated_budget=100 * KIB, unauthenticated_share=100 * KIB, unauthenticated_connections=3
)
OPEN = HANDSHAKE % b"/open-ws"
AGREED = OPEN.replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
FOUR, SIX, EIGHT = ChannelId(4), ChannelId(6), ChannelId(8)


def some(size: int) -> bytes:
    """Return a WebSocket frame with `size` zero bytes, the first of a message that is not complete."""
    return frame(0x02, bytes(size))


def channel_count(book: ToyPlaybook) -> int:
    return book.toy.admission.budget.held


def connect(book: ToyPlaybook, ch: ChannelId, host: str = "192.0.2.7") -> None:
    book >> accepted(ch, Address(host, 5)) << []
    book >> Received(ch, OPEN) << [SendMatcher(ch, startswith=b"HTTP/1.1 101")]


def nearly_full(limits: Limits = TIGHT) -> ToyPlaybook:
    """Return a playbook with two WebSockets without authentication; the first holds over 62 KiB of the budget."""
    book = open_book(limits)
    connect(book, FOUR, "192.0.2.4")
    connect(book, SIX, "192.0.2.6")
    for _ in range(2):
        book >> Received(FOUR, some(32 * KIB) if not channel_count(book) else frame(0x00, bytes(30 * KIB))) << []
    assert 62 * KIB < channel_count(book) < 63 * KIB
    return book


def many(book: Http2Playbook, heads: int, path: str = "/open") -> bytes:
    """Return the bytes of `heads` HTTP/2 GET requests of the playbook's client."""
    data = b""
    for number in range(heads):
        stream = StreamId(2 * number + 1)
        send_events(book.client, RequestHead(stream, "GET", path, HOST), RequestEnd(stream))
        data += book.client.data_to_send()
    return data
