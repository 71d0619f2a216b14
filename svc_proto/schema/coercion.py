"""Lenient readers of numbers, booleans and text, for arguments that models and phones send and for YAML.

As in `JsonObject`, a value of another type reads as None: the caller reports the expected type.
"""

from svc_proto.basics.validate import TRUE_WORDS, integer_text

__all__ = ["coerce_boolean", "coerce_text", "is_truthy", "coerce_integer"]

FLAGS = {"true": True, "false": False}


def coerce_text(value: object, *, flags: bool = False) -> str | None:
    """Return text, or a number as text, with `flags` also true and false in JSON form; None for any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower() if flags else None
    return str(value) if isinstance(value, int | float) else None


def coerce_integer(value: object, *, pointed: bool = False) -> int | None:
    """Return a whole number, or text that reads as one, with `pointed` 3.0 as 3; None for any other value."""
    if type(value) is int:  # the usual case; excludes booleans
        return value
    if isinstance(value, str):
        number = integer_text(value)
        return number if isinstance(number, int) else None
    return int(value) if pointed and isinstance(value, float) and value.is_integer() else None


def coerce_boolean(value: object) -> bool | None:
    """Return a boolean, or the boolean in the text `true` or `false`; None for any other value."""
    return FLAGS.get(value) if isinstance(value, str) else value if isinstance(value, bool) else None


def is_truthy(value: object) -> bool | None:
    """Report whether a value is set: true, a whole number that is not 0, or a word for yes.

    Null is not set. None for a value of another type.
    """
    if isinstance(value, str):
        return value.strip().lower() in TRUE_WORDS
    return bool(value) if value is None or isinstance(value, int) else None
