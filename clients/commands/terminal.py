"""This program's terminal: its size and the changes of it, raw mode, and the way back on every way out."""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["Terminal"]


class Terminal:
    """Around a run: `with Terminal() as terminal`. Does nothing where standard input is no terminal."""

    def __init__(self) -> None:
        self._fd = 0
        self._is_one = os.isatty(0)
        self._before: list[Any] | None = None
        self._reader, self._writer = os.pipe()
        self._signals: Any = None

    def __enter__(self) -> Self:
        if self._is_one:
            self._before = termios.tcgetattr(self._fd)
            self._signals = signal.signal(signal.SIGWINCH, self._resized)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.restore()
        if self._is_one:
            signal.signal(signal.SIGWINCH, self._signals)
        os.close(self._writer)  # whoever still waits for a change of size reads the end; the reader goes with us

    def raw(self) -> None:
        """Keys as they are typed, from now on."""
        if self._is_one:
            tty.setraw(self._fd, termios.TCSADRAIN)

    def restore(self) -> None:
        """As it was before. Harmless twice."""
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

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

    def _resized(self, signum: int, frame: FrameType | None) -> None:
        os.write(self._writer, b"\0")
