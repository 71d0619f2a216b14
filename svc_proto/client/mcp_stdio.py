"""An MCP server on standard input and output: one client, one message a line, until it closes its end."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.client.lines import LineChannel
from svc_proto.commands import Ready
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted
from svc_proto.mcp.answers import Answers, Offer
from svc_proto.mcp.conversation import Conversation, Said
from svc_proto.schema.json_rpc import PARSE_ERROR, RpcError, write_error

__all__ = ["StdioServer"]


class StdioServer:
    """The service. The client is whoever is on the first channel that is accepted."""

    def __init__(self, offer: Callable[[Engine], Offer]) -> None:
        self._make_offer = offer
        self._lines: LineChannel | None = None
        self._closing = False

    def bind(self, engine: Engine) -> None:
        """Keep the engine."""
        self._engine = engine
        answers = Answers(engine, self._make_offer(engine))
        self._conversation = Conversation(engine, answers, self._say, on_idle=self._close_if_done)

    def on_started(self) -> None:
        """There is nothing to load."""
        self._engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Serve the client."""
        if self._lines is not None:
            return None
        self._lines = LineChannel(self._engine, fact, on_line=self._heard, on_end=self._ended, on_writable=lambda: None)
        return self._lines

    def on_stopping(self) -> None:
        """What is under way ends here."""
        self._conversation.close()

    def _heard(self, line: bytes) -> None:
        if line.strip():
            self._conversation.heard(line)

    def _say(self, said: Said) -> None:
        if said.text and self._lines is not None and not self._lines.gone:
            self._lines.write(said.text + b"\n")

    def _ended(self, problem: str) -> None:
        """Calls under way are answered first."""
        if problem:
            self._say(Said(write_error(RpcError(PARSE_ERROR, problem)), None))
        self._closing = True
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._closing and not self._conversation.busy and self._lines is not None:
            self._lines.close()
