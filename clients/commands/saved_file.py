"""Output file of a command; a new file gets its name only when complete."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from clients.commands.cli import error_reason
from runtimes.files.private_files import publish_new_file, temporary_name
from svc_proto.cli.errors import CliError

if TYPE_CHECKING:
    from svc_proto.commands import Notify

__all__ = ["SavedFile"]


class SavedFile:
    """Writer of a received file to a path, or to standard output for `-`; it never replaces a file unless `force`.

    Each `Notify("piece", {"data", "name"})` has a piece. Call `finish` after the last one, and `abandon` in any case.
    """

    def __init__(self, output: str | None, *, force: bool) -> None:
        self._output = output
        self._force = force
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._temporary = ExitStack()
        self._part: Path | None = None
        self._problem: OSError | None = None

    def on_notify(self, news: Notify) -> None:
        """Write a piece; other notifications are ignored, and all after an `OSError`, which `finish` reports."""
        data = news.fields.get("data")
        if news.event != "piece" or self._problem is not None or not isinstance(data, bytes):
            return
        try:
            if self._file is None:
                self._file = self._open(str(news.fields["name"]))
            self._file.write(data)
        except OSError as error:
            self._problem = error

    def finish(self) -> str | None:
        """Complete the file; return its path, or None for standard output or without a piece. Raises `CliError`."""
        file = self._file
        try:
            if self._problem is not None:
                raise self._problem
            if file is not None:
                file.flush()
            if self._path is None or file is None:
                return None
            file.close()
            if self._part is None:
                return str(self._path)
            if self._force:
                os.replace(self._part, self._path)
            else:
                publish_new_file(self._part, self._path)
        except FileExistsError:
            raise CliError(f"{self._path} is there already: --force replaces it, -o names another") from None
        except OSError as error:
            where = self._path or "standard output"
            raise CliError(f"{where} cannot be written: {error_reason(error)}") from None
        return str(self._path)

    def abandon(self) -> None:
        """Close the file, but not standard output, and delete the temporary file if there is one."""
        if self._path is not None and self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._temporary.close()

    def _open(self, name: str) -> IO[bytes]:
        if self._output == "-":
            return sys.stdout.buffer
        name = name.lstrip(".")  # a dotfile may be a program's start file, and the relay chose the name
        path = Path(self._output or name or "media.bin")
        self._path = path = Path(os.path.realpath(path / (name or "media.bin") if path.is_dir() else path))
        if path.exists() and not path.is_file():
            return open(path, "wb")  # a device or a pipe is written to, never replaced
        if path.exists() and not self._force:
            raise FileExistsError
        self._part = self._temporary.enter_context(temporary_name(path))
        return open(self._part, "xb")
