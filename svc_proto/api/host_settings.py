"""Settings of the host in `.env` that the owner changes from the dashboard, and the replacement of the API key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from svc_proto.api.config import ApiConfig, parse_api_key
from svc_proto.api.errors import invalid_request
from svc_proto.basics.dotenv import select_own_settings
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.basics.validate import single_line
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_env_file, read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import is_local
from svc_proto.engine.sync import Lock
from svc_proto.facts import Failure, FailureKind
from svc_proto.relay_config import parse_pair_scope, parse_pair_ttl, parse_public_url
from svc_proto.service_clients.key_files import ENV_FILE, HostFileError, set_variables, write_new_key
from svc_proto.service_clients.local_api import yaml_variables
from svc_proto.settings import ConfigError, SettingsSource

if TYPE_CHECKING:
    from svc_proto.api.openapi.change_types import HostSettingJson, HostSettingName

__all__ = ["HOST_SETTINGS", "HostSettings", "parse_host_change", "read_key"]

MAX_TEXT = 256  # characters of a value
QUOTING = "'\"`\\$#"  # characters that mean something else to readers of `.env`
KEYLESS = "without a key of the API, only programs of its host change the settings of the host"


@fast_frozen
class HostSetting:
    """A variable of the servers, and the function that checks its value as at their start."""

    variable: str
    check: Callable[[SettingsSource], object]
    is_secret: bool = False


HOST_SETTINGS: Mapping[str, HostSetting] = {
    "public_url": HostSetting("SVC_PUBLIC_URL", parse_public_url),
    "brand": HostSetting("SVC_BRAND", lambda source: source.brand("SVC_BRAND", "brand")),
    "metrics_token": HostSetting("SVC_METRICS_TOKEN", SettingsSource.metrics_token, is_secret=True),
    "pair_scope": HostSetting("SVC_PAIR_SCOPE", parse_pair_scope),
    "pair_ttl": HostSetting("SVC_PAIR_TTL", parse_pair_ttl),
}


def parse_host_change(body: Mapping[str, object]) -> dict[str, str]:
    """Parse changes of `HOST_SETTINGS` by name; an empty text unsets a setting. Raises `Refused` 400."""
    change: dict[str, str] = {}
    for name, value in body.items():
        setting = HOST_SETTINGS.get(name)
        if setting is None:
            raise invalid_request(f"these settings can be changed: {', '.join(HOST_SETTINGS)}")
        given = single_line(value, name, MAX_TEXT)
        if given and (not is_printable_ascii(given) or any(each in QUOTING for each in given)):
            raise invalid_request(f"{name} must be printable ASCII without spaces and without {QUOTING}")
        try:
            setting.check(SettingsSource({setting.variable: given}, {}))
        except ConfigError as error:
            raise invalid_request(str(error)) from None
        change[name] = given
    return change


class HostSettings:
    """Reader and writer of one host's settings."""

    def __init__(self, engine: Engine, config: ApiConfig) -> None:
        self._engine = engine
        self._config = config
        self._changing = Lock(engine)

    def read(self) -> Flow[list[HostSettingJson]]:
        """Return the settings as the next start finds them; a secret has no value.

        Raises `Refused` 500 if `.env` cannot be read.
        """
        found = yield from read_env_file(self._engine, f"{self._config.home}/{ENV_FILE}")
        if isinstance(found, Failure):
            if found.kind is not FailureKind.NOT_FOUND:
                raise _file_problem(f"{self._config.home}/{ENV_FILE} cannot be read")
            found = {}
        environment = self._config.host_environment
        rows: list[HostSettingJson] = []
        for name, setting in HOST_SETTINGS.items():
            value = (environment.get(setting.variable) or found.get(setting.variable, "")).strip()
            rows.append(
                {
                    "name": cast("HostSettingName", name),
                    "variable": setting.variable,
                    "value": None if setting.is_secret else value,
                    "is_set": bool(value),
                    "in_environment": setting.variable in environment,
                }
            )
        return rows

    def change(self, request: Request, change: Mapping[str, str]) -> Flow[None]:
        """Write changed settings into `.env`. On a server without a key, only a program of this host may change them.

        Raises `Refused` 409 for another client, and for a setting of the servers' environment; 500 if the file cannot
        be written.
        """
        if not self._config.key and not is_local(request):
            raise Refused(409, "keyless", KEYLESS)
        values = {HOST_SETTINGS[name].variable: value for name, value in change.items()}
        for variable in values:
            if variable in self._config.host_environment:
                raise Refused(409, "set_in_environment", f"{variable} is set in the environment of the servers")
        yield from self._write(set_variables(self._engine, self._config.home, values))
        self._engine.log(Level.INFO, "settings of the host changed", fields=sorted(values))

    def write_key(self) -> Flow[None]:
        """Write a new API key into the files.

        Raises `Refused` 409 if no file can change it, 500 if a file is unusable.
        """
        config = self._config
        if not config.key:
            raise Refused(409, "keyless", "the server was started without a key")
        if config.key_in_environment:
            raise Refused(409, "key_in_environment", "the key is API_SERVER_KEY of the server's environment")
        yield from self._write(write_new_key(self._engine, config.home, config.config_path, configured_key=""))

    def _write(self, writing: Flow[object]) -> Flow[None]:
        yield from self._changing.acquire()
        try:
            yield from writing
        except HostFileError as error:
            raise _file_problem(str(error)) from None
        finally:
            self._changing.release()


def read_key(engine: Engine, config: ApiConfig) -> Flow[str]:
    """Read the key that a restart would use, from `config.yaml` and `.env`, for example after `svc key rotate`.

    A running server never changes between key and no key, so a changed file cannot open the API to every client.
    Raises `Refused` 409 if the server has no key, or one of its environment; and if a file exists but cannot be read,
    or the files hold no usable key.
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


def _file_problem(problem: str) -> Refused:
    return Refused(500, "config_write_failed", problem)


def _key_not_changed_error(code: str, reason: str) -> Refused:
    return Refused(409, code, reason)
