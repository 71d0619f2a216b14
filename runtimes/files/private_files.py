"""Folders and files for nobody but us."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

__all__ = ["make_private_folder", "ensure_private_folder", "sync_folder", "create_synced_file", "temporary_name"]


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, mode 0700."""
    for missing in [folder for folder in reversed([path, *path.parents]) if not folder.is_dir()]:
        missing.mkdir(mode=0o700, exist_ok=True)


def ensure_private_folder(path: Path) -> Path:
    """Make a folder, and those above it that are missing, mode 0700; one of ours that is open to others is closed."""
    make_private_folder(path)
    status = path.stat()
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        path.chmod(0o700)
    return path


def sync_folder(path: Path) -> None:
    """Which names it has is on the disk afterwards."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def create_synced_file(path: Path, *, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Make a file where none is; what is written to it is on the disk afterwards."""
    with open(path, "xb", opener=partial(os.open, mode=mode)) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def temporary_name(path: Path) -> Iterator[Path]:
    """The name of a file beside this one, to take its place; what still has it in the end is deleted."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
