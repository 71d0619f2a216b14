"""Program in the terminals: for each line that it reads, it writes a number of bytes and a mark.

`python -I bench/talker.py BYTES CPU`. It runs in the shell of a relay, or below `bench.pty_loop`, without this
project's modules, on the CPU `CPU` (-1: any).
"""

from __future__ import annotations

import os
import sys
import termios

__all__ = ["LINE", "MARK", "main"]

MARK = b"\x1e"  # no other output of a terminal contains it, especially no prompt
LINE = b"x" * 79 + b"\n"


def main() -> None:
    """Write the mark when ready; then, for each line of standard input, write the bytes and the mark again."""
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
    except OSError:  # EIO: the other end is closed, pty(7)
        return False


def _write(data: memoryview) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
