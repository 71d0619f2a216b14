"""Folders for nobody but us."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["make_private", "private_folder", "sync_folder"]


def make_private(path: Path) -> None:
    """Make a folder, and those above it that are missing, mode 0700."""
    for missing in [folder for folder in reversed([path, *path.parents]) if not folder.is_dir()]:
        missing.mkdir(mode=0o700, exist_ok=True)


def private_folder(path: Path) -> Path:
    """Make a folder, and those above it that are missing, mode 0700; one of ours that is open to others is closed."""
    make_private(path)
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
