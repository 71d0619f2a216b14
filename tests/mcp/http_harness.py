"""Callers of `/mcp` of a server in memory: messages in by POST, answers and events out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from svc_proto.mcp.pending_request import STATELESS_VERSION
from svc_proto.mcp.streamable_http import McpHttpServer
from svc_proto.wire.events import ResponseHead
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from tests.mcp.stdio_harness import ToyMcpServer, modern
from tests.relay.harness import REMOTE, HttpCall, RelayHarness
from tests.support.http_client import Response
from tests.support.http_harness import HttpHarness

HANDSHAKE = "2025-11-25"
TYPES = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
Texts = Mapping[str, str | None]


def message(method: str, identity: int | str | None = 1, /, **params: Any) -> dict[str, object]:
    """A request, or a note."""
    numbered = {} if identity is None else {"id": identity}
    return {"jsonrpc": "2.0", **numbered, "method": method, "params": params}


def fields(headers: Texts | None = None) -> list[tuple[bytes, bytes]]:
    """The headers of a request: the types, and these; one of None is left out."""
    said = {**TYPES, **(headers or {})}
    return [(name.encode(), value.encode()) for name, value in said.items() if value is not None]


def events(call: HttpCall) -> list[ServerSentEvent]:
    """What a stream has told so far."""
    return EventStreamDecoder().receive_data(call.body)


def stream_messages(call: HttpCall) -> list[Any]:
    """The messages of a stream."""
    return [json.loads(event.data) for event in events(call) if event.data]


def status(call: HttpCall) -> int:
    """Of an answer whose end may be still to come; 0: there is none."""
    return next((event.status for event in call.events if isinstance(event, ResponseHead)), 0)


class McpHttpSession:
    """A client that has opened a session; `way` is how its calls come, as `HttpHarness.call` takes it."""

    def __init__(
        self, book: HttpHarness, capabilities: Mapping[str, object] | None = None, version: str = HANDSHAKE, **way: Any
    ) -> None:
        self.book = book
        self.way = way
        self.headers: dict[str, str] = {}
        self.numbers = 0  # of requests
        opened = self.begin("initialize", protocolVersion=version, capabilities=capabilities or {}).result
        assert opened.status == 200, opened
        self.about = opened.json["result"]
        self.identity = (opened.headers.get(b"mcp-session-id") or b"").decode()
        self.headers = {"mcp-session-id": self.identity, "mcp-protocol-version": version}
        note = self.post(message("notifications/initialized", None))
        assert (note.status, note.body) == (202, b"")

    def call(self, method: str, body: object = None, headers: Texts | None = None) -> HttpCall:
        """A request over HTTP."""
        shown = fields({**self.headers, **(headers or {})})
        return self.book.call(method, "/mcp", body, headers=shown, **self.way)

    def post(self, body: object) -> Response:
        """A message that is answered at once."""
        return self.call("POST", body).result

    def begin(self, method: str, identity: int | str | None = None, /, **params: Any) -> HttpCall:
        """A request; without an identity it has the next number."""
        self.numbers += 1
        return self.call("POST", message(method, self.numbers if identity is None else identity, **params))

    def request(self, method: str, **params: Any) -> Any:
        """One that is answered at once: its result, or its error."""
        answer = self.begin(method, **params).result.json
        return answer.get("result", answer.get("error"))

    def tool(self, name: str, identity: int | None = None, *, token: object = None, **arguments: object) -> HttpCall:
        """A call of a tool."""
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.begin("tools/call", identity, name=name, arguments=arguments, **meta)

    def cancel(self, identity: int) -> int:
        """A request is wanted no more: the status of what is said to that."""
        return self.post(message("notifications/cancelled", None, requestId=identity)).status

    def listen(self, last: str | None = None) -> HttpCall:
        """Hear what is said by itself, or what comes after the event of that number."""
        return self.call("GET", headers={"last-event-id": last})

    def end(self) -> int:
        """Want no more of it: the status of the answer."""
        return self.call("DELETE").result.status


class McpHttpHarness:
    """A relay with a shop, and one bearer."""

    def __init__(self) -> None:
        self.shop = ToyMcpServer()
        self.book = RelayHarness()
        self.server = self.book.relay._mcp = McpHttpServer(self.book.engine, lambda session: self.shop.offer())
        self.token = self.book.pair().token

    def call(self, method: str, body: object = None, headers: Texts | None = None) -> HttpCall:
        """A request over HTTP."""
        return self.book.call(method, "/mcp", body, token=self.token, headers=fields(headers), peer=REMOTE)

    def post(self, body: object, headers: Texts | None = None) -> Response:
        """One that is answered at once."""
        return self.call("POST", body, headers).result

    def open(
        self, capabilities: Mapping[str, object] | None = None, version: str = HANDSHAKE, *, token: str = ""
    ) -> McpHttpSession:
        """A session; with a `token` another bearer's."""
        return McpHttpSession(self.book, capabilities, version, token=token or self.token, peer=REMOTE)

    def stateless(self, method: str, headers: Texts | None = None, *, elicits: bool = False, **params: Any) -> HttpCall:
        """A request that says by itself what it speaks."""
        name = params.get("name", params.get("uri"))
        said: dict[str, str | None] = {"mcp-protocol-version": STATELESS_VERSION, "mcp-method": method}
        if isinstance(name, str):
            said["mcp-name"] = name
        about: dict[str, Any] = modern({"elicitation": {}} if elicits else {}, **params)
        return self.call("POST", message(method, **about), {**said, **(headers or {})})
