"""MCP client of a relay."""

from base64 import b64encode
from typing import Any

from tests.mcp.http_harness import McpHttpSession
from tests.mcp.stdio_harness import ELICITS
from tests.relay.harness import REMOTE, HttpCall, RelayHarness
from tests.relay.routes.media_harness import PNG, upload_json


class RelayMcpClient(McpHttpSession):
    """MCP client of the relay, with the session token of a phone that it has paired."""

    def __init__(self, book: RelayHarness) -> None:
        self.paired = book.pair(device_name="Pixel")
        super().__init__(book, ELICITS, token=self.paired.token, peer=REMOTE)

    def read(self, name: str) -> HttpCall:
        return self.begin("resources/read", uri=f"phone://{name}")


def upload(book: RelayHarness, agent: RelayMcpClient) -> str:
    answer = upload_json(book, agent.paired.token, content=b64encode(PNG).decode(), content_type="image/png")
    return str(answer.json["token"])


def result(call: HttpCall) -> Any:
    return call.result.json["result"]


def text(call: HttpCall) -> str:
    (block,) = result(call)["content"]
    return str(block["text"])
