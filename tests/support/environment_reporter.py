"""Program that prints its environment and ends with the status in its first argument.

`python -m tests.support.environment_reporter STATUS`: STATUS is an exit code, a text for `sys.exit`, or `raise`.
"""

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Read a line, print the report as JSON, and exit with the first argument, or raise ValueError for `raise`."""
    streams: tuple[Any, ...] = (sys.stdin, sys.stdout, sys.stderr)
    found = {
        "arguments": sys.argv[1:],
        "folder": os.getcwd(),
        "variables": dict(os.environ),
        "parent": os.getppid(),
        "forked": "tests.support.forkserver" in Path("/proc/self/cmdline").read_text(),
        "leads a session": os.getsid(0) == os.getpid(),
        "descriptors": sorted(map(int, os.listdir("/proc/self/fd"))),
        "terminals": [os.isatty(number) for number in range(3)],
        "size": os.get_terminal_size(1) if os.isatty(1) else None,
        "foreground": os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp(),
        "streams": [(s.encoding, s.errors, s.line_buffering, s.write_through) for s in streams],
        "signals": [str(signal.getsignal(number)) for number in SIGNALS],
        "zone": time.tzname,
        "warnings": [each[0] for each in warnings.filters[:1]],
        "main": sys.modules["__main__"].__name__,
        "line": sys.stdin.readline(),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    match sys.argv[1]:
        case "raise":
            raise ValueError("told to")
        case status:
            sys.exit(int(status) if status.isdigit() else status)


if __name__ == "__main__":
    main()
