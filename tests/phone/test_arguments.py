from collections.abc import Callable

import pytest

from svc_proto.phone.arguments import CommandArguments, clamp, replace_lone_surrogates, utf16_length
from svc_proto.phone.backend import CommandRefused


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (12, 12),
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        (0, 0),
        *((value, None) for value in (12.0, "12.5", "1e3", " 12", "", "twelve", "٣", True, None)),
        (2**31 - 1, 2**31 - 1),
        (-(2**31), -(2**31)),
        (2**31, None),
        ("9" * 30, None),
    ],
)
def test_int_ish(value: object, number: int | None) -> None:
    assert CommandArguments({"n": value}).integer("n") == number


def test_a_long_has_64_bits() -> None:
    assert CommandArguments({"n": 2**63 - 1}).integer("n", bits=64) == 2**63 - 1
    assert CommandArguments({"n": 2**63}).integer("n", bits=64) is None


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        (True, True),
        ("true", True),
        (False, False),
        ("false", False),
        *((value, None) for value in ("True", 1, "", None)),
    ],
)
def test_bool_ish(value: object, flag: bool | None) -> None:
    assert CommandArguments({"b": value}).boolean("b") is flag


@pytest.mark.parametrize(
    ("value", "text"), [("a", "a"), (1, "1"), (1.5, "1.5"), (True, "true"), (False, "false"), (None, None), ("", "")]
)
def test_text(value: object, text: str | None) -> None:
    assert CommandArguments({"t": value}).text("t") == text


def test_first_present_spelling_wins() -> None:
    args = CommandArguments({"a": None, "b": "2", "c": "3"})
    assert args.text("a", "b", "c") == "2"
    assert args.value("a") is None


def test_present_arguments_are_read() -> None:
    args = CommandArguments({"n": "12", "object": {"a": 1}})
    assert args.required_integer("n") == 12
    assert (args.mapping("object"), args.mapping("none")) == ({"a": 1}, {})


def test_refusals_name_the_field() -> None:
    args = CommandArguments({"list": [1], "huge": 1 << 1024, "blank": "  ", "word": "x"})
    reads: list[tuple[Callable[[str], object], str]] = [
        (args.text, "list"),
        (args.text, "huge"),
        (args.required, "blank"),
        (args.required_integer, "word"),
        (args.mapping, "word"),
        (args.array, "word"),
    ]
    for read, name in reads:
        with pytest.raises(CommandRefused, match=name) as refused:
            read(name)
        assert refused.value.status == 400
    assert args.mapping("none") == {}
    assert args.array("none") == []


def test_small_helpers() -> None:
    assert [clamp(value, 1, 5) for value in (0, 3, 9)] == [1, 3, 5]
    assert replace_lone_surrogates("aé\ud800") == "aé?"
    assert utf16_length("a\U0001f600") == 3
