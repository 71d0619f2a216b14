import pytest

from svc_proto.basics.excerpt import MAX_QUOTED, safe_excerpt


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words", "plain words"),
        ("two\r\nlines\x1b[0m", "two lines [0m"),
        ("key sk-abcdefghij is wrong", "key [redacted] is wrong"),
        ("key xai-abcdefghij is wrong", "key [redacted] is wrong"),
        ("sent Bearer abcdef123456", "sent [redacted]"),
        ("", ""),
        ("x" * MAX_QUOTED, "x" * MAX_QUOTED),
        ("x" * 3_000, "x" * MAX_QUOTED + "…"),
    ],
)
def test_quoting(text: str, shown: str) -> None:
    assert safe_excerpt(text) == shown


def test_a_secret_is_never_quoted() -> None:
    assert safe_excerpt("my hunter2 is", "hunter2") == "my [redacted] is"


@pytest.mark.parametrize("before", [MAX_QUOTED - 1, 10 * MAX_QUOTED - 1])
def test_no_part_of_a_secret_is_quoted_where_the_text_is_cut(before: int) -> None:
    text = "x" * (MAX_QUOTED - 5) + " " * (before - MAX_QUOTED + 2) + "hunter2"
    assert "h" not in safe_excerpt(text, "hunter2")
