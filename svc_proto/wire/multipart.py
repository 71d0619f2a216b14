"""Codec for multipart/form-data (RFC 7578 over RFC 2046): reads at any cut of the input, writes whole bodies.

| state    | trigger | next     |
|----------|---------|----------|
| PREAMBLE | PART    | HEAD     | a delimiter; the bytes before it are dropped
| PREAMBLE | CLOSE   | EPILOGUE | a body without parts
| HEAD     | BEGIN   | DATA     | the fields of a part
| DATA     | PART    | HEAD     |
| DATA     | CLOSE   | EPILOGUE | the bytes after the closing delimiter are dropped
| any      | FAIL    | FAILED   |

Names
`filename*` is ignored (RFC 7578 section 4.2). In a quoted name, backslashes stand for themselves except before a quote
or another backslash, and `%22` is a quote, since that is how browsers send one.
"""

import re
from collections.abc import Iterable
from enum import Enum

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.wire.events import Headers

__all__ = [
    "MULTIPART_TABLE",
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
    r";[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:\"((?:[^\"\\]|\\.)*)\"|([^;\" \t]*))[ \t]*)?"
)
_ESCAPED = re.compile(r'\\(["\\])')
_UNSAFE = re.compile(rb"[\x00\r\n]")
_ENCODINGS = (b"7bit", b"8bit", b"binary")


@fast_frozen
class PartBegin:
    """Start of a part of a multipart body. `headers` are all its fields."""

    name: str
    filename: str | None
    content_type: str | None
    headers: Headers


@fast_frozen
class PartData:
    """A piece of the content of a part, never empty."""

    data: bytes


@fast_frozen
class PartEnd:
    """End of a part of a multipart body."""


MultipartEvent = PartBegin | PartData | PartEnd


@fast_frozen(kw_only=True)
class Part:
    """A part of a multipart body, to be written."""

    name: str
    data: bytes
    filename: str | None = None
    content_type: str | None = None


class MultipartState(Enum):
    """States of the decoder."""

    PREAMBLE = "preamble"
    HEAD = "head"
    DATA = "data"
    EPILOGUE = "epilogue"
    FAILED = "failed"


class MultipartTrigger(Enum):
    """Triggers of the state changes of the decoder."""

    PART = "part"
    BEGIN = "begin"
    CLOSE = "close"
    FAIL = "fail"


MULTIPART_TABLE: dict[tuple[MultipartState, MultipartTrigger], MultipartState] = {
    (MultipartState.PREAMBLE, MultipartTrigger.PART): MultipartState.HEAD,
    (MultipartState.PREAMBLE, MultipartTrigger.CLOSE): MultipartState.EPILOGUE,
    (MultipartState.HEAD, MultipartTrigger.BEGIN): MultipartState.DATA,
    (MultipartState.DATA, MultipartTrigger.PART): MultipartState.HEAD,
    (MultipartState.DATA, MultipartTrigger.CLOSE): MultipartState.EPILOGUE,
    **{(state, MultipartTrigger.FAIL): MultipartState.FAILED for state in MultipartState},
}


class MultipartDecoder:
    """Decoder of a multipart body, at any cut of the input.

    Pass bytes to `receive_data`, then call `next_event` until it returns None. `finished` is True after the closing
    delimiter.
    """

    def __init__(self, content_type: bytes | str, *, max_parts: int = MAX_PARTS, max_head: int = MAX_HEAD) -> None:
        """Initialize from the Content-Type of the request.

        Raises `RemoteProtocolError` if it is not multipart/form-data with a valid boundary.
        """
        self._delimiter = b"\r\n--" + _boundary(content_type)
        self._line = re.compile(re.escape(self._delimiter) + rb"(?:(--)|[ \t]{0,%d}\r\n)" % MAX_PADDING)
        self._open = re.compile(re.escape(self._delimiter) + rb"(?:-|[ \t]{0,%d}\r?)\Z" % MAX_PADDING)
        self._max_parts = max_parts
        self._max_head = max_head
        self._state = MultipartState.PREAMBLE
        self._buffer = bytearray(b"\r\n")  # so that a delimiter at the very beginning looks like any other
        self._searched = 0  # length of the searched part of the buffer, for the end of a part's head
        self._parts = 0
        self._eof = False

    @property
    def finished(self) -> bool:
        """Report whether the closing delimiter was found."""
        return self._state is MultipartState.EPILOGUE

    def receive_data(self, data: bytes) -> None:
        """Receive bytes of the body; those after the closing delimiter or an error are dropped."""
        if self._state not in (MultipartState.EPILOGUE, MultipartState.FAILED):
            self._buffer += data

    def receive_eof(self) -> None:
        """Mark the body as complete: without its closing delimiter, `next_event` will raise."""
        self._eof = True

    def next_event(self) -> MultipartEvent | None:
        """Return the next event; None when more bytes are needed, and after the end.

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
            while self._read_content():
                pass
        if self._state is MultipartState.HEAD:
            return self._read_head()
        if self._state is not MultipartState.DATA:
            return None
        data = self._read_content()
        if data is None:
            return PartEnd()
        return PartData(data) if data else None

    def _read_content(self) -> bytes | None:
        """Return bytes that certainly precede the next delimiter; empty when more bytes are needed to decide.

        None at a delimiter, which was consumed and has changed the state.
        """
        buffer = self._buffer
        at = buffer.find(self._delimiter)
        if at == -1:
            return self._cut(len(buffer) - len(self._delimiter) + 1)
        if at > 0:
            return self._cut(at)
        line = self._line.match(buffer)
        if line is not None:
            closing = line[1] is not None
            del buffer[: line.end()]
            self._step(MultipartTrigger.CLOSE if closing else MultipartTrigger.PART)
            return None
        if self._open.match(buffer):
            return b""  # not decided yet
        return self._cut(len(self._delimiter))  # a longer text that begins like the boundary

    def _cut(self, size: int) -> bytes:
        if size <= 0:
            return b""
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _read_head(self) -> MultipartEvent | None:
        at = self._buffer.find(b"\r\n\r\n", max(0, self._searched - 3))
        if max(at, len(self._buffer) if at == -1 else 0) > self._max_head:
            raise RemoteProtocolError(f"multipart: the head of a part has more than {self._max_head} bytes")
        if self._buffer.startswith(b"\r\n"):
            raise RemoteProtocolError("multipart: a part has no Content-Disposition")
        if at == -1:
            self._searched = len(self._buffer)
            return None
        raw = bytes(self._buffer[:at])
        del self._buffer[: at + 4]
        self._searched = 0
        self._parts += 1
        if self._parts > self._max_parts:
            raise RemoteProtocolError(f"multipart: more than {self._max_parts} parts")
        begin = _part_begin(raw)
        self._step(MultipartTrigger.BEGIN)
        return begin

    def _step(self, trigger: MultipartTrigger) -> None:
        self._state = MULTIPART_TABLE[self._state, trigger]
        if self._state in (MultipartState.EPILOGUE, MultipartState.FAILED):
            self._buffer.clear()


def encode_multipart(parts: Iterable[Part], boundary: str) -> bytes:
    """Return a whole multipart body.

    Raises `LocalProtocolError` for a boundary that is malformed or occurs in a part, and for a malformed content type.
    """
    if not _BOUNDARY.fullmatch(boundary):
        raise LocalProtocolError("multipart: the boundary is malformed")
    mark = boundary.encode("ascii")
    pieces: list[bytes] = []
    for part in parts:
        disposition = f'form-data; name="{_quoted(part.name)}"'
        if part.filename is not None:
            disposition += f'; filename="{_quoted(part.filename)}"'
        head = [b"--" + mark, b"content-disposition: " + disposition.encode("utf-8", "replace")]
        if part.content_type is not None:
            if not part.content_type.isprintable():
                raise LocalProtocolError("multipart: the content type is malformed")
            head.append(b"content-type: " + part.content_type.encode("utf-8", "replace"))
        if mark in part.data:
            raise LocalProtocolError("multipart: the boundary occurs in a part")
        pieces.extend((*head, b"", part.data))
    pieces.append(b"--" + mark + b"--\r\n")
    return b"\r\n".join(pieces)


def _quoted(name: str) -> str:
    """Escape a name for quotes as browsers do, but with backslashes doubled, as our decoder expects."""
    name = name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    return name.replace("\x00", "%00")


def _boundary(content_type: bytes | str) -> bytes:
    text = content_type if isinstance(content_type, str) else content_type.decode("latin-1")
    kind, semicolon, rest = text.partition(";")
    if kind.strip().lower() != "multipart/form-data":
        raise RemoteProtocolError("Content-Type is not multipart/form-data")
    boundary = _parameters(semicolon + rest, "Content-Type").get("boundary", "")
    if not _BOUNDARY.fullmatch(boundary):
        raise RemoteProtocolError("Content-Type: the boundary is missing or malformed")
    return boundary.encode("ascii")


def _parameters(text: str, field: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _PARAMETER.match(text, at)
        if match is None:
            raise RemoteProtocolError(f"{field} is malformed")
        at = match.end()
        if match[1] is None:
            continue
        name = match[1].lower()
        if name in parameters:
            raise RemoteProtocolError(f"{field}: a parameter is given twice")
        parameters[name] = _ESCAPED.sub(r"\1", match[2]) if match[2] is not None else match[3]
    return parameters


def _part_begin(raw: bytes) -> PartBegin:
    fields: list[tuple[bytes, bytes]] = []
    for line in raw.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name.decode("latin-1")) or _UNSAFE.search(value):
            raise RemoteProtocolError("multipart: a field of a part is malformed")
        fields.append((name.lower(), value.strip(b" \t")))
    headers = Headers(fields)
    if not all(value.lower() in _ENCODINGS for value in headers.all(b"content-transfer-encoding")):
        raise RemoteProtocolError("multipart: Content-Transfer-Encoding is not used over HTTP")
    disposition = headers.all(b"content-disposition")
    kind, semicolon, rest = b"".join(disposition).decode("utf-8", "replace").partition(";")
    if len(disposition) != 1 or kind.strip().lower() != "form-data":
        raise RemoteProtocolError("multipart: a part has no Content-Disposition: form-data")
    parameters = _parameters(semicolon + rest, "Content-Disposition")
    if "name" not in parameters:
        raise RemoteProtocolError("multipart: a part has no name")
    filename = parameters.get("filename")
    content_type = headers.get(b"content-type")
    return PartBegin(
        parameters["name"].replace("%22", '"'),
        None if filename is None else filename.replace("%22", '"'),
        None if content_type is None else content_type.decode("latin-1"),
        headers,
    )
