from pathlib import Path

import pytest

from runtimes.failures import HostError
from runtimes.files.env_file import EnvFileError, parse_env_file, read_env_file, set_env_line


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *((text, {"A": "1"}) for text in ("A=1", " A = 1 ", "export A=1", "export  A=1", "export\tA=1")),
        *((text, {}) for text in ("", "A=", "A=''", "A= # x", "# A=1\n#A=2", "export A")),
        ("\ufeffA=1\nB=2", {"A": "1", "B": "2"}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=1\rB=2", {"A": "1", "B": "2"}),
        ("A=1   # a note", {"A": "1"}),
        ('A="1"\t# a note', {"A": "1"}),
        ("A='1 # x' # a note", {"A": "1 # x"}),
        ("A=1#x", {"A": "1#x"}),
        ("A=#x", {"A": "#x"}),
        ("A='x y'", {"A": "x y"}),
        ('A="x=y"', {"A": "x=y"}),
        ('A="a\\"b"', {"A": 'a"b'}),
        ('A="one\ntwo"\nB=2', {"A": "one\ntwo", "B": "2"}),
        ("A=it's", {"A": "it's"}),
        ("A=$B${B}", {"A": "$B${B}"}),
        ("other.program-name=1", {"other.program-name": "1"}),
        ("A=1\nB=2\nA=3\nA=\n", {"A": "3", "B": "2"}),
    ],
)
def test_read_variables(text: str, found: dict[str, str]) -> None:
    assert parse_env_file(text) == found


FIRST_LINES = ["A", "=1", "A='", 'A="x"y', "A: 1", "\u200bA=1", '$env:A="1"', "-----BEGIN KEY-----"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        *((text, 1) for text in FIRST_LINES),
        ("B=1\nA\0P=1", 2),
        ("# a note\r\n\r\nset A=1\r\n", 3),
        ('B=1\n\n\nA="1\nC=2', 4),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_never_quoted(text: str, line: int) -> None:
    with pytest.raises(HostError, match=rf"^line {line}: ") as raised:
        parse_env_file(text)
    assert "1" not in str(raised.value).removeprefix(f"line {line}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "A=new\n"),
        ("B=1", "B=1\nA=new\n"),
        ("# A=1\nAA=2\n", "# A=1\nAA=2\nA=new\n"),
        ("A=1\nB=2\n", "A=new\nB=2\n"),
        (" export A = 'x'\nB=2\nA=3", "export A=new\nB=2\nA=new\n"),
        ("export\tA=1 # a note\n", "export A=new\n"),
        ("\n\n  A=1\n\nB=2\n", "\n\nA=new\n\nB=2\n"),
        ('A="x\ny"\nB=1\n', "A=new\nB=1\n"),
        ("A\nA=\n", "A\nA=new\n"),
        ("\ufeffA=1\n", "A=new\n"),
    ],
)
def test_set_a_value(before: str, after: str) -> None:
    assert set_env_line(before, "A", "new") == after


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xff\xfeA\0=\x001\0", "not UTF-8"),
        (b"B=1\nA='", "line 2: neither NAME=value nor a comment, or a quote without its end"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / ".env"
    assert read_env_file(path) == {}
    assert read_env_file(path / "below") == {}
    path.write_bytes(data)
    with pytest.raises(EnvFileError) as raised:
        read_env_file(path)
    assert str(raised.value) == f"cannot read {path}: {problem}"
    with pytest.raises(EnvFileError, match="Is a directory"):
        read_env_file(tmp_path)
