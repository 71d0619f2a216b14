from __future__ import annotations

import pytest

from svc_proto.basics.dotenv import merge_env_file, parse_dotenv, parse_own_settings, set_dotenv


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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "A=new\n"),
        ("B=1", "B=1\nA=new\n"),
        ("# A=1\nAA=2\n", "# A=1\nAA=2\nA=new\n"),
        ("A=1\nB=2\n", "A=new\nB=2\n"),
        (" export A = 'x'\nB=2\nA=3", "export A=new\nB=2\nA=new\n"),
        ("A\nA=\n", "A\nA=new\n"),
    ],
)
def test_a_value_is_set(before: str, after: str) -> None:
    assert set_dotenv(before, "A", "new") == after
    assert parse_dotenv(after)["A"] == "new"


def test_read_own_variables() -> None:
    text = """
# API_SERVER_PORT=1
export API_SERVER_KEY="a b"
 API_SERVER_HOST = ::1
SVC_MODEL_API_KEY=
SVC_BRAND=hermes
RELAY_PORT=1
HERMES_RELAY_PORT=2
HERMES_HOME=/x
SVC_HOME=/x
PATH=/x
OPENAI_API_KEY=x
"""
    assert parse_own_settings(text) == {
        "API_SERVER_KEY": "a b",
        "API_SERVER_HOST": "::1",
        "SVC_BRAND": "hermes",
        "RELAY_PORT": "1",
        "HERMES_RELAY_PORT": "2",
    }


def test_the_environment_overrides_the_file() -> None:
    found = merge_env_file({"RELAY_PORT": "2", "RELAY_HOST": " ", "PATH": "/bin"}, "RELAY_PORT=1\nRELAY_HOST=::1\n")
    assert found == {"RELAY_PORT": "2", "RELAY_HOST": "::1", "PATH": "/bin"}
