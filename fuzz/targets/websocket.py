"""Fuzz target of WebSocket frames after the handshake; the first byte selects the reading side and the options."""

from fuzz.targets.common import check_chunking_invariance
from svc_proto.wire.connection import Role
from svc_proto.wire.events import BinaryMessage, Event, Ping, Pong, StreamId, TextMessage
from svc_proto.wire.limits import Limits
from svc_proto.wire.websocket import WebSocket
from svc_proto.wire.websocket_deflate import DeflateParameters
from tests.wire.connection_pair import ConnectionOutcome, outcome

LIMITS = Limits(max_message=64 * 1024)
STREAM = StreamId(1)
CLIENT, DEFLATE, ALONE, SMALL = 1, 2, 4, 8  # bits of the first byte


def websocket(data: bytes) -> None:
    """Check that frames are parsed equally for any chunking, and that each message is equal after being sent again."""
    if not data:
        return
    bits, frames = data[0], data[1:]
    whole, _ = check_chunking_invariance(lambda pieces: _receive_and_echo(bits, pieces), frames)
    said, heard = make_socket(bits ^ CLIENT), make_socket(bits)
    assert whole.status is None, "a socket closes, it does not raise"
    for event in whole.heard:
        if not isinstance(event, TextMessage | BinaryMessage | Ping | Pong):
            continue
        said.send(event)
        heard.receive_data(said.data_to_send())
        assert heard.next_event() == event, "a message does not come back"


def make_socket(bits: int, *, limits: Limits = LIMITS, max_message: int | None = None) -> WebSocket:
    """Build the WebSocket with the side and the options that `bits` selects."""
    deflate = DeflateParameters(
        server_no_context_takeover=bool(bits & ALONE),
        client_no_context_takeover=bool(bits & ALONE),
        server_max_window_bits=9 if bits & SMALL else 15,
        client_max_window_bits=9 if bits & SMALL else 15,
    )
    return WebSocket(
        Role.CLIENT if bits & CLIENT else Role.SERVER,
        STREAM,
        limits=limits,
        entropy=bytes,
        deflate=deflate if bits & DEFLATE else None,
        max_message=max_message,
    )


def _receive_and_echo(bits: int, pieces: list[bytes]) -> tuple[ConnectionOutcome, str]:
    socket = make_socket(bits)

    def echo(event: Event) -> None:
        if isinstance(event, TextMessage | BinaryMessage):
            socket.send(event)

    return outcome(socket, pieces, echo, eof=True), socket.state.name
