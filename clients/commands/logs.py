"""`svc logs`: show the logs of this host's servers, from the files in the service home."""

import os
import sys
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path

import click

from clients.commands.cli import SETTINGS, terminal_safe
from runtimes.service_home.home import service_home_path
from svc_proto.cli.errors import CliError

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc logs  # the last 50 lines of each process
  svc logs -n 500
  svc logs -f  # and new lines, until Ctrl-C
  svc logs | grep WARNING

The files are in the folder log of the service home. With RELAY_LOG_LEVEL=DEBUG the servers log each request.

Exit codes: 0; 1 when there are no logs; 2 for bad options; 130 after Ctrl-C.
"""
POLL = 0.25  # s between two polls of the files


@click.command("logs", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option("-f", "--follow", is_flag=True, help="Print new lines as they are written.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0, 1_000_000),
    default=50,
    show_default=True,
    help="Number of lines of each file.",
)
def main(*, follow: bool, lines: int) -> None:
    """Show the logs of the servers on this host."""
    from runtimes.service_home.log_file import LOG_FOLDER, log_files

    home = service_home_path(os.environ)
    files = log_files(home)
    if not files:
        raise CliError(f"there are no logs in {home / LOG_FOLDER}: servers write them there once they run (svc up)")
    with ExitStack() as open_files:
        tails = [_Tail(path) for path in files]
        for tail in tails:
            open_files.callback(tail.close)
        for entry in sorted((entry for tail in tails for entry in tail.last(lines)), key=_time):
            _show(entry)
        while follow:
            time.sleep(POLL)
            for tail in tails:
                for line in tail.more():
                    _show([line])


class _Tail:
    """Reader of a growing file; a new file in its place is read from the beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._rest = b""

    def close(self) -> None:
        self._file.close()

    def last(self, count: int) -> list[list[str]]:
        """Return the last `count` lines as entries, each a list of lines.

        A line that begins with neither a digit nor a brace, as of a traceback, joins the entry before it, if any.
        """
        entries: list[list[str]] = []
        for line in deque(self._lines(), count):
            if entries and not line[:1].isdecimal() and not line.startswith("{"):
                entries[-1].append(line)
            else:
                entries.append([line])
        return entries

    def more(self) -> list[str]:
        """Return the complete lines since the last call; without any, those of a new file in the old one's place."""
        found = self._lines()
        if not found and self._is_replaced():
            self._file.close()
            self._file, self._rest = self._path.open("rb"), b""
            found = self._lines()
        return found

    def _lines(self) -> list[str]:
        *whole, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]

    def _is_replaced(self) -> bool:
        try:
            return os.stat(self._path).st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False


def _time(entry: list[str]) -> str:
    """Return an entry's UTC timestamp, the first 24 characters of a line or of a JSON record's first member `time`."""
    return entry[0].removeprefix('{"time": "')[:24]


def _show(entry: list[str]) -> None:
    terminal = sys.stdout.isatty()
    for line in entry:
        print(terminal_safe(line, on_terminal=terminal), flush=True)
