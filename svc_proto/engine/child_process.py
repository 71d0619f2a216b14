"""Child processes as channels: a terminal or a line-speaking helper that lives on, or a command run to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import CloseWrite, ResizeTerminal, Send, Signal, SignalName, Spawn, TerminalSize
from svc_proto.engine.channel import Channel
from svc_proto.engine.flow import Flow, run_operation, wait
from svc_proto.facts import ChannelId, Closed, Failure
from svc_proto.wire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["INHERITED", "ChildProcess", "ChildHandler", "CommandResult", "run_command", "spawn"]

HANGUP_TIMEOUT = 1.0  # s from SIGHUP or SIGTERM to SIGKILL, wire terminal 1.6
INHERITED = (
    # who and where: what a shell needs to be one
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "HOSTNAME", "MAIL",
    # how it looks and speaks
    "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "TERMINFO", "TERMINFO_DIRS", "EDITOR", "VISUAL", "PAGER",
    # where things are
    "TMPDIR", "TMUX_TMPDIR", "XDG_*", "PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "MANPATH", "SVC_HOME",
    "HERMES_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
    # the way to the person's desktop, sound and keys
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "PULSE_*", "PIPEWIRE_*", "ALSA_*",
    "SSH_AUTH_SOCK",
)  # fmt: skip
"""What a child sees of the environment that this process was started with: that one holds keys and passwords."""
MAX_OUTPUT = 1024 * 1024  # bytes of a command's output that are kept


class ChildHandler(Protocol):
    """Whoever a child's output is for. `on_exit` comes last, once, unless the child was let go of."""

    def on_output(self, data: bytes) -> None:
        """Bytes of its output or terminal."""
        ...

    def on_exit(self, status: int | None) -> None:
        """The child has exited with this status; negative: by that signal; None: not known."""
        ...


@fast_frozen
class CommandResult:
    """What became of a command that ran to its end."""

    status: int | None
    output: bytes


class ChildProcess(Channel):
    """A running child. Made by `spawn`.

    A shell may leave its input unread for hours, and its output is listened to all the same: whoever writes looks at
    `backpressure.unsent`, and no timer watches.
    """

    __slots__ = ("_handler", "_kill", "errors", "pid", "stays")

    def __init__(self, engine: Engine, ch: ChannelId, handler: ChildHandler | None, pid: int) -> None:
        super().__init__(engine, ch, DEFAULT_LIMITS)
        self._handler = handler
        self._kill = engine.timers.timer(self.kill)
        self.pid = pid
        self.errors: ChildProcess | None = None  # its error output, where somebody listens to that
        self.stays = False  # when the process ends: its owner sees to it

    # --- for its owner ---

    def write(self, data: bytes) -> None:
        """Order bytes to be written to its input."""
        self.engine.emit(Send(self.ch, data))
        self.credit.unsent += len(data)

    def resize(self, size: TerminalSize) -> None:
        """Of its terminal."""
        self.engine.emit(ResizeTerminal(self.ch, size))

    def close_input(self) -> None:
        """Close the child's input: nothing more will be written to it."""
        self.engine.emit(CloseWrite(self.ch))

    def detach(self) -> None:
        """Let go of it without a signal (a tmux client ends by that, its session does not)."""
        self._handler = None
        self.abort()

    def terminate(self, signal: SignalName = SignalName.HANGUP, *, patience: float = HANGUP_TIMEOUT) -> None:
        """Ask it to end, and make it after a while. Its handler hears nothing more."""
        self._handler = None
        if self.gone:
            return
        self.set_read_paused(False)
        self.signal(signal)
        self._kill.set(self.engine.now.mono + patience)

    def signal(self, signal: SignalName) -> None:
        """Send it a signal; its handler goes on to hear of it."""
        self.engine.emit(Signal(self.ch, signal))

    def kill(self) -> None:
        """Make it end now. Its handler hears nothing more."""
        self.signal(SignalName.KILL)
        self.detach()

    # --- facts ---

    def received(self, data: bytes) -> None:
        """Pass it on."""
        if self._handler is not None:
            self._handler.on_output(data)

    def sent(self, n: int) -> None:
        """The child has read so many bytes of its input."""
        self.credit.unsent -= n

    def read_closed(self) -> None:
        """The child's output has ended; `Closed` follows when it exits."""

    def ended(self, fact: Closed) -> None:
        """The child has exited, or was let go of."""
        super().ended(fact)
        self._kill.cancel()
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.on_exit(fact.exit)

    def stop(self) -> None:
        """The process ends: let go of a child that nobody has asked to end."""
        if self._kill.when is None and not self.stays:
            self.abort()


def spawn(
    engine: Engine,
    argv: tuple[str, ...],
    handler: ChildHandler,
    *,
    env: tuple[tuple[str, str], ...] = (),
    cwd: str | None = None,
    terminal: TerminalSize | None = None,
    escaped: bool = False,
    errors: ChildHandler | None = None,
    inherit: tuple[str, ...] = INHERITED,
    within: float = 10.0,
) -> Flow[ChildProcess | Failure]:
    """Start a child whose output goes to `handler`, and what it writes to its error output to `errors`."""
    ch = engine.new_channel()
    error_channel = None if errors is None else engine.new_channel()
    order = Spawn(engine.new_op(), ch, argv, env, cwd, terminal, error_channel, inherit, escaped)
    spawned = yield from run_operation(engine, order, within=within)
    if isinstance(spawned, Failure):
        return spawned
    child = ChildProcess(engine, ch, handler, spawned.pid)
    engine.attach(child)
    if error_channel is not None:
        child.errors = ChildProcess(engine, error_channel, errors, spawned.pid)
        child.errors.stays = True  # it ends with its child
        engine.attach(child.errors)
    return child


def run_command(
    engine: Engine,
    argv: tuple[str, ...],
    *,
    said: bytes = b"",
    inherit: tuple[str, ...] = INHERITED,
    within: float = 5.0,
) -> Flow[CommandResult | Failure]:
    """Run a command to its end; `said` is its input, and the first megabyte of its output is kept."""
    collector = _OutputCollector(engine)
    child = yield from spawn(engine, argv, collector, inherit=inherit, within=within)
    if isinstance(child, Failure):
        return child
    if said:
        child.write(said)
    child.close_input()
    try:
        finished = yield from wait(collector.ticket, engine.now.mono + within)
    finally:
        if not child.gone:
            child.kill()
    return cast("CommandResult | Failure", finished)


class _OutputCollector:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._output = bytearray()
        self.ticket = engine.new_op()

    def on_output(self, data: bytes) -> None:
        self._output += data[: MAX_OUTPUT - len(self._output)]

    def on_exit(self, status: int | None) -> None:
        self._engine.resume(self.ticket, CommandResult(status, bytes(self._output)))
