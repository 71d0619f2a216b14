"""Log records of a core on the standard library's loggers, as text or JSON, one line each beside tracebacks.

Text: `2026-01-31T12:00:00.000Z INFO svc.relay pairing.registered ttl=600 name="My phone"`.
JSON: the same as one object.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO

from svc_proto.commands import Log
from svc_proto.schema import coercion

__all__ = ["JsonFormatter", "LogMessage", "LogWriter", "TextFormatter", "relay_log_line", "setup_logging"]

_PLAIN = re.compile(r"[!#-<>-~]+")  # printable ASCII without space, quote and equals sign


class LogMessage:
    """An event and its fields; formatted only when a handler needs the text."""

    __slots__ = ("event", "fields")

    def __init__(self, event: str, fields: Mapping[str, object]) -> None:
        self.event = event
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.event, *(f"{key}={_value(value)}" for key, value in self.fields.items())])


class ForeignLogLine(str):
    """A log line of another process, written unchanged."""

    __slots__ = ()


class LogWriter:
    """Writer of a core's and its runtime's log records to one logger."""

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger

    def write(self, command: Log) -> None:
        """Write the record of a `Log` command, if its level is enabled."""
        if self.logger.isEnabledFor(command.level):
            self.logger.log(command.level, LogMessage(command.event, command.fields))

    def log(self, level: int, event: str, **fields: object) -> None:
        """Log an event of the runtime itself."""
        if self.logger.isEnabledFor(level):
            self.logger.log(level, LogMessage(event, fields))

    def bug(self, event: str, error: BaseException) -> None:
        """Log an unexpected exception with its traceback."""
        self.logger.error(LogMessage(event, {"error": type(error).__name__}), exc_info=error)


class TextFormatter(logging.Formatter):
    """Formatter to a line of text: ISO time in UTC, level, logger, event, and `key=value` pairs.

    Values with other than plain characters are quoted as in JSON. A `ForeignLogLine` is not changed.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line; a traceback follows on lines of its own."""
        if isinstance(record.msg, ForeignLogLine):
            return record.msg
        line = f"{_time(record)} {record.levelname} {record.name} {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """Formatter to one JSON object on a line: `time`, `level`, `logger`, `event`, and the fields beside them.

    A `ForeignLogLine` is not changed.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line; a traceback is in the member `traceback`."""
        if isinstance(record.msg, ForeignLogLine):
            return record.msg
        message = record.msg
        event, fields = (
            (message.event, message.fields) if isinstance(message, LogMessage) else (record.getMessage(), {})
        )
        known = {"time": _time(record), "level": record.levelname, "logger": record.name, "event": event}
        entry: dict[str, object] = {**known, **fields, **known}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


def setup_logging(
    level: int | str, *, as_json: bool = False, stream: TextIO | None = None, name: str = "svc"
) -> logging.Logger:
    """Set one handler to `stream` (standard error if None) and a level on the logger `name`; return the logger."""
    logger = logging.getLogger(name)
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
    return logger


def relay_log_line(logger: logging.Logger, line: str) -> None:
    """Write another process's log line regardless of its level, because that process has filtered already."""
    logger.handle(logger.makeRecord(logger.name, logging.INFO, "", 0, ForeignLogLine(line), (), None))


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _value(value: object) -> str:
    text = "null" if value is None else coercion.coerce_text(value, flags=True) or str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
