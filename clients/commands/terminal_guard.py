"""This program's terminal: its size and the changes of it, raw mode, and the way back on every way out."""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["TerminalGuard"]

FATAL = (signal.SIGHUP, signal.SIGQUIT)  # end the process at once; those that ask it to end are the loop's


class TerminalGuard:
    """Around a run: `with Terminal() as terminal`. Does nothing where standard input is no terminal."""

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
                if signal.getsignal(signum) is not signal.SIG_IGN:  # nohup
                    self._install_handler(signum, self._killed)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.restore()
        for signum, handler in self._signals:
            signal.signal(signum, handler)
        os.close(self._writer)  # whoever still waits for a change of size reads the end; the reader goes with us

    def raw(self) -> None:
        """Keys as they are typed, from now on."""
        if self._is_one:
            tty.setraw(self._fd, termios.TCSADRAIN)

    def restore(self) -> None:
        """Give the terminal back as it was before. Harmless twice."""
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def abandon(self) -> None:
        """The same without waiting for anything, and for the flags that the loop would have restored, too."""
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        for fd, blocking in self._blocking:
            os.set_blocking(fd, blocking)

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        for stream in (sys.stdout, sys.stdin, sys.stderr):
            try:
                found = os.get_terminal_size(stream.fileno())
            except (OSError, ValueError, AttributeError):
                continue
            if found.columns and found.lines:
                return found.columns, found.lines
        return 80, 24

    def resized(self) -> tuple[int, int]:
        """Wait for a change, then the size. Blocks."""
        os.read(self._reader, 4096)
        return self.size()

    def _install_handler(self, signum: int, handler: Any) -> None:
        self._signals.append((signum, signal.signal(signum, handler)))

    def _resized(self, signum: int, frame: FrameType | None) -> None:
        os.write(self._writer, b"\0")

    def _killed(self, signum: int, frame: FrameType | None) -> None:
        """Die of it all the same."""
        try:
            self.abandon()
        finally:
            signal.signal(signum, signal.SIG_DFL)
            os.kill(os.getpid(), signum)
