"""A relay whose child processes are in the hands of the test.

    book = ProgramBook(tmux=True)
    phone = book.pair().phone
    phone.send("terminal", "terminal.attach", {"session_name": "default"})
    shell = book.children[-1]
    shell.say(b"$ ")
    book.after(0.016)
    assert shell.heard == b"ls\\r"

`commands` of tmux end at once, as `book.tmux` (a function of their arguments) has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, evolve, field

from svc_proto.commands import (
    Abort,
    CloseWrite,
    Command,
    Compute,
    Operation,
    PauseReading,
    ResizeTerminal,
    ResumeReading,
    Send,
    Signal,
    SignalName,
    Spawn,
    Spawned,
    TerminalSize,
    WriteFile,
)
from svc_proto.config import RelayConfig
from svc_proto.facts import ChannelId, Closed, Done, Fact, Failed, Failure, FailureKind, ReadClosed, Received, Sent
from tests.relay.peers import Phone
from tests.relay.world import RelayBook

__all__ = ["FakeChild", "ProgramBook", "Tmux", "attach", "attached", "say", "shown", "with_tui"]

TMUX = "/usr/bin/tmux"
SHELLS = ("/bin/sh", "/bin/zsh")
GRANTS: dict[str, object] = {"terminal": 0, "tui": 0, "chat": 0}

TmuxServer = Callable[[tuple[str, ...]], "tuple[int, bytes]"]


@define(eq=False)
class FakeChild:
    """One child process, as the relay ordered it."""

    book: ProgramBook
    order: Spawn
    pid: int
    heard: bytes = b""
    signals: list[SignalName] = field(factory=list)
    size: TerminalSize | None = None
    reads: bool = True  # its input
    held: bool = False  # nobody reads its output
    gone: bool = False

    def say(self, data: bytes) -> None:
        """Write to its output."""
        self.book.feed(Received(self.order.ch, data))

    def complain(self, data: bytes) -> None:
        """Write to its error output."""
        assert self.order.errors is not None
        self.book.feed(Received(self.order.errors, data))

    def exit(self, status: int | None = 0) -> None:
        """End by itself."""
        self.gone = True
        if self.order.errors is not None:
            self.book.feed(Closed(self.order.errors))
        self.book.feed(ReadClosed(self.order.ch))
        self.book.feed(Closed(self.order.ch, f"exit status {status}", status))

    def read(self) -> None:
        """Read its input after all."""
        self.reads = True
        self.book.feed(Sent(self.order.ch, len(self.heard)))


class ProgramBook(RelayBook):
    """See the module."""

    def __init__(self, *, tmux: TmuxServer | None = None, config: RelayConfig | None = None, **options: Any) -> None:
        self.children: list[FakeChild] = []
        self.tmux_commands: list[tuple[str, ...]] = []
        self.tmux = tmux
        self.conf_written = True
        self.shells: tuple[str, ...] = SHELLS
        self.problem: FailureKind | None = None  # of the next program to be started
        self.blocked: dict[ChannelId, int] = {}  # clients that do not read, and what they have not read
        self._by_channel: dict[ChannelId, FakeChild] = {}
        self._pid = 4000
        plain = RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", user_shell="/bin/zsh")
        super().__init__(config or plain, **options)

    def client(self, **grants: object) -> Any:
        """A paired desktop."""
        return self.pair(client_surface="desktop", operator={"grants": {**GRANTS, **grants}}).phone

    def block(self, peer: Any) -> None:
        """A client reads no more."""
        self.blocked[peer.ch] = 0

    def unblock(self, peer: Any) -> None:
        """It reads again."""
        self.feed(Sent(peer.ch, self.blocked.pop(peer.ch)))

    # --- the runtime ---

    def _carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            child = self._by_channel.get(getattr(command, "ch", ChannelId(-2)))
            if isinstance(command, Spawn):
                self.commands.append(command)
                if Spawn in self.hold:
                    self.held.append(command)
                else:
                    self._facts.append(self._start(command))
            elif child is not None:
                self.commands.append(command)
                self._carry_out_for(child, command)
            elif isinstance(command, Send) and command.ch in self.blocked:
                self.blocked[command.ch] += len(command.data)
                self._peers[command.ch].receive(command.data)
            else:
                super()._carry_out([command])

    def _carry_out_for(self, child: FakeChild, command: Command) -> None:
        match command:
            case Send(ch=ch, data=data):
                child.heard += data
                if child.reads:
                    self._facts.append(Sent(ch, len(data)))
            case ResizeTerminal(size=size):
                child.size = size
            case Signal(signal=signal):
                child.signals.append(signal)
            case PauseReading():
                child.held = True
            case ResumeReading():
                child.held = False
            case Abort(ch=ch) if ch == child.order.ch and not child.gone:
                child.gone = True
                if child.order.errors is not None:
                    self._facts.append(Closed(child.order.errors))
                self._facts.append(Closed(ch))
            case _:
                assert isinstance(command, Abort | CloseWrite)

    def _start(self, order: Spawn) -> Fact:
        if self.problem is not None:
            problem, self.problem = self.problem, None
            return Failed(order.op, Failure(problem))
        self._pid += 1
        child = FakeChild(self, order, self._pid, size=order.terminal)
        for ch in (order.ch, order.errors):
            if ch is not None:
                self._by_channel[ch] = child
        if order.argv[0] == TMUX and order.terminal is None and self.tmux is not None:
            self.tmux_commands.append(order.argv[3:])
            status, output = self.tmux(order.argv[3:])
            child.gone = True
            self._facts.append(Done(order.op, Spawned(child.pid)))
            if output:
                self._facts.append(Received(order.ch, output))
            return Closed(order.ch, "", status)
        self.children.append(child)
        return Done(order.op, Spawned(child.pid))

    def _result(self, operation: Operation[Any]) -> Fact:
        match operation:
            case Spawn():
                return self._start(operation)
            case Compute(op=op, name="which"):
                return Done(op, None if self.tmux is None else TMUX)
            case Compute(op=op, name="executable", args=(path,)):
                return Done(op, path in self.shells)
            case WriteFile(op=op, name=name):
                if not self.conf_written:
                    return Failed(op, Failure(FailureKind.DENIED))
                return Done(op, f"/home/svc/{name}")
        return super()._result(operation)


def with_tui(config: Mapping[str, Any] | None = None) -> RelayConfig:
    """A configuration with an agent gateway."""
    plain = RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", tui_command=("/bin/agent", "--lines"))
    return evolve(plain, **(config or {}))


class Tmux:
    """A tmux server with sessions; what it is asked is in `ProgramBook.tmux_commands`."""

    def __init__(self, *sessions: str, screen: bytes = b"$ make\nok\n\n\n") -> None:
        self.sessions = dict.fromkeys(sessions, 1)
        self.screen = screen
        self.makes = True  # sessions that nobody is attached to
        self.on_kill = lambda: None

    def __call__(self, argv: tuple[str, ...]) -> tuple[int, bytes]:
        if "new-session" in argv:
            name = argv[argv.index("-s") + 1]
            if not self.makes or name in self.sessions:
                return 1, b""
            self.sessions[name] = 0
            return 0, b""
        target = argv[-1].rstrip(":").removeprefix("=") if "-t" in argv else ""
        match argv[0]:
            case "list-sessions":
                rows = [f"{name} {attached} 1 1790000000\n" for name, attached in self.sessions.items()]
                return (0 if rows else 1), "".join(rows).encode()
            case "kill-session" if target in self.sessions:
                del self.sessions[target]
                return 0, b""
            case "capture-pane":
                return (0, self.screen) if target in self.sessions else (1, b"")
        return (0 if target in self.sessions else 1), b""


def attach(phone: Phone, name: str | None = "default", **payload: object) -> dict[str, Any]:
    """Attach; the answer."""
    if name is not None:
        payload["session_name"] = name
    phone.send("terminal", "terminal.attach", payload, "a-1")
    return phone.only()


def attached(
    name: str = "default", *, tmux: Tmux | None = None, **options: Any
) -> tuple[ProgramBook, Phone, FakeChild]:
    book = ProgramBook(tmux=tmux, **options)
    phone = book.client()
    assert attach(phone, name)["type"] == "terminal.attached"
    return book, phone, book.children[-1]


def say(phone: Phone, kind: str, **payload: object) -> list[dict[str, Any]]:
    """Send a message; what came of it at once."""
    phone.send("terminal", f"terminal.{kind}", payload, "m-1")
    return phone.envelopes()


def shown(phone: Phone) -> list[tuple[str, Any]]:
    """What came, in short."""
    return [
        (envelope["type"].partition(".")[2], envelope["payload"].get("data") or envelope["payload"].get("reason"))
        for envelope in phone.envelopes()
    ]
