"""Script that runs a program with its standard input as the controlling terminal.

It is run by `runtimes.processes.spawn`:

    python -I -S controlling_terminal.py STATUS_FD PROGRAM [ARGUMENT...]

No code may run between fork and exec of a process with threads, and `subprocess` cannot give a child a controlling
terminal. So this script starts as a program of its own, sets the terminal, and is replaced by the program. If that
fails, it writes the error number to the descriptor STATUS_FD. It imports only the standard library, to start in
milliseconds.
"""

import os
import signal
import sys

__all__ = ["main"]

DEFAULTS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGPIPE", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCHLD", "SIGXFSZ")
EXIT_NOT_RUN = 127  # exit status of shells for this case


def main(argv: list[str]) -> int:
    """Set the terminal and execute the program; return only if that fails."""
    status = int(argv[1])
    os.set_inheritable(status, False)
    for name in DEFAULTS:  # this interpreter changed some; others may be ignored since the host's start
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.login_tty(0)
        os.execvp(argv[2], argv[2:])  # noqa: S606, RUF100 - to be replaced is the purpose
    except OSError as error:
        os.write(status, b"%d" % (error.errno or 0))
    return EXIT_NOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv))
