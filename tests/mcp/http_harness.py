"""Clients of a server's `/mcp` in memory: messages by POST, answers and events in return."""

import json
from collections.abc import Mapping
from typing import Any

from svc_proto.mcp.pending_request import STATELESS_VERSION
from svc_proto.mcp.streamable_http import McpHttpServer
from svc_proto.wire.events import ResponseHead
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from tests.mcp.stdio_harness import ToyMcpServer, modern
from tests.relay.harness import REMOTE, HttpCall, RelayHarness
from tests.support.http_codec import Response
from tests.support.http_harness import HttpHarness

HANDSHAKE = "2025-11-25"
TYPES = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
Texts = Mapping[str, str | None]


def message(method: str, identity: int | str | None = 1, /, **params: Any) -> dict[str, object]:
    """Return a request, or a notification if `identity` is None."""
    numbered = {} if identity is None else {"id": identity}
    return {"jsonrpc": "2.0", **numbered, "method": method, "params": params}


def fields(headers: Texts | None = None) -> list[tuple[bytes, bytes]]:
    """Return the header fields of a request: the media types and these; a field of None is omitted."""
    said = {**TYPES, **(headers or {})}
    return [(name.encode(), value.encode()) for name, value in said.items() if value is not None]


def events(call: HttpCall) -> list[ServerSentEvent]:
    """Return the events of a stream so far."""
    return EventStreamDecoder().receive_data(call.body)


def stream_messages(call: HttpCall) -> list[Any]:
    """Return the messages of a stream so far."""
    return [json.loads(event.data) for event in events(call) if event.data]


def status(call: HttpCall) -> int:
    """Return the status of an answer that may be incomplete; 0 without one."""
    return next((event.status for event in call.events if isinstance(event, ResponseHead)), 0)


class McpHttpSession:
    """Client with an open session; `way` has the options of `HttpHarness.call`."""

    def __init__(
        self, book: HttpHarness, capabilities: Mapping[str, object] | None = None, version: str = HANDSHAKE, **way: Any
    ) -> None:
        self.book = book
        self.way = way
        self.headers: dict[str, str] = {}
        self.numbers = 0  # ids of requests
        opened = self.begin("initialize", protocolVersion=version, capabilities=capabilities or {}).result
        assert opened.status == 200, opened
        self.about = opened.json["result"]
        self.identity = (opened.headers.get(b"mcp-session-id") or b"").decode()
        self.headers = {"mcp-session-id": self.identity, "mcp-protocol-version": version}
        note = self.post(message("notifications/initialized", None))
        assert (note.status, note.body) == (202, b"")

    def call(self, method: str, body: object = None, headers: Texts | None = None) -> HttpCall:
        """Send an HTTP request to `/mcp` with the fields of the session."""
        shown = fields({**self.headers, **(headers or {})})
        return self.book.call(method, "/mcp", body, headers=shown, **self.way)

    def post(self, body: object) -> Response:
        """Send a message by POST and return the response, which must be complete at once."""
        return self.call("POST", body).result

    def begin(self, method: str, identity: int | str | None = None, /, **params: Any) -> HttpCall:
        """Send a request; the default id is the next number."""
        self.numbers += 1
        return self.call("POST", message(method, self.numbers if identity is None else identity, **params))

    def request(self, method: str, **params: Any) -> Any:
        """Send a request and return its result or error."""
        answer = self.begin(method, **params).result.json
        return answer.get("result", answer.get("error"))

    def tool(self, name: str, identity: int | None = None, *, token: object = None, **arguments: object) -> HttpCall:
        """Send a call of a tool; with a `token` it requests progress notifications."""
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.begin("tools/call", identity, name=name, arguments=arguments, **meta)

    def cancel(self, identity: int) -> int:
        """Cancel a request and return the status of the answer."""
        return self.post(message("notifications/cancelled", None, requestId=identity)).status

    def listen(self, last: str | None = None) -> HttpCall:
        """Open the stream of server messages, or resume the stream behind this event."""
        return self.call("GET", headers={"last-event-id": last})

    def end(self) -> int:
        """End the session and return the status of the answer."""
        return self.call("DELETE").result.status


class McpHttpHarness:
    """Relay with a toy MCP server and one bearer."""

    def __init__(self) -> None:
        self.shop = ToyMcpServer()
        self.book = RelayHarness()
        self.server = self.book.relay._mcp = McpHttpServer(self.book.engine, lambda session: self.shop.offer())
        self.token = self.book.pair().token

    def call(self, method: str, body: object = None, headers: Texts | None = None) -> HttpCall:
        """Send an HTTP request to `/mcp` with the bearer token."""
        return self.book.call(method, "/mcp", body, token=self.token, headers=fields(headers), peer=REMOTE)

    def post(self, body: object, headers: Texts | None = None) -> Response:
        """Send a message by POST and return the response, which must be complete at once."""
        return self.call("POST", body, headers).result

    def open(
        self, capabilities: Mapping[str, object] | None = None, version: str = HANDSHAKE, *, token: str = ""
    ) -> McpHttpSession:
        """Open a session, with the token of another bearer if given."""
        return McpHttpSession(self.book, capabilities, version, token=token or self.token, peer=REMOTE)

    def stateless(self, method: str, headers: Texts | None = None, *, elicits: bool = False, **params: Any) -> HttpCall:
        """Send a stateless request, which carries its own protocol version."""
        name = params.get("name", params.get("uri"))
        said: dict[str, str | None] = {"mcp-protocol-version": STATELESS_VERSION, "mcp-method": method}
        if isinstance(name, str):
            said["mcp-name"] = name
        about: dict[str, Any] = modern({"elicitation": {}} if elicits else {}, **params)
        return self.call("POST", message(method, **about), {**said, **(headers or {})})
