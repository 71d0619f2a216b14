"""The agent's words as a command shows them: to standard output as they come, all else beside them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from clients.commands.cli import terminal_safe

__all__ = ["AnswerWriter"]


class AnswerWriter:
    """What stands beside the answer goes to standard error, on lines of its own."""

    def __init__(self) -> None:
        self._open = False  # a line of it has no end yet
        self._style = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self._clean = sys.stdout.isatty()

    def write(self, text: str) -> None:
        """Some words."""
        text = terminal_safe(text, on_terminal=self._clean)
        sys.stdout.write(text)
        sys.stdout.flush()
        self._open = not text.endswith("\n") if text else self._open

    def write_note(self, line: str) -> None:
        """A line that is none of the answer's."""
        self.finish()
        print(f"\x1b[2m{line}\x1b[0m" if self._style else line, file=sys.stderr, flush=True)

    def finish(self) -> None:
        """End the line."""
        if self._open:
            self._open = False
            with suppress(OSError):  # whoever reads has left: that is said already
                print(flush=True)
