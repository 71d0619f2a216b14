"""Fuzz target of WebSocket frames: the fast path against wsproto (`fuzz.targets.differential`).

The first byte selects the reading side and the negotiated options (`fuzz.targets.websocket`).
"""

from random import Random
from zlib import crc32

from fuzz.mutation import split_randomly
from fuzz.reference_parsers import ReferenceFrameReader
from fuzz.targets.differential import DifferentialPair
from fuzz.targets.websocket import CLIENT, make_socket
from svc_proto.wire.events import BinaryMessage, CloseWebSocket, Event, Ping, Pong, StreamId, TextMessage
from svc_proto.wire.limits import Limits
from svc_proto.wire.websocket import WebSocket

LIMITS = Limits(max_message=64 * 1024 + 10)
STREAM = StreamId(1)
UNAUTHENTICATED = 300  # bytes of a message on an unauthenticated connection
UNKNOWN = 16  # a bit of the first byte, beside those of `websocket`


def websocket_fast_path(data: bytes) -> None:
    """Compare fast path and wsproto for frames of a peer, which also determine their splitting and the sent events."""
    if data:
        compare_frames(data[0], [data[1:]], Random(crc32(data)))


def compare_frames(bits: int, pieces: list[bytes], rng: Random) -> int:
    """Compare both implementations on the frames in `pieces`, perhaps split again; return the number of messages."""
    both = WebSocketPair(bits)
    if rng.random() < 0.4:
        pieces = split_randomly(b"".join(pieces), rng)
    for piece in pieces:
        if rng.random() < 0.5:
            both.feed(piece)
        else:
            both.hear_texts(piece)
        for _ in range(rng.choice((0, 1, 2, 9))):
            both.next_events()
        if rng.random() < 0.3:
            both.flush()
        if rng.random() < 0.05:
            both.send_events(rng.choice(SAYINGS))
        if rng.random() < 0.05:
            both.lift_limits()
    while both.next_events() is not None:
        pass
    both.end()
    while both.next_events() is not None:
        pass
    both.flush()
    if rng.random() < 0.5:
        both.release()
        both.next_events()
    return both.messages


SAYINGS: tuple[Event, ...] = (
    TextMessage(STREAM, "hi"),
    TextMessage(STREAM, "hi" * 600),
    Ping(STREAM, b"x"),
    Pong(STREAM),
    CloseWebSocket(STREAM),
    CloseWebSocket(STREAM, 1001, "gone"),
)


class WebSocketPair(DifferentialPair[WebSocket, WebSocket]):
    """wsproto and the fast path of one WebSocket."""

    properties = ("buffered_bytes", "state")

    def __init__(self, bits: int) -> None:
        unknown = UNAUTHENTICATED if bits & UNKNOWN else None
        reference, fast_path = (make_socket(bits, limits=LIMITS, max_message=unknown) for _ in range(2))
        super().__init__(reference, fast_path, STREAM)
        setattr(reference, "_reader", ReferenceFrameReader(bool(bits & CLIENT), reference._guard))  # noqa: B010 - a stand-in
        self.messages = 0

    def hear_texts(self, data: bytes) -> None:
        """Receive bytes by the fast path for texts, whose results must be the next events of wsproto."""
        texts, more = self.fast_path.receive_texts(data)
        self.reference.receive_data(data)
        heard = [self.reference.next_event() for _ in texts]
        assert heard == [TextMessage(STREAM, text) for text in texts]
        assert more or self.reference.next_event() is None, "the fast path holds something back"
        self.compare(lambda socket: socket.must_close)
        self.messages += len(texts)

    def on_event(self, event: Event) -> None:
        """Count the event if it is a message."""
        self.messages += isinstance(event, TextMessage | BinaryMessage)

    def release(self) -> None:
        """Release the parsers of both WebSockets after the end of the connection."""
        self.compare(lambda socket: socket.release())
