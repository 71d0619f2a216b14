"""The one reader of JSON objects that others wrote: a peer's answer, a message, a file somebody may have edited.

Nothing is taken for granted: what is missing, or of another type, reads as nothing. Booleans are never numbers (wire
core 0.4). What has to be there, with an error that names the field, is read by `svc_proto.basics.validate`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from math import inf
from typing import cast

from svc_proto.basics import strict_json

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
]

_ERRORS = ("error", "message", "detail", "msg", "errors")  # where servers put what is wrong


class NotJsonObjectError(strict_json.JsonError):
    """What was read is JSON, but no object."""


class JsonObject(dict[str, object]):
    """The members of one JSON object, with readers by type. An ordinary dict otherwise: compared and written as one."""

    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> JsonObject:
        """The members of an object; none of anything else."""
        if isinstance(value, cls):
            return value
        return cls(value) if isinstance(value, dict) else cls()

    @classmethod
    def of_or_none(cls, value: object) -> JsonObject | None:
        """The members of an object; None of anything else."""
        return cls(value) if isinstance(value, dict) else None

    @classmethod
    def load(cls, text: bytes | str, *, max_bytes: int | None = None, ours: bool = False) -> JsonObject:
        """The members of a text that is a JSON object. Raises `JsonError`, where it is other JSON
        `NotJsonObjectError`."""
        value = cls.of_or_none(strict_json.loads(text, max_bytes=max_bytes, ours=ours))
        if value is None:
            raise NotJsonObjectError("it is of another type")
        return value

    @classmethod
    def parse(cls, text: bytes | str, *, ours: bool = False) -> JsonObject | None:
        """The members of a text that is a JSON object; None for any other text."""
        return cls.of_or_none(json_value(text, ours=ours))

    @classmethod
    def parse_or_empty(cls, text: bytes | str) -> JsonObject:
        """The members of a text; of one that is no JSON object none."""
        return cls.of(json_value(text))

    def text(self, *names: str) -> str:
        """The first of these members that is text, and not empty; else empty."""
        for name in names:
            value = self.get(name)
            if isinstance(value, str) and value:
                return value
        return ""

    def string(self, name: str) -> str | None:
        """The text in this member, empty or not; None where there is none."""
        return as_text(self.get(name))

    def boolean(self, name: str) -> bool | None:
        """True or false, where this member is that."""
        value = self.get(name)
        return value if isinstance(value, bool) else None

    def first_text(self, *names: str) -> str:
        """The first of these members that is text, and not blank, without the blanks around it; else empty."""
        return next((word for name in names if (word := self.text(name).strip())), "")

    def identifier(self, *names: str) -> str:
        """The first of these members that names something: text that is not empty, or a whole number; else empty."""
        return next((found for name in names if (found := as_identity(self.get(name)))), "")

    def binary(self, name: str) -> bytes:
        """What stands in this member as base64; empty for what is none."""
        try:
            return b64decode(self.text(name))
        except ValueError:
            return b""

    def integer(self, name: str, low: float = -inf, high: float = inf) -> int | None:
        """A whole number in these bounds, both included."""
        value = self.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high else None

    def number(self, name: str, low: float = -inf, high: float = inf) -> float | None:
        """A number in these bounds, both included: as it was written, so that a whole one stays whole."""
        value = self.get(name)
        good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        return cast("float", value) if good else None

    def get_object(self, *names: str) -> JsonObject:
        """The object that these names lead to, one inside the other; without members where there is none."""
        found = self
        for name in names:
            found = JsonObject.of(found.get(name))
        return found

    def object_or_none(self, name: str) -> JsonObject | None:
        """The object in this member, empty or not; None where there is none."""
        return self.of_or_none(self.get(name))

    def array(self, *names: str) -> list[object]:
        """The first of these members that is an array; else an empty one."""
        return next((found for name in names if (found := self.array_or_none(name)) is not None), [])

    def array_or_none(self, name: str) -> list[object] | None:
        """The array in this member, empty or not; None where there is none."""
        return as_array(self.get(name))

    def objects(self, *names: str) -> list[JsonObject]:
        """The objects in the first of these members that is an array."""
        return [JsonObject.of(row) for row in self.array(*names) if isinstance(row, dict)]

    def texts(self, *names: str) -> list[str]:
        """The texts in the first of these members that is an array, empty ones too."""
        return [value for value in self.array(*names) if isinstance(value, str)]


def as_text(value: object) -> str | None:
    """A value that is text, empty or not; None for any other."""
    return value if isinstance(value, str) else None


def as_identity(value: object) -> str:
    """A value that names something: text, or a whole number as text; empty for any other."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def as_object(value: object) -> dict[str, object] | None:
    """A value that is an object, empty or not, and no copy of it; None for any other."""
    return value if isinstance(value, dict) else None


def as_array(value: object) -> list[object] | None:
    """A value that is an array, empty or not; None for any other."""
    return value if isinstance(value, list) else None


def json_value(text: bytes | str, otherwise: object = None, *, ours: bool = False) -> object:
    """The value that a text is as JSON; `otherwise` for a text that is none. `ours`: see `strict_json.loads`."""
    try:
        return strict_json.loads(text, ours=ours)
    except strict_json.JsonError:
        return otherwise


def json_object(text: bytes | str, large: Callable[[Exception], Exception]) -> dict[str, object] | None:
    """The object that a text is; None for any other text. `large` makes what is raised where it would take too long."""
    try:
        value = strict_json.loads(text)
    except strict_json.JsonTooLarge as error:
        raise large(error) from None
    except strict_json.JsonError:
        return None
    return value if isinstance(value, dict) else None


def error_text(value: object, depth: int = 6) -> str:
    """What a value says is wrong, in any of the shapes in use: a text, or that of an error somewhere in it."""
    if isinstance(value, str) or not depth:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return error_text(value[0], depth - 1) if value else ""
    members = JsonObject.of(value)
    return next((text for name in _ERRORS if (text := error_text(members.get(name), depth - 1))), "")


def content_text(content: object) -> str:
    """What there is to read in the content of a message: text, or the text of its parts, a line each (wire api 4.1)."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    return "\n".join(text for part in parts if isinstance(text := JsonObject.of(part).get("text"), str))
