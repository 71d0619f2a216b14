"""Parsers of JSON values for request bodies: a typed value, or `Refused(400, "invalid_field")` that names the field.

Values come from `strict_json`, so an object has text keys; nothing else is taken for granted. Booleans are never
numbers here, and no number is NaN or infinite (wire core 0.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from svc_proto.basics.errors import Refused

__all__ = ["MAX_SECONDS", "array", "boolean", "choice", "integer", "invalid", "number", "object_", "seconds", "text"]

MAX_SECONDS = 315_360_000.0  # s, ten years of 365 days: the cap of wire core 2.2


def number(value: object, field: str) -> float:
    """A finite JSON number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(field, "a number")
    try:
        result = float(value)
    except OverflowError:
        raise invalid(field, "a number of ordinary size") from None
    if not math.isfinite(result):
        raise invalid(field, "a finite number")
    return result


def integer(value: object, field: str) -> int:
    """A whole number; `3.0` counts as 3."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, float) or not value.is_integer():  # NaN and infinities are not integers either
        raise invalid(field, "a whole number")
    return int(value)


def seconds(value: object, field: str) -> float:
    """A span of time from 0 to ten years."""
    result = number(value, field)
    if result < 0:
        raise invalid(field, "at least 0 seconds")
    if result > MAX_SECONDS:
        raise invalid(field, "at most 315360000 seconds (10 years)")
    return result


def text(value: object, field: str) -> str:
    """A string, empty or not."""
    if not isinstance(value, str):
        raise invalid(field, "a string")
    return value


def boolean(value: object, field: str) -> bool:
    """`true` or `false`; nothing else is truthy."""
    if not isinstance(value, bool):
        raise invalid(field, "true or false")
    return value


def object_(value: object, field: str) -> dict[str, object]:
    """A JSON object. The same dict, not a copy."""
    if not isinstance(value, dict):
        raise invalid(field, "an object")
    return cast("dict[str, object]", value)


def array(value: object, field: str) -> list[object]:
    """A JSON array. The same list, not a copy."""
    if not isinstance(value, list):
        raise invalid(field, "an array")
    return cast("list[object]", value)


def choice(value: object, field: str, allowed: Sequence[str]) -> str:
    """A string out of a short list."""
    result = text(value, field)
    if result not in allowed:
        raise invalid(field, "one of " + ", ".join(allowed))
    return result


def invalid(field: str, expected: str) -> Refused:
    """The refusal to raise for a bad field; names the field and what it must be, never the value."""
    return Refused(400, "invalid_field", f"{field} must be {expected}", extra={"field": field})
