"""MCP server on standard input and output: one client, a message a line, until the client closes its end."""

from collections.abc import Callable

from svc_proto.cli.line_service import LineService
from svc_proto.engine.core import Engine
from svc_proto.mcp.pending_request import OutgoingMessage
from svc_proto.mcp.server_features import RequestHandlers, ServerFeatures
from svc_proto.mcp.session import McpSession
from svc_proto.schema.json_rpc import PARSE_ERROR, RpcError, write_error

__all__ = ["McpStdioServer"]


class McpStdioServer(LineService):
    """Service of an MCP server with one client on standard input and output."""

    def __init__(self, offer: Callable[[Engine], ServerFeatures]) -> None:
        self._make_offer = offer

    def bind(self, engine: Engine) -> None:
        """Store the engine, and begin the session."""
        super().bind(engine)
        self._answers = RequestHandlers(engine, self._make_offer(engine))
        self._conversation = McpSession(engine, self._answers, self._send, on_idle=self.close_if_done)

    def on_stopping(self) -> None:
        """Close the session, which cancels the calls in progress."""
        self._answers.stop()
        self._conversation.close()

    def on_line(self, line: bytes) -> None:
        """Handle a message of the client."""
        self._conversation.receive(line)

    def on_client_closed(self, problem: str) -> None:
        """End the listening requests, and report a `problem` to the client; calls in progress are finished."""
        self._answers.stop()
        if problem:
            self.send_line(write_error(RpcError(PARSE_ERROR, problem)))

    def set_read_paused(self, holding: bool) -> None:
        """Pause or resume notifications of changes, as the client reads too slowly (`holding`) or reads again."""
        self._conversation.set_paused(holding)

    @property
    def is_busy(self) -> bool:
        """Report whether a call is in progress."""
        return self._conversation.busy

    def _send(self, said: OutgoingMessage) -> None:
        if said.text:
            self.send_line(said.text)
