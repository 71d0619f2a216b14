"""A key that the API has made for itself, kept in `.env` of the service home, where invites look for it, too."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from pathlib import Path

from runtimes.failures import HostError
from runtimes.state import StateFolder
from servers.launch import CannotStartError

__all__ = ["make_key"]

KEY_BYTES = 24  # of entropy
ENV_FILE = ".env"


def make_key(home: Path) -> str:
    """Make a key and add it to `.env`, mode 0600; the lines that are there stay. Raises `CannotStartError`."""
    folder = StateFolder(home)
    key = f"sk-{urlsafe_b64encode(os.urandom(KEY_BYTES)).decode('ascii')}"
    try:
        text = _text(folder)
        gap = "" if not text or text.endswith("\n") else "\n"
        folder.write(ENV_FILE, f"{text}{gap}API_SERVER_KEY={key}\n".encode())
    except (OSError, HostError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotStartError(f"cannot keep an API key in {home / ENV_FILE}: {why}", code=2) from error
    return key


def _text(folder: StateFolder) -> str:
    try:
        return folder.read(ENV_FILE).decode("utf-8")
    except FileNotFoundError:
        return ""
