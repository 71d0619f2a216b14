"""The program in the terminals: for every line that it reads it writes so many bytes, and a mark behind them.

`python -I bench/talker.py BYTES CPU`. It runs in the shell of a relay, so it stands alone. It goes to the CPU of the
load (-1: to none), so that its own work is not counted as the reader's.
"""

from __future__ import annotations

import os
import sys
import termios

__all__ = ["LINE", "MARK", "main"]

MARK = b"\x1e"  # nothing else in a terminal says it, a prompt least of all
LINE = b"x" * 79 + b"\n"


def main() -> None:
    """Say the mark once when ready, then after each answer to a line."""
    size, cpu = int(sys.argv[1]), int(sys.argv[2])
    if cpu >= 0:
        os.sched_setaffinity(0, [cpu])
    settings = termios.tcgetattr(0)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, settings)
    block = memoryview(LINE * 800)
    _write(memoryview(MARK))
    while _asked():
        left = size
        while left:
            part = block[: min(left, len(block))]
            _write(part)
            left -= len(part)
        _write(memoryview(MARK))


def _asked() -> bool:
    try:
        return bool(os.read(0, 1024))
    except OSError:  # EIO: nobody has the other end any more, pty(7)
        return False


def _write(data: memoryview) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
