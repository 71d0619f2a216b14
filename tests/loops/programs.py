"""Programs of a simulated host: a shell, a tmux whose sessions outlive its clients, an agent gateway.

    install(host)                # /bin/sh, /usr/bin/tmux and /bin/agent from then on
    install(host, tmux=False)

The shell knows `NAME=value`, `echo`, `stty size`, `seq N`, `yes`, `sleep`, `exit N`, several with `;`, and Ctrl-C.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from runtimes.sim.child import Child, Script
from runtimes.sim.host import Host
from svc_proto.commands import SignalName, TerminalSize

__all__ = ["AGENT", "SHELL", "TmuxServer", "install"]

SHELL, TMUX, AGENT = "/bin/sh", "/usr/bin/tmux", "/bin/agent"
BLOCK = b"y\r\n" * 2000
QUOTES = str.maketrans("", "", "'\"")
VARIABLE = re.compile(r"\$(\w+)")


def install(host: Host, *, tmux: bool = True) -> TmuxServer:
    """Give a host its programs; its tmux server, which may have no sessions."""
    server = TmuxServer()
    host.programs[SHELL] = lambda child: _BareShell(child)
    host.programs[AGENT] = lambda child: _Agent(child)
    if tmux:
        host.programs[TMUX] = server.program
    return server


class Shell:
    """What a shell does with what is typed, whatever its terminal is. `write` shows something."""

    def __init__(self, env: dict[str, str], size: TerminalSize, write: Callable[[bytes], object]) -> None:
        self.variables = dict(env)
        self.size = size
        self.status: int | None = None  # it has exited
        self.floods = False
        self._write = write
        self._line = ""
        self._sleeps = False

    def type(self, data: bytes) -> None:
        """Take keys; what is typed is shown, as terminals do."""
        for key in data.decode():
            if key == "\x03":
                self.floods = self._sleeps = False
                self._line = ""
                self._write(b"^C\r\n$ ")
            elif key != "\r":
                self._line += key
                self._write(key.encode())
            else:
                line, self._line = self._line, ""
                self._write(b"\r\n")
                if not self._sleeps and not self.floods:
                    self._run(line)

    def _run(self, line: str) -> None:
        for command in line.split(";"):
            if self.status is None and command.strip():
                self._do(command.strip())
        if self.status is None and not self.floods and not self._sleeps:
            self._write(b"$ ")

    def _do(self, command: str) -> None:
        words = VARIABLE.sub(lambda found: self.variables.get(found[1], ""), command).translate(QUOTES).split()
        match words:
            case [word] if "=" in word:
                name, _, value = word.partition("=")
                self.variables[name] = value
            case ["echo", *rest]:
                self._write(" ".join(rest).encode() + b"\r\n")
            case ["stty", "size"]:
                self._write(b"%d %d\r\n" % (self.size.rows, self.size.cols))
            case ["seq", count]:
                self._write(b"".join(b"%d\r\n" % number for number in range(1, int(count) + 1)))
            case ["yes"]:
                self.floods = True
            case ["sleep"]:
                self._sleeps = True
            case ["exit", code]:
                self.status = int(code)
            case _:
                self._write(b"sh: not found\r\n")


class _BareShell(Script):
    """A shell in a terminal of its own; it ends when that is hung up."""

    def __init__(self, child: Child) -> None:
        super().__init__(child)
        self._shell = Shell(child.env, child.size or TerminalSize(80, 24), child.emit)

    def on_start(self) -> None:
        self.child.emit(b"$ ")

    def on_input(self, data: bytes) -> None:
        self._shell.type(data)
        self.on_room()
        if self._shell.status is not None:
            self.child.exit(self._shell.status)

    def on_resize(self, size: TerminalSize) -> None:
        self._shell.size = size

    def on_room(self) -> None:
        while self._shell.floods and self.child.room:
            self.child.emit(BLOCK)


class _Session:
    """A shell in tmux, and who looks at it."""

    def __init__(self, env: dict[str, str], size: TerminalSize) -> None:
        self.clients: list[Child] = []
        self.screen = b""
        self.shell = Shell(env, size, self._show)

    def _show(self, data: bytes) -> None:
        self.screen = (self.screen + data)[-4000:]
        for client in self.clients:
            client.emit(data)


class TmuxServer:
    """The sessions, by name. They outlive the relay."""

    def __init__(self) -> None:
        self.sessions: dict[str, _Session] = {}

    def program(self, child: Child) -> Script:
        """A run of `tmux`."""
        words = list(child.argv[1:])
        while words[0] in ("-L", "-f", "-u"):
            del words[: 1 if words[0] == "-u" else 2]
        if words[0] == "attach-session":
            return _TmuxClient(child, self, words[-1].removeprefix("="), makes=False)
        if words[0] == "new-session" and "-A" in words:
            return _TmuxClient(child, self, words[words.index("-s") + 1], makes=True)
        return _TmuxCommand(child, self, words)

    def make(self, name: str, env: dict[str, str], size: TerminalSize) -> _Session:
        """Start a session."""
        session = self.sessions[name] = _Session(env, size)
        session.screen = b"$ "
        return session

    def end(self, name: str) -> None:
        """End a session; its clients go."""
        for client in self.sessions.pop(name).clients:
            client.exit(0)


class _TmuxClient(Script):
    """`attach-session`, `new-session -A`: a terminal that shows a session. Hung up, it leaves the session there."""

    def __init__(self, child: Child, server: TmuxServer, name: str, *, makes: bool) -> None:
        super().__init__(child)
        self._server = server
        self._name = name
        self._makes = makes

    def on_start(self) -> None:
        size = self.child.size or TerminalSize(80, 24)
        session = self._server.sessions.get(self._name)
        if session is None and not self._makes:  # killed meanwhile
            self.child.exit(1)
            return
        if session is None:
            session = self._server.make(self._name, self.child.env, size)
        session.clients.append(self.child)
        session.shell.size = size
        self.child.emit(session.screen)

    def on_input(self, data: bytes) -> None:
        session = self._server.sessions[self._name]
        session.shell.type(data)
        if session.shell.status is not None:
            self._server.end(self._name)

    def on_resize(self, size: TerminalSize) -> None:
        self._server.sessions[self._name].shell.size = size

    def on_signal(self, signal: SignalName) -> None:
        session = self._server.sessions.get(self._name)
        if session is not None and self.child in session.clients:
            session.clients.remove(self.child)
        super().on_signal(signal)


class _TmuxCommand(Script):
    """Any other run of `tmux`: it does it, says something, and is over."""

    def __init__(self, child: Child, server: TmuxServer, words: list[str]) -> None:
        super().__init__(child)
        self._server = server
        self._words = words

    def on_start(self) -> None:
        status, output = self._outcome()
        self.child.emit(output)
        self.child.exit(status)

    def _outcome(self) -> tuple[int, bytes]:
        words, sessions = self._words, self._server.sessions
        if words[0] == "new-session":
            name = words[words.index("-s") + 1]
            if name in sessions:
                return 1, b""
            size = TerminalSize(int(words[words.index("-x") + 1]), int(words[words.index("-y") + 1]))
            env = dict(word.split("=", 1) for at, word in enumerate(words) if words[at - 1] == "-e")
            self._server.make(name, env, size)
            return 0, b""
        if words[0] == "list-sessions":
            rows = [
                f"{name} {sum(client.alive for client in session.clients)} 1 1790000000\n"
                for name, session in sessions.items()
            ]
            return (0 if rows else 1), "".join(rows).encode()
        name = words[-1].removeprefix("=").removesuffix(":")
        if name not in sessions:
            return 1, b""
        if words[0] == "kill-session":
            self._server.end(name)
        return 0, sessions[name].screen if words[0] == "capture-pane" else b""


class _Agent(Script):
    """Speaks JSON-RPC by lines. `echo` answers with its parameters, `flood N` with N events before that, `crash` exits
    with 7; after `stubborn` it does not mind SIGTERM, and after `deaf` it reads no more."""

    def __init__(self, child: Child) -> None:
        super().__init__(child)
        self._rest = b""
        self._stubborn = False

    def on_start(self) -> None:
        self._say({"method": "event", "params": {"type": "gateway.ready"}})
        self.child.emit_error(b"started\n")

    def on_input(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def on_signal(self, signal: SignalName) -> None:
        if not self._stubborn:
            self.child.exit(0)

    def _take(self, request: dict[str, Any]) -> None:
        params = request.get("params", {})
        match request["method"]:
            case "crash":
                self.child.emit(b'{"half a')
                self.child.exit(7)
            case "stubborn":
                self._stubborn = True
            case "deaf":
                self.child.stop_reading()
            case "flood":
                for number in range(params["count"]):
                    self._say({"method": "event", "params": {"n": number, "noise": "x" * params.get("size", 0)}})
        self._say({"id": request["id"], "result": params})

    def _say(self, message: dict[str, Any]) -> None:
        self.child.emit(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
