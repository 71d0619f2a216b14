"""Reading of the API key from `config.yaml` and `.env` while the server runs, for example after `svc key rotate`."""

from __future__ import annotations

from svc_proto.api.config import ApiConfig, parse_api_key
from svc_proto.basics.dotenv import select_own_settings
from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_env_file, read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.service_clients.local_api import yaml_variables
from svc_proto.settings import ConfigError, SettingsSource

__all__ = ["read_key"]


def read_key(engine: Engine, config: ApiConfig) -> Flow[str]:
    """Read the key that a restart would use. A running server never changes between key and no key.

    So a changed file cannot open the API to every client. Raises `Refused` 409 if the server has no key, or one of its
    environment; and if a file exists but cannot be read, or the files hold no usable key.
    """
    if config.key_in_environment:
        raise _key_not_changed_error("key_in_environment", "the key is API_SERVER_KEY of the server's environment")
    if not config.key:
        raise _key_not_changed_error("keyless", "the server was started without a key")
    settings = yield from read_yaml(engine, config.config_path)
    dotenv = yield from read_env_file(engine, f"{config.home}/.env")
    found: dict[str, str] = {}
    if not isinstance(settings, Failure):
        found.update(yaml_variables(settings))
    elif settings.kind is not FailureKind.NOT_FOUND:
        raise _key_not_changed_error("key_not_read", "the configuration file cannot be read")
    if not isinstance(dotenv, Failure):
        found.update(select_own_settings(dotenv))
    elif dotenv.kind is not FailureKind.NOT_FOUND:
        where = f" ({dotenv.detail})" if dotenv.kind is FailureKind.INVALID else ""
        raise _key_not_changed_error("key_not_read", f".env cannot be read{where}")
    try:
        key = parse_api_key(SettingsSource(found, {}), config.host)
    except ConfigError as error:
        raise _key_not_changed_error("key_not_usable", str(error)) from None
    if not key:
        raise _key_not_changed_error("key_not_found", "the files hold no key")
    return key


def _key_not_changed_error(code: str, reason: str) -> Refused:
    return Refused(409, code, reason)
