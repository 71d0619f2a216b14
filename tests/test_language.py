"""The language checker: texts and subjects of commits that break a rule, and permitted ones."""

from pathlib import Path

import pytest

from scripts import check_language as checker

EVER, BODY = "ever", "body"  # ends of words that no text may contain


@pytest.mark.parametrize(
    ("suffix", "text", "rules"),
    [
        ("py", '"""Parse a head."""\n', []),
        ("py", '"""Item of a list."""\n', []),
        ("py", '"""It is a head."""\n', ["docstring"]),
        ("py", '"""What is read."""\n', ["docstring"]),
        ("py", '"""The same for POST."""\n', ["docstring"]),
        ("py", '"""Return the head.\n\nThe server tells the client."""\n', ["speech"]),
        ("py", '"""Return the answer; `tell` names it, and the user says yes."""\n', []),
        ("py", f"x = 1  # of who{EVER} calls\n", ["person"]),
        ("py", f"x = 'the user no{BODY}'\n", ["person"]),
        ("py", "x = 1  # the client that is connected\n", []),
        ("py", "x = 1  # by who is connected\n", ["who"]),
        ("py", "x = 1  # the person who is asked\n", ["speech"]),
        ("md", "# Heading\n\nA short sentence.\n", []),
        ("md", f"{'word ' * 26}.\n", ["line", "sentence"]),
        ("md", f"{'word ' * 13}\n{'word ' * 13}\n", ["sentence"]),
        ("md", f"- {'word ' * 13}\n- {'word ' * 13}\n", []),
        ("md", f"{'word ' * 13}ends. Then {'word ' * 9}\n", ["line"]),
        ("md", f"| {'word ' * 40} |\n\n```\n{'word ' * 40}\n```\n", []),
        ("js", f"// any{BODY}\n", ["person"]),
    ],
)
def test_a_rule(tmp_path: Path, suffix: str, text: str, rules: list[str]) -> None:
    file = tmp_path / f"sample.{suffix}"
    file.write_text(text)
    assert [found.rule for found in checker.check_file(file)] == rules


@pytest.mark.parametrize(
    ("subject", "right"),
    [
        ("Close the socket when the session is revoked", True),
        ("Process the queue", True),
        ("Closes the socket", False),
        ("Closing the socket", False),
        ("A wish says itself how it is asked for", False),
        ("close the socket", False),
        ("Close the socket.", False),
        (f"Close {'x' * 67}", False),
    ],
)
def test_a_subject(monkeypatch: pytest.MonkeyPatch, subject: str, right: bool) -> None:
    monkeypatch.setattr(checker, "_git", lambda *arguments: f"1c2d3e4f {subject}\n")
    assert (not [*checker.check_commits()]) == right
