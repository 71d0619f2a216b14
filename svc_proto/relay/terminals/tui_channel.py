"""The TUI channel of one client: lines of JSON-RPC to and from a gateway, one child per socket (wire terminal 2).

A missing grant, and a gateway that cannot be started, are reported by `system/error`, since a desktop client closes its
socket after any `tui.error`. `tui.error` reports the loss of a gateway that had started.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Level, SignalName
from svc_proto.engine.child_process import ChildHandler, ChildProcess, spawn
from svc_proto.engine.flow import Flow, Task
from svc_proto.facts import Failure
from svc_proto.machines.line_buffer import MAX_LINE, LineBuffer
from svc_proto.machines.paired_session import PairedSession
from svc_proto.relay.access import withheld_from
from svc_proto.relay.terminals.terminal_channel import TerminalClient, TerminalPort
from svc_proto.relay_config import WEBAPI_URL
from svc_proto.schema.envelope import Envelope
from svc_proto.schema.json_object import JsonObject

__all__ = ["TuiChannelHandler", "TuiClient", "TuiPort"]

TERM_TIMEOUT = 2.0  # s from SIGTERM to SIGKILL, wire terminal 2.3
MAX_UNREAD = 32 * 1024 * 1024  # bytes that a gateway has not read before a request is refused
MAX_GATEWAYS = 8  # processes of one session, which may have any number of sockets
MAX_WAITING = 256  # messages queued behind a gateway that is starting
NOT_RUNNING = -32000  # JSON-RPC server error
MAX_LOGGED_CHARS = 400  # characters of a line of error output in a log record
NO_GRANT = "tui grant expired or missing"


class TuiPort(TerminalPort, Protocol):
    """Members of the relay that the agent gateways of clients use."""

    def clients_of(self, session: PairedSession) -> Sequence[TuiClient]:
        """Return the authenticated WebSocket clients of a session at this node."""


class TuiClient(TerminalClient, Protocol):
    """Members of a client's connection that its agent gateway uses."""

    tui: TuiChannelHandler | None

    @property
    def relay(self) -> TuiPort:
        """The relay that the client is connected to."""


class TuiChannelHandler:
    """Handler of the TUI channel of one socket, with its gateway process, if there is one."""

    def __init__(self, client: TuiClient) -> None:
        self.client = client
        self.engine = client.relay.engine
        self._gateway: _Gateway | None = None
        self._starting: Task | None = None
        self._waiting: deque[Envelope] = deque()
        self._waiting_size = 0

    @property
    def busy(self) -> bool:
        """Report whether this client has a gateway, or one is starting."""
        return self._gateway is not None or self._starting is not None

    def handle(self, envelope: Envelope) -> None:
        """Process one message of the TUI channel.

        `tui.attach` stops the present gateway and starts one; other messages are queued during a start, up to a limit.
        """
        if envelope.type == "tui.attach":
            self.close()
            task = self.engine.spawn(self._attach(envelope), on_done=self._started, on_error=self._not_started)
            if not task.done:
                self._starting = task
        elif self._starting is None:
            self._process(envelope)
        else:
            self._waiting_size += len(strict_json.dumps(envelope.payload))
            if self._waiting_size > MAX_UNREAD or len(self._waiting) >= MAX_WAITING:
                self.client.send_error("too much waits for the agent gateway", "tui_busy", envelope.id)
            else:
                self._waiting.append(envelope)

    def writable(self) -> None:
        """Resume the gateway: the client reads again."""
        if self._gateway is not None:
            self._gateway.drain()

    def close(self) -> None:
        """Stop the gateway, or its start, and drop the messages that wait for it."""
        self._waiting.clear()
        self._waiting_size = 0
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            gateway.child.terminate(SignalName.TERMINATE, patience=TERM_TIMEOUT)

    def grant_expired(self, identity: str = "") -> None:
        """Stop the gateway and send `system/error`, since the session has no live grant any more."""
        self.close()
        self.client.send_error(NO_GRANT, "grant_required", identity)

    def send(self, kind: str, payload: Mapping[str, object]) -> None:
        """Send an envelope of the channel `tui` with a new id."""
        self.client.send("tui", kind, dict(payload))

    def lost(self, why: str) -> None:
        """Send `tui.error` with the reason why the gateway is lost."""
        self._gateway = None
        self.send("tui.error", {"message": why})

    def _attach(self, envelope: Envelope) -> Flow[None]:
        command = self.client.relay.config.tui_command
        if not command:
            self.client.send_error("this relay has no agent gateway", "tui_unavailable", envelope.id)
            return
        if self._count_other_gateways() >= MAX_GATEWAYS:
            self.client.send_error(f"a session may have {MAX_GATEWAYS} agent gateways", "tui_busy", envelope.id)
            return
        gateway = _Gateway(self)
        env, inherit = self._environment(envelope.payload), self.client.relay.shells.inherit
        child = yield from spawn(self.engine, command, gateway, env=env, inherit=inherit, errors=_StderrLogger(self))
        if isinstance(child, Failure):
            self.client.send_error(
                f"the agent gateway could not be started: {child.kind.value}", "tui_unavailable", envelope.id
            )
            return
        gateway.child = child
        self._gateway = gateway
        self.send("tui.attached", {"pid": child.pid, "server_version": self.client.relay.config.version})
        self.client.relay.engine.log(Level.INFO, "agent gateway opened", **self.client.log_fields)

    def _count_other_gateways(self) -> int:
        """Return the number of the session's other sockets at this node that have a gateway, or start one."""
        mine = self.client
        others = (each for each in mine.relay.clients_of(cast("PairedSession", mine.session)) if each is not mine)
        return sum(each.tui is not None and each.tui.busy for each in others)

    def _environment(self, payload: JsonObject) -> tuple[tuple[str, str], ...]:
        config, session = self.client.relay.config, cast("PairedSession", self.client.session)
        brand = config.brand.name.upper()
        wanted = {
            # The gateway finds the API of this host by itself, with its key.
            "RELAY_WEBAPI_URL": None if config.api_url == WEBAPI_URL else config.api_url,
            "RELAY_WEBAPI_PIN": config.webapi_pin,
            "API_SERVER_KEY": config.api_key,
            "SVC_AGENT_WITHHELD": ",".join(withheld_from(session, self.engine.now)),
            "SVC_AGENT_PRINCIPAL": session.principal_name,
            f"{brand}_PROFILE": payload.string("profile"),
            f"{brand}_TUI_RESUME": payload.string("resume_session_id"),
        }
        return tuple((name, value[:4096]) for name, value in wanted.items() if value)

    def _started(self, result: None) -> None:
        self._starting = None
        self._waiting_size = 0
        while self._waiting:
            self._process(self._waiting.popleft())

    def _not_started(self, error: Exception) -> None:
        self.client.send_error(f"internal error {self.engine.log_bug(error)}", "internal_error")
        self._started(None)

    def _process(self, envelope: Envelope) -> None:
        match envelope.type:
            case "tui.rpc.request":
                self._request(envelope.payload)
            case "tui.resize":
                self._resize(envelope.payload)
            case "tui.detach":
                self.close()
            case _:
                self.client.send_error(f"unknown message {envelope.type[:40]!r}", "unknown_type", envelope.id)

    def _request(self, request: Mapping[str, object]) -> None:
        gateway = self._gateway
        if gateway is not None and not gateway.is_running:
            gateway = None
        if gateway is not None and gateway.is_reading:
            gateway.send_line(request)
        elif "id" in request:
            problem = "the agent gateway is not running" if gateway is None else "the agent gateway does not read"
            error = {"code": NOT_RUNNING, "message": problem}
            self.send("tui.rpc.response", {"jsonrpc": "2.0", "id": request["id"], "error": error})

    def _resize(self, payload: Mapping[str, object]) -> None:
        gateway = self._gateway
        if gateway is None or not gateway.is_running or not gateway.is_reading:
            return
        params = {key: payload[key] for key in ("session_id", "cols", "rows") if key in payload}
        identity = f"resize-{new_uuid(self.engine.entropy)}"
        gateway.send_line({"jsonrpc": "2.0", "id": identity, "method": "terminal.resize", "params": params})


class _Gateway:
    """A gateway process; a `ChildHandler`.

    While the client does not read, lines are queued here, and the gateway is paused.
    """

    child: ChildProcess

    def __init__(self, tui: TuiChannelHandler) -> None:
        self._tui = tui
        self._lines = LineBuffer()
        self._ready: deque[bytes] = deque()  # whole lines, those of one or two reads
        self._end = ""  # reason of its exit, reported after the last line

    @property
    def is_running(self) -> bool:
        """Report whether the process runs."""
        return not self._end

    @property
    def is_reading(self) -> bool:
        """Report whether the gateway keeps up with reading."""
        return self.child.credit.unsent <= MAX_UNREAD

    def send_line(self, message: Mapping[str, object]) -> None:
        """Write one JSON object to the gateway's input, as one line."""
        self.child.write(strict_json.dumps_bytes(message) + b"\n")

    def on_output(self, data: bytes) -> None:
        """Forward whole lines; a line that is no JSON object is dropped.

        Stop the gateway if the client's grant has expired, or if a line is too long.
        """
        tui = self._tui
        if not tui.client.has_grant("tui"):
            tui.grant_expired()
            return
        try:
            lines = self._lines.feed(data)
        except RemoteProtocolError as error:
            self.child.terminate(SignalName.TERMINATE, patience=TERM_TIMEOUT)
            tui.lost(f"the agent gateway broke the protocol: {error}")
            return
        self._ready.extend(lines)
        self.drain()

    def drain(self) -> None:
        """Forward queued lines while the client reads, else pause the gateway; after the last line, report an exit.

        `TuiChannelHandler.writable` calls this method when the client reads again.
        """
        tui = self._tui
        while self._ready and tui.client.writable:
            self._forward_line(self._ready.popleft())
        if self.is_running:
            self.child.set_read_paused(bool(self._ready) or not tui.client.writable)
        elif tui.client.writable:
            tui.lost(self._end)

    def on_exit(self, status: int | None) -> None:
        """Record that the gateway has exited; report that after its last line."""
        self._end = f"the agent gateway exited with {'an unknown code' if status is None else status}"
        self.drain()

    def _forward_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            members = JsonObject.of_or_none(strict_json.loads(line, max_bytes=MAX_LINE, ours=True))
        except strict_json.JsonError as error:
            self._tui.engine.log(Level.WARNING, "agent gateway line dropped", problem=str(error))
            return
        if members is not None:
            answers = "id" in members and members.get("method") != "event"
            self._tui.send("tui.rpc.response" if answers else "tui.rpc.event", members)


class _StderrLogger(ChildHandler):
    """Logger of a gateway's error output, line by line at level DEBUG."""

    def __init__(self, tui: TuiChannelHandler) -> None:
        self._engine = tui.engine
        self._lines = LineBuffer(limit=64 * 1024)

    def on_output(self, data: bytes) -> None:
        """Log the start of each whole line; if a line is too long, drop `data` and the line's earlier part."""
        try:
            lines = self._lines.feed(data)
        except RemoteProtocolError:
            self._lines = LineBuffer(limit=64 * 1024)
            return
        for line in lines:
            self._engine.log(Level.DEBUG, "agent gateway", line=line.decode("utf-8", "replace")[:MAX_LOGGED_CHARS])
