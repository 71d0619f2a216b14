"""Lenient reader of untrusted JSON objects: a peer's answer, a message, a file that may have been edited.

A member that is missing, or of another type, reads as None or empty. Booleans are never numbers (wire core 0.4).
Mandatory members, with an error that names the field, are read by `svc_proto.basics.validate`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from math import inf
from typing import cast

from svc_proto.basics import lenient_json, strict_json

__all__ = [
    "JsonObject",
    "NotJsonObjectError",
    "as_array",
    "as_identity",
    "as_object",
    "as_text",
    "content_text",
    "error_text",
    "json_object",
    "json_value",
    "lenient_json_value",
]

_ERRORS = ("error", "message", "detail", "msg", "errors")  # members with error texts in use


class NotJsonObjectError(strict_json.JsonError):
    """The text is JSON, but no object."""


class JsonObject(dict[str, object]):
    """Members of a JSON object, with readers by type. Otherwise an ordinary dict: compared and written as one."""

    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> JsonObject:
        """Return the members of an object; empty for anything else."""
        if isinstance(value, cls):
            return value
        return cls(value) if isinstance(value, dict) else cls()

    @classmethod
    def of_or_none(cls, value: object) -> JsonObject | None:
        """Return the members of an object; None for anything else."""
        return cls(value) if isinstance(value, dict) else None

    @classmethod
    def load(cls, text: bytes | str, *, max_bytes: int | None = None, ours: bool = False) -> JsonObject:
        """Return the members of a text that is a JSON object.

        Raise `JsonError`, and for other JSON `NotJsonObjectError`.
        """
        value = cls.of_or_none(strict_json.loads(text, max_bytes=max_bytes, ours=ours))
        if value is None:
            raise NotJsonObjectError("it is of another type")
        return value

    @classmethod
    def parse(cls, text: bytes | str, *, ours: bool = False) -> JsonObject | None:
        """Return the members of a text that is a JSON object; None for any other text."""
        return cls.of_or_none(json_value(text, ours=ours))

    @classmethod
    def parse_or_empty(cls, text: bytes | str) -> JsonObject:
        """Return the members of a text that is a JSON object; empty for any other text."""
        return cls.of(json_value(text))

    def text(self, *names: str) -> str:
        """Return the first of the members `names` that is text and not empty; else an empty text."""
        for name in names:
            value = self.get(name)
            if isinstance(value, str) and value:
                return value
        return ""

    def string(self, name: str) -> str | None:
        """Return the text in this member, empty or not; None if there is none."""
        value = self.get(name)
        return value if isinstance(value, str) else None

    def boolean(self, name: str) -> bool | None:
        """Return this member if it is true or false; else None."""
        value = self.get(name)
        return value if isinstance(value, bool) else None

    def first_text(self, *names: str) -> str:
        """Return the first of the members `names` that is text and not blank, trimmed; else an empty text."""
        for name in names:
            value = self.get(name)
            if isinstance(value, str) and (word := value.strip()):
                return word
        return ""

    def identifier(self, *names: str) -> str:
        """Return the first of the members `names` that is a nonempty text or a whole number, as text.

        Else an empty text.
        """
        return next((found for name in names if (found := as_identity(self.get(name)))), "")

    def binary(self, name: str) -> bytes:
        """Return the bytes that this member holds as base64; empty if it is missing or cannot be decoded."""
        try:
            return b64decode(self.text(name))
        except ValueError:
            return b""

    def integer(self, name: str, low: float = -inf, high: float = inf) -> int | None:
        """Return this member if it is a whole number in these bounds, both included; else None."""
        value = self.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high else None

    def number(self, name: str, low: float = -inf, high: float = inf) -> float | None:
        """Return this member, unconverted, if it is a number in these bounds, both included; else None."""
        value = self.get(name)
        good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        return cast("float", value) if good else None

    def get_object(self, *names: str) -> JsonObject:
        """Return the object at the path `names` of nested members; an empty object if there is none."""
        found = self
        for name in names:
            value = found.get(name)
            found = JsonObject(value) if isinstance(value, dict) else JsonObject()
        return found

    def object_or_none(self, name: str) -> JsonObject | None:
        """Return the object in this member, empty or not; None if there is none."""
        value = self.get(name)
        return JsonObject(value) if isinstance(value, dict) else None

    def array(self, *names: str) -> list[object]:
        """Return the first of the members `names` that is an array; else an empty one."""
        for name in names:
            found = self.get(name)
            if isinstance(found, list):
                return found
        return []

    def array_or_none(self, name: str) -> list[object] | None:
        """Return the array in this member, empty or not; None if there is none."""
        value = self.get(name)
        return value if isinstance(value, list) else None

    def objects(self, *names: str) -> list[JsonObject]:
        """Return the objects in the first of the members `names` that is an array."""
        return [JsonObject.of(row) for row in self.array(*names) if isinstance(row, dict)]

    def texts(self, *names: str) -> list[str]:
        """Return the texts in the first of the members `names` that is an array, empty texts too."""
        return [value for value in self.array(*names) if isinstance(value, str)]


def as_text(value: object) -> str | None:
    """Return a value that is text, empty or not; None for any other."""
    return value if isinstance(value, str) else None


def as_identity(value: object) -> str:
    """Return an identifier: text, or a whole number as text; empty for any other value."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def as_object(value: object) -> dict[str, object] | None:
    """Return a value that is an object, empty or not, without a copy; None for any other."""
    return value if isinstance(value, dict) else None


def as_array(value: object) -> list[object] | None:
    """Return a value that is an array, empty or not; None for any other."""
    return value if isinstance(value, list) else None


def json_value(text: bytes | str, otherwise: object = None, *, ours: bool = False) -> object:
    """Return the value of a JSON text; `otherwise` if it is malformed or would take too long.

    `ours`: a text of this host, without a limit of work.
    """
    try:
        return strict_json.loads(text, ours=ours)
    except strict_json.JsonError:
        return otherwise


def lenient_json_value(text: bytes | str, otherwise: object = None) -> object:
    """Return the value of a JSON text by the lenient reader `lenient_json`; `otherwise` if the text cannot be read.

    It is for texts that grant no access.
    """
    try:
        return lenient_json.loads(text)[0]
    except strict_json.JsonError:
        return otherwise


def json_object(text: bytes | str, large: Callable[[Exception], Exception]) -> dict[str, object] | None:
    """Return the object of a JSON text; None for any other text.

    If parsing would take too long, raise the exception that `large` returns.
    """
    try:
        value = strict_json.loads(text)
    except strict_json.JsonTooLarge as error:
        raise large(error) from None
    except strict_json.JsonError:
        return None
    return value if isinstance(value, dict) else None


def error_text(value: object, depth: int = 6) -> str:
    """Return the text of an error value: the value itself, or the first text in its members or its first item; else "".

    Values are nested in at most `depth` levels; the names of the members are `_ERRORS`.
    """
    if isinstance(value, str) or not depth:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return error_text(value[0], depth - 1) if value else ""
    if not isinstance(value, dict):
        return ""
    return next((text for name in _ERRORS if (text := error_text(value.get(name), depth - 1))), "")


def content_text(content: object) -> str:
    """Return the readable text of a message's content: text, or the text of its parts, a line each (wire api 4.1)."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    return "\n".join(text for part in parts if isinstance(text := JsonObject.of(part).get("text"), str))
