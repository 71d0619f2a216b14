"""Harness of the gateway and an API server in memory."""

import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

from clients.gateway.api_connection import GatewayApiSettings
from clients.gateway.service import Gateway
from runtimes.sim.store import STORE_TIME
from runtimes.store.store_factory import open_store
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.commands import Connect
from svc_proto.facts import Address, ChannelId, Received, Started
from tests.support.core_harness import HOME, REFUSED, CoreHarness, FarEnd, HarnessNode

LINES = ChannelId(2)  # of the client at the gateway
STDIO = Address("stdio", 0)
KEY = "the-key-of-the-api"
PORT = 8642


class GatewayHarness(CoreHarness):
    """Harness of a gateway, whose client is the test, and of the API server that it uses."""

    def __init__(self, *, settings: GatewayApiSettings | None = None, resume: str = "") -> None:
        self.gateway = Gateway(settings or GatewayApiSettings(key=KEY), resume=resume)
        super().__init__(self.gateway)
        store = open_store("memory:")
        answers = SimpleNamespace(apply=lambda request: store.execute(request), seconds=STORE_TIME)
        self.host.store = cast("Any", answers)
        self.api = Api(ApiConfig(key=KEY, home=HOME, config_path=f"{HOME}/config.yaml"))
        self.up = True  # whether the API server is reachable
        self._seen = 0
        self.feed(Started())
        self.serve(PORT, self.api)
        self.screen: FarEnd = self.accept(FarEnd, STDIO, STDIO)  # receives the gateway's lines

    # --- the client ---

    def call(self, method: str, identity: object = "r1", /, **params: object) -> list[dict[str, Any]]:
        """Send a call as the gateway's client, and return all messages of the gateway since the last call."""
        return self.send(
            json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}).encode() + b"\n"
        )

    def send(self, data: bytes) -> list[dict[str, Any]]:
        self.feed(Received(LINES, data))
        return self.new_messages()

    def new_messages(self) -> list[dict[str, Any]]:
        """Return the gateway's messages that were not returned before."""
        lines = self.screen.heard.splitlines()
        fresh, self._seen = lines[self._seen :], len(lines)
        return [json.loads(line) for line in fresh]

    def result(self, method: str, /, **params: object) -> Any:
        """Send a call, and return its result."""
        return next(each for each in self.call(method, **params) if each.get("id") == "r1")["result"]

    def error(self, method: str, /, **params: object) -> tuple[int, str]:
        """Send a call that fails, and return code and text of the error; assert that no other message comes."""
        (answer,) = self.call(method, **params)
        return answer["error"]["code"], answer["error"]["message"]

    def connect(self, node: HarnessNode, order: Connect) -> Any:
        """Connect as `CoreHarness.connect`, or refuse if `up` is false: the API server is down."""
        return super().connect(node, order) if self.up else REFUSED


def kinds(messages: Iterable[dict[str, Any]]) -> list[str]:
    """Return the type of each event, and `answer` for each response."""
    return ["answer" if "id" in message else message["params"]["type"] for message in messages]
