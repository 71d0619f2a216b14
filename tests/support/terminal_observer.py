"""Shell substitute that runs a command and observes its terminal: `python -m tests.support.terminal_observer WORDS`.

The program prints the command's process id and status, and whether the terminal is unchanged: its modes, and the
blocking mode of its descriptors. A module run by `python -W error -m` runs in the fork, without a new interpreter.
"""

import os
import runpy
import signal
import subprocess
import sys


def main() -> None:
    """Run the command; print its process id, its status, and whether the terminal's state is as before."""
    before = seen()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    words = sys.argv[1:]
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print_line(f"<pid {os.getpid()}>")  # before any output of the command
        run(words)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    after = seen()
    print_line(f"<status {status}, {'restored' if after == before else f'{before} became {after}'}>")


def seen() -> str:
    """Return the terminal's modes, and the blocking flags of standard input and output."""
    modes = subprocess.run(["stty", "-g"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{modes} {os.get_blocking(0)} {os.get_blocking(1)}"


def run(words: list[str]) -> None:
    """Replace this forked process by the command, or run its Python module here and exit."""
    # The same as in tests.support.forkserver, whose import would cost more than the rest.
    start = [sys.executable, "-W", "error", "-m"]
    if words[: len(start)] != start:
        os.execvp(words[0], words)
    sys.argv = words[len(start) :]
    sys.modules.pop(sys.argv[0], None)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    sys.exit(0)


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
