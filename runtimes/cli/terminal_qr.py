"""QR codes on a terminal, only if they fit: a camera cannot read a code that has wrapped or scrolled."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NamedTuple

from runtimes.cli.process_text import can_print
from runtimes.cli.word_wrap import wrap_line

__all__ = ["RenderedQr", "on_resize", "render_qr", "ssh_hint"]

# By the sum of 1, 2 (first row), 4, 8 (second row), 16, 32 (third row); two halves and the full block are older.
SEXTANTS = " " + "".join(
    {21: "\u258c", 42: "\u2590", 63: "\u2588"}.get(each, chr(0x1FAFF + each - (each > 21) - (each > 42)))
    for each in range(1, 64)
)
BORDERS = (4, 2, 1)  # modules around a code: 4 in ISO/IEC 18004; phones scan codes with 1


class RenderedQr(NamedTuple):
    """QR for a terminal: its lines, and the index of the encoded text (`form`). Without a QR, only `problem` is set."""

    text: str = ""
    form: int = 0
    problem: str = ""


def render_qr(texts: Sequence[str], *, below: int, small: bool = True) -> RenderedQr:
    """Render the first text whose QR fits on standard output with `below` lines left for other text.

    Half blocks show two rows of modules in a line. If no text fits, `small` permits sextants, which show three rows and
    which some fonts lack. If no QR fits, or the output's encoding has no half blocks, the result has only a `problem`.
    If `below` is 0, the result has no final newline. With half blocks in the encoding, raises `OSError` if standard
    output is no terminal.
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
    needs = f"{width} x {rows + below}"
    note = wrap_line(f"If the QR below looks broken, enlarge the terminal to {needs}.").splitlines()
    for form, code in enumerate(codes if small else ()):
        for border in BORDERS:
            lines = [*note, *_sextant_lines([[*row] for row in code.matrix_iter(border=border)])]
            if len(lines) + below <= have.lines and len(lines[-1]) <= have.columns:
                return RenderedQr("\n".join(lines) + ("\n" if below else ""), form)
    problem = f"The QR needs a terminal of {needs}, this one is {have.columns} x {have.lines}: enlarge it."
    return RenderedQr(problem=problem)


def on_resize(draw: Callable[[], None]) -> None:
    """Call `draw` whenever the size of the terminal changes (SIGWINCH). Does nothing outside of the main thread.

    A change during the call leads to one more call.
    """
    changes = 0  # since the beginning of the outermost call

    def changed(number: int, frame: FrameType | None) -> None:
        nonlocal changes
        changes += 1
        if changes > 1:
            return
        try:
            while changes:
                before = changes
                draw()
                changes = 0 if changes == before else 1
        finally:
            changes = 0  # also after an exception of `draw`

    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGWINCH, changed)


def ssh_hint(url: str) -> str:
    """Return an instruction to open a loopback URL of this host on the user's own computer.

    Return "" without the four words of `SSH_CONNECTION`.
    """
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


def _sextant_lines(modules: Sequence[Sequence[int]]) -> list[str]:
    """Return modules as block sextants (Unicode 13, U+1FB00) of two columns and three rows, light on dark."""
    light = {(row, column) for row, line in enumerate(modules) for column, dark in enumerate(line) if not dark}
    rows, columns = -(-len(modules) // 3) * 3, -(-len(modules[0]) // 2) * 2
    return [
        "".join(
            SEXTANTS[sum(1 << place for place in range(6) if (row + place // 2, column + place % 2) in light)]
            for column in range(0, columns, 2)
        )
        for row in range(0, rows, 3)
    ]
