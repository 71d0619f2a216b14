"""The one reader of those for whom a number is text and text a number: arguments of models and phones, words of YAML.

As with `Members`, what is of another type reads as nothing: whoever asks says what it should have been.
"""

from __future__ import annotations

from svc_proto.basics.validate import TRUE_WORDS, integer_text

__all__ = ["coerce_boolean", "coerce_text", "is_truthy", "coerce_integer"]

FLAGS = {"true": True, "false": False}


def coerce_text(value: object, *, flags: bool = False) -> str | None:
    """Text, or a number as text; with `flags` true and false as JSON has them, too."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower() if flags else None
    return str(value) if isinstance(value, int | float) else None


def coerce_integer(value: object, *, pointed: bool = False) -> int | None:
    """A whole number, or text that reads as one; with `pointed` `3.0` is 3, too."""
    if type(value) is int:  # as mostly; and a boolean is none
        return value
    if isinstance(value, str):
        number = integer_text(value)
        return number if isinstance(number, int) else None
    return int(value) if pointed and isinstance(value, float) and value.is_integer() else None


def coerce_boolean(value: object) -> bool | None:
    """True or false, or the word for it."""
    return FLAGS.get(value) if isinstance(value, str) else value if isinstance(value, bool) else None


def is_truthy(value: object) -> bool | None:
    """Whether that is set: a boolean, a number that is not 0, one of the words for yes; null is not."""
    if isinstance(value, str):
        return value.strip().lower() in TRUE_WORDS
    return bool(value) if value is None or isinstance(value, int) else None
