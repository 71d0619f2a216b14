"""multipart/form-data (RFC 7578 over RFC 2046): read incrementally, cut anywhere; written whole.

| state    | trigger | next     |
|----------|---------|----------|
| PREAMBLE | PART    | HEAD     | a delimiter; what came before it is dropped
| PREAMBLE | CLOSE   | EPILOGUE | a body without parts
| HEAD     | BEGIN   | DATA     | the fields of a part
| DATA     | PART    | HEAD     |
| DATA     | CLOSE   | EPILOGUE | what comes after the closing delimiter is dropped
| any      | FAIL    | FAILED   |

Names
  `filename*` is ignored (RFC 7578 section 4.2). In a quoted name, backslashes stand for themselves except before a
  quote or another backslash, and `%22` is a quote, since that is how browsers send one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from attrs import frozen

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.events import Headers

__all__ = [
    "LIFE",
    "MultipartDecoder",
    "MultipartEvent",
    "MultipartState",
    "MultipartTrigger",
    "Part",
    "PartBegin",
    "PartData",
    "PartEnd",
    "encode_multipart",
]

MAX_HEAD = 8 * 1024  # bytes of the fields of one part: RemoteProtocolError
MAX_PARTS = 100  # RemoteProtocolError
MAX_PADDING = 64  # blanks after a delimiter
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")  # RFC 2046 section 5.1.1
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PARAMETER = re.compile(
    r";[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:\"((?:[^\"\\]|\\.)*+)\"|([^;\" \t]*))[ \t]*)?"
)
_ESCAPED = re.compile(r'\\(["\\])')
_ENCODINGS = (b"7bit", b"8bit", b"binary")


@frozen
class PartBegin:
    """A part begins. `headers` are all its fields."""

    name: str
    filename: str | None
    content_type: str | None
    headers: Headers


@frozen
class PartData:
    """A piece of the part's content, never empty."""

    data: bytes


@frozen
class PartEnd:
    """The part is complete."""


MultipartEvent = PartBegin | PartData | PartEnd


@frozen(kw_only=True)
class Part:
    """A part to be written."""

    name: str
    data: bytes
    filename: str | None = None
    content_type: str | None = None


class MultipartState(Enum):
    """Where the decoder is."""

    PREAMBLE = "preamble"
    HEAD = "head"
    DATA = "data"
    EPILOGUE = "epilogue"
    FAILED = "failed"


class MultipartTrigger(Enum):
    """What moves it."""

    PART = "part"
    BEGIN = "begin"
    CLOSE = "close"
    FAIL = "fail"


LIFE: dict[tuple[MultipartState, MultipartTrigger], MultipartState] = {
    (MultipartState.PREAMBLE, MultipartTrigger.PART): MultipartState.HEAD,
    (MultipartState.PREAMBLE, MultipartTrigger.CLOSE): MultipartState.EPILOGUE,
    (MultipartState.HEAD, MultipartTrigger.BEGIN): MultipartState.DATA,
    (MultipartState.DATA, MultipartTrigger.PART): MultipartState.HEAD,
    (MultipartState.DATA, MultipartTrigger.CLOSE): MultipartState.EPILOGUE,
    **{(state, MultipartTrigger.FAIL): MultipartState.FAILED for state in MultipartState},
}


class MultipartDecoder:
    """One body. Feed bytes, then take events until None; `finished` tells whether the closing delimiter was seen."""

    def __init__(
        self, content_type: bytes | str, *, max_parts: int = MAX_PARTS, max_head: int = MAX_HEAD
    ) -> None:
        """`content_type` is the field of the request. Raises `RemoteProtocolError` if it is not for this decoder."""
        self._delimiter = b"\r\n--" + _boundary(content_type)
        self._line = re.compile(re.escape(self._delimiter) + rb"(?:(--)|[ \t]{0,%d}\r\n)" % MAX_PADDING)
        self._open = re.compile(re.escape(self._delimiter) + rb"(?:-|[ \t]{0,%d}\r?)\Z" % MAX_PADDING)
        self._max_parts = max_parts
        self._max_head = max_head
        self._state = MultipartState.PREAMBLE
        self._buffer = bytearray(b"\r\n")  # so that a delimiter at the very beginning looks like any other
        self._searched = 0  # of the buffer, for the end of a part's head
        self._parts = 0
        self._ended = False  # a PartEnd was told for the part before the current delimiter
        self._eof = False

    @property
    def finished(self) -> bool:
        """The closing delimiter was seen."""
        return self._state is MultipartState.EPILOGUE

    def receive_data(self, data: bytes) -> None:
        """Take bytes of the body."""
        if self._state not in (MultipartState.EPILOGUE, MultipartState.FAILED):
            self._buffer += data

    def receive_eof(self) -> None:
        """The body is complete: if the closing delimiter is not in it, `next_event` will raise."""
        self._eof = True

    def next_event(self) -> MultipartEvent | None:
        """The next event; None when more bytes are needed, and after the end.

        Raises `RemoteProtocolError` once for a malformed body; after that it returns None.
        """
        try:
            event = self._advance()
        except RemoteProtocolError:
            self._step(MultipartTrigger.FAIL)
            raise
        if event is None and self._eof and self._state not in (MultipartState.EPILOGUE, MultipartState.FAILED):
            self._step(MultipartTrigger.FAIL)
            raise RemoteProtocolError("multipart: the body ends before its closing delimiter")
        return event

    def _advance(self) -> MultipartEvent | None:
        if self._state is MultipartState.PREAMBLE:
            while self._take_content():
                pass
        if self._state is MultipartState.HEAD:
            return self._take_head()
        if self._state is not MultipartState.DATA:
            return None
        data = self._take_content()
        if data:
            return PartData(data)
        # `_take_content` steps past the delimiter only when all the data before it was taken.
        return None if self._state is MultipartState.DATA else PartEnd()

    def _take_content(self) -> bytes:
        """What certainly comes before the next delimiter; with nothing before it, the delimiter itself is taken."""
        buffer = self._buffer
        at = buffer.find(self._delimiter)
        if at < 0:
            return self._cut(len(buffer) - len(self._delimiter) + 1)
        if at > 0:
            return self._cut(at)
        line = self._line.match(buffer)
        if line is not None:
            closing = line[1] is not None
            del buffer[: line.end()]
            self._step(MultipartTrigger.CLOSE if closing else MultipartTrigger.PART)
            return b""
        if self._open.match(buffer):
            return b""  # not decided yet
        return self._cut(len(self._delimiter))  # a longer word that begins like the boundary

    def _cut(self, size: int) -> bytes:
        if size <= 0:
            return b""
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _take_head(self) -> MultipartEvent | None:
        at = self._buffer.find(b"\r\n\r\n", max(0, self._searched - 3))
        if max(at, len(self._buffer) if at < 0 else 0) > self._max_head:
            raise RemoteProtocolError(f"multipart: the head of a part has more than {self._max_head} bytes")
        if self._buffer.startswith(b"\r\n"):
            raise RemoteProtocolError("multipart: a part has no Content-Disposition")
        if at < 0:
            self._searched = len(self._buffer)
            return None
        raw = bytes(self._buffer[:at])
        # The CRLF that ends the head stays: it begins the delimiter of a part without content.
        del self._buffer[: at + 2]
        self._searched = 0
        self._parts += 1
        if self._parts > self._max_parts:
            raise RemoteProtocolError(f"multipart: more than {self._max_parts} parts")
        begin = _part_begin(raw)
        self._step(MultipartTrigger.BEGIN)
        return begin

    def _step(self, trigger: MultipartTrigger) -> None:
        self._state = LIFE[self._state, trigger]
        if self._state in (MultipartState.EPILOGUE, MultipartState.FAILED):
            self._buffer.clear()
