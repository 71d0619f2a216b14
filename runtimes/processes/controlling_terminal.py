"""Becomes another program, with its standard input as the controlling terminal. Run as a script by
`runtimes.processes.spawn`.

    python -I -S terminal_exec.py STATUS_FD PROGRAM [ARGUMENT...]

Nothing may run between fork and exec of a process that has threads, and `subprocess` cannot give a child a controlling
terminal. So this starts as a program of its own, does that, and is replaced. When it cannot be, the number of the error
goes to the descriptor STATUS_FD, which otherwise closes unused. It imports nothing of ours: it starts in milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]

DEFAULTS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGPIPE", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCHLD", "SIGXFSZ")
EXIT_NOT_RUN = 127  # as shells have it


def main(argv: list[str]) -> int:
    """Does not return if all goes well."""
    status = int(argv[1])
    os.set_inheritable(status, False)
    for name in DEFAULTS:  # this interpreter changed some; others may be ignored since the host was started
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.login_tty(0)
        os.execvp(argv[2], argv[2:])  # noqa: S606, RUF100 - to be replaced is the purpose
    except OSError as error:
        os.write(status, b"%d" % (error.errno or 0))
    return EXIT_NOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv))
