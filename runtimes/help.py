"""How the help of every program is laid out: as click does it, and no example is wider than the terminal."""

from __future__ import annotations

import re

import click

__all__ = ["Help"]

_EXAMPLE = re.compile(r"(  \S.*?  | {8})\s*(\S.*)")  # a command, or none, and what it is for


class Help(click.HelpFormatter):
    """What an example is for goes to a line of its own where there is no room for it beside the command."""

    def write_text(self, text: str) -> None:
        """See click."""
        room = self.width - self.current_indent
        lines: list[str] = []
        for line in text.splitlines():
            example = _EXAMPLE.fullmatch(line) if len(line) > room else None
            lines += [line] if example is None else [*filter(None, [example[1].rstrip()]), f"      {example[2]}"]
        super().write_text("\n".join(lines))
