"""Folder for temporary files of this host."""

from __future__ import annotations

import os
import tempfile

__all__ = ["temporary_folder"]


def temporary_folder() -> str:
    """Return the folder by name; `tempfile` raises where no file can be written, as on a full or read-only disk."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - only named, not written to
