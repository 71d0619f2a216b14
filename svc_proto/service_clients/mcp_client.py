"""A server of the Model Context Protocol, as those have it who use its tools: the lifecycle, and what it was asked.

| state   | trigger | next    |                                                               |
|---------|---------|---------|---------------------------------------------------------------|
| NEW     | OPEN    | OPENING | `initialize` is said, once there is something to say it over   |
| OPENING | AGREE   | OPEN    | it has named a version that we speak, and knows that we agree |
| OPENING | END     | OVER    |                                                               |
| OPEN    | END     | OVER    | it was lost, or is not wanted any more                        |

Nothing that a server says is believed: an answer is that of the request whose number it has, and any other is left out.
A server may ask for nothing but `ping`: we offer no roots, no sampling and no elicitation. What a request costs is
bounded in time, in size by what carries it, and lists in pages and rows. A server that tells of progress has its time
anew with each word, and ten times its time in all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Protocol

from attrs import define

from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.engine.flow import Flow, wait
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
    parse_mcp_message,
)
from svc_proto.version import VERSION

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = [
    "MCP_CLIENT_TABLE",
    "MAX_MESSAGE",
    "McpTransport",
    "McpClient",
    "McpError",
    "McpClientState",
    "McpClientTrigger",
]

MAX_MESSAGE = 8 * 1024 * 1024  # bytes of one message of a server: more ends the connection
MAX_ASKED = 64  # requests of ours that wait for an answer
MAX_PAGES = 32  # of a list
MAX_ROWS = 1_024  # of a list
LONGEST = 10  # times the time of a request, for a server that tells of progress
CLIENT = {"name": "svc-agent", "version": VERSION}


class McpError(Exception):
    """Nothing came of it. The text is for people and models, in one line, and holds no secret.

    `unheard`: the server has not taken the request, so it may be made again.
    """

    def __init__(self, text: str, *, unheard: bool = False) -> None:
        super().__init__(text)
        self.unheard = unheard


class McpTransport(Protocol):
    """What messages go over. It tells a client what was `heard`, which request has `failed`, and that all is `over`."""

    def open(self) -> Flow[None]:
        """Get ready to carry. Raises `McpError`."""
        ...

    def set_protocol_version(self, version: str, text: bytes) -> Flow[None]:
        """Have the server know that we speak this version: `text` is heard before anything else. Raises `McpError`."""
        ...

    def send(self, text: bytes, identity: RequestId | None) -> None:
        """Carry a message; `identity` is that of a request of ours."""
        ...

    def abandon_request(self, identity: RequestId) -> None:
        """Nobody waits for the answer to this request any more: it came, or it need not come."""
        ...

    def close(self) -> None:
        """Say goodbye, and carry nothing more."""
        ...


class McpClientState(IntEnum):
    """Of one connection."""

    NEW = auto()
    OPENING = auto()
    OPEN = auto()
    OVER = auto()


class McpClientTrigger(IntEnum):
    """What moves it."""

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
    within: float  # s, anew with each word of progress
    until: float  # monotonic seconds
    latest: float  # the same, whatever is told
    answer: RpcResponse | McpError | None = None


class McpClient:
    """One connection to one server: `open` it, `request`, and `close` it. `on_over` hears why it ended by itself."""

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
        self._on_over = on_over
        self._on_changed = on_changed
        self._asked: dict[RequestId, _PendingRequest] = {}
        self._count = 0
        self._why = McpError("it is not connected")
        self.state = McpClientState.NEW
        self.offers = JsonObject()  # its capabilities
        self.title = ""  # what it calls itself
        self.ignored = 0  # messages that answer nothing, or are none

    # --- for whoever uses its tools -------------------------------------------------------------------------------

    def open(self, within: float) -> Flow[None]:
        """Connect, and agree on a version. Raises `McpError`."""
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
        """Make a request; its result. Raises `McpError`: what it refuses, no answer in time, or a lost connection."""
        engine = self._engine
        if self.state not in (McpClientState.OPENING, McpClientState.OPEN):
            raise McpError(str(self._why), unheard=True)
        if len(self._asked) >= MAX_ASKED:
            raise McpError(f"{MAX_ASKED} requests wait for its answer already", unheard=True)
        self._count += 1
        identity, now = self._count, engine.now.mono
        asked = self._asked[identity] = _PendingRequest(engine.new_op(), within, now + within, now + within * LONGEST)
        patient = method != "initialize"  # which tells of no progress, and may not be cancelled
        told = {**params, "_meta": {"progressToken": identity}} if patient else params
        self._carrier.send(write_request(identity, method, told), identity)
        try:
            while asked.answer is None and engine.now.mono < asked.until:
                yield from wait(asked.ticket, asked.until)
        finally:
            del self._asked[identity]
            self._carrier.abandon_request(identity)
            if asked.answer is None and patient and self.state is McpClientState.OPEN:
                note = {"requestId": identity, "reason": "nobody waits for it any more"}
                self._carrier.send(write_notification("notifications/cancelled", note), None)
        answer = asked.answer
        if answer is None:
            raise McpError(f"there was no answer in {engine.now.mono - now:g} s")
        if isinstance(answer, McpError):
            raise answer
        if answer.error is not None:
            raise McpError(f"it refuses: {safe_excerpt(answer.error) or 'no reason given'}")
        return answer.result

    def list_all(self, method: str, name: str, *, within: float) -> Flow[list[JsonObject]]:
        """A list with all of its pages, `MAX_ROWS` at the most. Raises `McpError`."""
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
        """It is not wanted any more. Harmless when it is over."""
        self._end(McpError("it is not connected"), lambda why: None)

    # --- for the carrier ------------------------------------------------------------------------------------------

    def receive(self, data: bytes | str) -> None:
        """The server has said something."""
        if self.state is McpClientState.OVER:
            return
        try:
            message = parse_mcp_message(data)
        except RpcError:
            self.ignored += 1
            return
        match message:
            case RpcResponse(identity=identity):
                asked = self._asked.get(identity)
                if asked is None:
                    self.ignored += 1
                    return
                self._answer(asked, message)
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

    def failed(self, identity: RequestId, why: McpError) -> None:
        """There will be no answer to this request."""
        asked = self._asked.get(identity)
        if asked is not None:
            self._answer(asked, why)

    def transport_closed(self, why: McpError, refused: RequestId | None = None) -> None:
        """The connection has ended by itself. Harmless when it was over.

        One request may be `refused` by that, and not be taken; what became of the others nobody knows.
        """
        self._end(why, self._on_over, refused)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _progress(self, token: int | None) -> None:
        asked = None if token is None else self._asked.get(token)
        if asked is not None:
            asked.until = min(self._engine.now.mono + asked.within, asked.latest)

    def _answer(self, asked: _PendingRequest, answer: RpcResponse | McpError) -> None:
        if asked.answer is None:
            asked.answer = answer
            self._engine.resume(asked.ticket, None)

    def _end(self, why: McpError, tell: Callable[[McpError], None], refused: RequestId | None = None) -> None:
        if self.state in (McpClientState.OPENING, McpClientState.OPEN):
            self._step(McpClientTrigger.END)
            self._why = why
            tell(why)  # before those who wait, who may ask again
            for identity, asked in list(self._asked.items()):
                self._answer(asked, McpError(str(why), unheard=True) if identity == refused else why)
            self._carrier.close()

    def _step(self, trigger: McpClientTrigger) -> None:
        self.state = step(MCP_CLIENT_TABLE, self.state, trigger)
