"""Client of a Model Context Protocol server: the lifecycle of the connection, and its pending requests.

| state   | trigger | next    |                                                               |
|---------|---------|---------|---------------------------------------------------------------|
| NEW     | OPEN    | OPENING | `initialize` is sent, once the transport is open               |
| OPENING | AGREE   | OPEN    | the server named a supported version; our confirmation is sent |
| OPENING | END     | OVER    |                                                               |
| OPEN    | END     | OVER    | the connection was lost, or was closed here                   |

Messages are read leniently; an unreadable response fails its request at once, if the request can be found. A server may
request nothing but `ping`. Each progress notification renews the time of its request, up to ten times that time in all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, auto
from typing import Protocol

from attrs import define

from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.basics.strict_json import JsonError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.lenient_reader import LenientReader
from svc_proto.facts import OperationId
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import (
    METHOD_NOT_FOUND,
    RpcError,
    write_error,
    write_notification,
    write_request,
    write_result,
)
from svc_proto.schema.mcp_messages import (
    HANDSHAKE_VERSIONS,
    RequestId,
    RpcNotification,
    RpcRequest,
    RpcResponse,
)
from svc_proto.schema.mcp_server_messages import (
    MalformedResponse,
    ServerMessage,
    find_malformed_response,
    read_server_messages,
)
from svc_proto.version import VERSION

__all__ = [
    "MCP_CLIENT_TABLE",
    "MAX_MESSAGE",
    "McpTransport",
    "McpClient",
    "McpError",
    "McpClientState",
    "McpClientTrigger",
]

MAX_MESSAGE = 8 * 1024 * 1024  # bytes of one message of a server; a longer one ends the connection
MAX_ASKED = 64  # pending requests
MAX_PAGES = 32  # of a list
MAX_ROWS = 1_024  # of a list
LONGEST = 10  # times a request's timeout, for a server that reports progress
CLIENT = {"name": "svc-agent", "version": VERSION}


class McpError(Exception):
    """Error of a connection or of a request. The text is for users and models.

    `unheard`: the server has not accepted the request, so it may be repeated.
    """

    def __init__(self, text: str, *, unheard: bool = False) -> None:
        super().__init__(text)
        self.unheard = unheard


class McpTransport(Protocol):
    """Transport of messages to and from an MCP server. It calls methods of the client, such as `receive`."""

    def open(self) -> Flow[None]:
        """Open the transport. Raises `McpError`."""
        ...

    def set_protocol_version(self, version: str, text: bytes) -> Flow[None]:
        """Confirm the protocol version by sending `text`, before any later message. Raises `McpError`."""
        ...

    def send(self, text: bytes, identity: RequestId | None) -> None:
        """Send a message; `identity` is that of a request of ours, None for any other message."""
        ...

    def abandon_request(self, identity: RequestId) -> None:
        """Drop the state of a request that no longer waits: its answer has come, or is not needed."""
        ...

    def close(self) -> None:
        """Close the transport; the client sends no message after it."""
        ...


class McpClientState(IntEnum):
    """State of a connection to an MCP server."""

    NEW = auto()
    OPENING = auto()
    OPEN = auto()
    OVER = auto()


class McpClientTrigger(IntEnum):
    """Event that can change the state of an MCP client."""

    OPEN = auto()
    AGREE = auto()
    END = auto()


MCP_CLIENT_TABLE: Table[McpClientState, McpClientTrigger] = {
    (McpClientState.NEW, McpClientTrigger.OPEN): McpClientState.OPENING,
    (McpClientState.OPENING, McpClientTrigger.AGREE): McpClientState.OPEN,
    (McpClientState.OPENING, McpClientTrigger.END): McpClientState.OVER,
    (McpClientState.OPEN, McpClientTrigger.END): McpClientState.OVER,
}


@define(eq=False)
class _PendingRequest:
    """A request that waits for its answer."""

    ticket: OperationId
    within: float  # s, renewed by each progress notification
    until: float  # monotonic seconds
    latest: float  # monotonic s, not renewed
    answer: RpcResponse | McpError | None = None


class McpClient:
    """Connection to one server: `open` it, `request`, and `close` it. `on_over` is called if it ends by itself."""

    def __init__(
        self,
        engine: Engine,
        carry: Callable[[McpClient], McpTransport],
        *,
        on_over: Callable[[McpError], None] = lambda why: None,
        on_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._carrier = carry(self)
        self._reader = LenientReader(engine, "mcp")
        self._on_over = on_over
        self._on_changed = on_changed
        self._pending: dict[RequestId, _PendingRequest] = {}
        self._count = 0
        self._why = McpError("it is not connected")
        self.state = McpClientState.NEW
        self.offers = JsonObject()  # the server's capabilities
        self.title = ""  # the server's own name
        self.ignored = 0  # messages that are invalid or answer no request

    # --- for users of the server's tools ------------------------------------------------------------------------------

    def open(self, within: float) -> Flow[None]:
        """Connect, and agree on a protocol version. Raises `McpError`."""
        self._step(McpClientTrigger.OPEN)
        try:
            yield from self._carrier.open()
            about = {"protocolVersion": HANDSHAKE_VERSIONS[-1], "capabilities": {}, "clientInfo": CLIENT}
            answer = yield from self.request("initialize", about, within=within)
            version = answer.text("protocolVersion")
            if version not in HANDSHAKE_VERSIONS:
                raise McpError(f"it speaks version {safe_excerpt(version)!r} of the protocol, which is not spoken here")
            yield from self._carrier.set_protocol_version(version, write_notification("notifications/initialized", {}))
        except McpError:
            self.close()
            raise
        self.offers, self.title = (
            answer.get_object("capabilities"),
            safe_excerpt(answer.get_object("serverInfo").text("title", "name")),
        )
        if self.state is McpClientState.OVER:
            raise self._why
        self._step(McpClientTrigger.AGREE)

    def request(self, method: str, params: Mapping[str, object], *, within: float) -> Flow[JsonObject]:
        """Send a request and return its result.

        Raises `McpError` for a refusal, an unusable answer or a timeout, without a connection, and while `MAX_ASKED`
        requests are pending.
        """
        engine = self._engine
        if self.state not in (McpClientState.OPENING, McpClientState.OPEN):
            raise McpError(str(self._why), unheard=True)
        if len(self._pending) >= MAX_ASKED:
            raise McpError(f"{MAX_ASKED} requests wait for its answer already", unheard=True)
        self._count += 1
        identity, now = self._count, engine.now.mono
        pending = self._pending[identity] = _PendingRequest(
            engine.new_op(), within, now + within, now + within * LONGEST
        )
        patient = method != "initialize"  # `initialize` has no progress, and may not be cancelled
        told = {**params, "_meta": {"progressToken": identity}} if patient else params
        self._carrier.send(write_request(identity, method, told), identity)
        try:
            while pending.answer is None and engine.now.mono < pending.until:
                yield from wait(pending.ticket, pending.until)
        finally:
            del self._pending[identity]
            self._carrier.abandon_request(identity)
            if pending.answer is None and patient and self.state is McpClientState.OPEN:
                note = {"requestId": identity, "reason": "no caller waits for it any more"}
                self._carrier.send(write_notification("notifications/cancelled", note), None)
        answer = pending.answer
        if answer is None:
            raise McpError(f"there was no answer in {engine.now.mono - now:g} s")
        if isinstance(answer, McpError):
            raise answer
        if answer.error is not None:
            raise McpError(f"it refuses: {safe_excerpt(answer.error) or 'no reason given'}")
        return answer.result

    def list_all(self, method: str, name: str, *, within: float) -> Flow[list[JsonObject]]:
        """Return the rows of a list, from at most `MAX_PAGES` pages and up to `MAX_ROWS`. Raises `McpError`."""
        found: list[JsonObject] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = yield from self.request(method, {} if cursor is None else {"cursor": cursor}, within=within)
            found += page.objects(name)
            cursor = page.string("nextCursor")
            if cursor is None or len(found) >= MAX_ROWS:
                break
        return found[:MAX_ROWS]

    def close(self) -> None:
        """Close the connection; do nothing if it is closed or was not opened."""
        self._end(McpError("it is not connected"), lambda why: None)

    # --- for the transport --------------------------------------------------------------------------------------------

    def receive(self, data: bytes | str, sole: RequestId | None = None) -> str:
        """Handle a message of the server, unless the connection is over. Return why it cannot be parsed; else "".

        With `sole` the message arrived in the response to this request: an error without an id belongs to it.
        """
        if self.state is McpClientState.OVER:
            return ""
        try:
            value = self._reader.read(data)
        except JsonError as error:
            malformed = find_malformed_response(data, str(error))
            self._handle(malformed, sole)
            return str(error)
        for message in read_server_messages(value) or (None,):
            self._handle(message, sole)
        return ""

    def failed(self, identity: RequestId, why: McpError) -> None:
        """Fail a request with `why`, since it will have no answer; ignore one that is not pending."""
        pending = self._pending.get(identity)
        if pending is not None:
            self._answer(pending, why)

    def transport_closed(self, why: McpError, refused: RequestId | None = None) -> None:
        """End a connection that was lost: call `on_over`, fail all requests. Do nothing if it is over or not opened.

        The `refused` request was not accepted; the outcome of the others is unknown.
        """
        self._end(why, self._on_over, refused)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _handle(self, message: ServerMessage | None, sole: RequestId | None) -> None:
        match message:
            case RpcResponse(identity=identity) if identity in self._pending:
                self._answer(self._pending[identity], message)
            case MalformedResponse(identity=identity, problem=problem):
                pending = self._find_pending(identity, sole)
                if pending is None:
                    self.ignored += 1
                else:
                    self._answer(pending, McpError(f"its answer cannot be used: {safe_excerpt(problem)}"))
            case RpcRequest(identity=identity, method="ping"):
                self._carrier.send(write_result(identity, {}), None)
            case RpcRequest(identity=identity):
                refused = RpcError(METHOD_NOT_FOUND, "nothing can be asked of this client")
                self._carrier.send(write_error(refused, identity), None)
            case RpcNotification(method="notifications/tools/list_changed"):
                self._on_changed()
            case RpcNotification(method="notifications/progress", params=params):
                self._progress(params.integer("progressToken"))
            case _:
                self.ignored += 1

    def _find_pending(self, identity: RequestId | None, sole: RequestId | None) -> _PendingRequest | None:
        """Return the pending request with an id; without an id, the `sole` one or the only pending one; else None."""
        if identity is None:
            identity = sole if sole is not None or len(self._pending) != 1 else next(iter(self._pending))
        return None if identity is None else self._pending.get(identity)

    def _progress(self, token: int | None) -> None:
        pending = None if token is None else self._pending.get(token)
        if pending is not None:
            pending.until = min(self._engine.now.mono + pending.within, pending.latest)

    def _answer(self, pending: _PendingRequest, answer: RpcResponse | McpError) -> None:
        if pending.answer is None:
            pending.answer = answer
            self._engine.resume(pending.ticket, None)

    def _end(self, why: McpError, on_error: Callable[[McpError], None], refused: RequestId | None = None) -> None:
        if self.state in (McpClientState.OPENING, McpClientState.OPEN):
            self._step(McpClientTrigger.END)
            self._why = why
            on_error(why)  # before the requests fail: their callers may send new ones
            for identity, pending in list(self._pending.items()):
                self._answer(pending, McpError(str(why), unheard=True) if identity == refused else why)
            self._carrier.close()

    def _step(self, trigger: McpClientTrigger) -> None:
        self.state = step(MCP_CLIENT_TABLE, self.state, trigger)
