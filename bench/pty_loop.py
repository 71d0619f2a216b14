"""Lower bound for a terminal: a loop that reads a pseudo-terminal and discards the bytes.

`python -m bench.pty_loop BYTES CPU`: for each line of standard input the talker writes, and the number of bytes is
printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.talker import MARK

__all__ = ["TALKER", "main"]

TALKER = str(Path(__file__).with_name("talker.py"))
READ = 65_536  # bytes of one read, as in the relay


def main() -> None:
    """Let the talker write for each line of standard input, and print the number of bytes that were read."""
    terminal, inside = os.openpty()
    with subprocess.Popen([sys.executable, "-I", TALKER, *sys.argv[1:3]], stdin=inside, stdout=inside) as talker:
        os.close(inside)
        _until_mark(terminal)
        print("ready", flush=True)
        for _ in sys.stdin:
            os.write(terminal, b"\n")
            print(_until_mark(terminal), flush=True)
        talker.kill()


def _until_mark(terminal: int) -> int:
    size = 0
    while True:
        data = os.read(terminal, READ)
        size += len(data)
        if data.endswith(MARK):
            return size


if __name__ == "__main__":
    main()
