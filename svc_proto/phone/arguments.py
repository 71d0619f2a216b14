"""Parsing of arguments in a JSON body as phones do: by way of text (wire/bridge.md, "Types").

- int-ish: a number or a numeric string without fraction or exponent. `12` and `"12"` are equal; `12.0` and `"12.5"`
  count as missing, and so does a number that exceeds the integer's width. A JSON integer of over 1,024 bits is refused.
- bool-ish: exactly `true` or `false`, lower case, bare or quoted.
- A null counts as missing.
- An array or object in place of a scalar is refused with 400 and the first spelling of the field's name.
- A lone surrogate in a scalar becomes `?`: it has no UTF-8 form and cannot be sent.
"""

import re
from collections.abc import Mapping

from svc_proto.phone.backend import CommandRefused
from svc_proto.schema import coercion
from svc_proto.schema.json_object import as_array, as_object, as_text

__all__ = ["CommandArguments", "clamp", "scalar_text", "replace_lone_surrogates", "utf16_length"]

MAX_NAME = 100  # characters of a member's name in a refusal
INT_BITS = 32  # width of a count, a duration or a coordinate on the phone
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")


class CommandArguments:
    """Body of one bridge command. Its readers take the names of one argument; the first with a value counts.

    `mapping` and `array` take one name alone.
    """

    def __init__(self, body: Mapping[str, object]) -> None:
        self._body = body

    def only(self, *names: str) -> None:
        """Raise `CommandRefused` 400 with the name of a member that is not among `names`; ignore one that is null."""
        for name, value in self._body.items():
            if value is not None and name not in names:
                raise CommandRefused(400, f"unknown argument: {replace_lone_surrogates(name[:MAX_NAME])}")

    def value(self, *names: str) -> object:
        """Return the argument's JSON value unchanged, or None if it is missing."""
        for name in names:
            value = self._body.get(name)
            if value is not None:
                return value
        return None

    def text(self, *names: str) -> str | None:
        """Return a scalar as text (numbers and booleans as JSON writes them), or None if it is missing.

        Raise `CommandRefused` 400 for an array, an object and a number of more than 1,024 bits.
        """
        value = self.value(*names)
        return None if value is None else scalar_text(value, names[0])

    def non_blank_text(self, *names: str) -> str | None:
        """Return the value of `text`, or None if it is blank. Raise `CommandRefused` 400 where `text` does."""
        value = self.text(*names)
        return value if value is not None and value.strip() else None

    def required(self, *names: str) -> str:
        """Return a text that is not blank; raise `CommandRefused` 400 otherwise."""
        value = self.non_blank_text(*names)
        if value is None:
            raise CommandRefused(400, f"missing or empty argument: {names[0]}")
        return value

    def integer(self, *names: str, bits: int = INT_BITS) -> int | None:
        """Return an integer, also from its text; None if missing, no integer, or outside `bits` signed bits.

        Raise `CommandRefused` 400 where `text` does.
        """
        value = self.text(*names)
        if value is None or _INTEGER.fullmatch(value) is None:
            return None
        number = int(value)
        limit = 1 << (bits - 1)
        return number if -limit <= number < limit else None

    def required_integer(self, *names: str) -> int:
        """Return the value of `integer`; raise `CommandRefused` 400 where that is None."""
        value = self.integer(*names)
        if value is None:
            raise CommandRefused(400, f"missing or not an integer: {names[0]}")
        return value

    def boolean(self, *names: str) -> bool | None:
        """Return the argument as a boolean, or None if it is missing or neither `true` nor `false`.

        Raise `CommandRefused` 400 where `text` does.
        """
        return coercion.coerce_boolean(self.text(*names))

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return an object, empty when missing; raise `CommandRefused` 400 for another type."""
        value = self._body.get(name)
        found = {} if value is None else as_object(value)
        if found is None:
            raise CommandRefused(400, f"{name} must be an object")
        return found

    def array(self, name: str) -> list[object]:
        """Return an array, empty when missing; raise `CommandRefused` 400 for another type."""
        value = self._body.get(name)
        found = [] if value is None else as_array(value)
        if found is None:
            raise CommandRefused(400, f"{name} must be an array")
        return found


def scalar_text(value: object, name: str) -> str:
    """Return a JSON string, number or boolean as text, with `?` for each lone surrogate.

    Raise `CommandRefused` 400 with the field's name for any other value, also for null and for a whole number of more
    than 1,024 bits.
    """
    number = None if as_text(value) is not None else coercion.coerce_integer(value)
    if number is not None and number.bit_length() > 1024:  # far past any use, far below the interpreter's limit
        raise CommandRefused(400, f"{name} is out of range")
    text = coercion.coerce_text(value, flags=True)
    if text is None:
        raise CommandRefused(400, f"{name} must be a string, a number or a boolean")
    return replace_lone_surrogates(text)


def replace_lone_surrogates(text: str) -> str:
    """Return the text with each lone surrogate replaced by `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def clamp(value: int, low: int, high: int) -> int:
    """Return the nearest number in `low..high`."""
    return max(low, min(high, value))


def utf16_length(text: str) -> int:
    """Return the length of a text without lone surrogates in UTF-16 units, as phones count."""
    return len(text.encode("utf-16-le")) // 2
