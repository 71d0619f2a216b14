"""Private folders and files, and the steps of an atomic replacement: temporary name, sync, publication."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

__all__ = [
    "publish_new_file",
    "make_private_folder",
    "ensure_private_folder",
    "sync_folder",
    "create_synced_file",
    "temporary_name",
]

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # of a file system


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents, mode 0700; folders that exist stay as they are."""
    for missing in [folder for folder in reversed([path, *path.parents]) if not folder.is_dir()]:
        missing.mkdir(mode=0o700, exist_ok=True)


def ensure_private_folder(path: Path) -> Path:
    """Create a folder and its missing parents, mode 0700, and return it.

    If the folder exists and belongs to this user, set its mode to 0700, too, where other users have access.
    """
    make_private_folder(path)
    status = path.stat()
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        path.chmod(0o700)
    return path


def sync_folder(path: Path) -> None:
    """Write the entries of a folder to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def create_synced_file(path: Path, *, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Create a new file and yield it for writing; its contents are on the disk after the context.

    Raises `FileExistsError` if the name is taken.
    """
    with open(path, "xb", opener=partial(os.open, mode=mode)) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def publish_new_file(temporary: Path, path: Path) -> None:
    """Give a complete file its final name. Raises `FileExistsError` if the name is taken.

    Some file systems have no hard links (FAT, exFAT, some network shares): there an empty file first claims the name.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.replace(temporary, path)


@contextmanager
def temporary_name(path: Path) -> Iterator[Path]:
    """Yield an unused name beside a file, for its replacement; a file that still has the name afterwards is deleted."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
