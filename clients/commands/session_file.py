"""The desktop's session file: read whole, changed under a lock, replaced atomically, private.

The lock serializes the changes of two programs, so that no change is lost. A program that is killed while writing
leaves the old file, and the system releases its lock.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from runtimes.failures import HostError
from runtimes.files.private_files import ensure_private_folder
from runtimes.files.state_folder import StateFolder
from svc_proto.cli.session_store import FILE_NAME, SessionStoreChange, apply_change, is_damaged
from svc_proto.facts import FailureKind

__all__ = ["SessionFile"]

LOCK_NAME = f".{FILE_NAME}.lock"
DAMAGED_NAME = f"{FILE_NAME}.damaged"
LOCK_TIMEOUT = 5.0  # s to wait for another program's lock
LOCK_POLL = 0.02  # s between two attempts


class SessionFile:
    """Session file in the service home. `read` and `change` block, and may raise `OSError` or `HostError`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = StateFolder(home)

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return self._home / FILE_NAME

    def read(self) -> str:
        """Return the text of the session file; empty if there is none."""
        try:
            return self._folder.read(FILE_NAME).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def change(self, change: SessionStoreChange) -> None:
        """Apply one change to the file's present contents. A damaged file is copied to `DAMAGED_NAME` first."""
        ensure_private_folder(self._home)
        with self._locked():
            text = self.read()
            if is_damaged(text):
                self._folder.write(DAMAGED_NAME, text.encode("utf-8"))
            self._sweep()
            self._folder.write(FILE_NAME, apply_change(text, change).encode("utf-8"))

    def _sweep(self) -> None:
        """Delete temporary files of killed programs; the lock ensures that no other program is writing."""
        for left in self._home.glob(f".{FILE_NAME}.*"):
            if left.name != LOCK_NAME:
                left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        until = time.monotonic() + LOCK_TIMEOUT
        fd = os.open(self._home / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _lock(fd):
                if time.monotonic() > until:
                    raise HostError(FailureKind.TIMED_OUT, "another program has locked the session file")
                time.sleep(LOCK_POLL)
            yield
        finally:
            os.close(fd)  # also releases the lock


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True
