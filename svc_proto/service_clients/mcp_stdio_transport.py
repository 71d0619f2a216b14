"""A server of MCP as a child process: one message a line, on its standard input and output.

What it writes to its error output is not kept, but for the end of it, which says why it ended. When it is not wanted
any more its input is closed; if it does not end by that it is told to, and then made to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from attrs import field, frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.commands import SignalName
from svc_proto.engine.child_process import ChildProcess, spawn
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.line_buffer import LineBuffer
from svc_proto.schema.mcp_messages import RequestId
from svc_proto.service_clients.mcp_client import MAX_MESSAGE, McpError
from svc_proto.service_clients.mcp_read_quota import ReadQuota

if TYPE_CHECKING:
    from svc_proto.engine.channel import Channel
    from svc_proto.engine.core import Engine

__all__ = ["StdioParameters", "McpStdioTransport"]

MAX_UNREAD = 16 * 1024 * 1024  # bytes that a server leaves unread: it does not read at all
MIN_SECRET = 6  # characters of a variable's value that is not repeated
MAX_COMPLAINT = 1_000  # bytes of its error output that are kept
EXIT_TIMEOUT = 2.0  # s from the end of its input to SIGTERM, and as long again to SIGKILL
PROBLEMS = {FailureKind.NOT_FOUND: "there is no such program, or folder", FailureKind.DENIED: "it may not be run"}


@frozen(kw_only=True)
class StdioParameters:
    """What to run. Of the variables of this process it sees those of every child (`engine.child`), and `env`."""

    argv: tuple[str, ...] = field(repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cwd: str | None = None


class _StdioTransportHandler(Protocol):
    def receive(self, data: bytes | str) -> None: ...

    def transport_closed(self, why: McpError) -> None: ...


class McpStdioTransport:
    """See the module, and `McpTransport`."""

    def __init__(self, engine: Engine, program: StdioParameters, ends: _StdioTransportHandler) -> None:
        self._engine = engine
        self._program = program
        self._ends = ends
        self._lines = LineBuffer(MAX_MESSAGE)
        self._complaint = _StderrTail(self)
        self._child: ChildProcess | None = None
        self._left = False  # we have said goodbye
        self._quota = ReadQuota(engine, self._set_paused)
        self._patience = engine.timers.timer(self._terminate)

    def open(self) -> Flow[None]:
        """Start it."""
        program = self._program
        started = yield from spawn(
            self._engine, program.argv, self, env=program.env, cwd=program.cwd, errors=self._complaint
        )
        if isinstance(started, Failure):
            problem = PROBLEMS.get(started.kind, started.kind.value)
            raise McpError(f"{program.argv[0]!r} cannot be started: {problem}", unheard=True)
        self._child = started

    def set_protocol_version(self, version: str, text: bytes) -> Flow[None]:
        """See `McpTransport`: lines are heard in their order, and are lines in each version."""
        yield from ()
        self.send(text, None)

    def send(self, text: bytes, identity: RequestId | None) -> None:
        """See `McpTransport`."""
        child = self._child
        if child is None or child.gone:
            return
        child.write(text + b"\n")
        if child.credit.unsent > MAX_UNREAD:
            self._give_up("it does not read")

    def abandon_request(self, identity: RequestId) -> None:
        """See `McpTransport`: an answer that comes nevertheless is left out."""

    def close(self) -> None:
        """See `McpTransport`."""
        child, left, self._left = self._child, self._left, True
        if child is None or child.gone:
            self._rest()
        elif self._engine.stopping:
            self._terminate()
        elif not left:
            self._set_paused(False)
            child.close_input()
            self._patience.set(self._engine.now.mono + EXIT_TIMEOUT)

    # --- of the child ---------------------------------------------------------------------------------------------

    def on_output(self, data: bytes) -> None:
        """See `ChildHandler`."""
        try:
            lines = self._lines.feed(data)
        except RemoteProtocolError:
            self._give_up(f"it said more than {MAX_MESSAGE} bytes in one line")
            return
        for line in lines:
            if line.strip():
                self._ends.receive(line)
        self.count(len(lines), len(data))

    def on_exit(self, status: int | None) -> None:
        """See `ChildHandler`."""
        self._rest()
        said = self._complaint.text
        for _, value in self._program.env:
            said = said.replace(value, "[redacted]") if len(value) >= MIN_SECRET else said
        how = "it has ended"
        if status is not None:
            how = f"it was ended by signal {-status}" if status < 0 else f"it has exited with status {status}"
        self._ends.transport_closed(McpError(f"{how}: {said}" if said else how))

    def count(self, messages: int, size: int) -> None:
        """So much was said, on either output."""
        self._quota.count(messages, size)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _give_up(self, why: str) -> None:
        self._left = True
        self._terminate()
        self._ends.transport_closed(McpError(why))

    def _terminate(self) -> None:
        child = cast("ChildProcess", self._child)
        self._rest()
        self._set_paused(False)
        child.terminate(SignalName.TERMINATE, patience=EXIT_TIMEOUT)

    def _set_paused(self, holding: bool) -> None:
        child = cast("ChildProcess", self._child)
        child.set_read_paused(holding)
        cast("Channel", child.errors).set_read_paused(holding)

    def _rest(self) -> None:
        self._patience.retire()
        self._quota.close()


class _StderrTail:
    """The end of its error output."""

    def __init__(self, carrier: McpStdioTransport) -> None:
        self._carrier = carrier
        self._kept = b""

    @property
    def text(self) -> str:
        """Its last line."""
        lines = self._kept.decode("utf-8", "replace").strip().splitlines()
        return safe_excerpt(lines[-1]) if lines else ""

    def on_output(self, data: bytes) -> None:
        """See `ChildHandler`."""
        self._kept = (self._kept + data)[-MAX_COMPLAINT:]
        self._carrier.count(0, len(data))

    def on_exit(self, status: int | None) -> None:
        """Its error output has ended."""
