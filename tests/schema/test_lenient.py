"""What counts as text, a number or a flag for those who do not tell them apart."""

from __future__ import annotations

import pytest

from svc_proto.schema.lenient import flag, text, truth, whole

NOTHING: list[object] = [None, [], {}, ["a"], b"a"]


@pytest.mark.parametrize("value", [*NOTHING, 1.5, "", "1.0", "x", "9" * 20, True, False])
def test_no_whole_number(value: object) -> None:
    assert whole(value) is None


@pytest.mark.parametrize(("value", "number"), [(7, 7), (-7, -7), (" 7 ", 7), ("-7", -7), ("9" * 19, int("9" * 19))])
def test_a_whole_number(value: object, number: int) -> None:
    assert whole(value) == whole(value, pointed=True) == number


def test_a_whole_number_with_a_point() -> None:
    assert [whole(3.0), whole(3.0, pointed=True), whole(3.5, pointed=True)] == [None, 3, None]
    assert [whole("3.0", pointed=True), whole(True, pointed=True), whole(float("inf"), pointed=True)] == [None] * 3


@pytest.mark.parametrize(("value", "found"), [("a", "a"), ("", ""), (5, "5"), (1.5, "1.5"), (-0.0, "-0.0")])
def test_text(value: object, found: str) -> None:
    assert text(value) == text(value, flags=True) == found


def test_a_flag_is_text_for_some() -> None:
    assert [text(True), text(False)] == [None, None]
    assert [text(True, flags=True), text(False, flags=True)] == ["true", "false"]
    assert {text(value, flags=True) for value in NOTHING} == {None}


@pytest.mark.parametrize(
    ("value", "found"),
    [(True, True), ("true", True), (False, False), ("false", False), *((each, None) for each in (1, 0, "True", "yes"))],
)
def test_a_flag(value: object, found: object) -> None:
    assert flag(value) is found


def test_what_is_set() -> None:
    assert [truth(value) for value in (True, 1, -3, "YES ", "on", "true", "1")] == [True] * 7
    assert [truth(value) for value in (False, 0, None, "", "no", "false", "2", "soon")] == [False] * 8
    assert [truth(value) for value in (1.5, 0.0, [], {}, [1])] == [None] * 5


def test_nothing_is_no_flag_and_no_text() -> None:
    assert {flag(value) for value in NOTHING} == {text(value) for value in NOTHING} == {None}
