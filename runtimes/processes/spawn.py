"""Starting of child processes, with a pseudo-terminal or with pipes. Starting blocks briefly.

A child leads a session and process group of its own, so a signal reaches its whole group and not the host. No Python
code runs between fork and exec. If the system cannot run the child's program, `OSError` is raised.
"""

import contextlib
import os
import signal
import subprocess
import sys
import termios
from contextlib import ExitStack

from attrs import define

from runtimes.failures import HostError
from runtimes.processes import controlling_terminal
from svc_proto.commands import Spawn, TerminalSize
from svc_proto.facts import FailureKind

__all__ = ["SpawnedProcess", "start_process", "window_size"]

MAX_CELLS = 0xFFFF  # struct winsize holds unsigned shorts, ioctl_tty(2)


@define(eq=False, kw_only=True)
class SpawnedProcess:
    """A running child and the host's ends of its pipes or terminal, non-blocking.

    For a terminal, `output` and `input` are the same descriptor.
    """

    popen: subprocess.Popen[bytes]
    terminal: bool
    escaped: bool = False  # its output is escaped, see `Spawn.detached`
    output: int
    input: int
    errors: int | None = None
    pidfd: int | None = None  # becomes readable when the child has exited; None where the system has no pidfd

    @property
    def pid(self) -> int:
        """Return the id of the child and of its process group."""
        return self.popen.pid

    def signal(self, number: signal.Signals) -> None:
        """Signal the child's process group, unless the child was reaped: the id may belong to another process then."""
        if self.popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def close(self) -> None:
        """Close the host's ends of the child's pipes or terminal."""
        for fd in {self.output, self.input, self.errors}:
            if fd is not None:
                os.close(fd)


def start_process(command: Spawn) -> SpawnedProcess:
    """Start a child. Raises `OSError` if it cannot run, `ValueError` for a NUL in an argument.

    Raises `HostError` if the command names no program or orders both a terminal and an error output, or if a terminal
    needs the path of the interpreter and that is unknown.
    """
    if not command.argv or not command.argv[0]:
        raise HostError(FailureKind.INVALID, "no program named")
    process = _with_pipes(command) if command.terminal is None else _with_terminal(command, command.terminal)
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # an old kernel, or a sandbox that forbids it
            process.pidfd = os.pidfd_open(process.pid)
    return process


def window_size(size: TerminalSize) -> tuple[int, int]:
    """Return rows and columns of a size, each limited to 1 to `MAX_CELLS`."""
    return min(max(size.rows, 1), MAX_CELLS), min(max(size.cols, 1), MAX_CELLS)


def _with_terminal(command: Spawn, size: TerminalSize) -> SpawnedProcess:
    if command.stderr is not None:
        raise HostError(FailureKind.INVALID, "a terminal has no error output of its own")
    if not sys.executable:
        raise HostError(FailureKind.UNSUPPORTED, "the path of the Python interpreter is not known")
    with ExitStack() as ours, ExitStack() as theirs:
        master, slave = os.openpty()
        ours.callback(os.close, master)
        theirs.callback(os.close, slave)
        termios.tcsetwinsize(slave, window_size(size))
        status, status_end = os.pipe()
        theirs.callback(os.close, status)
        with ExitStack() as until_started:
            until_started.callback(os.close, status_end)
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", controlling_terminal.__file__, str(status_end), *command.argv],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                pass_fds=(status_end,),
                cwd=command.cwd,
                env=_environment(command),
                start_new_session=True,
            )
        error = os.read(status, 16)  # end of file as soon as the program runs
        if error:
            popen.wait()
            raise OSError(int(error), "not run")
        os.set_blocking(master, False)
        ours.pop_all()
    return SpawnedProcess(popen=popen, terminal=True, escaped=command.detached, output=master, input=master)


def _with_pipes(command: Spawn) -> SpawnedProcess:
    with ExitStack() as ours, ExitStack() as theirs:

        def pipe(*, inward: bool) -> tuple[int, int]:
            """Return the host's end and the child's end of a new pipe."""
            reading, writing = os.pipe()
            own, other = (reading, writing) if inward else (writing, reading)
            ours.callback(os.close, own)
            theirs.callback(os.close, other)
            os.set_blocking(own, False)
            return own, other

        stdin, stdin_end = pipe(inward=False)
        stdout, stdout_end = pipe(inward=True)
        stderr, stderr_end = pipe(inward=True) if command.stderr is not None else (None, subprocess.DEVNULL)
        popen = subprocess.Popen(
            command.argv,
            stdin=stdin_end,
            stdout=stdout_end,
            stderr=stderr_end,
            cwd=command.cwd,
            env=_environment(command),
            start_new_session=True,
        )
        ours.pop_all()
    return SpawnedProcess(
        popen=popen, terminal=False, escaped=command.detached, output=stdout, input=stdin, errors=stderr
    )


def _environment(command: Spawn) -> dict[str, str]:
    names = frozenset(command.inherited_env)
    starts = tuple(name[:-1] for name in command.inherited_env if name.endswith("*"))
    kept = {name: value for name, value in os.environ.items() if name in names or name.startswith(starts)}
    return {**kept, **dict(command.env)}
