"""The TUI channel of one client: lines of JSON-RPC to and from an agent gateway, one child a socket (wire terminal 2).

A desktop client attaches on every connection and takes any `tui.error` for the end of its socket. So a missing
grant or a gateway that cannot be started is a `system/error`, and later requests are answered with a JSON-RPC error:
terminal use survives. `tui.error` is only for the loss of a gateway that had started.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Level, SignalName
from svc_proto.engine.child import Child, spawn_child
from svc_proto.engine.flow import Flow, Task
from svc_proto.facts import Failure
from svc_proto.machines.lines import MAX_LINE, LineBuffer
from svc_proto.version import VERSION
from svc_proto.wire.envelope import Envelope

if TYPE_CHECKING:
    from svc_proto.relay.client_socket import ClientSocket

__all__ = ["Tui"]

TERM_PATIENCE = 2.0  # s from SIGTERM to SIGKILL, wire terminal 2.3
HOLD_ABOVE = 256 * 1024  # bytes unsent to the client at which its gateway is held
MAX_UNREAD = 64 * 1024 * 1024  # bytes that a gateway leaves unread before a request is refused
MAX_WAITING = 256  # requests behind a gateway that is being started
NOT_RUNNING = -32000  # JSON-RPC: the server itself is at fault


class Tui:
    """The gateway of one socket, if there is one."""

    def __init__(self, client: ClientSocket) -> None:
        self.client = client
        self._engine = client.relay.engine
        self._gateway: _Gateway | None = None
        self._starting: Task | None = None
        self._waiting: deque[Envelope] = deque()

    def handle(self, envelope: Envelope) -> None:
        """Take one message of the TUI channel; those behind an attach wait for it."""
        if envelope.type == "tui.attach":
            self._leave()
            self._waiting.clear()
            task = self._engine.spawn(self._attach(envelope), name="tui", on_done=self._started)
            if self._gateway is None:
                self._starting = task
        elif self._starting is not None:
            if len(self._waiting) >= MAX_WAITING:
                self.client.complain("too many messages wait for the agent gateway", "tui_busy", envelope.id)
            else:
                self._waiting.append(envelope)
        else:
            self._process(envelope)

    def writable(self) -> None:
        """The client reads again."""
        if self._gateway is not None:
            self._gateway.child.hold(False)

    def close(self) -> None:
        """The socket is gone, or the relay stops."""
        self._leave()

    def send(self, kind: str, payload: Mapping[str, object]) -> None:
        """Send an envelope of this channel; its id is always fresh."""
        self.client.send("tui", kind, dict(payload))

    def lost(self, gateway: _Gateway, why: str) -> None:
        """A gateway that had started is gone."""
        if self._gateway is gateway:
            self._gateway = None
            self.send("tui.error", {"message": why})

    def _attach(self, envelope: Envelope) -> Flow[None]:
        relay = self.client.relay
        gateway = _Gateway(self)
        env = [
            (variable, value[:400])
            for key, variable in (("profile", "SVC_PROFILE"), ("resume_session_id", "SVC_TUI_RESUME"))
            if isinstance(value := envelope.payload.get(key), str) and value
        ]
        child = yield from spawn_child(
            self._engine, relay.config.tui_command, gateway, env=tuple(env), errors=_Errors(self)
        )
        if isinstance(child, Failure):
            self.client.complain("the agent gateway could not be started", "tui_unavailable", envelope.id)
            return
        gateway.child = child
        self._gateway = gateway
        self.send("tui.attached", {"pid": child.pid, "server_version": VERSION})

    def _started(self, result: None) -> None:
        self._starting = None
        while self._waiting:
            self._process(self._waiting.popleft())

    def _process(self, envelope: Envelope) -> None:
        match envelope.type:
            case "tui.rpc.request":
                self._request(envelope.payload)
            case "tui.resize":
                self._resize(envelope.payload)
            case "tui.detach":
                self._leave()
            case _:
                self.client.complain(f"unknown message {envelope.type[:40]!r}", "unknown_type", envelope.id)

    def _request(self, request: Mapping[str, object]) -> None:
        gateway = self._gateway
        if gateway is not None and gateway.child.credit.unsent <= MAX_UNREAD:
            gateway.say(request)
        elif "id" in request:
            problem = "the agent gateway is not running" if gateway is None else "the agent gateway does not read"
            error = {"code": NOT_RUNNING, "message": problem}
            self.send("tui.rpc.response", {"jsonrpc": "2.0", "id": request["id"], "error": error})

    def _resize(self, payload: Mapping[str, object]) -> None:
        if self._gateway is None:
            return
        params = {key: payload[key] for key in ("session_id", "cols", "rows") if key in payload}
        identity = f"resize-{new_uuid(self._engine.entropy)}"
        self._gateway.say({"jsonrpc": "2.0", "id": identity, "method": "terminal.resize", "params": params})

    def _leave(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            gateway.child.end(SignalName.TERMINATE, patience=TERM_PATIENCE)


class _Gateway:
    """A gateway process; a `ChildHandler`."""

    child: Child

    def __init__(self, tui: Tui) -> None:
        self._tui = tui
        self._lines = LineBuffer()

    def say(self, message: Mapping[str, object]) -> None:
        """Write one object as one line."""
        self.child.write(strict_json.dumps_bytes(message) + b"\n")

    def on_output(self, data: bytes) -> None:
        """Pass whole lines on; what is no JSON object is dropped."""
        try:
            lines = self._lines.feed(data)
        except RemoteProtocolError as error:
            self.child.end(SignalName.TERMINATE, patience=TERM_PATIENCE)
            self._tui.lost(self, f"the agent gateway broke the protocol: {error}")
            return
        for line in lines:
            try:
                message = strict_json.loads(line, max_bytes=MAX_LINE)
            except strict_json.JsonError:
                continue
            if isinstance(message, dict):
                members = cast("dict[str, object]", message)
                answers = "id" in members and members.get("method") != "event"
                self._tui.send("tui.rpc.response" if answers else "tui.rpc.event", members)
        if self._tui.client.unsent > HOLD_ABOVE:
            self.child.hold(True)

    def on_exit(self, status: int | None) -> None:
        """It ended by itself."""
        self._tui.lost(self, f"the agent gateway exited with {'an unknown code' if status is None else status}")


class _Errors:
    """The error output of a gateway: for the log, line by line, where somebody wants to debug."""

    def __init__(self, tui: Tui) -> None:
        self._engine = tui.client.relay.engine
        self._lines = LineBuffer(limit=64 * 1024)

    def on_output(self, data: bytes) -> None:
        """Log whole lines."""
        try:
            lines = self._lines.feed(data)
        except RemoteProtocolError:
            self._lines = LineBuffer(limit=64 * 1024)
            return
        for line in lines:
            self._engine.log(Level.DEBUG, "agent gateway", line=line[:400].decode("utf-8", "replace"))

    def on_exit(self, status: int | None) -> None:
        """Its output tells about the exit."""
