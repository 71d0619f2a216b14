"""RESP3, the protocol of Redis and Valkey, in both directions: bytes to values, and values to bytes.

https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md

| on the wire                        | here                                                             |
|------------------------------------|------------------------------------------------------------------|
| `+` `$` `=` strings                | `bytes`; of a verbatim string without the three letters and colon |
| `:` `(` integers, `,` doubles      | `int`, `float`                                                   |
| `#` booleans, `_` `$-1` `*-1` null | `bool`, `None`                                                   |
| `*` arrays, `~` sets               | `list`                                                           |
| `%` maps                           | `dict`; a key that is itself a collection is refused             |
| `>` pushes                         | `Push`: an unsolicited message                                   |
| `-` `!` errors                     | `RespError`: a value, since the connection stays usable          |
| `|` attributes                     | read and dropped                                                 |

A command is an array of bulk strings, so a server uses the same reader. No memory is reserved for announced lengths: an
array of four thousand million elements costs only its received part. Streamed strings and collections are refused, as
are inline commands; the supported servers do not send them.
"""

import re
from collections.abc import Iterable, Mapping
from math import inf, nan
from typing import TypeAlias

from attrs import frozen

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError

__all__ = [
    "MAX_DEPTH",
    "MAX_LINE",
    "MAX_VALUE",
    "Argument",
    "Push",
    "RespError",
    "RespReader",
    "encode_command",
    "encode_reply",
]

MAX_DEPTH = 8  # nested collections; deeper: refused
MAX_VALUE = 32 * 1024 * 1024  # bytes of one whole value; more: refused
MAX_LINE = 64 * 1024  # bytes of a line, whose length is not announced: refused
MAX_DIGITS = 20  # of a length or an integer with its sign; a big number has a line
EMPTY = 16  # minimum number of bytes that a value counts for: about its memory here

Argument: TypeAlias = "bytes | str | int"

_WHOLE = re.compile(rb"[+-]?[0-9]{1,19}")
_BIG = re.compile(rb"[+-]?[0-9]{1,4000}")
_DOUBLE = re.compile(rb"[+-]?[0-9]{1,400}(?:\.[0-9]{0,400})?(?:[eE][+-]?[0-9]{1,4})?")
_NAMED = {b"inf": inf, b"+inf": inf, b"-inf": -inf, b"nan": nan}
_COLLECTIONS = {b"*"[0]: 1, b"~"[0]: 1, b">"[0]: 1, b"%"[0]: 2, b"|"[0]: 2}  # and values for each element
_COUNTED = b"$!="
_SINGLE = b"+-:(,#_"


@frozen
class RespError:
    """Refusal of a command. `code` is the first word, `ERR`, `NOAUTH`, `WRONGTYPE`, …; it holds no secret."""

    code: str
    message: str


class Push(list[object]):
    """An unsolicited value, mostly a message of a subscription."""


class _OpenCollection:
    """A collection of which more is to come."""

    __slots__ = ("items", "kind", "left")

    def __init__(self, kind: int, left: int) -> None:
        self.kind = kind
        self.left = left
        self.items: list[object] = []


class RespReader:
    """Parser of RESP values at any cut of the input. After a `RemoteProtocolError` it is unusable."""

    def __init__(self, *, max_value: int = MAX_VALUE) -> None:
        self._max_value = max_value
        self._buffer = bytearray()
        self._position = 0  # index of the first unread byte of the buffer
        self._scanned_to = 0  # index up to which there is no end of a line
        self._size = 0  # of the value that is being read, without the bytes in the buffer
        self._counted: tuple[int, int] | None = None  # kind and length of the string in progress
        self._open: list[_OpenCollection] = []

    @property
    def is_idle(self) -> bool:
        """Report whether no value has begun."""
        return not (self._buffer or self._open or self._counted)

    def feed(self, data: bytes) -> list[object]:
        """Receive bytes and return the values that are complete now. Raises `RemoteProtocolError`, without them."""
        self._buffer += data
        found: list[object] = []
        while (step := self._step()) is not None:
            if step and self._close(step[0], found):
                self._size = 0
        if self._position:
            del self._buffer[: self._position]
            self._scanned_to -= self._position
            self._position = 0
        if self._size + len(self._buffer) > self._max_value:
            raise RemoteProtocolError("a value is too long")
        return found

    def _step(self) -> tuple[object, ...] | None:
        """Read on; return a complete value in a tuple, `()` if the value has more parts, None without enough bytes."""
        if self._counted is None:
            line = self._line()
            return None if line is None else self._begin(line)
        kind, length = self._counted
        end = self._position + length
        if len(self._buffer) < end + 2:
            return None
        if self._buffer[end : end + 2] != b"\r\n":
            raise RemoteProtocolError("a string is longer than it was said to be")
        text = bytes(self._buffer[self._position : end])
        self._position = self._scanned_to = end + 2
        self._weigh(length)
        self._counted = None
        return (_string(kind, text),)

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", max(self._scanned_to, self._position))
        if (len(self._buffer) if end < 0 else end) - self._position > MAX_LINE:
            raise RemoteProtocolError("a line is too long")
        if end < 0:
            self._scanned_to = max(len(self._buffer) - 1, self._position)
            return None
        line = bytes(self._buffer[self._position : end])
        self._position = self._scanned_to = end + 2
        self._weigh(len(line))
        return line

    def _weigh(self, length: int) -> None:
        self._size += max(length, EMPTY)
        if self._size > self._max_value:
            raise RemoteProtocolError("a value is too long")

    def _begin(self, line: bytes) -> tuple[object, ...]:
        if not line:
            raise RemoteProtocolError("an empty line where a value was to come")
        kind, rest = line[0], line[1:]
        if kind in _SINGLE:
            return (_single(kind, rest),)
        each = _COLLECTIONS.get(kind)
        if each is None and kind not in _COUNTED:
            raise RemoteProtocolError("a value of no known type")
        if rest == b"-1" and kind in b"*$":
            return (None,)
        if not rest.isdigit() or len(rest) > MAX_DIGITS:
            raise RemoteProtocolError("a length that is none")
        length = int(rest)
        if each is None:
            if length > self._max_value:
                raise RemoteProtocolError("a value is too long")
            self._counted = kind, length
            return ()
        if len(self._open) >= MAX_DEPTH:
            raise RemoteProtocolError("collections are nested too deep")
        if kind == b">"[0] and self._open:
            raise RemoteProtocolError("a push inside of a value")
        self._open.append(_OpenCollection(kind, length * each))
        return () if length else self._shut()

    def _shut(self) -> tuple[object, ...]:
        """End the innermost collection; return it in a tuple, or `()` for an attribute, which is dropped."""
        made = self._open.pop()
        items = made.items
        match chr(made.kind):
            case "|":
                return ()
            case ">":
                return (Push(items),)
            case "%":
                return (_mapped(items),)
            case _:
                return (items,)

    def _close(self, value: object, found: list[object]) -> bool:
        """Add a value to the open collection, or to `found` if none is open; return True for the latter."""
        while self._open:
            into = self._open[-1]
            into.items.append(value)
            into.left -= 1
            if into.left:
                return False
            shut = self._shut()
            if not shut:
                return False
            value = shut[0]
        found.append(value)
        return True


def encode_command(*arguments: Argument) -> bytes:
    """Return the bytes of a command: an array of bulk strings."""
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        data = argument if isinstance(argument, bytes) else str(argument).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


def encode_reply(value: object) -> bytes:
    """Return the bytes of a value as a server sends it. A `str` is a simple string, `bytes` are a bulk string.

    Raise `LocalProtocolError` for a value of another type, and for a line end in a simple string or an error.
    """
    match value:
        case None:
            return b"_\r\n"
        case bool():
            return b"#t\r\n" if value else b"#f\r\n"
        case int():
            return b":%d\r\n" % value
        case float():
            return b",%b\r\n" % repr(value).encode()
        case str():
            return b"+%b\r\n" % _in_line(value)
        case bytes():
            return b"$%d\r\n%b\r\n" % (len(value), value)
        case RespError():
            return b"-%b\r\n" % _in_line(f"{value.code} {value.message}")
        case Mapping():
            return b"%%%d\r\n" % len(value) + _joined(part for pair in value.items() for part in pair)
        case Push():
            return b">%d\r\n" % len(value) + _joined(value)
        case list() | tuple():
            return b"*%d\r\n" % len(value) + _joined(value)
        case _:
            raise LocalProtocolError(f"RESP has nothing for a {type(value).__name__}")


def _joined(values: Iterable[object]) -> bytes:
    return b"".join(map(encode_reply, values))


def _in_line(text: str) -> bytes:
    data = text.encode()
    if b"\r" in data or b"\n" in data:
        raise LocalProtocolError("a line within a line")
    return data


def _single(kind: int, rest: bytes) -> object:
    match chr(kind):
        case "+":
            return rest
        case "-":
            return _error(rest)
        case ":" if _WHOLE.fullmatch(rest):
            return int(rest)
        case "(" if _BIG.fullmatch(rest):
            return int(rest)
        case "," if rest.lower() in _NAMED:
            return _NAMED[rest.lower()]
        case "," if _DOUBLE.fullmatch(rest):
            return float(rest)
        case "#" if rest in (b"t", b"f"):
            return rest == b"t"
        case "_" if not rest:
            return None
        case _:
            raise RemoteProtocolError("a value that is not of its type")


def _string(kind: int, text: bytes) -> object:
    match chr(kind):
        case "!":
            return _error(text)
        case "=":
            if text[3:4] != b":":
                raise RemoteProtocolError("a verbatim string without its format")
            return text[4:]
        case _:
            return text


def _error(text: bytes) -> RespError:
    code, _, message = text.decode("utf-8", "replace").partition(" ")
    return RespError(code, message)


def _mapped(items: list[object]) -> dict[object, object]:
    keys = items[::2]
    if any(isinstance(key, list | dict) for key in keys):
        raise RemoteProtocolError("a map with a collection as a key")
    return dict(zip(keys, items[1::2], strict=True))
