"""What every HTTP connection offers, whatever its version: bytes in, events out, events in, bytes out."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from svc_proto.wire.events import Event, RequestHead, StreamId

if TYPE_CHECKING:
    from svc_proto.wire.websocket import WebSocket

__all__ = ["Connection", "Role", "ServerConnection"]


class Role(Enum):
    """Which end of a connection we are."""

    CLIENT = "client"
    SERVER = "server"


class Connection(Protocol):
    """A connection in either role, of any version of HTTP, with the WebSockets inside it.

    The owner feeds what it read, calls `next_event()` until that returns None, sends its own events, and writes
    what `data_to_send()` returns. The properties are to be read when `next_event()` has returned None.
    """

    __slots__ = ()

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the peer. Parsing is left to `next_event`."""
        ...

    def receive_eof(self) -> None:
        """The peer will send no more bytes (FIN). What was received before is still parsed."""
        ...

    def next_event(self) -> Event | None:
        """The next thing the peer said; None when more bytes are needed, while `paused`, and after the end.

        Raises `RemoteProtocolError` once if the peer broke the protocol; after that nothing more is read.
        """
        ...

    def send(self, event: Event) -> None:
        """Say something. Raises `LocalProtocolError` if the protocol does not allow it now."""
        ...

    def lift_limits(self, stream: StreamId) -> None:
        """The peer of the WebSocket on this stream is known: messages may be as large as `Limits` has it."""
        ...

    def data_to_send(self) -> bytes:
        """All bytes queued since the last call, joined; empty when there are none."""
        ...

    def release(self) -> None:
        """The connection is gone: let go of all that has come, at once, not when cycles are next collected."""
        ...

    @property
    def must_close(self) -> bool:
        """Nothing more can be said on this connection: write what is queued, then half-close."""
        ...

    @property
    def paused(self) -> bool:
        """Bytes wait behind a request that we have not answered: stop reading."""
        ...

    @property
    def idle(self) -> bool:
        """No request is in progress, no byte of a next one has come, and the connection can still be used."""
        ...

    @property
    def buffered_bytes(self) -> int:
        """Bytes of memory for what came in and is not complete, or cannot be told yet; of sockets without
        `lift_limits`."""
        ...

    @property
    def has_partial_head(self) -> bool:
        """A head has begun to arrive and is not complete."""
        ...


class ServerConnection(Connection, Protocol):
    """A server's connection on which a whole turn may be had at once: one call for the request, one for the answer.

    Both say no wherever they like, and do so here; `receive_data`, `next_event` and `send` are then the way, and the
    same comes of it.
    """

    __slots__ = ()

    def receive_simple_request(self, data: bytes) -> tuple[RequestHead, bytes] | None:
        """Take one whole request and its body in place of `receive_data` and all of its events.

        None, and nothing has been done, if these bytes are not that.
        """
        return None

    def replay_as_events(self) -> None:
        """Of the request that `receive_simple_request` gave no more than the head was taken: `next_event` tells the
        rest."""
        return

    def send_simple_response(
        self, stream: StreamId, status: int, date: bytes, fields: tuple[tuple[bytes, bytes], ...], body: bytes
    ) -> bool:
        """Say all of a response; False, and nothing was said, if it has to be said event by event.

        Its fields are `date`, `fields` and, where there may be a body, `content-length`.
        """
        return False

    def detach_websocket(self) -> WebSocket | None:
        """Behind an `AcceptWebSocket`: the WebSocket that is all of this connection from here on, if it shares it
        not."""
        ...
