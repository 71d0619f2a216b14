"""The gateway and a scripted API server in memory, with immediate delivery of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from clients.gateway.api_connection import GatewayApiSettings
from clients.gateway.service import Gateway
from svc_proto.commands import Connect
from svc_proto.facts import Address, ChannelId, Received, Started
from tests.support.core_harness import REFUSED, CoreHarness, FarEnd, HarnessNode
from tests.support.servers.api_server import ScriptedApi

LINES = ChannelId(2)  # of the client at the gateway
STDIO = Address("stdio", 0)


class GatewayHarness(CoreHarness):
    """Harness of a gateway; see the module."""

    def __init__(self, *, settings: GatewayApiSettings | None = None, key: str = "", resume: str = "") -> None:
        self.api = ScriptedApi(key)
        self.gateway = Gateway(settings or GatewayApiSettings(key=key), resume=resume)
        super().__init__(self.gateway)
        self.up = True  # whether the API server is reachable
        self._seen = 0
        self.feed(Started())
        self.serve(8642, self.api)
        self.screen: FarEnd = self.accept(FarEnd, STDIO, STDIO)  # receives the gateway's lines

    # --- the client ---

    def call(self, method: str, params: object = None, identity: object = "r1") -> list[dict[str, Any]]:
        """Call a method and return all messages since."""
        message = {"jsonrpc": "2.0", "id": identity, "method": method}
        if params is not None:
            message["params"] = params
        return self.send(json.dumps(message).encode() + b"\n")

    def send(self, data: bytes) -> list[dict[str, Any]]:
        self.feed(Received(LINES, data))
        return self.new_messages()

    def new_messages(self) -> list[dict[str, Any]]:
        """Return the messages since the last call."""
        lines = self.screen.heard.splitlines()
        fresh, self._seen = lines[self._seen :], len(lines)
        return [json.loads(line) for line in fresh]

    def result(self, method: str, params: object = None) -> Any:
        """Return the result of a call that gives no other message."""
        (answer,) = self.call(method, params)
        assert answer["id"] == "r1", answer
        return answer["result"]

    def error(self, method: str, params: object = None) -> tuple[int, str]:
        """Return the error of a call that gives no other message."""
        (answer,) = self.call(method, params)
        return answer["error"]["code"], answer["error"]["message"]

    def connect(self, node: HarnessNode, order: Connect) -> Any:
        """Extend `CoreHarness.connect`: connections fail while the API server is down."""
        return super().connect(node, order) if self.up else REFUSED


def kinds(messages: Iterable[dict[str, Any]]) -> list[str]:
    """Return the types of events, and `answer` for answers."""
    return ["answer" if "id" in message else message["params"]["type"] for message in messages]
