"""Strict readers of JSON values: a typed value, or `Refused(400, "invalid_field")` that names the field.

Values come from `strict_json`, so an object has text keys; all else is checked. Booleans are never numbers here, and no
number is NaN or infinite (wire core 0.4). `optional` reads what may be missing; `svc_proto.schema.json_object` reads
without refusals.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from typing import Any, TypeVar

from svc_proto.basics.errors import Refused

__all__ = [
    "FALSE_WORDS",
    "MAX_SECONDS",
    "TRUE_WORDS",
    "array",
    "boolean",
    "choice",
    "boolean_word",
    "integer",
    "invalid",
    "single_line",
    "number",
    "object_",
    "optional",
    "seconds",
    "text",
    "integer_text",
]

T = TypeVar("T")

MAX_SECONDS = 315_360_000.0  # s, ten years of 365 days: the cap of wire core 2.2
TRUE_WORDS, FALSE_WORDS = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
MAX_DIGITS = 19  # of a whole number that comes as text


def _of_type(kind: type, words: str) -> Callable[[object, str], Any]:
    def read(value: object, field: str) -> object:
        if not isinstance(value, kind):
            raise invalid(field, words)
        return value

    return read


text: Callable[[object, str], str] = _of_type(str, "a string")
boolean: Callable[[object, str], bool] = _of_type(bool, "true or false")  # no other type counts as true
object_: Callable[[object, str], dict[str, object]] = _of_type(dict, "an object")  # the same object, not a copy
array: Callable[[object, str], list[object]] = _of_type(list, "an array")  # the same


def optional(members: Mapping[str, object], field: str, read: Callable[[object, str], T]) -> T | None:
    """Read a member that may be missing, by `read`; return None if it is missing or null."""
    value = members.get(field)
    return None if value is None else read(value, field)


def number(value: object, field: str, low: float = -inf, high: float = inf) -> float:
    """Read a finite JSON number in these bounds, both included. Raise `Refused` (400) for any other value."""
    if type(value) is float and isfinite(value) and low <= value <= high:  # each time of a stored session
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(field, "a number")
    try:
        result = float(value)
    except OverflowError:
        raise invalid(field, "a number of ordinary size") from None
    if not isfinite(result):
        raise invalid(field, "a finite number")
    if not low <= result <= high:
        raise invalid(field, f"a number from {low:g} to {high:g}")
    return result


def integer(value: object, field: str, low: float = -inf, high: float = inf) -> int:
    """Read a whole number in these bounds, both included; `3.0` counts as 3.

    Raise `Refused` (400) for any other value.
    """
    if isinstance(value, float) and value.is_integer():  # NaN and infinities are not
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid(field, "a whole number")
    if not low <= value <= high:
        raise invalid(field, f"a whole number from {low} to {high}")
    return value


def integer_text(value: object) -> object:
    """Return the whole number that a text of at most `MAX_DIGITS` digits holds; any other value unchanged."""
    if isinstance(value, str):
        word = value.strip()
        digits = word.removeprefix("-")
        if digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS:
            return int(word)
    return value


def seconds(value: object, field: str) -> float:
    """Read a duration from 0 to ten years. Raise `Refused` (400) for any other value."""
    result = number(value, field)
    if result < 0:
        raise invalid(field, "at least 0 seconds")
    if result > MAX_SECONDS:
        raise invalid(field, "at most 315360000 seconds (10 years)")
    return result


def single_line(value: object, field: str, most: int, least: int = 0) -> str:
    """Read printable text of one line, trimmed, of `least` to `most` characters.

    Raise `Refused` (400) for any other value.
    """
    if not isinstance(value, str) or not value.isprintable() or not least <= len(value.strip()) <= most:
        size = f"{least} to {most}" if least else f"at most {most}"
        raise invalid(field, f"text of {size} characters, all printable")
    return value.strip()


def boolean_word(value: object, field: str) -> bool:
    """Read a boolean, or a number or word that stands for one (`TRUE_WORDS`, `FALSE_WORDS`).

    Raise `Refused` (400) for any other value.
    """
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word not in (*TRUE_WORDS, *FALSE_WORDS):
        raise invalid(field, "true or false")
    return word in TRUE_WORDS


def choice(value: object, field: str, allowed: Sequence[str]) -> str:
    """Read one of the allowed strings. Raise `Refused` (400) for any other value."""
    result = text(value, field)
    if result not in allowed:
        raise invalid(field, "one of " + ", ".join(allowed))
    return result


def invalid(field: str, expected: str) -> Refused:
    """Return the refusal of a bad field; names the field and its required form, never the value."""
    return Refused(400, "invalid_field", f"{field} must be {expected}", extra={"field": field})
