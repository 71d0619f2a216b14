"""The terminal channel of one client: shells in pseudo-terminals, within tmux if available (wire terminal 1).

Messages of one socket are processed strictly in order, so that input directly behind an attach is not lost. A client
that does not read pauses its own shells, never the relay.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import Refused
from svc_proto.basics.strict_json import dumps_bytes
from svc_proto.commands import Level
from svc_proto.engine.child_process import ChildProcess, spawn
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import Failure
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.terminal import (
    MAX_TERMINALS,
    REASONS,
    TERMINAL_TABLE,
    OutputBuffer,
    TerminalState,
    TerminalTrigger,
    parse_terminal_size,
    parse_tmux_list,
    shell_status,
)
from svc_proto.machines.transitions import step
from svc_proto.relay.ports import RelayPort
from svc_proto.relay.terminals.shells import ShellLauncher
from svc_proto.schema.envelope import Envelope

__all__ = ["NO_GRANT", "Terminal", "TerminalChannelHandler", "TerminalClient", "TerminalPort"]

MAX_QUEUED = 1024  # messages queued behind an attach in progress; a further one is refused
MAX_UNREAD = 1024 * 1024  # bytes that a shell, or an attach, has not read; further input is refused
NO_GRANT = "terminal grant expired or missing"  # wire terminal 1.1
OUTPUT = b'{"channel":"terminal","type":"terminal.output","id":"%s","payload":{"session_name":%s,"data":"%s"}}'


class TerminalClient(Protocol):
    """Members of a client's connection that its channels use."""

    number: int
    session: PairedSession | None
    socket: WebSocketConnection

    @property
    def log_fields(self) -> dict[str, object]:
        """Log fields of an authenticated client."""

    @property
    def writable(self) -> bool:
        """Report whether the client keeps up with reading."""

    def has_grant(self, channel: str) -> bool:
        """Report whether the client's session holds a live grant for a channel."""

    def send(self, channel: str, kind: str, payload: dict[str, object], identity: str = "") -> bool:
        """Send an envelope; return False if the socket is closing."""

    def send_error(self, message: str, code: str, identity: str = "") -> None:
        """Send `system/error` with a text and a code."""

    @property
    def relay(self) -> TerminalPort:
        """The relay that the client is connected to."""


class TerminalPort(RelayPort, Protocol):
    """Members of the relay that terminals use."""

    shells: ShellLauncher

    def live_terminals(self) -> dict[str, Terminal]:
        """Return the attached terminals by the names of their tmux sessions, one for each name."""


class TerminalChannelHandler:
    """Handler of the terminal channel of one socket, with the terminals that the socket has attached."""

    def __init__(self, client: TerminalClient, shells: ShellLauncher) -> None:
        self.client = client
        self.engine = client.relay.engine
        self.shells = shells
        self.held: dict[str, Terminal] = {}  # by session name, in the order of attachment
        self._waiting: deque[Envelope] = deque()
        self._waiting_size = 0
        self._task: Task | None = None

    def handle(self, envelope: Envelope) -> None:
        """Queue one message of the terminal channel, and process the queue; refuse it if too much waits."""
        size = len(envelope.payload.text("data"))
        if self._waiting and (len(self._waiting) >= MAX_QUEUED or self._waiting_size + size > MAX_UNREAD):
            self.error("too much waits for an attach", envelope.id, _name(envelope))
            return
        self._waiting.append(envelope)
        self._waiting_size += size
        if self._task is None:
            task = self.engine.spawn(self._work(), on_done=self._worked_off, on_error=self._work_failed)
            if self._waiting:
                self._task = task

    def writable(self) -> None:
        """Resume the shells: the client reads again."""
        for terminal in list(self.held.values()):
            if terminal.name in self.held:  # `resume` may find the grant expired and close all
                terminal.resume()

    def close(self) -> None:
        """Close all terminals without messages, since the client's socket ends; tmux sessions continue."""
        self._close_all(TerminalTrigger.LOST, notify=False)

    def stop(self) -> None:
        """Close all terminals and report that to the client, since the relay stops; tmux sessions continue."""
        self._close_all(TerminalTrigger.LOST)

    def grant_expired(self, identity: str = "") -> None:
        """Send `system/error` and close all terminals, since the session has no live grant any more."""
        self.client.send_error(NO_GRANT, "grant_required", identity)
        self._close_all(TerminalTrigger.GRANT_EXPIRED)

    def send(self, kind: str, payload: dict[str, object], identity: str = "") -> None:
        """Send an envelope of the channel `terminal`."""
        self.client.send("terminal", kind, payload, identity)

    def error(self, message: str, identity: str = "", name: str | None = None) -> None:
        """Send `terminal.error` with a message, and with the session name if one is given."""
        payload: dict[str, object] = {"message": message}
        if name is not None:
            payload["session_name"] = name
        self.send("terminal.error", payload, identity)

    # --- messages ---

    def _work(self) -> Flow[None]:
        while self._waiting:
            envelope = self._waiting[0]
            try:
                yield from self._process(envelope)
            except Refused as refused:
                self.error(refused.message, envelope.id, _name(envelope))
            self._waiting.popleft()
            self._waiting_size -= len(envelope.payload.text("data"))

    def _worked_off(self, result: None) -> None:
        self._task = None

    def _work_failed(self, error: Exception) -> None:
        self._forget_waiting()
        self.error(f"internal error {self.engine.log_bug(error)}")

    def _close_all(self, trigger: TerminalTrigger, *, notify: bool = True) -> None:
        if self._task is not None:
            self._task.cancel()
        self._forget_waiting()
        for terminal in list(self.held.values()):
            terminal.finish(trigger, notify=notify)

    def _forget_waiting(self) -> None:
        self._task = None
        self._waiting.clear()
        self._waiting_size = 0

    def _process(self, envelope: Envelope) -> Flow[None]:
        match envelope.type:
            case "terminal.attach":
                yield from self._attach(envelope)
            case "terminal.input":
                self._input(envelope)
            case "terminal.resize":
                terminal = self._find_terminal(envelope)
                if terminal is not None:
                    terminal.child.resize(parse_terminal_size(envelope.payload))
            case "terminal.detach":
                terminal = self._find_terminal(envelope)
                if terminal is not None:
                    terminal.finish(TerminalTrigger.DETACH)
            case "terminal.kill":
                yield from self._kill(envelope)
            case "terminal.list":
                yield from self._list(envelope)
            case _:
                self.error(f"unknown message {envelope.type[:40]!r}", envelope.id)

    def _attach(self, envelope: Envelope) -> Flow[None]:
        payload = envelope.payload
        size = parse_terminal_size(payload)
        name = _name(envelope) or f"shell-{self.engine.entropy(4).hex()}"
        terminal = self.held.get(name)
        reattach, made, replay, elsewhere = terminal is not None, False, "", ""
        if terminal is not None:
            terminal.child.resize(size)
            terminal.step(TerminalTrigger.ATTACH)
        else:
            if len(self.held) >= MAX_TERMINALS:
                self.error(f"a client may have {MAX_TERMINALS} terminals", envelope.id, name)
                return
            login = payload.get("login") is not False
            shell = yield from self.shells.choose(payload.get("shell"))
            if shell is None:
                self.error("no usable shell on this host", envelope.id, name)
                return
            if self.shells.tmux is not None:
                created = yield from self.shells.create_session(name, shell, size, login=login)
                reattach = not created and (yield from self.shells.has_session(name))
                if not created and not reattach:  # an ending tmux server refuses both; retry once
                    created = yield from self.shells.create_session(name, shell, size, login=login)
                made = created or reattach
                if reattach:
                    replay = yield from self.shells.capture(name)
            if made and not reattach and _name(envelope) is not None:
                elsewhere = yield from self.client.relay.coordinator.terminal_owner_url(self.shells.session_name(name))
            terminal = Terminal(self, name, shell)
            argv = self.shells.argv(name, shell, made=made, login=login)
            env, inherit = self.shells.env(name), self.shells.inherit
            child = yield from spawn(self.engine, argv, terminal, env=env, inherit=inherit, terminal=size, escaped=True)
            if isinstance(child, Failure):
                self.error(f"the shell could not be started: {child.kind.value}", envelope.id, name)
                return
            terminal.attach_child(child)
        self.held.pop(name, None)
        self.held[name] = terminal
        attached: dict[str, object] = {
            "session_name": name,
            "pid": terminal.child.pid,
            "shell": terminal.shell,
            "cols": size.cols,
            "rows": size.rows,
            "tmux_available": self.shells.tmux is not None,
            "reattach": reattach,
        }
        if replay:
            attached["replay"] = replay
        if elsewhere:
            attached["elsewhere"] = elsewhere
        self.send("terminal.attached", attached, envelope.id)
        self.engine.log(Level.INFO, "shell opened", **self.client.log_fields, terminal=name, reattach=reattach)

    def _input(self, envelope: Envelope) -> None:
        terminal, data = self._find_terminal(envelope), envelope.payload.text("data")
        if terminal is None or not data:
            return
        if terminal.child.credit.unsent > MAX_UNREAD:
            self.error("the shell does not read its input", envelope.id, terminal.name)
            return
        terminal.child.write(data.encode("utf-8", "replace"))

    def _kill(self, envelope: Envelope) -> Flow[None]:
        terminal, name = self._find_terminal(envelope), _name(envelope)
        if terminal is not None:
            terminal.parting = TerminalTrigger.KILL  # its tmux client may exit first and report the end
            if self.shells.tmux is not None:
                yield from self.shells.kill_session(terminal.name)
            if self.held.get(terminal.name) is terminal:
                terminal.finish(TerminalTrigger.KILL)
            return
        if name is None or self.shells.tmux is None:
            return
        killed = yield from self.shells.kill_session(name)
        answer: dict[str, object] = {"session_name": name, "reason": REASONS[TerminalTrigger.KILL]}
        if killed:
            self.send("terminal.detached", answer)
        else:
            self.send("terminal.error", {**answer, "message": "there is no such session"})

    def _list(self, envelope: Envelope) -> Flow[None]:
        default = (yield from self.shells.choose(None)) or ""
        tmux = self.shells.tmux is not None
        listing = (yield from self.shells.list_sessions()) if tmux else ""
        rows = parse_tmux_list(listing, self.shells.prefix)
        mine = {self.shells.session_name(name) if tmux else name: held for name, held in self.held.items()}
        everywhere = self.client.relay.live_terminals()
        for row in rows:
            session = str(row["tmux_name"])
            own = mine.pop(session, None)
            row.update(_liveness(own or everywhere.get(session), default, owned=own is not None))
            if own is not None:
                row["name"] = own.name
        rows += [{"name": held.name, **_liveness(held, default, owned=True)} for held in mine.values()]
        self.send("terminal.sessions", {"sessions": rows, "tmux_available": tmux}, envelope.id)

    def _find_terminal(self, envelope: Envelope) -> Terminal | None:
        """Return the attached terminal that a message names, or the last attached one if it names none; else None."""
        name = _name(envelope)
        if name is not None:
            return self.held.get(name)
        return next(reversed(self.held.values()), None)


class Terminal:
    """Terminal attached by a client; a `ChildHandler`."""

    child: ChildProcess

    def __init__(self, owner: TerminalChannelHandler, name: str, shell: str) -> None:
        self.name = name
        self.shell = shell
        self.parting = TerminalTrigger.EXIT  # trigger to use if the child exits by itself
        self._owner = owner
        self._named = dumps_bytes(name)
        self._state = TerminalState.NONE
        self._buffer = OutputBuffer(tmux=owner.shells.tmux is not None)
        self._timer = owner.engine.timers.timer(self._flush)

    def attach_child(self, child: ChildProcess) -> None:
        """Store the child process that runs the shell, and set the state to attached."""
        self.child = child
        self.step(TerminalTrigger.ATTACH)

    def on_output(self, data: bytes) -> None:
        """Collect the shell's output, so that small pieces are sent together."""
        now = self._owner.engine.now.mono
        due = self._buffer.feed(data, now)
        if due > now:
            self._timer.set(due)
        else:
            self._flush()

    def on_exit(self, status: int | None) -> None:
        """Report the end of the child, with the shell's exit status if it ended by itself and without tmux."""
        told = self.parting is TerminalTrigger.EXIT and self._owner.shells.tmux is None
        self._close(self.parting, notify=True, exit_status=shell_status(status) if told else None)

    def resume(self) -> None:
        """Resume the shell and send the collected output; close all terminals if the grant has expired."""
        self.child.set_read_paused(False)
        self._flush()

    def finish(self, trigger: TerminalTrigger, *, notify: bool = True) -> None:
        """Close the terminal from this side: detach from tmux; without tmux, or to kill, terminate the child."""
        if self._owner.shells.tmux is not None and TerminalTrigger.KILL not in (trigger, self.parting):
            self.child.detach()
        else:
            self.child.terminate()
        self._close(trigger, notify=notify)

    def step(self, trigger: TerminalTrigger) -> None:
        """Apply a trigger to the transition table."""
        self._state = step(TERMINAL_TABLE, self._state, trigger)

    def _close(self, trigger: TerminalTrigger, *, notify: bool, exit_status: int | None = None) -> None:
        self.step(trigger)
        self._timer.cancel()
        self._owner.held.pop(self.name, None)
        if not notify:
            return
        if trigger is not TerminalTrigger.GRANT_EXPIRED:
            self._send(self._buffer.drain(final=True))
        payload: dict[str, object] = {"session_name": self.name, "reason": REASONS[trigger]}
        if exit_status is not None:
            payload["exit_status"] = exit_status  # an extension of wire terminal 1.5: clients ignore unknown members
        self._owner.send("terminal.detached", payload)

    def _flush(self) -> None:
        self._timer.cancel()
        client = self._owner.client
        if not client.has_grant("terminal"):
            self._owner.grant_expired()
            return
        if client.writable:
            self._send(self._buffer.drain())
        else:  # until `TerminalChannelHandler.writable`; output that has arrived stays in the buffer
            self.child.set_read_paused(True)

    def _send(self, text: bytes) -> None:
        if text:  # as `write_envelope`, but the text is encoded and escaped already, and large
            identity = new_uuid(self._owner.engine.entropy).encode("ascii")
            self._owner.client.socket.send_text(OUTPUT % (identity, self._named, text))


def _name(envelope: Envelope) -> str | None:
    name = envelope.payload.text("session_name")
    return name[:200] if name.strip() else None


def _liveness(terminal: Terminal | None, default: str, *, owned: bool) -> dict[str, object]:
    if terminal is None:
        return {"shell": default, "live": False, "owned_by_client": False}
    return {"pid": terminal.child.pid, "shell": terminal.shell, "live": True, "owned_by_client": owned}
