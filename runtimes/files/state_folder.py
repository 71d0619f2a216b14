"""Files and secrets of the state folder, private and replaced atomically; also in other folders, by absolute path.

A file is written under another name in the same folder, synced and renamed, and the folder is synced. After a crash
there is therefore either the old text or the new one. Only appending changes a file in place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from runtimes.failures import HostError
from runtimes.files.private_files import (
    create_synced_file,
    ensure_private_folder,
    make_private_folder,
    publish_new_file,
    sync_folder,
    temporary_name,
)
from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadPool
from svc_proto.commands import AppendFile, EnsureSecret, ReadConfig, SweepFolder, WriteConfig, WriteFile
from svc_proto.facts import FailureKind, OperationId

__all__ = ["FILE_LIMIT", "SECRET_MIN", "StateFolder", "StateService"]

FILE_LIMIT = 16 * 1024 * 1024  # bytes of one file of the state folder; more is answered with TOO_LARGE
SECRET_MIN = 16  # bytes; a shorter secret is replaced
# A link is not followed, and a FIFO without a reader is refused: this program makes neither.
_APPEND_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_RACES = 3  # attempts to create a file that another process may create or remove at the same time


class StateService:
    """Service for operations on the state folder, performed one after the other on one thread."""

    def __init__(self, pump: Pump, *, writer: ThreadPool, folder: Path | None, rooms: Sequence[Path] = ()) -> None:
        self._pump = pump
        self._writer = writer
        self._folder = None if folder is None else StateFolder(folder, rooms)
        pump.serve(
            {
                ReadConfig: self._read,
                WriteConfig: self._write,
                WriteFile: self._write_file,
                AppendFile: self._append,
                SweepFolder: self._sweep,
                EnsureSecret: self._secret,
            }
        )

    def _read(self, command: ReadConfig) -> None:
        folder = self._there_is(command.op)
        if folder is not None:
            self._pump.work(command.op, self._writer, lambda: folder.read(command.name).decode("utf-8"))

    def _write(self, command: WriteConfig) -> None:
        folder = self._there_is(command.op)
        if folder is not None:

            def work() -> None:
                folder.write(command.name, command.text.encode("utf-8"), follow=True)

            self._pump.work(command.op, self._writer, work)

    def _write_file(self, command: WriteFile) -> None:
        folder = self._there_is(command.op)
        if folder is not None:
            self._pump.work(command.op, self._writer, lambda: folder.write(command.name, command.data))

    def _append(self, command: AppendFile) -> None:
        folder = self._there_is(command.op)
        if folder is not None:
            work = partial(folder.append, command.name, command.data, command.head)
            self._pump.work(command.op, self._writer, work)

    def _sweep(self, command: SweepFolder) -> None:
        folder = self._there_is(command.op)
        if folder is not None:
            work = partial(folder.sweep, command.name, command.before, command.prefix)
            self._pump.work(command.op, self._writer, work)

    def _secret(self, command: EnsureSecret) -> None:
        folder = self._there_is(command.op)
        if folder is not None:
            self._pump.work(command.op, self._writer, lambda: folder.ensure_secret(command.name, command.default))

    def _there_is(self, op: OperationId) -> StateFolder | None:
        if self._folder is None:
            self._pump.refuse(op, FailureKind.UNSUPPORTED, "no state folder")
        return self._folder


class StateFolder:
    """Files of the state folder by relative name, or by absolute path in the folders `rooms`.

    All calls block; they raise `OSError`, `HostError`.
    """

    def __init__(self, root: Path, rooms: Sequence[Path] = ()) -> None:
        self._root = root
        self._rooms = tuple(str(room) for room in rooms)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file. Raise `HostError` TOO_LARGE over `FILE_LIMIT` bytes."""
        with open(self._path(name), "rb") as file:
            data = file.read(FILE_LIMIT + 1)
        if len(data) > FILE_LIMIT:
            raise HostError(FailureKind.TOO_LARGE, f"over {FILE_LIMIT} bytes")
        return data

    def write(self, name: str, data: bytes, *, follow: bool = False) -> str:
        """Create or replace a file, or with `follow` the target of a link; return its absolute path."""
        path = self._path(name)
        if follow and path.is_symlink():
            path = Path(os.path.realpath(path))
        with self._temporary(path, data) as temporary:
            os.replace(temporary, path)
        sync_folder(path.parent)
        return str(path.absolute())

    def append(self, name: str, data: bytes, head: bytes = b"") -> int:
        """Append `data` to a file, then write `head` over the file's beginning; return the size after appending.

        After a failed append the file has its former size; a failed write of `head` leaves `data` appended.
        """
        path = self._path(name)
        self._make_folder(path)
        fd = os.open(path, _APPEND_FLAGS, 0o600)
        try:
            size = os.lseek(fd, 0, os.SEEK_END)
            try:
                _write_all(fd, data, size)
            except OSError:
                os.ftruncate(fd, size)  # half a line would corrupt the next one
                raise
            _write_all(fd, head, 0)
            return size + len(data)
        finally:
            os.close(fd)

    def sweep(self, name: str, before: float, prefix: str = "") -> int:
        """Delete the regular files of a folder that were modified before `before` (epoch s); return how many.

        Only files whose names begin with `prefix` are deleted, none of subfolders. Without the folder, the result is 0.
        """
        deleted = 0
        try:
            entries = os.scandir(self._path(name))
        except FileNotFoundError:
            return 0
        with entries:
            for entry in entries:
                if not entry.name.startswith(prefix):
                    continue
                with contextlib.suppress(FileNotFoundError):  # deleted by another process
                    if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.path)
                        deleted += 1
        return deleted

    def ensure_secret(self, name: str, fresh: bytes) -> bytes:
        """Return the secret in a file; if there is no file, or under 16 bytes in it, store and return `fresh`.

        If two processes create the file at the same time, both return the same secret, on a file system with locks of
        folders or with hard links. Raises `HostError` INVALID if `fresh` is too short or a link without a target has
        the name, and `OSError` if a folder has it.
        """
        if len(fresh) < SECRET_MIN:
            raise HostError(FailureKind.INVALID, f"a fresh secret of under {SECRET_MIN} bytes")
        path = self._path(name)
        found = self._read_secret(name)
        if found is not None and len(found) >= SECRET_MIN:
            return found
        self._make_folder(path)
        with _folder_lock(path.parent):
            return self._create_secret(name, path, fresh)

    def _read_secret(self, name: str) -> bytes | None:
        try:
            return self.read(name)
        except FileNotFoundError:
            return None

    def _create_secret(self, name: str, path: Path, fresh: bytes) -> bytes:
        for _ in range(_RACES):
            found = self._read_secret(name)
            if found is not None and len(found) >= SECRET_MIN:
                return found
            if found is not None:
                self.write(name, fresh)
                return fresh
            with self._temporary(path, fresh) as temporary:
                try:
                    publish_new_file(temporary, path)  # unlike a rename, a link never replaces another process's file
                except FileExistsError:
                    continue
            sync_folder(path.parent)
            return fresh
        raise HostError(FailureKind.INVALID, "something that is not a file stands in its place")

    def _path(self, name: str) -> Path:
        root = self._root
        for room in self._rooms:
            if name == room:
                return Path(room)
            if name.startswith(f"{room}/"):
                root, name = Path(room), name[len(room) + 1 :]
                break
        parts = name.split("/")
        if (os.sep != "/" and os.sep in name) or "\0" in name or any(part in {"", ".", ".."} for part in parts):
            raise HostError(FailureKind.INVALID, "name of a state file")
        return root.joinpath(*parts)

    def _make_folder(self, path: Path) -> None:
        """Create the folder of a file that is to be written."""
        if path.is_relative_to(self._root):
            ensure_private_folder(self._root)
            ensure_private_folder(path.parent)
        else:  # the folder may belong to another program: only missing folders are created
            make_private_folder(path.parent)

    @contextlib.contextmanager
    def _temporary(self, path: Path, data: bytes) -> Iterator[Path]:
        self._make_folder(path)
        with temporary_name(path) as temporary:
            with create_synced_file(temporary) as file:
                file.write(data)
            yield temporary


@contextlib.contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Hold the exclusive lock of a folder, or none on a file system that cannot lock folders."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)  # until the descriptor is closed
        yield
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        n = os.pwrite(fd, view, offset)
        offset += n
        view = view[n:]
