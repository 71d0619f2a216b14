"""The service home of this host, and settings from its `.env`, which the environment overrides."""

from collections.abc import Mapping
from pathlib import Path

from svc_proto.basics.dotenv import EnvFileError, merge_env_file

__all__ = ["ENV_FILE", "EnvFileError", "service_home_path", "with_env_file"]

ENV_FILE = ".env"


def service_home_path(env: Mapping[str, str]) -> Path:
    """Return the path in `SVC_HOME` or `HERMES_HOME`, else `~/.svc`, absolute. The folder is not created."""
    named = env.get("SVC_HOME", "").strip() or env.get("HERMES_HOME", "").strip() or "~/.svc"
    return Path(named).expanduser().absolute()


def with_env_file(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `env` that are not blank, with this project's settings in the home's `.env` as defaults.

    The API's key in the file is left out unless `env` has one, too: code that needs the key searches all places
    of wire core 2.7. Raise `EnvFileError` for a file that exists and cannot be read.
    """
    path = service_home_path(env) / ENV_FILE
    found = merge_env_file(env, _read(path) if _may_exist(path) else {})
    if not env.get("API_SERVER_KEY", "").strip():
        found.pop("API_SERVER_KEY", None)
    return found


def _may_exist(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass  # the read reports it
    return True


def _read(path: Path) -> dict[str, str]:
    from runtimes.files.env_file import read_env_file  # noqa: PLC0415, RUF100 - few homes have the file at `svc status`

    return read_env_file(path)
