"""WebSocket frames after the handshake, as either end reads them; the first byte says which, and what was agreed."""

from __future__ import annotations

from fuzz.targets.common import same_however_cut
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.deflate import DeflateParameters
from svc_proto.wire.events import BinaryMessage, Event, Ping, Pong, StreamId, TextMessage
from svc_proto.wire.limits import Limits
from svc_proto.wire.websocket import WebSocket

__all__ = ["CLIENT", "DEFLATE", "make_socket", "websocket"]

LIMITS = Limits(max_message=64 * 1024)
STREAM = StreamId(1)
CLIENT, DEFLATE, ALONE, SMALL = 1, 2, 4, 8  # bits of the first byte


def websocket(data: bytes) -> None:
    """Frames from a peer; every message that was understood is sent, and understood, again."""
    if not data:
        return
    bits, frames = data[0], data[1:]
    whole = same_however_cut(lambda pieces: _hear(bits, pieces), frames)
    said, heard = make_socket(bits ^ CLIENT), make_socket(bits)
    for event in whole:
        if not isinstance(event, TextMessage | BinaryMessage | Ping | Pong):
            continue
        said.send(event)
        heard.receive_data(said.data_to_send())
        assert heard.next_event() == event, "a message does not come back"


def make_socket(bits: int, *, limits: Limits = LIMITS, max_message: int | None = None) -> WebSocket:
    """A socket of that end, with what was agreed."""
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


def _hear(bits: int, pieces: list[bytes]) -> list[Event | str]:
    socket = make_socket(bits)
    events: list[Event | str] = []
    for piece in pieces:
        socket.receive_data(piece)
        while (event := socket.next_event()) is not None:
            events.append(event)
            if isinstance(event, TextMessage | BinaryMessage):
                _echo(socket, event)
        socket.data_to_send()
    socket.receive_eof()
    while (event := socket.next_event()) is not None:
        events.append(event)
    return [*events, socket.state.name]


def _echo(socket: WebSocket, event: Event) -> None:
    try:
        socket.send(event)
    except LocalProtocolError as error:
        raise AssertionError(f"a message that was heard cannot be said: {error}") from error
