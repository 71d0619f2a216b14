"""MCP transport over a child process: one message per line, on its standard input and output.

Of the error output only the end is kept, as the reason of an exit. To stop the server its input is closed; if it does
not exit, it gets SIGTERM, and then SIGKILL. A server that fails, or runs while the engine stops, gets SIGTERM at once.
"""

from __future__ import annotations

from typing import Protocol, cast

from attrs import field, frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.commands import SignalName
from svc_proto.engine.channel import Channel
from svc_proto.engine.child_process import ChildHandler, ChildProcess, spawn
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.line_buffer import LineBuffer
from svc_proto.schema.mcp_messages import RequestId
from svc_proto.service_clients.mcp_client import MAX_MESSAGE, McpError
from svc_proto.service_clients.mcp_read_quota import ReadQuota

__all__ = ["StdioParameters", "McpStdioTransport"]

MAX_UNREAD = 16 * 1024 * 1024  # unread bytes, above which the server counts as hung
MIN_SECRET = 6  # characters; shorter values of variables are not redacted
MAX_COMPLAINT = 1_000  # bytes of its error output that are kept
EXIT_TIMEOUT = 2.0  # s from the end of its input to SIGTERM, and as long again to SIGKILL
PROBLEMS = {FailureKind.NOT_FOUND: "there is no such program, or folder", FailureKind.DENIED: "it may not be run"}


@frozen(kw_only=True)
class StdioParameters:
    """Command line and folder of a server. Its environment is that of children (`engine.child_process`), and `env`."""

    argv: tuple[str, ...] = field(repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cwd: str | None = None


class _StdioTransportHandler(Protocol):
    def receive(self, data: bytes | str) -> object: ...

    def transport_closed(self, why: McpError) -> None: ...


class McpStdioTransport:
    """`McpTransport` over a child process."""

    def __init__(self, engine: Engine, program: StdioParameters, ends: _StdioTransportHandler) -> None:
        self._engine = engine
        self._program = program
        self._ends = ends
        self._lines = LineBuffer(MAX_MESSAGE)
        self._complaint = _StderrTail(self)
        self._child: ChildProcess | None = None
        self._closed = False  # the transport was closed
        self._quota = ReadQuota(engine, self._set_paused)
        self._kill_timer = engine.timers.timer(self._terminate)

    def open(self) -> Flow[None]:
        """Implement `McpTransport.open`: start the child process."""
        program = self._program
        started = yield from spawn(
            self._engine, program.argv, self, env=program.env, cwd=program.cwd, errors=self._complaint
        )
        if isinstance(started, Failure):
            problem = PROBLEMS.get(started.kind, started.kind.value)
            raise McpError(f"{program.argv[0]!r} cannot be started: {problem}", unheard=True)
        self._child = started

    def set_protocol_version(self, version: str, text: bytes) -> Flow[None]:
        """Send the confirmation as any message: lines arrive in order, and have the same format in each version."""
        yield from ()
        self.send(text, None)

    def send(self, text: bytes, identity: RequestId | None) -> None:
        """Write a message as a line, if the child runs; end the connection if the child leaves too much unread."""
        child = self._child
        if child is None or child.gone:
            return
        child.write(text + b"\n")
        if child.credit.unsent > MAX_UNREAD:
            self._fail("it does not read")

    def abandon_request(self, identity: RequestId) -> None:
        """Do nothing: a late answer is ignored by the client."""

    def close(self) -> None:
        """Close the input of a running child, and terminate it if it does not exit; at once while the engine stops."""
        child, left, self._closed = self._child, self._closed, True
        if child is None or child.gone:
            self._rest()
        elif self._engine.stopping:
            self._terminate()
        elif not left:
            self._set_paused(False)
            child.close_input()
            self._kill_timer.set(self._engine.now.mono + EXIT_TIMEOUT)

    # --- ChildHandler ------------------------------------------------------------------------------------------------

    def on_output(self, data: bytes) -> None:
        """Pass each line that is not blank to the client; end the connection at a line over `MAX_MESSAGE` bytes."""
        try:
            lines = self._lines.feed(data)
        except RemoteProtocolError:
            self._fail(f"it said more than {MAX_MESSAGE} bytes in one line")
            return
        for line in lines:
            if line.strip():
                self._ends.receive(line)
        self.count(len(lines), len(data))

    def on_exit(self, status: int | None) -> None:
        """Report the exit to the client, with the last line of the error output; redact long values of `env` in it."""
        self._rest()
        said = self._complaint.text
        for _, value in self._program.env:
            said = said.replace(value, "[redacted]") if len(value) >= MIN_SECRET else said
        how = "it has ended"
        if status is not None:
            how = f"it was ended by signal {-status}" if status < 0 else f"it has exited with status {status}"
        self._ends.transport_closed(McpError(f"{how}: {said}" if said else how))

    def count(self, messages: int, size: int) -> None:
        """Count messages and bytes of either output of the child; reading pauses above the quota."""
        self._quota.count(messages, size)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _fail(self, why: str) -> None:
        self._closed = True
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
        self._kill_timer.retire()
        self._quota.close()


class _StderrTail(ChildHandler):
    """End of a server's error output, at most `MAX_COMPLAINT` bytes."""

    def __init__(self, carrier: McpStdioTransport) -> None:
        self._carrier = carrier
        self._stderr_tail = b""

    @property
    def text(self) -> str:
        """Excerpt of the last line of the error output; empty without output."""
        lines = self._stderr_tail.decode("utf-8", "replace").strip().splitlines()
        return safe_excerpt(lines[-1]) if lines else ""

    def on_output(self, data: bytes) -> None:
        """Keep the end of the error output, and count the bytes for the quota."""
        self._stderr_tail = (self._stderr_tail + data)[-MAX_COMPLAINT:]
        self._carrier.count(0, len(data))
