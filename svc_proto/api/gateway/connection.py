"""WebSocket connection of one client of the gateway: it receives JSON-RPC calls, and sends answers and events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from svc_proto.api.gateway.attachment_upload import AttachmentUpload, UploadCall
from svc_proto.api.gateway.long_message import LongMessage
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.schema.gateway_rpc import INTERNAL, RpcCall, event_line, parse_call
from svc_proto.schema.json_rpc import RpcError, write_error

__all__ = ["GatewayConnection", "Method", "Result"]

WHOLE = 64 * 1024  # bytes of memory for an incomplete message; a longer one is read in parts, see `LongMessage`
MAX_CALLS = 64  # concurrent calls of one client; further ones are refused
POLICY_VIOLATION = 1008  # RFC 6455 section 7.4.1
UNSUPPORTED_DATA = 1003

Result: TypeAlias = Mapping[str, object]
Method: TypeAlias = "Callable[[GatewayConnection, RpcCall], Flow[Result] | Result]"


class CallHandler(Protocol):
    """Interface of the gateway for its WebSocket connections."""

    @property
    def version(self) -> str:
        """Version of the server that clients see."""

    def connect(self, connection: GatewayConnection) -> None:
        """Register an open connection."""

    def disconnect(self, connection: GatewayConnection) -> None:
        """Remove a closed connection; its sessions continue."""

    def new_upload(self, on_full: Callable[[bool], None], is_url: bool) -> AttachmentUpload:
        """Return the receiver of a content.

        `on_full` is called with True when the client must not be read, and with False after that.
        """

    def handle_call(self, connection: GatewayConnection, call: RpcCall) -> None:
        """Perform a call, and answer it unless it is a notification."""


class GatewayConnection(WebSocketHandler):
    """WebSocket connection of a client of the gateway. The client's sessions continue when it is closed."""

    __slots__ = ("_calls", "_gateway", "_message", "_socket", "is_closed", "request")

    def __init__(self, gateway: CallHandler, request: Request) -> None:
        self.request = request  # that opened it: it names the client's authority and address
        self.is_closed = False  # calls that are under way continue
        self._gateway = gateway
        self._socket: WebSocketConnection  # set when it is open
        self._calls = 0
        self._message: LongMessage | None = None  # that is being received in parts

    @property
    def credential_id(self) -> str:
        """Return the id of the client's credential (see `Engine.revocables`); empty without one."""
        return self.request.credential_id

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Implement `WebSocketHandler.on_open`: register the connection, and send `gateway.ready`."""
        self._socket = socket
        self._gateway.connect(self)
        socket.receive_fragments(WHOLE, self.on_fragment)
        self.send_event("gateway.ready", None, {"skin": {}, "version": self._gateway.version})

    def on_text(self, text: str) -> None:
        """Handle the calls in one message, one on each line."""
        for line in text.split("\n"):
            if line.strip():
                self._handle_line(line)

    def on_fragment(self, text: str, is_last: bool) -> None:
        """Read a part of a long message; after the last one, handle its calls."""
        message = self._message
        if message is None:
            message = self._message = LongMessage(self._new_upload)
        message.receive_text(text)
        self._socket.buffered_bytes = 0 if is_last else message.buffered_bytes
        if is_last:
            self._message = None
            try:
                for line, name, upload in message.finish():
                    if line.strip():
                        self._handle_line(line, name, upload)
            except RpcError as error:
                self.send(write_error(error))

    def on_binary(self, data: bytes) -> None:
        """Close the connection: all messages are text."""
        self._socket.close(UNSUPPORTED_DATA, "messages are text")

    def on_closed(self, code: int, reason: str) -> None:
        """Implement `WebSocketHandler.on_closed`: unregister the connection, and discard an incomplete message."""
        self.is_closed = True
        self._gateway.disconnect(self)
        if self._message is not None:
            self._message.discard()

    # --- for the gateway ---

    def send(self, line: bytes) -> None:
        """Send one message; it is dropped when the connection is closed."""
        self._socket.send_text(line)

    def send_event(self, kind: str, session_id: str | None, payload: dict[str, object] | None) -> None:
        """Send an event to this client alone."""
        self.send(event_line(kind, session_id, payload))

    def revoke(self, refused: Refused) -> None:
        """Close the connection: its credential was revoked."""
        self._socket.close(POLICY_VIOLATION, refused.message)

    def call_ended(self) -> None:
        """Decrement the number of calls under way."""
        self._calls -= 1

    # --- helpers ---

    def _new_upload(self, is_url: bool) -> AttachmentUpload:
        return self._gateway.new_upload(self._socket.set_read_paused, is_url)

    def _handle_line(self, line: str, name: str = "", upload: AttachmentUpload | None = None) -> None:
        try:
            call = parse_call(line)
            self._check_load(call)
        except RpcError as error:
            if upload is not None:
                upload.discard()
            self.send(write_error(error))
            return
        if upload is not None:
            call = UploadCall(call.method, call.params, call.identity, call.notification, name=name, upload=upload)
        self._calls += 1
        self._gateway.handle_call(self, call)

    def _check_load(self, call: RpcCall) -> None:
        if self._calls >= MAX_CALLS:
            raise RpcError(INTERNAL, f"at most {MAX_CALLS} calls at a time", identity=call.identity)
