"""Interface of all HTTP connections, of any version: bytes to events, and events to bytes."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from svc_proto.wire.events import Event, RequestHead, StreamId

if TYPE_CHECKING:
    from svc_proto.wire.websocket import WebSocket

__all__ = ["Connection", "Role", "ServerConnection"]


class Role(Enum):
    """End of a connection that an object implements: client or server."""

    CLIENT = "client"
    SERVER = "server"


class Connection(Protocol):
    """A connection in either role, of any version of HTTP, with the WebSockets inside it.

    The owner passes received bytes, calls `next_event()` until that returns None, sends its own events, and writes the
    result of `data_to_send()`. The properties are valid when `next_event()` has returned None.
    """

    __slots__ = ()

    def receive_data(self, data: bytes) -> None:
        """Receive bytes from the peer; `next_event` returns their events, and raises their errors."""
        ...

    def receive_eof(self) -> None:
        """Mark the end of the peer's bytes (FIN). Bytes received before are still parsed."""
        ...

    def next_event(self) -> Event | None:
        """Return the peer's next event; None when more bytes are needed, while `paused`, and after the end.

        Raises `RemoteProtocolError` once for a fault that ends the connection; after that no more input is read. A
        fault of one HTTP/2 stream, or within a WebSocket, is an event.
        """
        ...

    def send(self, event: Event) -> None:
        """Queue an event. Raises `LocalProtocolError` if the protocol does not allow it now."""
        ...

    def lift_limits(self, stream: StreamId) -> None:
        """Apply the message limit of `Limits` to the WebSocket on this stream: its peer is authenticated."""
        ...

    def data_to_send(self) -> bytes:
        """Return the queued bytes that can be written now, joined, and drop them; empty when there are none."""
        ...

    def release(self) -> None:
        """Release what would otherwise wait for the cycle collector: the connection is gone."""
        ...

    @property
    def must_close(self) -> bool:
        """Report whether no more events can be sent: write the queued bytes, then half-close."""
        ...

    @property
    def paused(self) -> bool:
        """Report whether bytes wait behind an unanswered request: stop reading."""
        ...

    @property
    def idle(self) -> bool:
        """Report whether the connection is usable, without a request in progress or a byte of the next one."""
        ...

    @property
    def buffered_bytes(self) -> int:
        """Bytes of memory for input that no event has returned yet, and for the inflaters of WebSockets."""
        ...

    @property
    def has_partial_head(self) -> bool:
        """Report whether a head has begun to arrive and is not complete."""
        ...


class ServerConnection(Connection, Protocol):
    """A server's connection that can handle a whole request in one call, and a whole response in another.

    Both calls may decline at any time, as the defaults here do. `receive_data`, `next_event` and `send` then have the
    same result.
    """

    __slots__ = ()

    def receive_simple_request(self, data: bytes) -> tuple[RequestHead, bytes] | None:
        """Parse one whole request with its body, in place of `receive_data` and all of its events.

        Returns None, without effect, if the bytes are something else.
        """
        return None

    def replay_as_events(self) -> None:
        """Let `next_event` return the events after the head of the request from `receive_simple_request`.

        The default does nothing, since its `receive_simple_request` returns no request.
        """
        return

    def send_simple_response(
        self, stream: StreamId, status: int, date: bytes, fields: tuple[tuple[bytes, bytes], ...], body: bytes
    ) -> bool:
        """Send a whole response; return False, without effect, if it has to be sent event by event.

        Its fields are `date`, `fields`, `content-length` unless the status permits no body, and `connection: close` in
        the last response of the connection.
        """
        return False

    def detach_websocket(self) -> WebSocket | None:
        """Return the WebSocket that this connection has become, or None before that."""
        ...
