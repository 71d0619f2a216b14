"""Gateway as a service: passes JSON-RPC lines of its client to the API server's gateway and back (wire terminal 2.4).

The API server runs the sessions and their turns, on the WebSocket that phones use as well; it is connected at the first
call, and at the first call after it was lost. After the end of its input the process finishes the calls and turns in
progress, and ends; it ends at once when its output is closed.
"""

from clients.gateway.api_connection import GatewayApiSettings, new_api_client, rpc_error
from svc_proto.cli.line_service import LineService
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.schema.gateway_rpc import INTERNAL, UPSTREAM, RpcCall, event_line, parse_call
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import RpcError, write_error, write_notification, write_request
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["Gateway"]

PATH = "/api/ws"
SOURCE = "tui"  # of clients that read the history from the answer of `session.resume`
WITH_SOURCE = ("session.create", "session.resume")
CONNECT_TIMEOUT = 30.0  # s
MAX_CALLS = 64  # that wait for an answer, as many as the API server takes of one client
GOING_AWAY = 1001  # RFC 6455 section 7.4.1
LOST = "the connection to the API server was lost"
LOST_IN_TURN = LOST + ": the turn continues there, resume the session to read it"


class Gateway(LineService):
    """Service that passes JSON-RPC lines of one client to the API server's WebSocket and back."""

    def __init__(self, settings: GatewayApiSettings, *, resume: str = "") -> None:
        self._settings = settings
        self._greeting = {"skin": {}, "version": settings.version, **({"resume_session_id": resume} if resume else {})}
        self._api = ApiSocket(self)
        self._is_connecting = False
        self._calls: dict[object, RpcCall] = {}  # calls without an answer, by id
        self._unsent: list[RpcCall] = []  # calls that wait for the WebSocket
        self._turns: set[str] = set()  # sessions with a turn in progress

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Store the engine, and create the client of the API server."""
        super().bind(engine)
        self._client = new_api_client(engine, self._settings)

    def on_client_opened(self) -> None:
        """Send `gateway.ready`, also while the API server is down."""
        self.send_line(event_line("gateway.ready", None, self._greeting))

    def on_stopping(self) -> None:
        """Close the WebSocket to the API server, if it is open; the API server continues the turns."""
        self._api.close()

    # --- for the channel ---

    def set_read_paused(self, holding: bool) -> None:
        """Pause reading from the API server, since the client reads too slowly, or resume it."""
        self._api.set_read_paused(holding)

    def on_line(self, line: bytes) -> None:
        """Send a call to the API server, or queue it until the WebSocket is open.

        An invalid call, or one too many, is answered with an error.
        """
        try:
            call = parse_call(line)
            if len(self._calls) >= MAX_CALLS or len(self._unsent) >= MAX_CALLS:
                raise RpcError(INTERNAL, f"at most {MAX_CALLS} calls at a time", identity=call.identity)
        except RpcError as error:
            self.send_line(write_error(error))
            return
        if not call.notification:
            self._calls[call.identity] = call
        if self._api.is_open:
            self._send(call)
            return
        self._unsent.append(call)
        if not self._is_connecting:
            self._is_connecting = True
            self.engine.spawn(self._connect())

    def on_client_closed(self, problem: str) -> None:
        """Send an `error` event to the client if its input ended with a problem."""
        if problem:
            self.send_line(event_line("error", None, {"message": problem}))

    @property
    def is_busy(self) -> bool:
        """Report whether a call or a turn is in progress."""
        return bool(self._calls or self._unsent or self._turns)

    # --- for the connection to the API server ---

    def on_message(self, text: str) -> None:
        """Pass a message of the API server to the client, except `gateway.ready`, which the gateway itself has sent."""
        message = JsonObject.parse_or_empty(text)
        params = message.get_object("params")
        kind, session = params.text("type"), params.text("session_id")
        if kind == "gateway.ready":
            return
        if kind == "message.start":
            self._turns.add(session)
        elif kind == "message.complete":
            self._turns.discard(session)
        elif "method" not in message:
            call = self._calls.pop(message.get("id"), None)
            if call is not None and call.method == "prompt.submit" and "result" in message:
                self._turns.add(call.params.text("session_id"))
        self.send_line(text.encode())
        self.close_if_done()

    def on_api_closed(self) -> None:
        """Answer all calls with an error, and send `error` and `message.complete` events for each running turn."""
        for session in self._turns:
            self.send_line(event_line("error", session, {"message": LOST_IN_TURN}))
            ending = {"text": "", "usage": {}, "status": "error"}
            self.send_line(event_line("message.complete", session, ending))
        self._turns.clear()
        self._refuse_calls(RpcError(UPSTREAM, LOST))

    # --- helpers ---

    def _connect(self) -> Flow[None]:
        try:
            yield from self._client.socket(self.engine, PATH, self._api, within=CONNECT_TIMEOUT)
        except ServiceCallError as error:
            self._refuse_calls(rpc_error(error))
            return
        finally:
            self._is_connecting = False
        calls, self._unsent = self._unsent, []
        for call in calls:
            self._send(call)

    def _send(self, call: RpcCall) -> None:
        params = call.params
        if call.method in WITH_SOURCE and not params.text("source"):
            params = JsonObject(params, source=SOURCE)
        if call.notification:
            self._api.send(write_notification(call.method, params))
        else:
            self._api.send(write_request(call.identity, call.method, params))

    def _refuse_calls(self, error: RpcError) -> None:
        """Answer all calls with an error. An unsent notification has no answer: an event reports its loss."""
        calls, self._calls = self._calls, {}
        unsent, self._unsent = self._unsent, []
        lost = [call for call in unsent if call.notification]
        if calls or lost:
            counts = {"calls": len(calls), "notifications": len(lost)}
            self.engine.log(Level.WARNING, "calls have failed", reason=str(error), **counts)
        for identity in calls:
            self.send_line(write_error(error, identity))
        for call in lost:
            payload: dict[str, object] = {"message": f"{call.method} was not sent: {error}"}
            self.send_line(event_line("error", call.params.text("session_id") or None, payload))
        self.close_if_done()


class ApiSocket(WebSocketHandler):
    """Handler of the WebSocket to the API server."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._socket: WebSocketConnection | None = None

    @property
    def is_open(self) -> bool:
        """Report whether the WebSocket is open."""
        return self._socket is not None

    def send(self, line: bytes) -> None:
        """Send one line as a text message, if the WebSocket is open."""
        if self._socket is not None:
            self._socket.send_text(line)

    def set_read_paused(self, holding: bool) -> None:
        """Pause or resume reading from the WebSocket, if it is open."""
        if self._socket is not None:
            self._socket.set_read_paused(holding)

    def close(self) -> None:
        """Close the WebSocket, if it is open."""
        if self._socket is not None:
            self._socket.close(GOING_AWAY, "the client has disconnected")

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Implement `WebSocketHandler.on_open`: store the WebSocket for `send`."""
        self._socket = socket

    def on_text(self, text: str) -> None:
        """Pass the message to the gateway."""
        self._gateway.on_message(text)

    def on_closed(self, code: int, reason: str) -> None:
        """Mark the WebSocket as closed, and notify the gateway."""
        self._socket = None
        self._gateway.on_api_closed()
