"""Creation and change of variables in `.env` of the service home, such as API key and dashboard password."""

import os
import secrets
from pathlib import Path

from runtimes.failures import HostError
from runtimes.files.env_file import set_env_line
from runtimes.files.state_folder import StateFolder
from runtimes.service_home.home import ENV_FILE
from servers.launch import CannotStartError
from svc_proto.basics.entropy import new_api_key

__all__ = ["create_api_key", "create_dashboard_password", "set_env_variable"]

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # those that people do not confuse
GROUPS, GROUP_SIZE = 4, 4  # of a password: 79 bits


def create_api_key(home: Path) -> str:
    """Create an API key and store it in `.env`. Raises `CannotStartError`."""
    key = new_api_key(os.urandom)
    set_env_variable(home, "API_SERVER_KEY", key, "an API key")
    return key


def create_dashboard_password(home: Path, host: str) -> str:
    """Create a password for a dashboard that listens on `host`, and store both in `.env`. Raises `CannotStartError`.

    Programs of this host need no password: local access is stored as well.
    """
    groups = ("".join(secrets.choice(LETTERS) for _ in range(GROUP_SIZE)) for _ in range(GROUPS))
    password = "-".join(groups)
    settings = (
        ("SVC_DASHBOARD_HOST", host),
        ("SVC_DASHBOARD_LOCAL_ACCESS", "1"),
        ("SVC_DASHBOARD_PASSWORD", password),
    )
    for name, value in settings:
        set_env_variable(home, name, value, "the password of the dashboard")
    return password


def set_env_variable(home: Path, name: str, value: str, what: str) -> None:
    """Set a variable in `.env`, mode 0600; the other lines stay. Raises `CannotStartError`."""
    folder = StateFolder(home)
    try:
        folder.write(ENV_FILE, set_env_line(_text(folder), name, value).encode())
    except (OSError, HostError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotStartError(f"cannot keep {what} in {home / ENV_FILE}: {why}", code=2) from error


def _text(folder: StateFolder) -> str:
    try:
        return folder.read(ENV_FILE).decode("utf-8")
    except FileNotFoundError:
        return ""
