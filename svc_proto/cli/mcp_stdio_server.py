"""An MCP server on standard input and output: one client, one message a line, until it closes its end."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.cli.line_service import LineService
from svc_proto.engine.core import Engine
from svc_proto.mcp.pending_request import OutgoingMessage
from svc_proto.mcp.server_features import RequestHandlers, ServerFeatures
from svc_proto.mcp.session import McpSession
from svc_proto.schema.json_rpc import PARSE_ERROR, RpcError, write_error

__all__ = ["StdioServer"]


class StdioServer(LineService):
    """The service."""

    def __init__(self, offer: Callable[[Engine], ServerFeatures]) -> None:
        self._make_offer = offer

    def bind(self, engine: Engine) -> None:
        """Keep the engine, and begin the conversation."""
        super().bind(engine)
        self._answers = RequestHandlers(engine, self._make_offer(engine))
        self._conversation = McpSession(engine, self._answers, self._tell, on_idle=self.close_if_done)

    def on_stopping(self) -> None:
        """Calls under way end here."""
        self._answers.stop()
        self._conversation.close()

    def take(self, line: bytes) -> None:
        """A message of the client."""
        self._conversation.receive(line)

    def client_left(self, problem: str) -> None:
        """Calls under way are answered first; those who listen are told that there is nothing more."""
        self._answers.stop()
        if problem:
            self.say(write_error(RpcError(PARSE_ERROR, problem)))

    def hold(self, holding: bool) -> None:
        """Updates wait until the client has read on."""
        self._conversation.set_paused(holding)

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._conversation.busy

    def _tell(self, said: OutgoingMessage) -> None:
        if said.text:
            self.say(said.text)
