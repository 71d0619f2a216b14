"""A shop behind `/mcp` of a relay, and its callers: messages in by POST, answers and events out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from svc_proto.mcp.call import MODERN
from svc_proto.mcp.http import McpServer
from svc_proto.wire.events import ResponseData, ResponseHead
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from tests.mcp.desk import Shop, modern
from tests.relay.world import REMOTE, Answer, Call, RelayBook

__all__ = ["HANDSHAKE", "Web", "events", "message"]

HANDSHAKE = "2025-11-25"
Texts = Mapping[str, str | None]


def message(method: str, identity: int | str | None = 1, /, **params: Any) -> dict[str, object]:
    """A request, or a note."""
    numbered = {} if identity is None else {"id": identity}
    return {"jsonrpc": "2.0", **numbered, "method": method, "params": params}


def events(call: Call) -> list[ServerSentEvent]:
    """What a stream has told so far."""
    body = b"".join(event.data for event in call.events if isinstance(event, ResponseData))
    return EventStreamDecoder().receive_data(body)


class Web:
    """One bearer, and the sessions that he opens."""

    def __init__(self) -> None:
        self.shop = Shop()
        self.book = RelayBook()
        self.server = self.book.relay._mcp = McpServer(self.book.engine, lambda session: self.shop.offer())
        self.token = self.book.pair().token

    def call(self, method: str, body: object = None, headers: Texts | None = None, *, token: str = "") -> Call:
        """A request over HTTP; a header of None is left out."""
        fields = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        said = {**fields, **(headers or {})}
        pairs = [(name.encode(), value.encode()) for name, value in said.items() if value is not None]
        return self.book.call(method, "/mcp", body, token=token or self.token, headers=pairs, peer=REMOTE)

    def post(self, body: object, headers: Texts | None = None, *, token: str = "") -> Answer:
        """One that is answered at once."""
        return self.call("POST", body, headers, token=token).result

    def open(self, capabilities: Mapping[str, object] | None = None, version: str = HANDSHAKE, token: str = "") -> str:
        """A session: its number."""
        about: dict[str, Any] = {"protocolVersion": version, "capabilities": capabilities or {}}
        answer = self.post(message("initialize", **about), token=token)
        assert answer.status == 200, answer
        session = (answer.headers.get(b"mcp-session-id") or b"").decode()
        note = self.post(message("notifications/initialized", None), self.of(session), token=token)
        assert (note.status, note.body) == (202, b"")
        return session

    def of(self, session: str, **more: str) -> dict[str, str]:
        """The headers of a session."""
        return {"mcp-session-id": session, "mcp-protocol-version": HANDSHAKE, **more}

    def stateless(self, method: str, headers: Texts | None = None, *, elicits: bool = False, **params: Any) -> Call:
        """A request that says by itself what it speaks."""
        name = params.get("name", params.get("uri"))
        said: dict[str, str | None] = {"mcp-protocol-version": MODERN, "mcp-method": method}
        if isinstance(name, str):
            said["mcp-name"] = name
        about: dict[str, Any] = modern({"elicitation": {}} if elicits else {}, **params)
        return self.call("POST", message(method, **about), {**said, **(headers or {})})

    def tool(self, session: str, name: str, identity: int = 7, token: Any = None, **arguments: object) -> Call:
        """A call of a tool in a session."""
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        body = message("tools/call", identity, name=name, arguments=arguments, **meta)
        return self.call("POST", body, self.of(session))

    def status(self, call: Call) -> int:
        """Of an answer whose end may be still to come; 0: there is none."""
        return next((event.status for event in call.events if isinstance(event, ResponseHead)), 0)

    def told(self, call: Call) -> list[Any]:
        """The messages of a stream."""
        return [json.loads(event.data) for event in events(call) if event.data]
