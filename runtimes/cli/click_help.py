"""Layout of the help of every program: that of click, with examples that fit the terminal."""

from __future__ import annotations

import re

import click

__all__ = ["HelpFormatter"]

_EXAMPLE = re.compile(r"(  \S.*?)  (# .*)")  # a command and its explanation, as a comment of the shell


class HelpFormatter(click.HelpFormatter):
    """Formatter that moves the comment of an example above its command if both do not fit one line."""

    def write_text(self, text: str) -> None:
        """Override `HelpFormatter.write_text`."""
        room = self.width - self.current_indent
        lines: list[str] = []
        for line in text.splitlines():
            example = _EXAMPLE.fullmatch(line) if len(line) > room else None
            lines += [line] if example is None else [f"  {example[2]}", example[1]]
        super().write_text("\n".join(lines))
