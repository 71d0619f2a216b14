"""Strict JSON (RFC 8259): text that two parsers could read differently is refused.

Refused on input
- bytes that are not UTF-8; lone surrogates, which UTF-8 cannot encode
- NaN, Infinity, and numbers that overflow to them; integers of more digits than Python converts (4300)
- a name twice in one object
- nesting deeper than `max_depth`, text longer than `max_bytes`
- text that would take longer than about 50 ms at any length: too many values, strings or escapes (`JsonTooLarge`)

Depth and work are checked before parsing, on the text without its strings. Nearly every text needs no such check: up to
`UNCHECKED_SIZE` bytes nothing takes long, and with few brackets nothing is deep.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import accumulate
from math import isinf
from typing import Any, NoReturn

__all__ = [
    "MAX_DEPTH",
    "JsonError",
    "JsonTooLarge",
    "canonical",
    "check_limits",
    "dumps",
    "dumps_bytes",
    "encoder",
    "escaped",
    "piecewise_encoder",
    "loads",
    "quoted",
    "loads_trusted",
]

MAX_DEPTH = 64  # levels of objects and arrays
MAX_NAME_SHOWN = 40  # characters of a name in an error text
MIN_CHECKED_LENGTH = 1024  # characters of a text from which on a pass over the whole of it pays
UNCHECKED_SIZE = 16 * 1024  # bytes of a text whose work is not checked: the worst takes 10 ms
MAX_STRINGS = 150_000  # names included
MAX_ESCAPES = 1_500_000  # more than 8 MiB of \uXXXX hold, a text of letters that phones escape
MAX_WORK = 40_000_000  # ns that the rest may take, by the table below: 77,000 names or empty objects, 440,000 digits
_COST = {b"{": 300, b"}": 100, b"[": 50, b"]": 50, b":": 400, b",": 30, b".": 400, b"e": 400, b"E": 400}  # ns each
_BYTE_COST = 30  # ns for each byte between the strings: an integer of 4,300 digits takes 130,000

_BLANK = b" \t\r\n"
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class JsonError(ValueError):
    """The text is no acceptable JSON. The message has the position or the reason, and quotes no value."""


class JsonTooLarge(JsonError):  # noqa: N818 - it may be JSON
    """The text may be JSON, but is longer than permitted, or parsing it would block all other work for too long."""


def loads(data: bytes | str, *, max_bytes: int | None = None, max_depth: int = MAX_DEPTH, ours: bool = False) -> object:
    """Parse one JSON text. `max_bytes` is the limit of its length in UTF-8. Raises `JsonError`.

    With `ours` the text comes from a file or a program of this host, and its work is not limited.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        size = len(text) if text.isascii() else len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise JsonError("a lone surrogate") from None
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start}") from None
    if max_bytes is not None and size > max_bytes:
        raise JsonTooLarge(f"longer than {max_bytes} bytes")
    if size > UNCHECKED_SIZE or (size > max_depth and text.count("{") + ("[" in text and text.count("[")) > max_depth):
        _judge(text.encode("utf-8"), max_depth, ours=ours)
    try:
        try:
            value, end = _scan(text, 0)
        except StopIteration:  # a blank first, or an empty text
            value, end = None, -1
        if end != len(text):  # blanks around it, or an error, for which `decode` has the message
            value = _DECODER.decode(text)
    except JsonError:
        raise
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise JsonError("an integer has too many digits") from None
    except RecursionError:
        raise JsonError("nested too deep") from None
    if "\\" in text and ("\\ud" in text or "\\uD" in text) and not _is_encodable("".join(_encode(value, 0))):
        raise JsonError("a lone surrogate")
    return value


def check_limits(text: str, *, max_bytes: int | None = None) -> None:
    """Raise `JsonError` unless an encodable text is within the limits of `loads`. The text is not parsed."""
    raw = text.encode("utf-8")
    if max_bytes is not None and len(raw) > max_bytes:
        raise JsonTooLarge(f"longer than {max_bytes} bytes")
    _judge(raw, MAX_DEPTH, ours=False)


def loads_trusted(data: bytes | str) -> Any:
    """Parse a text that this program wrote itself, without checks."""
    return json.loads(data)


def dumps(value: object) -> str:
    """Return compact JSON that can be encoded as UTF-8: a text with a lone surrogate is returned as ASCII escapes.

    Raises ValueError for NaN and infinities, TypeError for other types.
    """
    text = "".join(_encode(value, 0))
    if text.isascii() or _is_encodable(text):
        return text
    return _ESCAPED.encode(value)


def quoted(text: str) -> str:
    """Return a text as a JSON string with its quotes, in the form that `dumps` writes."""
    if len(text) < MIN_CHECKED_LENGTH:
        return _quote(text) if text.isascii() else dumps(text)
    try:
        return f'"{escaped(text.encode("utf-8")).decode("utf-8")}"'
    except UnicodeEncodeError:
        return dumps(text)


def escaped(raw: bytes) -> bytes:
    """Return the bytes that `dumps_bytes` writes between the quotes of a text, from its UTF-8."""
    for mark, escape in _ESCAPES:
        raw = raw.replace(mark, escape)
    return raw


def dumps_bytes(value: object) -> bytes:
    """Return compact JSON in UTF-8, for bodies.

    Raises ValueError for NaN and infinities, TypeError for other types.
    """
    text = "".join(_encode(value, 0))
    return text.encode("ascii") if text.isascii() else dumps(value).encode("utf-8")


def encoder(made: json.JSONEncoder) -> Callable[[object], str]:
    """Return a faster `made.encode` for values without cycles: its C encoder is made once, not for each call."""
    write = piecewise_encoder(made)
    return lambda value: "".join(write(value, 0))


def piecewise_encoder(made: json.JSONEncoder) -> Callable[[object, int], Iterable[str]]:
    """Return an encoder to pieces of text, which the caller joins; the second argument has to be 0."""
    make = vars(json.encoder).get("c_make_encoder")  # not every Python has it
    if make is None:
        return lambda value, level: (made.encode(value),)
    quote = json.encoder.encode_basestring_ascii if made.ensure_ascii else json.encoder.encode_basestring
    marks = made.key_separator, made.item_separator
    encode: Callable[[object, int], Iterable[str]]
    encode = make(None, made.default, quote, None, *marks, made.sort_keys, made.skipkeys, made.allow_nan)
    return encode


def canonical(value: object) -> str:
    """Return the canonical text of a value for signatures: sorted names, no blanks, ASCII (wire core 3.4)."""
    return _CANONICAL.encode(value)


def _judge(raw: bytes, max_depth: int, *, ours: bool) -> None:
    """Raise `JsonError` for a text that is nested too deep, or `JsonTooLarge` if parsing it would take too long.

    With `ours` only the depth is checked. The text is scanned in a few passes in C, and may be misread after a syntax
    error.
    """
    if b"\\" in raw:
        if raw.count(b"\\") > MAX_ESCAPES and not ours:
            raise JsonTooLarge(f"more than {MAX_ESCAPES} escapes")
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")  # the remaining quotes delimit strings
    pieces = raw.split(b'"', -1 if ours else 2 * MAX_STRINGS + 1)
    if len(pieces) > 2 * MAX_STRINGS + 1 and not ours:
        raise JsonTooLarge(f"more than {MAX_STRINGS} strings")
    rest = b"".join(pieces[::2]).translate(None, _BLANK)
    if not ours and _work(rest) > MAX_WORK:
        raise JsonTooLarge("too many values")
    brackets = rest.translate(None, _NO_BRACKET)
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > max_depth:
        raise JsonError(f"nested deeper than {max_depth} levels")


def _work(rest: bytes) -> int:
    """Return an estimate in ns of the time to parse `rest`, a JSON text without its strings."""
    work = _BYTE_COST * len(rest)
    if work > MAX_WORK:
        return work
    counted = rest.replace(b"true", b"").replace(b"false", b"")  # whose `e` makes no float of them
    return work + sum(cost * counted.count(mark) for mark, cost in _COST.items())


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
_encode = piecewise_encoder(_BODY)
_quote = json.encoder.encode_basestring
_ESCAPES = [(mark.encode(), dumps_bytes(mark)[1:-1]) for mark in ("\\", '"', *map(chr, range(0x20)))]
_scan: Callable[[str, int], tuple[object, int]] = vars(_DECODER)["scan_once"]
_ESCAPED = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_CANONICAL = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":"))
