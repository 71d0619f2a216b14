from collections.abc import Callable

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import (
    array,
    boolean,
    boolean_word,
    choice,
    integer,
    integer_text,
    invalid,
    number,
    object_,
    optional,
    seconds,
    single_line,
    text,
)

Parser = Callable[[object, str], object]


def one_of(value: object, field: str) -> str:
    return choice(value, field, ("ws", "wss"))


def short(value: object, field: str) -> str:
    return single_line(value, field, 3, 1)


def small(value: object, field: str) -> float:
    return number(value, field, 1.0, 2.0)


def few(value: object, field: str) -> int:
    return integer(value, field, 1, 9)


@pytest.mark.parametrize(
    ("parse", "results"),
    [
        (number, [(5, 5.0), (-0.5, -0.5)]),
        (integer, [(5, 5), (5.0, 5), (-3, -3)]),
        (seconds, [(0, 0.0), (315_360_000, 315_360_000.0)]),
        (text, [("", "")]),
        (boolean, [(False, False)]),
        (object_, [({"a": 1}, {"a": 1})]),
        (array, [([1], [1])]),
        (one_of, [("ws", "ws")]),
        (short, [(" abc ", "abc"), (" a ", "a")]),
        (small, [(1, 1.0), (2, 2.0), (1.5, 1.5)]),
        (few, [(1, 1), (9.0, 9)]),
        (boolean_word, [(True, True), (" ON ", True), (0, False), ("no", False)]),
    ],
)
def test_good_values(parse: Parser, results: list[tuple[object, object]]) -> None:
    for value, result in results:
        parsed = parse(value, "x")
        assert (parsed, type(parsed)) == (result, type(result))


@pytest.mark.parametrize(
    ("parse", "values", "problem"),
    [
        (number, [True, "5", None], "a number"),
        (number, [float("nan"), float("-inf")], "a finite number"),
        (number, [10**400], "a number of ordinary size"),
        (small, [2.5, 0], "a number from 1 to 2"),
        (few, [0, 10.0], "a whole number from 1 to 9"),
        (short, ["abcd", " ", "a\nb", 5], "text of 1 to 3 characters, all printable"),
        (integer, [True, 1.5, float("nan"), float("inf"), "5"], "a whole number"),
        (seconds, [-0.1], "at least 0 seconds"),
        (seconds, [315_360_000.5], "at most 315360000 seconds (10 years)"),
        (seconds, [True], "a number"),
        (text, [5, None], "a string"),
        (boolean, [1], "true or false"),
        (boolean_word, [2, "", None], "true or false"),
        (object_, [[]], "an object"),
        (array, [{}], "an array"),
        (one_of, ["tls"], "one of ws, wss"),
        (one_of, [None], "a string"),
    ],
)
def test_bad_values_name_the_field(parse: Parser, values: list[object], problem: str) -> None:
    for value in values:
        with pytest.raises(Refused) as caught:
            parse(value, "x")
        refused = caught.value
        assert (refused.status, refused.code, refused.message) == (400, "invalid_field", f"x must be {problem}")
        assert refused.extra == {"field": "x"}


def test_a_parser_may_raise_its_own_refusal() -> None:
    assert invalid("code", "present").message == "code must be present"


def test_optional_members() -> None:
    assert optional({"x": 5}, "x", integer) == 5
    assert optional({"x": None}, "x", integer) is optional({}, "x", integer) is None
    with pytest.raises(Refused, match="x must be a whole number"):
        optional({"x": "5"}, "x", integer)
    with pytest.raises(Refused, match="text of at most 3 characters"):
        single_line("abcd", "x", 3)


@pytest.mark.parametrize(
    ("value", "number"),
    [(" -12 ", -12), ("7", 7), ("9" * 19, int("9" * 19)), ("9" * 20, "9" * 20), ("1.0", "1.0"), ("-", "-"), ("٣", "٣")],
)
def test_a_number_may_come_as_text(value: str, number: object) -> None:
    assert integer_text(value) == number
    assert integer_text(True) is True
