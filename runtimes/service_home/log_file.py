"""The log of a process that runs servers, kept in the service home beside what goes to standard error.

A file of 1 MiB and two older ones, mode 0600: who started the servers may have no journal. SIGUSR1 says that somebody
else has put the file aside: the next record begins a new one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType

from runtimes.files.private_files import ensure_private_folder

__all__ = ["LOG_FOLDER", "add_log_file", "log_files"]

LOG_FOLDER = "log"
MAX_LOG_BYTES = 1024 * 1024  # bytes of one file
OLDER = 2  # files beside the newest


def add_log_file(logger: logging.Logger, home: Path, name: str) -> logging.Handler | None:
    """Have the logger write to a file, too, in the form that it has; None where none can be written."""
    try:
        handler = _PrivateFile(
            ensure_private_folder(home / LOG_FOLDER) / f"{name}.log",
            maxBytes=MAX_LOG_BYTES,
            backupCount=OLDER,
            encoding="utf-8",
        )
    except OSError:
        return None
    handler.heed()
    if logger.handlers:
        handler.setFormatter(logger.handlers[0].formatter)
    logger.addHandler(handler)
    return handler


def log_files(home: Path) -> list[Path]:
    """The newest log of each kind of process."""
    return sorted((home / LOG_FOLDER).glob("*.log"))


class _PrivateFile(RotatingFileHandler):
    _moved = False
    _before: signal._HANDLER = None  # what SIGUSR1 did; None: it is not ours

    def heed(self) -> None:
        """From now on SIGUSR1 means what it means to a web server, and ends no process."""
        with contextlib.suppress(ValueError):  # only the main thread has signals
            self._before = signal.signal(signal.SIGUSR1, self._put_aside)

    def _put_aside(self, number: int, frame: FrameType | None) -> None:
        self._moved = True  # no more: a record may be half written

    def emit(self, record: logging.LogRecord) -> None:
        if self._moved:
            self._moved, stream, self.stream = False, self.stream, None  # one is opened where there is none
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        super().emit(record)

    def _open(self) -> TextIOWrapper:
        file = open(  # noqa: SIM115 - it stays open
            self.baseFilename, self.mode, encoding=self.encoding, opener=lambda path, flags: os.open(path, flags, 0o600)
        )
        assert isinstance(file, TextIOWrapper)
        return file

    def close(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGUSR1, self._before)
            self._before = None
        with contextlib.suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of logging
        """A full disk: standard error has the record, and a complaint for each would be noise."""
