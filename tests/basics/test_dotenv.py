from __future__ import annotations

import pytest

from svc_proto.basics.dotenv import parse_dotenv


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("A=1", {"A": "1"}),
        (" A = 1 ", {"A": "1"}),
        ("export A=1", {"A": "1"}),
        ("A='x y'", {"A": "x y"}),
        ('A="x=y"', {"A": "x=y"}),
        ("A=it's", {"A": "it's"}),
        ("A='", {}),
        ("A=", {}),
        ("A=''", {}),
        ("=1", {}),
        ("A", {}),
        ("# A=1", {}),
        ("#A=1", {}),
        ("", {}),
    ],
)
def test_a_line(line: str, found: dict[str, str]) -> None:
    assert parse_dotenv(line) == found


def test_the_last_line_that_sets_something_counts() -> None:
    assert parse_dotenv("A=1\nB=2\r\nA=3\nA=\n") == {"A": "3", "B": "2"}
