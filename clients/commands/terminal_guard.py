"""Guard of this program's terminal: size, raw mode, and restoring at the end and at the signals in `FATAL`."""

import os
import signal
import sys
import termios
import tty
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["TerminalGuard"]

FATAL = (signal.SIGHUP, signal.SIGQUIT)  # end the process at once; the loop handles SIGINT and SIGTERM


class TerminalGuard:
    """Context manager that restores the terminal's settings and the signal handlers at its end.

    It changes nothing if standard input is not a terminal.
    """

    def __init__(self) -> None:
        self._fd = 0
        self._is_one = os.isatty(0)
        self._before: list[Any] | None = None
        self._blocking: list[tuple[int, bool]] = []
        self._reader, self._writer = os.pipe()
        self._signals: list[tuple[int, Any]] = []

    def __enter__(self) -> Self:
        if self._is_one:
            self._before = termios.tcgetattr(self._fd)
            self._blocking = [(fd, os.get_blocking(fd)) for fd in (0, 1) if os.isatty(fd)]
            self._install_handler(signal.SIGWINCH, self._resized)
            for signum in FATAL:
                if signal.getsignal(signum) is not signal.SIG_IGN:  # ignored under nohup
                    self._install_handler(signum, self._killed)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.restore()
        for signum, handler in self._signals:
            signal.signal(signum, handler)
        os.close(self._writer)  # a thread in `resized` reads the end; the process closes the reader

    def raw(self) -> None:
        """Set the terminal to raw mode, if standard input is a terminal."""
        if self._is_one:
            tty.setraw(self._fd, termios.TCSADRAIN)

    def restore(self) -> None:
        """Restore the terminal's settings as they were at the beginning, if standard input is a terminal.

        May be called twice.
        """
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def abandon(self) -> None:
        """Restore the terminal's settings and the streams' blocking flags, without waiting for output."""
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        for fd, blocking in self._blocking:
            os.set_blocking(fd, blocking)

    def size(self) -> tuple[int, int]:
        """Return columns and rows of the terminal; 80 and 24 if no standard stream has a size."""
        for stream in (sys.stdout, sys.stdin, sys.stderr):
            try:
                found = os.get_terminal_size(stream.fileno())
            except (OSError, ValueError, AttributeError):
                continue
            if found.columns and found.lines:
                return found.columns, found.lines
        return 80, 24

    def resized(self) -> tuple[int, int]:
        """Wait for a change of size, and return the new columns and rows. Blocks."""
        os.read(self._reader, 4096)
        return self.size()

    def _install_handler(self, signum: int, handler: Any) -> None:
        self._signals.append((signum, signal.signal(signum, handler)))

    def _resized(self, signum: int, frame: FrameType | None) -> None:
        os.write(self._writer, b"\0")

    def _killed(self, signum: int, frame: FrameType | None) -> None:
        """Restore the terminal, then end the process by the signal."""
        try:
            self.abandon()
        finally:
            signal.signal(signum, signal.SIG_DFL)
            os.kill(os.getpid(), signum)
