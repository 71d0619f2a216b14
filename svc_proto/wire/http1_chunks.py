"""Reader for chunked bodies (RFC 9112 section 7.1), strict.

h11 accepts input that other readers may parse differently: blanks after a chunk size, anything in a chunk extension,
trailers that end in a bare LF, a `Content-Length` among them. Two readers can make two bodies of such bytes, so both
roles refuse it here. The trailers are checked here and parsed by h11, which receives `last_chunk`.

| state   | trigger | next    |
|---------|---------|---------|
| SIZE    | CHUNK   | DATA    | a line with the size of a chunk
| SIZE    | LAST    | TRAILER | the line of the last chunk, whose size is 0
| DATA    | FULL    | CRLF    | all bytes of the chunk have come
| CRLF    | CLOSE   | SIZE    | the end of line after them
| TRAILER | END     | OVER    | the empty line after the trailers
"""

import re
from enum import IntEnum, auto
from functools import lru_cache

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.http1_head import END, check_fields, check_partial_lines
from svc_proto.wire.limits import Limits

__all__ = ["CHUNK_TABLE", "ChunkState", "ChunkTrigger", "ChunkedBodyReader"]

CRLF = b"\r\n"
LARGE = 4096  # bytes of a piece from which on joining it to others costs more than a call
LINE = 7  # bytes of a chunk line that is parsed at once: five digits and an end of line
SIZES = 1024  # cached sizes of such lines
LAST_LINE = b"0\r\n"
HEX = b"0123456789abcdefABCDEF"
BAD_LINE = "a malformed chunk size or extension"
TOO_LONG = "a chunk is longer than its size"
_TOKEN = rb"[-!#$%&'*+.^_`|~0-9A-Za-z]++"
_QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
_EXTENSION = rb"[ \t]*+;[ \t]*+" + _TOKEN + rb"(?:[ \t]*=[ \t]*+(?:" + _TOKEN + rb"|" + _QUOTED + rb"))?"
# 16 digits are 64 bits; RFC 9112 section 7.1: "recipients MUST anticipate potentially large hexadecimal numerals"
# A blank right after the size is "bad whitespace" if a ";" follows, and junk if not. h11 refuses both, and so do we.
_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:(?=;)(?:" + _EXTENSION + rb")+)?")
_DIGITS = re.compile(rb"[0-9A-Fa-f]+")
# Fields that would frame a message if a recipient merged trailers into headers (RFC 9110 section 6.5.1).
_FORBIDDEN = re.compile(rb"\r\n(content-length|transfer-encoding|host|connection|upgrade|te|expect|keep-alive):")


class ChunkState(IntEnum):
    """States of reading a chunked body."""

    SIZE = auto()
    DATA = auto()
    CRLF = auto()
    TRAILER = auto()
    OVER = auto()


class ChunkTrigger(IntEnum):
    """Triggers of the state changes of reading a chunked body."""

    CHUNK = auto()
    LAST = auto()
    FULL = auto()
    CLOSE = auto()
    END = auto()


CHUNK_TABLE: dict[tuple[ChunkState, ChunkTrigger], ChunkState] = {
    (ChunkState.SIZE, ChunkTrigger.CHUNK): ChunkState.DATA,
    (ChunkState.SIZE, ChunkTrigger.LAST): ChunkState.TRAILER,
    (ChunkState.DATA, ChunkTrigger.FULL): ChunkState.CRLF,
    (ChunkState.CRLF, ChunkTrigger.CLOSE): ChunkState.SIZE,
    (ChunkState.TRAILER, ChunkTrigger.END): ChunkState.OVER,
}


class ChunkedBodyReader:
    """Parser of a chunked body, at any cut of the input.

    At most `max_head` bytes are kept of a line or of the trailers. All extensions of a body together may have as many
    (RFC 9112 section 7.1.1). More is refused with status 431.
    """

    __slots__ = ("_chunk_bytes_left", "_extra", "_inbox", "_limits", "_searched", "_state", "begun", "last_chunk")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._inbox = bytearray()
        self._searched = 0  # length of the searched part of the inbox, for the end of a line or of the trailers
        self._state = ChunkState.SIZE
        self._chunk_bytes_left = 0  # bytes of this chunk that are still to come
        self._extra = 0  # bytes of extensions so far
        self.begun = False  # the first line has come
        self.last_chunk = b""  # once `finished`: the last chunk without extensions, and the trailers

    @property
    def finished(self) -> bool:
        """Report whether the body is complete."""
        return self._state is ChunkState.OVER

    @property
    def trailing_data(self) -> bytes:
        """Received bytes that were not parsed; once `finished`, the bytes after the body."""
        return bytes(self._inbox)

    def receive_data(self, data: bytes) -> None:
        """Receive bytes. Parsing is left to `read`."""
        self._inbox += data

    def whole(self, data: bytes) -> bytes | None:
        """Return the content of `data` if it is exactly one plain chunk and no input is pending; else None.

        Nothing is consumed. A plain chunk has a size of up to five digits, not 0, and no extensions.
        """
        line = data.find(CRLF, 0, LINE)
        if self._inbox or self._state is not ChunkState.SIZE or line <= 0 or not data.endswith(CRLF):
            return None
        size, begin = _plain_size(data[:line]), line + len(CRLF)
        return data[begin : begin + size] if size and len(data) == begin + size + len(CRLF) else None

    def read(self) -> bytes:
        """Return the next bytes of the body: small chunks joined, a large one as far as it has arrived.

        Empty when more bytes are needed, and when `finished`. Raises `RemoteProtocolError`, but only after all data
        before the error was returned.
        """
        pieces: list[bytes] = []
        try:
            while self._inbox and not self.finished and self._advance(pieces):
                if pieces and len(pieces[-1]) >= LARGE:
                    break
        except RemoteProtocolError:
            if not pieces:
                raise  # else the next call finds the same error
        return b"".join(pieces)

    def _advance(self, pieces: list[bytes]) -> bool:
        """Parse whole plain chunks, or else the next size line, data so far, line end or trailers.

        Return False if nothing was parsed, because more bytes are needed.
        """
        state = self._state
        if state is ChunkState.DATA:
            self._parse_data(pieces)
            return True
        if state is ChunkState.SIZE:
            return self._parse_fast(pieces) or self._parse_size()
        if state is ChunkState.CRLF:
            return self._parse_crlf()
        return self._parse_trailers()

    def _parse_fast(self, pieces: list[bytes]) -> bool:
        """Parse whole plain chunks in a row; return False, with nothing consumed, if there is none at the start."""
        if self._inbox.find(CRLF, 0, LINE) <= 0:
            return False  # a line that arrives byte by byte is not copied each time
        inbox, at = bytes(self._inbox), 0
        while True:
            line = inbox.find(CRLF, at, at + LINE)
            size = _plain_size(inbox[at:line]) if line > 0 else 0
            begin = line + len(CRLF)
            end = begin + size
            if not size or not inbox.startswith(CRLF, end):
                break
            pieces.append(inbox[begin:end])
            at = end + len(CRLF)
            if size >= LARGE or at == len(inbox):
                break
        if at:
            del self._inbox[:at]
            self._searched = 0
            self.begun = True
        return at > 0

    def _parse_size(self) -> bool:
        inbox = self._inbox
        if inbox[0] not in HEX:
            raise RemoteProtocolError(BAD_LINE)
        end = self._find(CRLF)
        if end == -1:
            return False
        line = _LINE.fullmatch(inbox, 0, end)
        if line is None:
            # A bare CR or LF has the same error as in a partial line.
            check_partial_lines(inbox[: end + len(CRLF)], 0, self._limits)
            raise RemoteProtocolError(BAD_LINE)
        digits = line[1]
        self._extra += end - len(digits)
        if self._extra > self._limits.max_head:
            raise self._too_much()
        self._chunk_bytes_left = int(digits, 16)
        del inbox[: end + len(CRLF)]
        self._step(ChunkTrigger.CHUNK if self._chunk_bytes_left else ChunkTrigger.LAST)
        return True

    def _parse_data(self, pieces: list[bytes]) -> None:
        inbox, left = self._inbox, self._chunk_bytes_left
        if len(inbox) <= left:
            pieces.append(bytes(inbox))
            inbox.clear()
        else:
            with memoryview(inbox) as view:
                pieces.append(bytes(view[:left]))
            del inbox[:left]
        self._chunk_bytes_left -= len(pieces[-1])
        if not self._chunk_bytes_left:
            self._step(ChunkTrigger.FULL)

    def _parse_crlf(self) -> bool:
        inbox = self._inbox
        if not inbox.startswith(CRLF):
            if inbox == b"\r":
                return False
            raise RemoteProtocolError(TOO_LONG)
        del inbox[: len(CRLF)]
        self._step(ChunkTrigger.CLOSE)
        return True

    def _parse_trailers(self) -> bool:
        inbox = self._inbox
        if inbox.startswith(CRLF):
            end = len(CRLF)
        else:
            at = self._find(END)
            if at == -1:
                return False
            end = at + len(END)
        block = LAST_LINE + inbox[:end]
        forbidden = _FORBIDDEN.search(check_fields(block, self._limits))
        if forbidden is not None:
            raise RemoteProtocolError(f"{forbidden[1].decode('ascii')} among the trailers")
        self.last_chunk = block
        del inbox[:end]
        self._step(ChunkTrigger.END)
        return True

    def _find(self, end: bytes) -> int:
        """Return the index of the end of a line or of the trailers; -1 if it has not arrived.

        If it has not, raise `RemoteProtocolError` for a bare CR or LF, or once `max_head` bytes are there without it.
        """
        inbox, limits = self._inbox, self._limits
        at = inbox.find(end, max(0, self._searched - len(end) + 1), limits.max_head)
        if at != -1:
            self._searched = 0
            return at
        if check_partial_lines(inbox, self._searched, limits):
            raise self._too_much()
        self._searched = len(inbox)
        return at

    def _too_much(self) -> RemoteProtocolError:
        what = "trailers" if self._state is ChunkState.TRAILER else "chunk extensions"
        return RemoteProtocolError(f"the {what} have more than {self._limits.max_head} bytes", status=431)

    def _step(self, trigger: ChunkTrigger) -> None:
        self._state = CHUNK_TABLE[self._state, trigger]
        self.begun = True


@lru_cache(maxsize=SIZES)
def _plain_size(digits: bytes) -> int:
    """Return the size of a chunk whose line has only hexadecimal digits; 0 for others and the last chunk."""
    return int(digits, 16) if _DIGITS.fullmatch(digits) else 0
