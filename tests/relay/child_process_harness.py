"""Relay whose child processes are scripted by the test.

    book = ChildProcessHarness(tmux=Tmux())
    phone = book.client()
    phone.send("terminal", "terminal.attach", {"session_name": "default"})
    shell = book.children[-1]
    shell.write_output(b"$ ")
    book.after(0.016)
    assert not shell.gone

Commands of tmux that need no terminal end at once with the result of `book.tmux`, a function of their arguments.
"""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from svc_proto.commands import Operation, ResizeTerminal, Signal, Spawn, Spawned, WriteFile
from svc_proto.facts import Done, Failed, Failure, FailureKind, Received, Started
from svc_proto.relay_config import RelayConfig
from tests.relay.harness import RelayHarness
from tests.relay.phone_client import PhoneClient
from tests.support.channel_ends import HarnessChild
from tests.support.core_harness import HOME, FarEnd, HarnessNode

TMUX = "/usr/bin/tmux"
SHELLS = ("/bin/sh", "/bin/zsh")
GRANTS: dict[str, object] = {"terminal": 0, "tui": 0, "chat": 0}

TmuxServer = Callable[[tuple[str, ...]], "tuple[int, bytes]"]


class ChildProcessHarness(RelayHarness):
    """Relay harness with scripted child processes and tmux."""

    def __init__(self, *, tmux: TmuxServer | None = None, config: RelayConfig | None = None, **options: Any) -> None:
        self.children: list[HarnessChild] = []
        self.tmux_commands: list[tuple[str, ...]] = []
        self.tmux = tmux
        self.conf_written = True
        self.shells: tuple[str, ...] = SHELLS
        self.problem: FailureKind | None = None  # failure of the next program to be started
        self._pid = 4000
        plain = RelayConfig(home=HOME, config_path=f"{HOME}/config.yaml", user_shell="/bin/zsh")
        started = options.pop("started", True)
        super().__init__(config or plain, started=False, **options)
        self.host.compute |= {
            "which": lambda name: None if self.tmux is None else TMUX,
            "executable": lambda path: path in self.shells,
        }
        self.node.operations.handlers |= {Signal: self._signal, ResizeTerminal: self._resize}
        if started:
            self.feed(Started())

    def client(self, **grants: object) -> Any:
        """Pair a desktop that has the grants `GRANTS`, changed by the arguments; return its client."""
        return self.pair(client_surface="desktop", operator={"grants": {**GRANTS, **grants}}).phone

    # --- the runtime ---

    def execute(self, node: HarnessNode, operation: Operation[Any]) -> None:
        match operation:
            case Spawn(op=op):
                problem, self.problem = self.problem, None
                if problem is not None:
                    node.post(Failed(op, Failure(problem)))
                else:
                    self._start(node, operation)
            case WriteFile(op=op) if not self.conf_written:
                node.post(Failed(op, Failure(FailureKind.DENIED)))
            case _:
                super().execute(node, operation)

    def _start(self, node: HarnessNode, order: Spawn) -> None:
        self._pid += 1
        child = node.ends[order.ch] = HarnessChild(node, order.ch, order=order, pid=self._pid, size=order.terminal)
        if order.stderr is not None:
            child.errors = node.ends[order.stderr] = FarEnd(node, order.stderr)
        node.post(Done(order.op, Spawned(child.pid)))
        if order.argv[0] != TMUX or order.terminal is not None or self.tmux is None:
            self.children.append(child)
            return
        self.tmux_commands.append(order.argv[3:])
        status, output = self.tmux(order.argv[3:])
        if output:
            node.post(Received(order.ch, output))
        child.end("", status)

    def _signal(self, command: Signal) -> None:
        child = self.node.ends.get(command.ch)
        if child is not None:
            child.signals.append(command.signal)

    def _resize(self, command: ResizeTerminal) -> None:
        child = self.node.ends.get(command.ch)
        if child is not None:
            child.size = command.size


def with_tui(config: Mapping[str, Any] | None = None) -> RelayConfig:
    """Return a configuration whose tui channel starts `/bin/agent --lines`; `config` overrides its fields."""
    plain = RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", tui_command=("/bin/agent", "--lines"))
    return evolve(plain, **(config or {}))


class Tmux:
    """Scripted tmux server with sessions; `ChildProcessHarness.tmux_commands` records the commands."""

    def __init__(self, *sessions: str, screen: bytes = b"$ make\nok\n\n\n") -> None:
        self.sessions = dict.fromkeys(sessions, 1)
        self.screen = screen
        self.makes = True  # whether it creates detached sessions

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


def desktop_relay(**options: Any) -> tuple[ChildProcessHarness, PhoneClient]:
    """Return a relay and a desktop that it has paired; `options` are those of `ChildProcessHarness`."""
    book = ChildProcessHarness(**options)
    return book, book.client()


def attach(phone: PhoneClient, name: str | None = "default", **payload: object) -> dict[str, Any]:
    """Send `terminal.attach`, without `session_name` if the name is None, and return the one envelope that follows."""
    if name is not None:
        payload["session_name"] = name
    phone.send("terminal", "terminal.attach", payload, "a-1")
    return phone.only()


def attached(
    name: str = "default", *, tmux: Tmux | None = None, **options: Any
) -> tuple[ChildProcessHarness, PhoneClient, HarnessChild]:
    book, phone = desktop_relay(tmux=tmux, **options)
    assert attach(phone, name)["type"] == "terminal.attached"
    return book, phone, book.children[-1]


def send_and_collect(phone: PhoneClient, kind: str, **payload: object) -> list[dict[str, Any]]:
    """Send the message `terminal.<kind>` and return the envelopes that follow at once."""
    phone.send("terminal", f"terminal.{kind}", payload, "m-1")
    return phone.envelopes()


def describe_messages(phone: PhoneClient) -> list[tuple[str, Any]]:
    """Return the type (without its channel) and the data or the reason of each new envelope."""
    return [
        (envelope["type"].partition(".")[2], envelope["payload"].get("data") or envelope["payload"].get("reason"))
        for envelope in phone.envelopes()
    ]
