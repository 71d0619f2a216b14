"""Wrapping of lines between words, as a terminal itself breaks within words."""

import os
import sys
import textwrap

__all__ = ["wrap_line"]


def wrap_line(line: str) -> str:
    """Return a line wrapped to the width of the terminal, each part with the indent of the line.

    Words such as URLs stay whole. The line is unchanged if standard output is no terminal or no wider than the indent.
    """
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
