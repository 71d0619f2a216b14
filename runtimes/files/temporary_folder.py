"""Folder for temporary files of this host."""

import os
import tempfile

__all__ = ["temporary_folder"]


def temporary_folder() -> str:
    """Return the path of the folder: that of `tempfile`, or TMPDIR or /tmp where `tempfile` can write no file."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - only named, not written to
