"""Scripted child processes in virtual time, which `Spawn` starts on a simulated host.

    class Cat(ScriptedProgram):
        def on_input(self, data: bytes) -> None:
            self.child.emit(data)

    host.programs["/bin/cat"] = lambda child: Cat(child)

Bytes take up to `DELAY` in each direction, and keep their order. Input that the script does not read fills a window,
and then the core gets no more `Sent`. Output beyond its window is buffered; a script can obey `room` and `on_room`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from runtimes.sim.connection import EOF, Inbox, SimEndHandler, split
from svc_proto.basics.strict_json import escaped
from svc_proto.commands import SignalName, Spawn, TerminalSize

if TYPE_CHECKING:
    from runtimes.sim.host import SimHost

__all__ = ["SimChild", "SimChildEnd", "ProgramFactory", "ScriptedProgram"]

DELAY = 0.0005  # s that bytes, signals and the report of an exit take, at least half of it
WINDOW: Final = 64 * 1024  # bytes that a pipe holds, pipe(7)
SIGPIPE = 13  # signal(7)
SIGNAL_NUMBERS = {
    SignalName.HANGUP: 1,
    SignalName.INTERRUPT: 2,
    SignalName.KILL: 9,
    SignalName.TERMINATE: 15,
}  # signal(7)


class ScriptedProgram:
    """Program that discards its input, exits with 0 at the input's end, and dies of a signal.

    Override methods for another behaviour. They are only called while the child runs.
    """

    def __init__(self, child: SimChild) -> None:
        self.child = child

    def on_start(self) -> None:
        """Begin the script's actions, shortly after the spawn. Does nothing here."""

    def on_input(self, data: bytes) -> None:
        """Handle bytes on its input. Does nothing here, so the bytes are discarded."""

    def on_input_closed(self) -> None:
        """Handle the end of its input. Exits with 0 here."""
        self.child.exit(0)

    def on_room(self) -> None:
        """Handle the end of a full window: the core has read all output, or has closed its end. Does nothing here."""

    def on_resize(self, size: TerminalSize) -> None:
        """Handle a new size of its terminal, which `child.size` has too. Does nothing here."""

    def on_signal(self, signal: SignalName) -> None:
        """Handle a signal other than KILL; by default it ends the program. A terminal that hangs up sends HANGUP."""
        self.child.die(signal)


ProgramFactory = Callable[["SimChild"], ScriptedProgram]


class SimChildEnd(Inbox):
    """The core's end of a child's main channel or error output, with the methods of `SimEnd` that a process calls."""

    def __init__(self, child: SimChild) -> None:
        super().__init__()
        self.child = child
        self._held = 0  # bytes in flight or not read

    # --- for the process -----------------------------------------------------------------------------------------

    def adopt(self, owner: SimEndHandler) -> None:
        """Set the process that owns this end."""
        self.owner = owner

    def send(self, data: bytes) -> None:
        """Write to the child's input."""
        self.child.write(data)

    def close_write(self) -> None:
        """Close the child's input."""
        self.child.close_input()

    def abort(self, why: str = "aborted") -> None:
        """Close this channel of the child, because the core has aborted it."""
        self.child.let_go(self, why)

    def vanish(self, *, reset: bool) -> None:
        """Close all ends after the end of the core's process, which was killed (`reset`) or has exited.

        A process that has exited also kills a child without a terminal.
        """
        self.child.orphan(kill=not reset)

    # --- for the child -------------------------------------------------------------------------------------------

    @property
    def buffered_bytes(self) -> int:
        """Return how many bytes the core has not read."""
        return self._held

    @property
    def through(self) -> bool:
        """Report whether the core has read everything, or closed the channel."""
        return self.gone or self.eof_taken

    def launch(self, data: bytes) -> None:
        """Deliver output of the child to the core after a delay; drop it if this end is closed."""
        if not self.gone and data:
            self._held += len(data)
            self.child.later(lambda: self._arrive(data))

    def end(self) -> None:
        """End the output: the child has exited."""
        self.eof = True
        self._notify_owner()

    def finish(self, why: str, status: int | None) -> None:
        """Close this end and report it to the owner."""
        if not self.gone:
            self.gone = True
            self._inbox.clear()
            self.exit_status = status
            if self.owner is not None:
                self.owner.on_closed(why)

    def _arrive(self, data: bytes) -> None:
        if not self.gone:
            self._inbox.append(data)
            self._notify_owner()

    def _take(self) -> bytes:
        data = self._join()
        self._held -= len(data)
        self.child.taken(self)
        return escaped(data) if self.child.escaped and self is self.child.output else data

    def _close_if_done(self) -> None:
        self.child.check_finished()


class SimChild:
    """A child process. Its first methods are for scripts and tests, the others for the simulator."""

    def __init__(self, host: SimHost, command: Spawn, pid: int) -> None:
        self.host = host
        self.world = host.world
        self.pid = pid
        self.argv = command.argv
        self.env = dict(command.env)
        self.cwd = command.cwd
        self.escaped = command.detached
        self.size = command.terminal  # None: no terminal
        self.alive = True
        self.status: int | None = None  # exit status; negative: number of the signal
        self.signals: list[SignalName] = []  # all received signals
        self.output = SimChildEnd(self)
        self.errors = SimChildEnd(self) if command.stderr is not None else None
        self.script: ScriptedProgram = ScriptedProgram(self)
        self._exit_known = False
        self._terminal = command.terminal is not None
        self._arrival = 0.0
        self._full = False
        self._reading = True
        self._input: deque[bytes] = deque()
        self._input_held = 0  # bytes in the window, not given to the script yet
        self._unsent: deque[bytes] = deque()
        self._input_closing = False
        self._input_over = False

    def __repr__(self) -> str:
        return f"<child {self.pid} {self.argv[0]} {'runs' if self.alive else f'exited {self.status}'}>"

    # --- for scripts and tests -----------------------------------------------------------------------------------

    def emit(self, data: bytes) -> None:
        """Write to the output; if it is a pipe without a reader, SIGPIPE ends the child.

        Bytes beyond `room` are buffered. If the window is full afterwards, `on_room` is called when the core has read
        all bytes. A terminal without a reader drops the bytes.
        """
        if self.alive and self.output.gone and not self._terminal:
            self.exit(-SIGPIPE)
        elif self.alive:
            for piece in split(data, self.world.rng, self.world.network.chunking):
                self.output.launch(piece)
            self._full = self.room == 0

    def emit_error(self, data: bytes) -> None:
        """Write to the error output, which is the terminal if the child has one; without either, drop the bytes."""
        if self.alive and (self.errors is not None or self._terminal):
            (self.errors or self.output).launch(data)

    @property
    def room(self) -> int:
        """Return how many bytes of the output's window are free; 0 after the core has closed its end."""
        return 0 if self.output.gone else max(0, WINDOW - self.output.buffered_bytes)

    def stop_reading(self) -> None:
        """Stop reading the input: once the window is full, the core gets no more `Sent` facts."""
        self._reading = False

    def read_on(self) -> None:
        """Resume reading the input."""
        self._reading = True
        self._give_input()

    def after(self, seconds: float, callback: Callable[[], object]) -> None:
        """Call back after some seconds if the child still runs then."""
        self.world.after(seconds, lambda: callback() if self.alive else None)

    def exit(self, status: int) -> None:
        """Exit, once."""
        if not self.alive:
            return
        self.alive = False
        self.status = status
        self.host.children.remove(self)
        self.later(self._exited)

    def die(self, signal: SignalName) -> None:
        """Exit by a signal."""
        self.exit(-SIGNAL_NUMBERS[signal])

    # --- for the simulator ---------------------------------------------------------------------------------------

    def start(self, factory: ProgramFactory) -> None:
        """Create the script of the program and call its `on_start` after a delay."""
        self.host.children.append(self)
        self.script = factory(self)
        self.later(lambda: self._call(self.script.on_start))

    def write(self, data: bytes) -> None:
        """Queue bytes of the core for the child's input."""
        if not self._input_closing and data:
            self._unsent.append(data)
            self._flush()

    def close_input(self) -> None:
        """End the input: the core sends no more."""
        self._input_closing = True
        self._flush()

    def signal(self, signal: SignalName) -> None:
        """Deliver a signal to the process group."""
        self.later(lambda: self._call(lambda: self._signalled(signal)))

    def resize(self, size: TerminalSize) -> None:
        """Change the size of its terminal."""

        def resized() -> None:
            self.size = size
            self.script.on_resize(size)

        self.later(lambda: self._call(resized))

    def let_go(self, end: SimChildEnd, why: str) -> None:
        """Close a channel of the child that the core aborts.

        Without its main channel the child gets a hangup or a closed pipe.
        """
        if end is self.errors:
            end.finish(why, None)
            self.check_finished()
            return
        self._finish(why, None)
        self._break()

    def orphan(self, *, kill: bool) -> None:
        """Close all ends, because the process that started the child has ended.

        A child with a terminal gets HANGUP; without, it gets KILL if `kill` is set, and else the end of its input.
        """
        for end in (self.errors, self.output):
            if end is not None:
                end.owner = None
        self._finish("", None)
        if kill and not self._terminal:
            self.signal(SignalName.KILL)
        else:
            self._break()

    def taken(self, end: SimChildEnd) -> None:
        """Handle that the core has read output: call a running child's `on_room` if the window was full and is empty.

        The channel of an exited child is closed if it is finished.
        """
        if end is self.output and self._full and end.buffered_bytes == 0:
            self._full = False
            self.later(lambda: self._call(self.script.on_room))
        if not self.alive:
            self.check_finished()

    def check_finished(self) -> None:
        """Close the channel if the child has exited and everything that it wrote was read."""
        if self.output.exit_status is not None or self.status is None or self.output.gone or not self._exit_known:
            return
        if self.output.through and (self.errors is None or self.errors.through):
            how = f"exit status {self.status}" if self.status >= 0 else f"ended by signal {-self.status}"
            self._finish(how, self.status)

    def later(self, callback: Callable[[], object]) -> None:
        """Call back after a delay, in the order of the calls."""
        now = self.world.now
        self._arrival = max(self._arrival, now + DELAY * (0.5 + self.world.rng.random() / 2))
        self.world.at(self._arrival, callback)

    # --- below ---------------------------------------------------------------------------------------------------

    def _call(self, callback: Callable[[], object]) -> None:
        if self.alive:
            callback()

    def _signalled(self, signal: SignalName) -> None:
        self.signals.append(signal)
        if signal is SignalName.KILL:
            self.die(signal)
        else:
            self.script.on_signal(signal)

    def _exited(self) -> None:
        self._exit_known = True
        self._flush()
        for end in (self.errors, self.output):
            if end is not None and not end.gone:
                end.end()
        self.check_finished()

    def _break(self) -> None:
        """Handle the close at the core's side: send HANGUP to a child with a terminal, otherwise end its input.

        Without a terminal, `on_room` is called if the output's window was full, since a write then meets SIGPIPE.
        """
        if self._terminal:
            self.signal(SignalName.HANGUP)
        else:
            self.close_input()
            if self._full:
                self.later(lambda: self._call(self.script.on_room))

    def _finish(self, why: str, status: int | None) -> None:
        if self.errors is not None:
            self.errors.finish(why, None)
        self.output.finish(why, status)

    def _flush(self) -> None:
        """Move sent bytes into the window; bytes for an exited child are dropped and count as sent."""
        told = 0
        while self._unsent and (not self.alive or self._input_held < WINDOW):
            data = self._unsent.popleft()
            part = data if not self.alive else data[: WINDOW - self._input_held]
            if len(part) < len(data):
                self._unsent.appendleft(data[len(part) :])
            told += len(part)
            self._input_held += len(part)
            self.later(partial(self._arrived, part))
        if told and self.output.owner is not None and not self.output.gone:
            self.output.owner.on_sent(told)
        if self._input_closing and not self._unsent and not self._input_over:
            self._input_over = True
            self.later(lambda: self._arrived(EOF))

    def _arrived(self, part: bytes) -> None:
        self._input.append(part)
        self._give_input()

    def _give_input(self) -> None:
        while self._input and self._reading and self.alive:
            data = self._input.popleft()
            self._input_held -= len(data)
            if data:
                self.script.on_input(data)
            else:
                self.script.on_input_closed()
        self._flush()
