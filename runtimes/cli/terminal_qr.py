"""QR on a terminal, if it fits: a camera cannot read one that has wrapped or scrolled."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NamedTuple

from runtimes.cli.process_text import can_print

__all__ = ["RenderedQr", "on_resize", "render_qr", "ssh_hint"]

BORDERS = (4, 2, 1)  # modules around a code: 4 in ISO/IEC 18004; phones scan codes with 1


class RenderedQr(NamedTuple):
    """QR for a terminal: its lines, and the place of its text among the texts; or the problem, if none fits."""

    text: str = ""
    form: int = 0
    problem: str = ""


def render_qr(texts: Sequence[str], *, below: int) -> RenderedQr:
    """Render the first text whose QR fits on standard output with `below` lines left for other text.

    Half blocks show two rows of modules in a line. Without lines below, the last line does not end.
    """
    if not can_print("\u2580\u2584\u2588"):
        problem = f"The QR needs a terminal of UTF-8, this one is {sys.stdout.encoding}: set LANG=C.UTF-8."
        return RenderedQr(problem=problem)
    import segno  # noqa: PLC0415, RUF100 - only where a QR is drawn

    have = os.get_terminal_size(sys.stdout.fileno())
    codes = [segno.make(text, error="l", micro=False, boost_error=False) for text in texts]
    for form, code in enumerate(codes):
        for border in BORDERS:
            width, rows = _size(code.symbol_size(border=0)[0], border)
            if width <= have.columns and rows + below <= have.lines:
                drawn = io.StringIO()
                code.terminal(drawn, compact=True, border=border)
                return RenderedQr(drawn.getvalue() if below else drawn.getvalue().removesuffix("\n"), form)
    width, rows = _size(codes[-1].symbol_size(border=0)[0], BORDERS[-1])
    needs = f"The QR needs a terminal of {width} x {rows + below}"
    return RenderedQr(problem=f"{needs}, this one is {have.columns} x {have.lines}: enlarge it.")


def on_resize(draw: Callable[[], None]) -> None:
    """Call a function whenever the size of the terminal changes; only the main thread has signals.

    A change during the call leads to one more call.
    """
    changes = 0  # since the beginning of the outermost call

    def changed(number: int, frame: FrameType | None) -> None:
        nonlocal changes
        changes += 1
        if changes > 1:
            return
        while changes:
            before = changes
            draw()
            changes = 0 if changes == before else 1

    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGWINCH, changed)


def ssh_hint(url: str) -> str:
    """Return how a browser on the user's own computer reaches a loopback address of this host; empty without SSH."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if len(connection) != 4:
        return ""
    port = url.rpartition(":")[2].partition("/")[0]
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or ""
    there = f"{user}@{connection[2]}" if user else connection[2]
    return f"On your own computer: ssh -L {port}:127.0.0.1:{port} {there}, then open http://127.0.0.1:{port}"


def _size(modules: float, border: int) -> tuple[int, int]:
    width = int(modules) + 2 * border
    return width, (width + 1) // 2
