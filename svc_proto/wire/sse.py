"""Server-sent events (WHATWG HTML, section 9.2): encoder for servers, incremental decoder for clients."""

import re
from codecs import getincrementaldecoder
from typing import NamedTuple

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError

__all__ = ["MAX_LINE", "EventStreamDecoder", "ServerSentEvent", "encode_comment", "encode_event", "encode_retry"]

MAX_LINE = 1024 * 1024  # characters of one line: RemoteProtocolError
MAX_EVENT = 8 * 1024 * 1024  # characters of the data of one event: RemoteProtocolError
_LINE_END = re.compile("\r\n|\r|\n")
_DIGITS = re.compile("[0-9]+")
PLAIN = "data: "  # usual start of a data line
FROM = len(PLAIN)
MAX_RETRY_DIGITS = 15  # longer ones are no usable time, and cost time to convert


class ServerSentEvent(NamedTuple):
    """A dispatched event. `id` is the last event id of the stream so far, `retry` the last one received, in ms."""

    data: str
    event: str = "message"
    id: str = ""
    retry: int | None = None


def encode_event(data: str, *, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:  # noqa: A002 - the field's name
    """Encode a server-sent event. `data` may have several lines; `retry` is in milliseconds.

    Raises `LocalProtocolError` for a line end or NUL in `event` or `id`, which a reader would parse differently.
    """
    lines: list[str] = []
    for name, value in (("event", event), ("id", id)):
        if value is not None:
            if "\n" in value or "\r" in value or "\x00" in value:
                raise LocalProtocolError(f"server-sent events: {name} has a line end or NUL")
            lines.append(f"{name}: {value}")
    if retry is not None:
        lines.append(f"retry: {retry}")
    lines.extend(f"data: {line}" for line in _LINE_END.split(data))
    return _encoded(lines)


def encode_comment(text: str) -> bytes:
    """Encode a comment, which readers drop; it keeps a connection alive."""
    return _encoded([f": {line}" for line in _LINE_END.split(text)])


def encode_retry(milliseconds: int) -> bytes:
    """Encode the time after which a reader reconnects, without an event."""
    return _encoded([f"retry: {milliseconds}"])


def _encoded(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n\n").encode("utf-8", "replace")


class EventStreamDecoder:
    """Decoder of an event stream, at any cut of the input. An event that the end of the stream cuts off is dropped."""

    def __init__(self, *, max_line: int = MAX_LINE, max_event: int = MAX_EVENT) -> None:
        self._max_line = max_line
        self._max_event = max_event
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._begun = False  # the first character, which may be a byte order mark, was received
        self._after_cr = False  # the text so far ended with CR: a LF that follows belongs to it
        self._line: list[str] = []  # the pieces of an incomplete line
        self._line_size = 0
        self._data: list[str] = []
        self._data_size = 0
        self._event = ""
        self._id = ""
        self.last_event_id = ""  # the `Last-Event-ID` that a client sends when it reconnects
        self.retry: int | None = None  # ms before a reconnection, if the server has sent a delay

    @property
    def is_between_events(self) -> bool:
        """Report whether the last byte ended an event or a line outside of events.

        False before the first text, which may be a byte order mark, and after a CR, since an LF may belong to it.
        """
        begun = self._line or self._data or self._event or self._id != self.last_event_id or not self._begun
        return not (begun or self._after_cr or self._decoder.getstate()[0])

    def receive_data(self, data: bytes) -> list[ServerSentEvent]:
        """Receive bytes; return the events that they complete.

        Raise `RemoteProtocolError` at a limit; the events of these bytes are lost then.
        """
        text = self._decoder.decode(data)
        if text and not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        if text and self._after_cr:
            self._after_cr = False
            text = text.removeprefix("\n")
        if self._line and ("\n" in text or "\r" in text):  # a line that is complete now becomes one piece again
            text = "".join((*self._line, text))
            self._line.clear()
            self._line_size = 0
        events: list[ServerSentEvent] = []
        if self._data and not self._line and text.startswith("\n"):  # the input was cut between the two line ends
            events.append(self._dispatch())
            text = text[1:]
        if text.startswith(PLAIN) and "\r" not in text:
            text = self._parse_fast(text, events)
        if not text:
            return events
        self._after_cr = text.endswith("\r")
        *complete, rest = _LINE_END.split(text) if "\r" in text else text.split("\n")
        for line in complete:
            self._parse_line(line, events)
        if rest:
            self._line_size += len(rest)
            self._check(self._line_size)
            self._line.append(rest)
        return events

    def _parse_fast(self, text: str, events: list[ServerSentEvent]) -> str:
        """Parse leading events that consist of one data line, the usual form, and return the rest of the text."""
        if self._line or self._data or self._event or self._id != self.last_event_id:
            return text
        most = min(self._max_line, self._max_event)
        blocks = text.split("\n\n")
        rest, last, retry, before = blocks.pop(), self.last_event_id, self.retry, len(events)
        for block in blocks:
            if len(block) > most or not block.startswith(PLAIN) or "\n" in block:
                break
            events.append(ServerSentEvent(block[FROM:], "message", last, retry))
        else:
            return rest
        return "\n\n".join((*blocks[len(events) - before :], rest))

    def _check(self, size: int) -> None:
        if size > self._max_line:
            raise RemoteProtocolError(f"server-sent events: a line of more than {self._max_line} characters")

    def _parse_line(self, line: str, events: list[ServerSentEvent]) -> None:
        self._check(len(line))
        if line:
            self._parse_field(line)
        elif self._data:
            events.append(self._dispatch())
        else:
            self._forget()

    def _parse_field(self, line: str) -> None:
        field, _, value = line.partition(":")  # a comment is a line whose field is empty
        value = value.removeprefix(" ")
        if field == "data":
            self._data_size += len(value) + 1
            if self._data_size > self._max_event:
                raise RemoteProtocolError(f"server-sent events: more than {self._max_event} characters of data")
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\x00" not in value:
            self._id = value
        elif field == "retry" and len(value) <= MAX_RETRY_DIGITS and _DIGITS.fullmatch(value):
            self.retry = int(value)

    def _dispatch(self) -> ServerSentEvent:
        data, kind = self._data, self._event
        self._data = []
        self._forget()
        text = data[0] if len(data) == 1 else "\n".join(data)
        return ServerSentEvent(text, kind or "message", self.last_event_id, self.retry)

    def _forget(self) -> None:
        """End an event, even without data: its id becomes the last one, its name and size are reset."""
        self._data_size = 0
        self._event = ""
        self.last_event_id = self._id
