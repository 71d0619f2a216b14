"""Child processes as channels, the same code on every loop: `Spawn`, `Signal` and `ResizeTerminal`.

Unless the core aborts the channel or the input's queue overflows, `Closed` follows the child's exit, not the end of its
output. Its error output, if ordered, is a separate channel that closes before. A failed write to a child's input does
not end the channel.
"""

import contextlib
import os
import signal
import termios
from collections.abc import Callable

from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from runtimes.loops.loop import OneWaySource, Source
from runtimes.net.outbox import OUTBOX_LIMIT, Outbox
from runtimes.processes.child_output import ChildOutput
from runtimes.processes.reaper import MAX_CHILDREN, Reaper
from runtimes.processes.spawn import SpawnedProcess, start_process, window_size
from svc_proto.commands import ResizeTerminal, Signal, Spawn, Spawned, TerminalSize
from svc_proto.facts import ChannelId, FailureKind

__all__ = ["ChildChannel", "ChildService", "StderrChannel"]

Post = Callable[[Callable[[], None]], None]


class ChildService:
    """Service that performs one core's commands for child processes."""

    def __init__(self, pump: Pump, workers: ThreadPool, reaper: Reaper, post: Post) -> None:
        self._pump = pump
        self._workers = workers
        self._reaper = reaper
        self._post = post
        pump.serve({Spawn: self._spawn, Signal: self._signal, ResizeTerminal: self._resize})

    def _spawn(self, command: Spawn) -> None:
        pump, reaper = self._pump, self._reaper
        if not reaper.reserve():
            pump.refuse(command.op, FailureKind.TOO_LARGE, f"over {MAX_CHILDREN} child processes")
            return

        def keep(process: SpawnedProcess) -> Spawned:
            child = ChildChannel(pump, command.ch, process, errors=command.stderr, post=self._post)
            reaper.watch(process, child.exited)
            child.start()
            return Spawned(process.pid)

        def release(process: SpawnedProcess) -> None:
            """Kill a child whose `Spawn` was cancelled before the answer."""
            process.close()
            process.signal(signal.SIGKILL)
            reaper.watch(process, lambda status: None)

        pump.work(
            command.op,
            self._workers,
            lambda: start_process(command),
            keep=keep,
            release=release,
            after=reaper.starting_over,
        )

    def _signal(self, command: Signal) -> None:
        child = self._pump.channels.get(command.ch)
        if isinstance(child, ChildChannel):
            child.process.signal(signal.Signals[command.signal.value])

    def _resize(self, command: ResizeTerminal) -> None:
        child = self._pump.channels.get(command.ch)
        if isinstance(child, ChildChannel):
            child.resize(command.size)


class ChildChannel:
    """Channel of a child's input and output, or of its terminal; its error output, if ordered, is a `StderrChannel`."""

    def __init__(
        self, pump: Pump, ch: ChannelId, process: SpawnedProcess, *, errors: ChannelId | None, post: Post
    ) -> None:
        self.pump = pump
        self.ch = ch
        self.process = process
        self.unreported = 0
        self.gone = False
        self._output = ChildOutput(
            pump,
            ch,
            process.output,
            terminal=process.terminal,
            escape=process.escaped,
            settled=self.check_finished,
            post=post,
        )
        self._input: Source = self._output if process.terminal else OneWaySource(process.input, self._flush)
        self._output.flush = self._flush
        self._errors: StderrChannel | None = None
        if errors is not None and process.errors is not None:
            self._errors = StderrChannel(self, errors, process.errors, post)
        self._outbox = Outbox(self._write)
        self._fin = False  # CloseWrite was ordered
        self._deaf = False  # input is discarded: closed, or the child no longer reads it
        self._status: int | None = None
        pump.channels[ch] = self

    def start(self) -> None:
        """Start reading the child's output, and its error output if ordered."""
        self._output.start()
        if self._errors is not None:
            self._errors.output.start()

    # --- reading -------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Implement `OpenChannel.pause` for the child's standard output."""
        self._output.pause()

    def resume(self) -> None:
        """Implement `OpenChannel.resume` for the child's standard output."""
        self._output.resume()

    # --- writing -------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Write `data` to the child's input after the bytes of earlier sends; drop it after `close_write`.

        Over `OUTBOX_LIMIT` unsent bytes, close the channel.
        """
        if self._fin or not data:
            return
        if not self._outbox.send(data):
            self.end(f"over {OUTBOX_LIMIT} unsent bytes")
        elif self._outbox:
            self.pump.loop.watch_write(self._input)

    def close_write(self) -> None:
        """Close the input after the queued bytes; a terminal gets its end-of-file characters instead."""
        if not self._fin:
            self._fin = True
            if not self._outbox:
                self._shut()

    def resize(self, size: TerminalSize) -> None:
        """Set the size of the child's terminal, if it has one; the kernel then signals the change."""
        fd = self._output.sock.fileno()
        if self.process.terminal and fd >= 0:
            with contextlib.suppress(OSError):
                termios.tcsetwinsize(fd, window_size(size))

    def _flush(self) -> None:
        if not self._outbox.flush():
            return
        self.pump.loop.unwatch_write(self._input)
        if self._fin:
            self._shut()

    def _write(self, data: bytes | memoryview) -> int:
        """Pass bytes to the kernel; return how many it took. Bytes for a closed input count as taken."""
        n = len(data)
        if not self._deaf:
            try:
                n = os.write(self._input.sock.fileno(), data)
            except BlockingIOError:
                return 0
            except OSError:  # EPIPE, or EIO of a terminal
                self._deaf = True
        self.pump.sent(self, n)
        return n

    def _shut(self) -> None:
        """Close the input; a terminal gets its end-of-file characters instead, because it cannot be half-closed."""
        if self._deaf:
            return
        if not self.process.terminal:
            self._deaf = True
            self.pump.loop.close(self._input)
            return
        try:
            os.write(self._input.sock.fileno(), _end_of_file(self._input.sock.fileno()))
        except BlockingIOError:
            self.pump.loop.watch_write(self._input)
            return
        except (OSError, termios.error):
            pass  # the child has exited
        self._deaf = True

    # --- ends ----------------------------------------------------------------------------------------------------

    def exited(self, status: int) -> None:
        """Deliver the rest of the output of a child that has exited; a negative status is the signal that ended it."""
        self._status = status
        if self._errors is not None and not self._errors.output.over:
            self._errors.output.exited()
        if not self.gone and not self._output.over:
            self._output.exited()

    def check_finished(self) -> None:
        """Close the channel if the child has exited and all its outputs have ended."""
        status, errors = self._status, self._errors
        if status is not None and self._output.over and (errors is None or errors.output.over):
            self._end(_how(status), status)

    def end(self, reason: str, *, reset: bool = False) -> None:
        """Close the host's ends of the child's pipes or terminal, without a signal, and report `Closed` to the core."""
        self._end(reason, None)

    def abandon(self) -> None:
        """Close the host's ends of the child's pipes or terminal without a report; kill a child without a terminal."""
        if self._release() and not self.process.terminal:
            self.process.signal(signal.SIGKILL)

    def _end(self, reason: str, status: int | None) -> None:
        if self._release():
            if self._errors is not None:
                self.pump.closed(self._errors, reason)
            self.pump.closed(self, reason, status)

    def _release(self) -> bool:
        if self.gone:
            return False
        self.gone = True
        self._outbox.close()
        self._output.close()
        self.pump.loop.close(self._input)
        if self._errors is not None:
            self._errors.output.close()
        return True


class StderrChannel:
    """A child's error output: a channel for reading. It closes just before its child's channel, or when aborted."""

    def __init__(self, child: ChildChannel, ch: ChannelId, fd: int, post: Post) -> None:
        self._child = child
        self.ch = ch
        self.unreported = 0
        self.output = ChildOutput(child.pump, ch, fd, terminal=False, settled=child.check_finished, post=post)
        child.pump.channels[ch] = self

    def send(self, data: bytes) -> None:
        """Do nothing: the channel is only for reading."""

    def close_write(self) -> None:
        """Do nothing: the channel is only for reading."""

    def pause(self) -> None:
        """Implement `OpenChannel.pause` for the child's standard error."""
        self.output.pause()

    def resume(self) -> None:
        """Implement `OpenChannel.resume` for the child's standard error."""
        self.output.resume()

    def end(self, reason: str, *, reset: bool = False) -> None:
        """Stop reading, and report `Closed` to the core."""
        self.output.close()
        self._child.pump.closed(self, reason)
        self._child.check_finished()

    def abandon(self) -> None:
        """Close the descriptor without a report."""
        self.output.close()


def _end_of_file(fd: int) -> bytes:
    """Return the characters that end a terminal's input: two, as the first may only end a line; none in raw mode."""
    attributes = termios.tcgetattr(fd)
    if not attributes[3] & termios.ICANON:
        return b""  # a program that reads raw keys has no end-of-file character
    character: bytes = attributes[6][termios.VEOF]
    return character * 2


def _how(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
