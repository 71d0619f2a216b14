"""Session of one MCP client on any transport: the lifecycle, and the requests under way.

Versions until 2025-11-25 begin with a handshake, whose states are below. From 2026-07-28 on each request names its
version (`_meta`), and there is no state. A client may use either.

| state   | trigger       | next    |
|---------|---------------|---------|
| `NEW`   | `INITIALIZE`  | `ASKED` | the answer names the version
| `ASKED` | `INITIALIZED` | `OPEN`  |
| `ASKED` | `INITIALIZE`  | `ASKED` | a new handshake, possibly with another version
| `OPEN`  | `INITIALIZED` | `OPEN`  |
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto
from functools import partial

from svc_proto.agent.tools.tool import Arguments
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import OperationId
from svc_proto.machines.transitions import Table
from svc_proto.machines.transitions import step as follow
from svc_proto.mcp.pending_request import (
    NO_FORM,
    VERSION,
    OutgoingMessage,
    PendingRequest,
    RequestContext,
    SendCallback,
    discard_message,
    error_message,
    modern_context,
)
from svc_proto.mcp.server_features import Handler, RequestHandlers, Result
from svc_proto.mcp.subscriptions import Subscriptions
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    RpcError,
    write_error,
    write_notification,
    write_request,
)
from svc_proto.schema.mcp_messages import (
    HANDSHAKE_VERSIONS,
    TOO_MANY,
    Message,
    RequestId,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    parse_mcp_message,
    request_id,
)

__all__ = ["MCP_SESSION_TABLE", "McpSession", "McpSessionState", "McpSessionTrigger"]

ELICITS = HANDSHAKE_VERSIONS[2:]  # versions in which a server may send questions
MAX_CALLS = 32  # requests under way of one client
ELICITATION_TIMEOUT = 180.0  # s for the user's answer
NOTHING_AGREED = RequestContext("", elicits=False)


class McpSessionState(IntEnum):
    """State of the handshake."""

    NEW = auto()
    ASKED = auto()
    OPEN = auto()


class McpSessionTrigger(IntEnum):
    """Event that can change the state of the handshake."""

    INITIALIZE = auto()
    INITIALIZED = auto()


MCP_SESSION_TABLE: Table[McpSessionState, McpSessionTrigger] = {
    (McpSessionState.NEW, McpSessionTrigger.INITIALIZE): McpSessionState.ASKED,
    (McpSessionState.ASKED, McpSessionTrigger.INITIALIZED): McpSessionState.OPEN,
    (McpSessionState.ASKED, McpSessionTrigger.INITIALIZE): McpSessionState.ASKED,
    (McpSessionState.OPEN, McpSessionTrigger.INITIALIZED): McpSessionState.OPEN,
}


class McpSession:
    """Session of one client. Messages go in by `receive`, `handle_message` or `handle_request`.

    Those about a request go out by the `send` that came with it, all others by the session's. `close` it when the
    client disconnects. Sessions of the same client may share `answers`.
    """

    def __init__(
        self,
        engine: Engine,
        answers: RequestHandlers,
        send: SendCallback,
        *,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._send = send
        self._on_idle = on_idle
        self._answers = answers
        self._state = McpSessionState.NEW
        self._agreed = NOTHING_AGREED  # result of the handshake
        self._calls: dict[RequestId, _SessionRequest] = {}
        self._questions: dict[RequestId, OperationId] = {}  # waits for answers to our questions, by request id
        self._request_count = 0
        self._subscriptions: Subscriptions | None = None

    @property
    def busy(self) -> bool:
        """Report whether requests are under way."""
        return bool(self._calls)

    @property
    def version(self) -> str:
        """Return the version of the handshake; empty without one."""
        return self._agreed.version

    def receive(self, data: bytes) -> None:
        """Parse one message and handle it; answer an invalid one with an error."""
        try:
            message = parse_mcp_message(data)
        except RpcError as error:
            self._send(OutgoingMessage(write_error(error)))
            return
        self.handle_message(message)

    def handle_message(self, message: Message) -> None:
        """Handle a request, a notification, or an answer to a question of ours."""
        if isinstance(message, RpcRequest):
            self.handle_request(message, self._send)
        elif isinstance(message, RpcNotification):
            self._note(message)
        else:
            self._answered(message)

    def handle_request(self, request: RpcRequest, send: SendCallback) -> None:
        """Handle a request; messages about the request go to `send`.

        These requests are answered with an error at once: one with the id of a request under way, one beyond
        `MAX_CALLS`, one that needs a handshake first, and one that names an unsupported version.
        """
        identity, calls = request.identity, self._calls
        try:
            if identity in calls:
                raise RpcError(INVALID_REQUEST, "a request of this id is under way")
            if len(calls) >= MAX_CALLS:
                raise RpcError(TOO_MANY, f"{MAX_CALLS} requests are under way")
            context = self._context(request)
        except RpcError as error:
            send(error_message(error, identity))
            return
        call = calls[identity] = _SessionRequest(self._engine, self._answers, request, context, send)
        call.home = self
        call.start()

    def has_pending(self, identity: RequestId) -> bool:
        """Report whether a request of this id is under way."""
        return identity in self._calls

    def set_paused(self, holding: bool) -> None:
        """Pause or resume notifications of changes, as the client's transport is full, or has room again.

        They are those of this session, and of all listening requests of its `answers`.
        """
        self._answers.set_paused(holding)
        if self._subscriptions is not None:
            self._subscriptions.set_paused(holding)

    def stop(self) -> None:
        """End the subscriptions, and count open questions as not answered; requests under way get their answers."""
        if self._subscriptions is not None:
            self._subscriptions.close()
        for ticket in [*self._questions.values()]:
            self._engine.resume(ticket, {})

    def close(self) -> None:
        """Cancel all requests without answers, and end the subscriptions."""
        if self._subscriptions is not None:
            self._subscriptions.close()
        calls, self._calls = self._calls, {}
        for call in reversed(calls.values()):  # last first, as a request may start when the one before ends
            call.discard()
        self._send = discard_message  # breaks the reference cycle with the transport

    # --- requests -------------------------------------------------------------------------------------------------

    def request_finished(self, identity: RequestId, send: SendCallback, outgoing: OutgoingMessage) -> None:
        """Remove a request and send its answer; call `on_idle` after the last one."""
        self._calls.pop(identity, None)
        send(outgoing)
        if not self._calls:
            self._on_idle()

    def own_handler(self, method: str) -> Handler | None:
        """Return the handler of a method that only versions with the handshake have; None for any other method."""
        match method:
            case "initialize":
                return self._initialize
            case "ping":
                return _pong
            case "resources/subscribe" | "resources/unsubscribe":
                return partial(self._subscribe, method)
        return None

    def _context(self, request: RpcRequest) -> RequestContext:
        params = request.params
        meta = params.get_object("_meta") if "_meta" in params else params
        if VERSION in meta and meta is not params:
            return modern_context(meta)
        if self._state is McpSessionState.NEW and request.method not in ("initialize", "ping"):
            raise RpcError(INVALID_REQUEST, "initialize comes first, or _meta with the version of the protocol")
        return self._agreed

    def _initialize(self, params: JsonObject, call: PendingRequest) -> Result:
        if (self._state, McpSessionTrigger.INITIALIZE) not in MCP_SESSION_TABLE:
            raise RpcError(INVALID_REQUEST, "this was initialized already")
        wanted = params.string("protocolVersion")
        if wanted is None:
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a string")
        version = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        elicits = version in ELICITS and "elicitation" in params.get_object("capabilities")
        self._agreed = RequestContext(version, elicits=elicits)
        self._state = follow(MCP_SESSION_TABLE, self._state, McpSessionTrigger.INITIALIZE)
        about = self._answers.capabilities()
        return {"protocolVersion": version, "serverInfo": self._answers.info, **about}

    # --- notes and answers ----------------------------------------------------------------------------------------

    def _note(self, note: RpcNotification) -> None:
        if (
            note.method == "notifications/initialized"
            and (self._state, McpSessionTrigger.INITIALIZED) in MCP_SESSION_TABLE
        ):
            self._state = follow(MCP_SESSION_TABLE, self._state, McpSessionTrigger.INITIALIZED)
        elif note.method == "notifications/cancelled":
            self._cancelled(request_id(note.params.get("requestId")))

    def _cancelled(self, identity: RequestId | None) -> None:
        """Cancel a request without an answer. A command that the phone has received is still executed."""
        call = None if identity is None else self._calls.pop(identity, None)
        if call is not None:
            call.discard()
            if not self._calls:
                self._on_idle()

    def _answered(self, answer: RpcResponse) -> None:
        ticket = self._questions.pop(answer.identity, None)
        if ticket is not None:
            self._engine.resume(ticket, answer.result)

    # --- subscriptions --------------------------------------------------------------------------------------------

    def _subscribe(self, method: str, params: JsonObject, call: PendingRequest) -> Result:
        resource = self._answers.resource(params)
        if self._subscriptions is None:
            self._subscriptions = Subscriptions(self._engine, self._updated)
        if method == "resources/subscribe":
            self._subscriptions.add(resource)
        else:
            self._subscriptions.remove(resource.uri)
        return {}

    def _updated(self, uri: str) -> None:
        self._send(OutgoingMessage(write_notification("notifications/resources/updated", {"uri": uri})))

    # --- questions ------------------------------------------------------------------------------------------------

    def elicit(self, text: str, send: SendCallback) -> Flow[bool]:
        """Send a question for the client's user; return whether the user accepted within `ELICITATION_TIMEOUT`."""
        self._request_count += 1
        identity = f"ask-{self._request_count}"
        ticket = self._questions[identity] = self._engine.new_op()
        question = {"message": text, "requestedSchema": NO_FORM}
        send(OutgoingMessage(write_request(identity, "elicitation/create", question)))
        try:
            answer = yield from wait(ticket, self._engine.now.mono + ELICITATION_TIMEOUT)
        finally:
            if self._questions.pop(identity, None) is not None:
                told = {"requestId": identity, "reason": "no caller waits for it any more"}
                send(OutgoingMessage(write_notification("notifications/cancelled", told)))
        return JsonObject.of(answer).get("action") == "accept"


class _SessionRequest(PendingRequest):
    """A request under way in a session; outside of the stateless mode it has the methods of the handshake versions."""

    __slots__ = ("home",)

    home: McpSession

    def discard(self) -> None:
        """Cancel the request, and send a `final` message without text in place of the answer."""
        send = self._send
        self.cancel()
        send(OutgoingMessage(b"", final=True))

    def _unknown_method(self, method: str) -> Handler:
        own = None if self._context.modern else self.home.own_handler(method)
        return own or super()._unknown_method(method)

    def _confirm(self, name: str, arguments: Arguments, text: str) -> Flow[bool]:
        if self._context.modern:
            return super()._confirm(name, arguments, text)
        return self.home.elicit(text, self._send)

    def _answer(self, outgoing: OutgoingMessage) -> None:
        if self._send is not discard_message:
            self.home.request_finished(self.request.identity, self._send, outgoing)


def _pong(params: JsonObject, call: PendingRequest) -> Result:
    return {}
