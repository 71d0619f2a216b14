"""JSON as RFC 8259 has it and no more: what two parsers could read differently is refused.

Refused on input
  bytes that are not UTF-8; lone surrogates, which no UTF-8 can carry
  NaN, Infinity, and numbers that overflow to them; integers of more digits than Python converts (4300)
  a name twice in one object
  nesting deeper than `max_depth`, text longer than `max_bytes`

The depth is judged before parsing. Counting brackets is enough for nearly every text; only one that has more of them
than `max_depth` is looked at again, without its strings.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import accumulate
from math import isinf
from typing import NoReturn

__all__ = ["MAX_DEPTH", "JsonError", "canonical", "dumps", "dumps_bytes", "loads"]

MAX_DEPTH = 64  # levels of objects and arrays
MAX_NAME_SHOWN = 40  # characters of a name in an error text

# A string, closed or not: it ends with the text at the latest, so that no text makes this look at anything twice.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]+")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_STEP = {"[": 1, "{": 1, "]": -1, "}": -1}


class JsonError(ValueError):
    """The text is not JSON that we accept. The message says where or what, and quotes no value."""


def loads(data: bytes | str, *, max_bytes: int | None = None, max_depth: int = MAX_DEPTH) -> object:
    """Parse one JSON text. `max_bytes` is the limit of its length in UTF-8. Raises `JsonError`."""
    text = _as_text(data, max_bytes)
    if text.count("[") + text.count("{") > max_depth and _depth(text) > max_depth:
        raise JsonError(f"nested deeper than {max_depth} levels")
    try:
        value: object = _DECODER.decode(text)
    except JsonError:
        raise
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise JsonError("an integer has too many digits") from None
    except RecursionError:
        raise JsonError("nested too deep") from None
    if _SURROGATE_ESCAPE.search(text) and not _is_encodable(_BODY.encode(value)):
        raise JsonError("a lone surrogate")
    return value


def dumps(value: object) -> str:
    """Compact JSON that can always be encoded. Raises ValueError for NaN and infinities, TypeError for other types."""
    text = _BODY.encode(value)
    if text.isascii() or _is_encodable(text):
        return text
    return _ESCAPED.encode(value)


def dumps_bytes(value: object) -> bytes:
    """Compact JSON in UTF-8, for bodies. Raises as `dumps` does."""
    return dumps(value).encode("utf-8")


def canonical(value: object) -> str:
    """The one text of a value that signatures are made over: sorted names, no blanks, ASCII (wire core 3.4)."""
    return _CANONICAL.encode(value)


def _as_text(data: bytes | str, max_bytes: int | None) -> str:
    if isinstance(data, str):
        if max_bytes is None and data.isascii():
            return data
        try:
            _check_size(len(data.encode("utf-8")), max_bytes)
        except UnicodeEncodeError:
            raise JsonError("a lone surrogate") from None
        return data
    _check_size(len(data), max_bytes)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start}") from None


def _check_size(size: int, max_bytes: int | None) -> None:
    if max_bytes is not None and size > max_bytes:
        raise JsonError(f"longer than {max_bytes} bytes")


def _depth(text: str) -> int:
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise JsonError(f"the name {name[:MAX_NAME_SHOWN]!a} twice in one object")
    return value


def _constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise JsonError("a number is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_BODY = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ESCAPED = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_CANONICAL = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":"))
