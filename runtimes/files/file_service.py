"""File operations for a core: reading by handle, and uploads into the spool folder.

The answer to `OpenFile` has the real path of the file that was opened, so a later rename or link cannot mislead the
core. A file is closed once its handle is released and no thread or transfer uses it.
"""

import fcntl
import os
import re
import secrets
import stat
import sys
from pathlib import Path
from typing import Any

from attrs import define

from runtimes.failures import HostError
from runtimes.files.private_files import ensure_private_folder
from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from svc_proto import commands
from svc_proto.facts import FailureKind, OperationId

__all__ = ["READ_LIMIT", "FileService", "OpenHandle"]

READ_LIMIT = 64 * 1024 * 1024  # bytes of one `ReadFile`; more is answered with TOO_LARGE
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # O_NONBLOCK: a FIFO must not hang the thread
_SUFFIX = re.compile(r"[A-Za-z0-9._-]{0,64}")


class OpenHandle:
    """An open file with a count of its users."""

    __slots__ = ("_closed", "_users", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._users = 0
        self._closed = False

    def acquire(self) -> None:
        """Add a user: a thread or a transfer."""
        self._users += 1

    def release_use(self) -> None:
        """Remove a user; the last one closes a released file."""
        self._users -= 1
        self._close_unused()

    def release(self) -> None:
        """Close the file as soon as it has no users."""
        self._closed = True
        self._close_unused()

    def _close_unused(self) -> None:
        if self._closed and not self._users and self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


@define
class _Blob:
    """An upload in progress; one thread at a time writes it."""

    fd: int
    path: str
    spare: int  # bytes of the disk to be left free
    written: int = 0
    ended: bool = False  # `FinishBlob` was ordered

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class FileService:
    """Service that performs a core's commands for reading files and for uploads, on threads."""

    def __init__(self, pump: Pump, *, readers: ThreadPool, writer: ThreadPool, spool: Path | None) -> None:
        self._pump = pump
        self._readers = readers
        self._writer = writer
        self._spool = spool
        self._next = 0
        self._open: dict[int, OpenHandle] = {}
        self._blobs: dict[int, _Blob] = {}
        pump.serve(
            {
                commands.OpenFile: self._open_file,
                commands.ReadFile: self._read,
                commands.ReleaseFile: self._release,
                commands.CreateBlob: self._create,
                commands.WriteBlob: self._write,
                commands.FinishBlob: self._finish,
                commands.DiscardBlob: self._discard,
                commands.DeleteBlob: self._delete,
            }
        )

    def handle(self, number: int) -> OpenHandle | None:
        """Return the open file with this number, or None."""
        return self._open.get(number)

    def close_all(self) -> None:
        """Close every file and delete unfinished uploads. Threads that use one finish first."""
        for handle in self._open.values():
            handle.release()
        self._open.clear()
        for number in list(self._blobs):
            self._discard(commands.DiscardBlob(number))

    # --- reading -------------------------------------------------------------------------------------------------

    def _open_file(self, command: commands.OpenFile) -> None:
        def keep(found: tuple[int, commands.OpenedFile]) -> commands.OpenedFile:
            number = self._number()
            self._open[number] = OpenHandle(found[0])
            opened = found[1]
            return commands.OpenedFile(number, opened.real_path, opened.size, opened.modified, opened.regular)

        self._pump.work(
            command.op, self._readers, lambda: _open(command.path), keep=keep, release=lambda found: os.close(found[0])
        )

    def _read(self, command: commands.ReadFile) -> None:
        handle = self._open.get(command.handle)
        if handle is None:
            self._unknown(command.op)
            return
        if command.n > READ_LIMIT:
            self._pump.refuse(command.op, FailureKind.TOO_LARGE, f"over {READ_LIMIT} bytes in one read")
            return
        fd, offset, n = handle.fd, command.offset, command.n
        handle.acquire()
        self._pump.work(command.op, self._readers, lambda: _read_exactly(fd, offset, n), after=handle.release_use)

    def _release(self, command: commands.ReleaseFile) -> None:
        handle = self._open.pop(command.handle, None)
        if handle is not None:
            handle.release()

    # --- uploads -------------------------------------------------------------------------------------------------

    def _create(self, command: commands.CreateBlob) -> None:
        spool = self._spool
        if spool is None:
            self._pump.refuse(command.op, FailureKind.UNSUPPORTED, "no spool folder")
            return

        def keep(blob: _Blob) -> int:
            number = self._number()
            self._blobs[number] = blob
            return number

        self._pump.work(command.op, self._writer, lambda: _create(spool, command), keep=keep, release=_discard_blob)

    def _write(self, command: commands.WriteBlob) -> None:
        blob = self._blobs.get(command.handle)
        if blob is None or blob.ended:
            self._unknown(command.op)
            return
        self._pump.work(command.op, self._writer, lambda: _append(blob, command.data))

    def _finish(self, command: commands.FinishBlob) -> None:
        """Sync and close an upload. Until the answer, `DiscardBlob` or a cancellation still deletes the file."""
        blob = self._blobs.get(command.handle)
        if blob is None or blob.ended:
            self._unknown(command.op)
            return
        blob.ended = True

        def work() -> str:
            os.fsync(blob.fd)
            blob.close()
            return blob.path

        def keep(path: str) -> str:
            self._blobs.pop(command.handle, None)
            return path

        def after() -> None:
            if command.op not in self._pump.operations:  # cancelled
                self._discard(commands.DiscardBlob(command.handle))

        self._pump.work(command.op, self._writer, work, keep=keep, after=after)

    def _discard(self, command: commands.DiscardBlob) -> None:
        blob = self._blobs.pop(command.handle, None)
        if blob is not None:
            self._writer.submit(lambda: _discard_blob(blob), _nothing)

    def _delete(self, command: commands.DeleteBlob) -> None:
        spool = self._spool
        if spool is not None:
            self._writer.submit(lambda: _delete_upload(spool, command.path), _nothing)

    # --- below ---------------------------------------------------------------------------------------------------

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _unknown(self, op: OperationId) -> None:
        self._pump.refuse(op, FailureKind.INVALID, "no such handle")


def _nothing(result: Any, error: BaseException | None) -> None:
    """Ignore the outcome: no operation waits for it."""


def _open(path: str) -> tuple[int, commands.OpenedFile]:
    fd = os.open(path, _OPEN_FLAGS)
    try:
        status = os.fstat(fd)
        regular = stat.S_ISREG(status.st_mode)
        return fd, commands.OpenedFile(0, _real_path(fd, path), status.st_size, status.st_mtime, regular)
    except BaseException:
        os.close(fd)
        raise


def _real_path(fd: int, path: str) -> str:
    """Return the real path of an open file; where the system does not report it, the real path of `path`."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:  # a system without /proc
        return os.path.realpath(path)


def _read_exactly(fd: int, offset: int, n: int) -> bytes:
    parts: list[bytes] = []
    while n > 0 and (part := os.pread(fd, n, offset)):
        parts.append(part)
        offset += len(part)
        n -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _create(spool: Path, command: commands.CreateBlob) -> _Blob:
    if not _SUFFIX.fullmatch(command.suffix):
        raise HostError(FailureKind.INVALID, "suffix of an upload")
    path = ensure_private_folder(spool).absolute() / (secrets.token_hex(16) + command.suffix)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return _Blob(fd, str(path), command.min_free_bytes)


def _append(blob: _Blob, data: bytes) -> int:
    if blob.fd < 0:
        raise HostError(FailureKind.INVALID, "the upload was ended")
    if blob.spare:
        disk = os.fstatvfs(blob.fd)
        if disk.f_bavail * disk.f_frsize < blob.spare + len(data):
            raise HostError(FailureKind.NO_SPACE, "the disk is nearly full")
    view = memoryview(data)
    while view:
        n = os.write(blob.fd, view)
        blob.written += n
        view = view[n:]
    return blob.written


def _delete_upload(spool: Path, name: str) -> None:
    """Delete `name` if it is the absolute path of a regular file directly in the spool folder."""
    path = Path(name)
    if path.is_absolute() and path.parent.resolve() == spool.resolve() and stat.S_ISREG(path.lstat().st_mode):
        path.unlink()


def _discard_blob(blob: _Blob) -> None:
    blob.close()
    Path(blob.path).unlink(missing_ok=True)
