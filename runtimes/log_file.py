"""The log of a process that runs servers, kept in the service home beside what goes to standard error.

A file of 1 MiB and two older ones, mode 0600: who started the servers may have no journal.
"""

from __future__ import annotations

import contextlib
import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from runtimes.folders import private_folder

__all__ = ["LOG_FOLDER", "keep_log", "log_files"]

LOG_FOLDER = "log"
LARGEST = 1024 * 1024  # bytes of one file
OLDER = 2  # files beside the newest


def keep_log(logger: logging.Logger, home: Path, name: str) -> logging.Handler | None:
    """Have the logger write to a file, too, in the form that it has; None where none can be written."""
    try:
        handler = _PrivateFile(
            private_folder(home / LOG_FOLDER) / f"{name}.log", maxBytes=LARGEST, backupCount=OLDER, encoding="utf-8"
        )
    except OSError:
        return None
    if logger.handlers:
        handler.setFormatter(logger.handlers[0].formatter)
    logger.addHandler(handler)
    return handler


def log_files(home: Path) -> list[Path]:
    """The newest log of each kind of process."""
    return sorted((home / LOG_FOLDER).glob("*.log"))


class _PrivateFile(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        file = open(  # noqa: SIM115 - it stays open
            self.baseFilename, self.mode, encoding=self.encoding, opener=lambda path, flags: os.open(path, flags, 0o600)
        )
        assert isinstance(file, TextIOWrapper)
        return file

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name of logging
        """A full disk: standard error has the record, and a complaint for each would be noise."""
