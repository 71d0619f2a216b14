"""Settings from the file `.env` in the service home.

The file may set all variables of this project except those that locate the home. Variables of other programs are left
out here. The host parses the file (`dotenv.load` of `Compute`).
"""

from collections.abc import Mapping

__all__ = ["OWN_PREFIXES", "EnvFileError", "merge_env_file", "select_own_settings"]

OWN_PREFIXES = ("API_SERVER_", "RELAY_", "SVC_", "HERMES_RELAY_")
HOME_VARIABLES = ("SVC_HOME", "HERMES_HOME")


class EnvFileError(Exception):
    """An `.env` file exists and cannot be read; the message names the path, and the line if a line is the cause."""


def merge_env_file(env: Mapping[str, str], file: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with the file's settings as defaults; a blank variable of `env` counts as unset."""
    return {**select_own_settings(file), **{name: value for name, value in env.items() if value.strip()}}


def select_own_settings(file: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of `file` that are variables of this project and do not locate its home."""
    return {name: value for name, value in file.items() if name.startswith(OWN_PREFIXES) and name not in HOME_VARIABLES}
