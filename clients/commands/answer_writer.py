"""Output of an agent's answer: its text to standard output as it arrives, notes to standard error."""

import os
import sys
from contextlib import suppress

from clients.commands.cli import terminal_safe

__all__ = ["AnswerWriter"]


class AnswerWriter:
    """Writer of an answer to standard output; notes go to standard error, on lines of their own."""

    def __init__(self) -> None:
        self._open = False  # the last line has no end yet
        self._style = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self._clean = sys.stdout.isatty()

    def write(self, text: str) -> None:
        """Write a part of the answer; on a terminal, unprintable characters except newline and tab are left out."""
        text = terminal_safe(text, on_terminal=self._clean)
        sys.stdout.write(text)
        sys.stdout.flush()
        self._open = not text.endswith("\n") if text else self._open

    def write_note(self, line: str) -> None:
        """End the answer's current line, then write a line to standard error that is not part of the answer."""
        self.finish()
        print(f"\x1b[2m{line}\x1b[0m" if self._style else line, file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Write a newline if the answer's current line has text."""
        if self._open:
            self._open = False
            with suppress(OSError):  # standard output is closed, which is reported already
                print(flush=True)
