"""Settings of this host for the commands: relay configuration, service home, trusted certificates."""

import os
import ssl
from pathlib import Path

from runtimes.files.temporary_folder import temporary_folder
from runtimes.service_home.home import EnvFileError, service_home_path, with_env_file
from runtimes.service_home.running_relay import with_running_settings
from runtimes.store.store_factory import configured_store, store_files
from runtimes.store.store_service import StoreError
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.relay_config import ConfigError, RelayConfig, parse_relay_config

__all__ = ["existing_store", "read_relay_config", "service_home", "store_named_in", "trust_for", "trust_for_api"]


def service_home() -> Path:
    """Return `SVC_HOME` or `HERMES_HOME`, else `~/.svc`, without creating it."""
    return service_home_path(os.environ)


def read_relay_config(*, named: bool = False, lenient: bool = False, **options: object) -> RelayConfig:
    """Return the relay's configuration; unless `named`, with settings of the running relay and API in place of its own.

    The environment alone counts where `.env` cannot be read, and with `lenient` also where it has an error. Raises
    `CliError` if the configuration is invalid.
    """
    try:
        env = with_env_file(os.environ)
    except EnvFileError as error:
        if not lenient and not isinstance(error.__cause__, OSError):
            raise CliError(str(error), code=USAGE_ERROR) from None
        env = dict(os.environ)  # the file of another user: only the environment counts
    try:
        config = parse_relay_config(
            env,
            options,
            home=str(service_home()),
            path_separator=os.pathsep,
            temp_dir=temporary_folder(),
            user_home=str(Path.home()),
        )
    except ConfigError as error:
        raise CliError(str(error), code=USAGE_ERROR) from None
    return (
        config
        if named
        else with_running_settings(config, branded="SVC_BRAND" in env or options.get("brand") is not None)
    )


def existing_store() -> str | Path:
    """Return the file of the servers' database on this host, or its URL.

    Raises `CliError` for a store in memory, a file that does not exist, and invalid settings. A URL is not tried.
    """
    home = service_home()
    named, file = store_named_in(home, home)
    if named == "memory:":
        raise CliError("these servers keep nothing on a disk (RELAY_SESSIONS_FILE is empty)")
    if file is not None and not file.exists():
        raise CliError(f"there is no database {file}: servers make it when they first start")
    return named if file is None else file


def store_named_in(files: Path, home: Path) -> tuple[str | Path, Path | None]:
    """Return the store that the environment or `.env` of the folder `files` names, and its file if it is SQLite.

    The file is None for another kind of store. The default store is a file of `home`. Raises `CliError` for unreadable
    or invalid settings.
    """
    try:
        settings = with_env_file({**os.environ, "SVC_HOME": str(files)})
    except EnvFileError as error:
        raise CliError(str(error)) from None
    try:
        named = configured_store(os.environ, settings, home)
    except StoreError as error:
        raise CliError(str(error), code=USAGE_ERROR) from None
    found = [str(named)] if isinstance(named, Path) else store_files(named)
    return named, Path(found[0]) if found else None


def trust_for(config: RelayConfig) -> ssl.SSLContext | None:
    """Return a context that trusts the relay's certificate; None if no TLS is needed or no certificate is configured.

    Raises `CliError` if the certificate cannot be read.
    """
    if config.inside is not None:
        return None
    return _trust_in("RELAY_SSL_CERT", config.ssl_cert)


def trust_for_api() -> ssl.SSLContext | None:
    """Return a context that trusts the API server's certificate; None if the environment does not name it.

    Raises `CliError` if the certificate cannot be read.
    """
    return _trust_in("API_SERVER_SSL_CERT", (os.environ.get("API_SERVER_SSL_CERT") or "").strip() or None)


def _trust_in(variable: str, path: str | None) -> ssl.SSLContext | None:
    if path is None:
        return None
    from runtimes.tls.contexts import TlsFileError, context_for_certificates

    try:
        return context_for_certificates(path)
    except TlsFileError as error:
        raise CliError(f"{variable}: {error}", code=USAGE_ERROR) from None
