import os

import pytest

from runtimes.cli.word_wrap import wrap_line

URL = "svc-relay://pair?payload=" + "x" * 60


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("", [""]),
        ("It fits, to a sign.", ["It fits, to a sign."]),
        ("This is one that-does not fit.", ["This is one", "that-does not fit."]),
        ("  with an indent of its own", ["  with an indent of", "  its own"]),
        (f"  {URL}", [f"  {URL}"]),
        (f"See {URL} there", ["See", URL, "there"]),
        (" " * 30 + "x", [" " * 30 + "x"]),
    ],
)
def test_terminal_lines_break_between_words(monkeypatch: pytest.MonkeyPatch, line: str, lines: list[str]) -> None:
    assert wrap_line("x y " * 50) == "x y " * 50  # for a file
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.fileno", lambda: 1)
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((20, 24)))
    assert wrap_line(line) == "\n".join(lines)
