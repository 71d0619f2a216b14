"""QR on a terminal, if it fits: a camera cannot read one that has wrapped or scrolled."""

from __future__ import annotations

import os
import sys

from runtimes.cli.process_text import can_print

__all__ = ["draw_qr"]


def draw_qr(text: str, *, below: int) -> str | None:
    """Draw a QR on standard output with `below` lines left for other text; return a message if it does not fit."""
    if not can_print("\u2580\u2584\u2588"):
        return f"The QR needs a terminal of UTF-8, this one is {sys.stdout.encoding}: set LANG=C.UTF-8."
    import segno  # noqa: PLC0415, RUF100 - only where a QR is drawn

    code = segno.make(text, error="l", micro=False)
    width = code.symbol_size()[0]
    height = (width + 1) // 2 + below
    have = os.get_terminal_size(sys.stdout.fileno())
    if width > have.columns or height > have.lines:
        return f"The QR needs a terminal of {width} x {height}, this one is {have.columns} x {have.lines}."
    code.terminal(compact=True)
    return None
