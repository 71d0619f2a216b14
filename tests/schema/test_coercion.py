from math import inf

import pytest

from svc_proto.schema.coercion import coerce_boolean, coerce_integer, coerce_text, is_truthy

KNOWN = pytest.mark.parametrize(
    ("value", "as_text", "as_whole", "as_flag", "as_truth"),
    [
        ("a", "a", None, None, False),
        ("", "", None, None, False),
        (" 7 ", " 7 ", 7, None, False),
        ("-7", "-7", -7, None, False),
        ("9" * 19, "9" * 19, int("9" * 19), None, False),
        ("9" * 20, "9" * 20, None, None, False),
        ("1.0", "1.0", None, None, False),
        ("1", "1", 1, None, True),
        ("true", "true", None, True, True),
        ("false", "false", None, False, False),
        (" YES", " YES", None, None, True),
        (5, "5", 5, None, True),
        (0, "0", 0, None, False),
        (1.5, "1.5", None, None, None),
        (True, None, None, True, True),
        (False, None, None, False, False),
        (None, None, None, None, False),
        ([], None, None, None, None),
        ({"a": 1}, None, None, None, None),
    ],
)


@KNOWN
def test_coercions_of_a_value(
    value: object, as_text: object, as_whole: object, as_flag: object, as_truth: object
) -> None:
    found = (coerce_text(value), coerce_integer(value), coerce_boolean(value), is_truthy(value))
    assert found == (as_text, as_whole, as_flag, as_truth)


def test_optional_coercions() -> None:
    assert [coerce_text(given, flags=True) for given in (True, False, 1, None)] == ["true", "false", "1", None]
    assert [coerce_integer(given, pointed=True) for given in (3.0, 3, " 3")] == [3] * 3
    assert [coerce_integer(given, pointed=True) for given in (3.5, inf, "3.0", True)] == [None] * 4
