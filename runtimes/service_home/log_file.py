"""Log file of a process that runs servers, in the service home, in addition to standard error.

A file of 1 MiB and two older ones, mode 0600, for hosts without a journal. SIGUSR1 means that another program has moved
the file: the next record begins a new one.
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
    """Add a log file to a logger, in the format of the logger's first handler; return the new handler.

    Return None where the file cannot be opened. On the main thread, SIGUSR1 reopens the file from now on.
    """
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
    """Return the paths of the newest log files of a home, one for each kind of process, sorted."""
    return sorted((home / LOG_FOLDER).glob("*.log"))


class _PrivateFile(RotatingFileHandler):
    _moved = False
    _before: signal._HANDLER = None  # previous handler of SIGUSR1; None: not replaced

    def heed(self) -> None:
        """Reopen the file at each later SIGUSR1, which no longer ends the process; on other threads do nothing."""
        with contextlib.suppress(ValueError):  # only the main thread has signals
            self._before = signal.signal(signal.SIGUSR1, self._put_aside)

    def _put_aside(self, number: int, frame: FrameType | None) -> None:
        self._moved = True  # only a mark: a record may be half written

    def emit(self, record: logging.LogRecord) -> None:
        if self._moved:
            # `super().emit` opens a new stream where there is none
            self._moved, stream, self.stream = False, self.stream, None
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
        """Ignore write errors such as a full disk: standard error has the record already."""
