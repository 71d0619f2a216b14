"""The gateway and a scripted API server, with the bytes between them passed on at once, in memory."""

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
    """See the module."""

    def __init__(self, *, settings: GatewayApiSettings | None = None, key: str = "", resume: str = "") -> None:
        self.api = ScriptedApi(key)
        self.gateway = Gateway(settings or GatewayApiSettings(key=key), resume=resume)
        super().__init__(self.gateway)
        self.up = True  # the API server
        self._seen = 0
        self.feed(Started())
        self.serve(8642, self.api)
        self.screen: FarEnd = self.accept(FarEnd, STDIO, STDIO)  # where the gateway's lines go

    # --- the client ---

    def call(self, method: str, params: object = None, identity: object = "r1") -> list[dict[str, Any]]:
        """Call a method; everything that was said since."""
        message = {"jsonrpc": "2.0", "id": identity, "method": method}
        if params is not None:
            message["params"] = params
        return self.send(json.dumps(message).encode() + b"\n")

    def send(self, data: bytes) -> list[dict[str, Any]]:
        self.feed(Received(LINES, data))
        return self.new_messages()

    def new_messages(self) -> list[dict[str, Any]]:
        """What was said since the last look."""
        lines = self.screen.heard.splitlines()
        fresh, self._seen = lines[self._seen :], len(lines)
        return [json.loads(line) for line in fresh]

    def result(self, method: str, params: object = None) -> Any:
        """The result of a call that says nothing else."""
        (answer,) = self.call(method, params)
        assert answer["id"] == "r1", answer
        return answer["result"]

    def error(self, method: str, params: object = None) -> tuple[int, str]:
        """The error of a call that says nothing else."""
        (answer,) = self.call(method, params)
        return answer["error"]["code"], answer["error"]["message"]

    def connect(self, node: HarnessNode, order: Connect) -> Any:
        """See `CoreHarness`."""
        return super().connect(node, order) if self.up else REFUSED


def kinds(messages: Iterable[dict[str, Any]]) -> list[str]:
    """Types of events, and `answer` for answers."""
    return ["answer" if "id" in message else message["params"]["type"] for message in messages]
