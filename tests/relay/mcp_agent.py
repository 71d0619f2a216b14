"""An MCP client of a relay, and what it was told."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from tests.mcp.web import HANDSHAKE, message
from tests.relay.routes.media_world import PNG, upload_json
from tests.relay.world import REMOTE, Call, RelayBook

__all__ = ["TYPES", "Agent", "result", "text", "upload"]

TYPES = ((b"accept", b"application/json, text/event-stream"), (b"content-type", b"application/json"))


class Agent:
    """An MCP client with a session, and the phone that paired for it."""

    def __init__(self, book: RelayBook) -> None:
        self.book = book
        self.paired = book.pair(device_name="Pixel")
        about: dict[str, Any] = {"protocolVersion": HANDSHAKE, "capabilities": {"elicitation": {}}}
        session = self.post(message("initialize", **about)).result.headers.get(b"mcp-session-id")
        assert session is not None
        self.session = ((b"mcp-session-id", session),)
        self.numbers = 1

    def post(self, body: object, *fields: tuple[bytes, bytes]) -> Call:
        return self.book.call("POST", "/mcp", body, token=self.paired.token, headers=(*TYPES, *fields), peer=REMOTE)

    def ask(self, method: str, **params: object) -> Call:
        self.numbers += 1
        return self.post(message(method, self.numbers, **params), *self.session)

    def tool(self, name: str, **arguments: object) -> Call:
        return self.ask("tools/call", name=f"phone_{name}", arguments=arguments)

    def read(self, name: str) -> Call:
        return self.ask("resources/read", uri=f"phone://{name}")


def upload(book: RelayBook, agent: Agent) -> str:
    answer = upload_json(book, agent.paired.token, content=b64encode(PNG).decode(), content_type="image/png")
    return str(answer.json["token"])


def result(call: Call) -> Any:
    return call.result.json["result"]


def text(call: Call) -> str:
    (block,) = result(call)["content"]
    return str(block["text"])
