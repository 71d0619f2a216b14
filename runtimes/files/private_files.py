"""Folders and files that only their owner may read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

__all__ = ["make_private_folder", "ensure_private_folder", "sync_folder", "create_synced_file", "temporary_name"]


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents, mode 0700."""
    for missing in [folder for folder in reversed([path, *path.parents]) if not folder.is_dir()]:
        missing.mkdir(mode=0o700, exist_ok=True)


def ensure_private_folder(path: Path) -> Path:
    """Create a folder and its missing parents, mode 0700; remove the access of others from an own folder."""
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
    """Create a new file; its contents are on the disk after the context."""
    with open(path, "xb", opener=partial(os.open, mode=mode)) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def temporary_name(path: Path) -> Iterator[Path]:
    """Yield an unused name beside a file, for its replacement; a file that still has the name afterwards is deleted."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
