"""Lenient JSON for text that grants no access: a model's chunk, an MCP message, a phone's result, a provider's event.

A text of RFC 8259 is read as `strict_json` reads it. Other texts are read if their meaning is clear:

| Deviation                                                | Read as                           |
|----------------------------------------------------------|-----------------------------------|
| a byte order mark before the text                        | absent                            |
| bytes that are not UTF-8                                 | U+FFFD                            |
| half of a surrogate pair                                 | U+FFFD                            |
| a control character in a string                          | itself                            |
| NaN, Infinity, and a number that no double or int holds  | null                              |
| a name twice in one object                               | its last value                    |

The limits of `strict_json` on length, depth and work apply. Credentials, pairing and settings are read strictly.
"""

import json
from enum import Enum
from math import isinf

from svc_proto.basics import strict_json
from svc_proto.basics.strict_json import JsonError, JsonTooLarge

__all__ = ["JsonDeviation", "loads"]

BYTE_ORDER_MARK = "\ufeff"


class JsonDeviation(Enum):
    """Kind of deviation of a text from JSON that the lenient reader accepts."""

    BYTE_ORDER_MARK = "byte order mark"
    INVALID_UTF8 = "invalid utf8"
    LONE_SURROGATE = "lone surrogate"
    CONTROL_CHARACTER = "control character"
    UNREPRESENTABLE_NUMBER = "unrepresentable number"
    REPEATED_NAME = "repeated name"


def loads(data: bytes | str, *, max_bytes: int | None = None) -> tuple[object, frozenset[JsonDeviation]]:
    """Parse one JSON text; return its value and how it deviates from JSON. Raises `JsonError`."""
    try:
        return strict_json.loads(data, max_bytes=max_bytes), frozenset()
    except JsonTooLarge:
        raise
    except JsonError:
        return _Reader().read(data, max_bytes)


class _Reader:
    """Lenient reader of one JSON text, which collects the deviations."""

    def __init__(self) -> None:
        self._found: set[JsonDeviation] = set()

    def read(self, data: bytes | str, max_bytes: int | None) -> tuple[object, frozenset[JsonDeviation]]:
        """Return the value and the deviations of a text. Raises `JsonError`."""
        text = data if isinstance(data, str) else self._decode(data)
        if text.startswith(BYTE_ORDER_MARK):
            self._found.add(JsonDeviation.BYTE_ORDER_MARK)
            text = text[1:]
        text = self._encodable(text)
        strict_json.check_limits(text, max_bytes=max_bytes)
        try:
            value = self._parse(text, strict=True)
        except JsonError:
            value = self._parse(text, strict=False)
            self._found.add(JsonDeviation.CONTROL_CHARACTER)
        if "\\ud" in text or "\\uD" in text:
            value = self._without_surrogates(value)
        return value, frozenset(self._found)

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            self._found.add(JsonDeviation.INVALID_UTF8)
            return data.decode("utf-8", "replace")

    def _parse(self, text: str, *, strict: bool) -> object:
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=self._constant,
            parse_float=self._float,
            parse_int=self._integer,
            strict=strict,
        )
        try:
            return decoder.decode(text)
        except json.JSONDecodeError as error:
            raise JsonError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(pairs)
        if len(value) != len(pairs):
            self._found.add(JsonDeviation.REPEATED_NAME)
        return value

    def _constant(self, name: str) -> None:
        self._found.add(JsonDeviation.UNREPRESENTABLE_NUMBER)

    def _float(self, text: str) -> float | None:
        value = float(text)
        if isinf(value):
            self._constant(text)
            return None
        return value

    def _integer(self, text: str) -> int | None:
        try:
            return int(text)
        except ValueError:  # more digits than Python converts
            self._constant(text)
            return None

    def _without_surrogates(self, value: object) -> object:
        if isinstance(value, str):
            return self._encodable(value)
        if isinstance(value, list):
            return [self._without_surrogates(item) for item in value]
        if isinstance(value, dict):
            return {self._encodable(name): self._without_surrogates(item) for name, item in value.items()}
        return value

    def _encodable(self, text: str) -> str:
        """Return a text with U+FFFD for each half of a surrogate pair; two halves that follow each other are joined."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            self._found.add(JsonDeviation.LONE_SURROGATE)
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return text
