"""Proxy for the gateway: relays the messages of a client's WebSocket, opened by a ticket, to the API server and back.

The API server is connected before the upgrade is accepted, so that the client gets an error status if it is down. A
message of the client above `WHOLE` is forwarded in parts while it arrives, unless it comes over HTTP/2.
"""

from svc_proto.basics.errors import Refused
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.ports import ApiServerPort
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.engine.router import HandlerResult, Route, RouteKind
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["PATH", "SocketRelay", "routes"]

PATH = "/api/ws"
GOING_AWAY, UNSUPPORTED_DATA, POLICY_VIOLATION = 1001, 1003, 1008  # RFC 6455 section 7.4.1
WHOLE = 64 * 1024  # bytes of an incomplete message of a client; beyond it the message is forwarded in parts
RESERVED = (1005, 1006, 1015)  # codes that no close frame may have


def routes(dashboard: ApiServerPort) -> list[Route]:
    """Return the route of the gateway's WebSocket."""

    def connect(request: Request) -> Flow[HandlerResult]:
        api = dashboard.require_api()
        relay = SocketRelay(dashboard, request.credential_id)
        try:
            yield from api.peer.socket(dashboard.engine, PATH, relay.upstream, within=dashboard.config.patience)
        except ServiceCallError as error:
            if error.failure is not None:
                raise api.unreachable(api.reason(error.failure)) from None
            raise Refused(502, "unreachable", f"{api.peer.name} answered {error.status}") from None
        return relay

    return [Route(method="GET", pattern=PATH, access=DashboardAccess.TICKET, handler=connect, kind=RouteKind.WEBSOCKET)]


class SocketRelay:
    """Handler of the client's WebSocket, with `upstream`, the handler of the one to the API server."""

    __slots__ = ("_credential_id", "_engine", "client", "early", "upstream")

    def __init__(self, dashboard: ApiServerPort, credential_id: str) -> None:
        self.upstream = UpstreamSocket(self)
        self.client: WebSocketConnection | None = None
        self.early: list[str] = []  # messages that arrived before the client's WebSocket was open
        self._engine = dashboard.engine
        self._credential_id = credential_id

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Send the client the messages that the API server has sent already, and request long messages in parts.
        Close the WebSocket if that to the API server has closed.
        """
        self.client = socket
        if self._credential_id:
            self._engine.revocables[self] = self._credential_id
        for text in self.early:
            socket.send_text(text)
        self.early = []
        if self.upstream.socket is None:
            socket.close(GOING_AWAY, "the API server closed the connection")
        else:
            socket.receive_fragments(WHOLE, self.on_fragment)

    def on_text(self, text: str) -> None:
        """Forward a message, and read no more of the client while the API server does not read.

        Drop it if the WebSocket to the API server has closed.
        """
        socket = self.upstream.socket
        if socket is not None and socket.send_text(text):
            self._pause_client(socket)

    def on_fragment(self, text: str, is_last: bool) -> None:
        """Forward a part of a long message, as `on_text` does."""
        socket = self.upstream.socket
        if socket is not None and socket.send_fragment(text, is_last):
            self._pause_client(socket)

    def on_binary(self, data: bytes) -> None:
        """Close the connection: all messages are text."""
        if self.client is not None:
            self.client.close(UNSUPPORTED_DATA, "messages are text")

    def on_writable(self) -> None:
        """Resume reading from the API server: the client can receive again."""
        if self.upstream.socket is not None:
            self.upstream.socket.set_read_paused(False)

    def on_closed(self, code: int, reason: str) -> None:
        """Close the WebSocket to the API server, if it is open."""
        self.client = None
        self._engine.revocables.pop(self, None)
        if self.upstream.socket is not None:
            self.upstream.socket.close(GOING_AWAY, "the client has disconnected")

    def _pause_client(self, upstream: WebSocketConnection) -> None:
        if not upstream.writable and self.client is not None:
            self.client.set_read_paused(True)

    # --- Revocable ---

    def revoke(self, refused: Refused) -> None:
        """Close the client's WebSocket, if it is open: its sign-in is over."""
        if self.client is not None:
            self.client.close(POLICY_VIOLATION, refused.message)


class UpstreamSocket:
    """Handler of the WebSocket to the API server."""

    __slots__ = ("_relay", "socket")

    def __init__(self, relay: SocketRelay) -> None:
        self._relay = relay
        self.socket: WebSocketConnection | None = None

    def on_open(self, socket: WebSocketConnection) -> None:
        """Store the WebSocket to the API server, for sending."""
        self.socket = socket

    def on_text(self, text: str) -> None:
        """Forward a message to the client, and pause reading while the client does not read.

        Without an open client, store it in `SocketRelay.early`.
        """
        client = self._relay.client
        if client is None:
            self._relay.early.append(text)
            return
        client.send_text(text)
        if not client.writable and self.socket is not None:
            self.socket.set_read_paused(True)

    def on_binary(self, data: bytes) -> None:
        """Ignore the message: the gateway sends text only."""

    def on_writable(self) -> None:
        """Resume reading from the client: the API server can receive again."""
        if self._relay.client is not None:
            self._relay.client.set_read_paused(False)

    def on_closed(self, code: int, reason: str) -> None:
        """Close the client's WebSocket as well, if it is open."""
        self.socket = None
        if self._relay.client is not None:
            self._relay.client.close(GOING_AWAY if code in RESERVED else code, reason)
