"""Child processes as channels: long-running ones (terminal, helper), and commands that run to their end."""

from typing import Protocol, cast

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import CloseWrite, ResizeTerminal, Send, Signal, SignalName, Spawn, TerminalSize
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation, wait
from svc_proto.facts import ChannelId, Closed, Failure
from svc_proto.wire.limits import DEFAULT_LIMITS

__all__ = ["INHERITED", "ChildProcess", "ChildHandler", "CommandResult", "run_command", "spawn"]

HANGUP_TIMEOUT = 1.0  # s from SIGHUP or SIGTERM to SIGKILL, wire terminal 1.6
INHERITED = (
    # identity and place: what a shell needs to start
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "HOSTNAME", "MAIL",
    # locale and display
    "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "TERMINFO", "TERMINFO_DIRS", "EDITOR", "VISUAL", "PAGER",
    # locations
    "TMPDIR", "TMUX_TMPDIR", "XDG_*", "PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "MANPATH", "SVC_HOME",
    "HERMES_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
    # the user's desktop, sound and key agent
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "PULSE_*", "PIPEWIRE_*", "ALSA_*",
    "SSH_AUTH_SOCK",
)  # fmt: skip
"""Environment variables that a child inherits. All others are withheld, since they hold keys and passwords."""
MAX_OUTPUT = 1024 * 1024  # bytes of a command's output that are kept


class ChildHandler(Protocol):
    """Handler of a child's output; `on_exit` is called last and once, or never if the child was released before.

    `detach`, `terminate` and `kill` of the child release it.
    """

    def on_output(self, data: bytes) -> None:
        """Handle bytes of the child's output or terminal; by default, ignore them."""
        return

    def on_exit(self, status: int | None) -> None:
        """Handle the child's exit; by default, do nothing. `status` is negative for a signal, None if unknown."""
        return


@fast_frozen
class CommandResult:
    """Result of a command that ran to its end: exit status (negative for a signal) and output."""

    status: int | None
    output: bytes


class ChildProcess(Channel):
    """A running child, made by `spawn`.

    A shell may leave its input unread for hours while its output is read. So no timer watches the input; a caller that
    writes checks `credit.unsent`.
    """

    __slots__ = ("_handler", "_kill", "errors", "pid", "stays")

    def __init__(self, engine: Engine, ch: ChannelId, handler: ChildHandler | None, pid: int) -> None:
        super().__init__(engine, ch, DEFAULT_LIMITS)
        self._handler = handler
        self._kill = engine.timers.timer(self.kill)
        self.pid = pid
        self.errors: ChildProcess | None = None  # its error output, where a handler reads that separately
        self.stays = False  # `stop` leaves the child to its owner

    # --- for its owner ---

    def write(self, data: bytes) -> None:
        """Write bytes to the child's input."""
        self.engine.emit(Send(self.ch, data))
        self.credit.unsent += len(data)

    def resize(self, size: TerminalSize) -> None:
        """Resize the child's terminal."""
        self.engine.emit(ResizeTerminal(self.ch, size))

    def close_input(self) -> None:
        """Close the child's input after the bytes written so far."""
        self.engine.emit(CloseWrite(self.ch))

    def detach(self) -> None:
        """Close the channel to the child without a signal. Its handler receives no further calls.

        A tmux client ends then, while its session continues.
        """
        self._handler = None
        self.abort()

    def terminate(self, signal: SignalName = SignalName.HANGUP, *, patience: float = HANGUP_TIMEOUT) -> None:
        """Signal the child to end, and kill it if it runs after `patience` seconds.

        Its handler receives no further calls.
        """
        self._handler = None
        if self.gone:
            return
        self.set_read_paused(False)
        self.signal(signal)
        self._kill.set(self.engine.now.mono + patience)

    def signal(self, signal: SignalName) -> None:
        """Send a signal to the child; its handler stays registered."""
        self.engine.emit(Signal(self.ch, signal))

    def kill(self) -> None:
        """Kill the child now. Its handler receives no further calls."""
        self.signal(SignalName.KILL)
        self.detach()

    # --- facts ---

    def received(self, data: bytes) -> None:
        """Pass output to the handler, or drop it if the handler was released."""
        if self._handler is not None:
            self._handler.on_output(data)

    def sent(self, n: int) -> None:
        """Record that the kernel accepted `n` bytes for the child's input."""
        self.credit.unsent -= n

    def read_closed(self) -> None:
        """Ignore the end of the child's output: `Closed` follows when it exits."""

    def ended(self, fact: Closed) -> None:
        """Report the exit to the handler, unless it was released before."""
        super().ended(fact)
        self._kill.cancel()
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.on_exit(fact.exit)

    def stop(self) -> None:
        """Close the channel to the child, unless the child is being terminated.

        With `stays` the channel is left open, too: a child's error output closes with the child, and the owner of any
        other such child ends it.
        """
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
    """Start a child; `handler` receives its output, and `errors`, if given, its error output.

    Return a `Failure` if the child could not be started within `within` seconds.
    """
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
        child.errors.stays = True  # the error channel ends with its child
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
    """Run a command to its end with `said` as input; return its status and the first megabyte of its output.

    Return a `Failure` if it cannot be started within `within` seconds. If it runs for as long after that, kill it and
    return a `Failure` TIMED_OUT.
    """
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
