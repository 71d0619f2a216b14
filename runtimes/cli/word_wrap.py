"""Lines on a terminal, broken between words: a terminal by itself breaks within them."""

from __future__ import annotations

import os
import sys
import textwrap

__all__ = ["wrap_line"]


def wrap_line(line: str) -> str:
    """The line as standard output takes it: its own indent in each part, and what has no blanks stays whole (URLs)."""
    if not sys.stdout.isatty():
        return line
    width = os.get_terminal_size(sys.stdout.fileno()).columns
    text = line.lstrip(" ")
    indent = " " * (len(line) - len(text))
    if len(line) <= width or width <= len(indent):
        return line
    return textwrap.fill(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
