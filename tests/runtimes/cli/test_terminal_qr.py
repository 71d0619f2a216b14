"""Tests of QR codes on a terminal: forms, half blocks, sextants, and the problem if none fits."""

import os
import signal

import pytest
import segno

from runtimes.cli.terminal_qr import SEXTANTS, RenderedQr, on_resize, render_qr

LONG = "x" * 190  # version 8: 49 modules
SHORT = "x" * 150  # version 7: 45 modules


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.fileno", lambda: 1)


def rendered(
    monkeypatch: pytest.MonkeyPatch, columns: int, lines: int, *texts: str, below: int = 0, small: bool = True
) -> RenderedQr:
    monkeypatch.setattr("os.get_terminal_size", lambda stream=0: os.terminal_size((columns, lines)))
    return render_qr(texts, below=below, small=small)


def modules(lines: list[str]) -> list[list[int]]:
    """Return the rows of QR modules that lines of sextants show, 1 for dark."""
    return [
        [1 - (SEXTANTS.index(sign) >> (2 * third + half) & 1) for sign in line for half in (0, 1)]
        for line in lines
        for third in range(3)
    ]


def test_half_blocks_are_preferred_even_in_a_shorter_form(monkeypatch: pytest.MonkeyPatch) -> None:
    qr = rendered(monkeypatch, 80, 24, LONG, SHORT)
    assert (qr.form, qr.problem, len(qr.text.split("\n"))) == (1, "", 24)
    assert set(qr.text) <= set(" \u2580\u2584\u2588\n")


@pytest.mark.parametrize("below", [0, 1, 5])
def test_sextants_fit_where_half_blocks_do_not(monkeypatch: pytest.MonkeyPatch, below: int) -> None:
    qr = rendered(monkeypatch, 80, 24, LONG, below=below)
    note, *drawn = qr.text.removesuffix("\n").split("\n")
    assert note == f"If the QR below looks broken, enlarge the terminal to 51 x {26 + below}."
    assert (qr.form, qr.problem) == (0, "")
    assert qr.text.endswith("\n") is bool(below)
    assert 1 + len(drawn) + below <= 24
    code = segno.make(LONG, error="l", micro=False, boost_error=False)
    border = next(each for each in (4, 2, 1) if len(drawn) == -(-(49 + 2 * each) // 3))
    expected = [[*row] for row in code.matrix_iter(border=border)]
    assert [row[: len(expected)] for row in modules(drawn)[: len(expected)]] == expected


def test_the_note_of_a_narrow_terminal_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    lines = rendered(monkeypatch, 30, 24, LONG).text.split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 30


@pytest.mark.parametrize(("columns", "lines", "small"), [(80, 17, True), (25, 24, True), (80, 24, False)])
def test_a_terminal_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch, columns: int, lines: int, *, small: bool
) -> None:
    qr = rendered(monkeypatch, columns, lines, LONG, small=small)
    needs = f"The QR needs a terminal of 51 x 26, this one is {columns} x {lines}: enlarge it."
    assert qr == RenderedQr(problem=needs)


def test_all_sextants_differ_and_begin_with_the_first_of_unicode() -> None:
    assert len(set(SEXTANTS)) == 64
    assert (SEXTANTS[1], SEXTANTS[62]) == ("\U0001fb00", "\U0001fb3b")


def test_a_resize_is_drawn_also_after_an_error() -> None:
    drawn: list[int] = []

    def draw() -> None:
        drawn.append(1)
        if len(drawn) == 1:
            raise OSError

    before = signal.getsignal(signal.SIGWINCH)
    try:
        on_resize(draw)
        with pytest.raises(OSError):  # noqa: PT011 - of `draw`
            signal.raise_signal(signal.SIGWINCH)
        signal.raise_signal(signal.SIGWINCH)
    finally:
        signal.signal(signal.SIGWINCH, before)
    assert len(drawn) == 2
