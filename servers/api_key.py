"""A key that the API has made for itself, kept in `.env` of the service home, where invites look for it, too."""

from __future__ import annotations

import os
from pathlib import Path

from runtimes.failures import HostError
from runtimes.state import StateFolder
from servers.launch import CannotStartError
from svc_proto.basics.dotenv import set_dotenv
from svc_proto.basics.entropy import new_api_key

__all__ = ["make_key"]

ENV_FILE = ".env"


def make_key(home: Path) -> str:
    """Make a key and add it to `.env`, mode 0600; the lines that are there stay. Raises `CannotStartError`."""
    folder = StateFolder(home)
    key = new_api_key(os.urandom)
    try:
        folder.write(ENV_FILE, set_dotenv(_text(folder), "API_SERVER_KEY", key).encode())
    except (OSError, HostError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotStartError(f"cannot keep an API key in {home / ENV_FILE}: {why}", code=2) from error
    return key


def _text(folder: StateFolder) -> str:
    try:
        return folder.read(ENV_FILE).decode("utf-8")
    except FileNotFoundError:
        return ""
