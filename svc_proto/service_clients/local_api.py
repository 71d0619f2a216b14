"""Address and key of this host's API server, from the environment and its files.

Host, port and key are taken from the environment, else from `.env` in the service home, else from the agent's
configuration file (wire core 2.7, wire api 9).
"""

from collections.abc import Mapping

from attrs import field

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_env_file, read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject, as_array, as_identity

__all__ = ["LocalApi", "find_local_api", "local_api_key", "with_key", "yaml_variables"]

MAX_PORT = 65_535  # TCP
# Members of `platforms.api_server.extra` with their variables, and alternative names beside `extra`.
EXTRA = {
    "host": ("API_SERVER_HOST", "host"),
    "port": ("API_SERVER_PORT", "port"),
    "key": ("API_SERVER_KEY", "api_key"),
    "cors_origins": ("API_SERVER_CORS_ORIGINS", ""),
}


@fast_frozen(kw_only=True)
class LocalApi:
    """Host, port, key and TLS of the API server; an empty key means open access."""

    host: str = "127.0.0.1"
    port: int = 8642
    key: str = field(default="", repr=False)
    tls: bool = False


def find_local_api(engine: Engine, config: RelayConfig) -> Flow[LocalApi]:
    """Return the API server of this host.

    Host, port and TLS of a server in this process are taken from the configuration. For any other server, TLS is on if
    the environment or `.env` names a certificate.
    """
    settings_files = yield from _read_files(engine, config.config_path, config.home)
    key = _key(settings_files, config.api_key, named=config.key_in_environment)
    if config.webapi_inside is not None:
        there = config.webapi
        return LocalApi(host=there.host, port=there.port, key=key, tls=there.tls)
    ports = (_port(each.get("API_SERVER_PORT", "")) for each in settings_files)
    return LocalApi(
        host=config.api_host or _first(settings_files, "API_SERVER_HOST", "127.0.0.1"),
        port=config.api_port or next(filter(None, ports), 8642),
        key=key,
        tls=config.api_tls or bool(settings_files[0].get("API_SERVER_SSL_CERT")),
    )


def local_api_key(
    engine: Engine, config_path: str, home: str, configured_key: str, *, named: bool = False
) -> Flow[str]:
    """Return the key alone: that of the files, else `configured_key`; empty: none.

    If the environment named the key (`named`), it is `configured_key`.
    """
    return _key((yield from _read_files(engine, config_path, home)), configured_key, named=named)


def yaml_variables(found: Mapping[str, object]) -> dict[str, str]:
    """Return the environment variables, with their values, that members of a parsed configuration file stand for."""
    server = JsonObject.of(found).get_object("platforms", "api_server")
    extra, gateway = server.get_object("extra"), JsonObject.of(found).get_object("gateway", "api_server")
    variables = {
        variable: _text(extra.get(name)) or _text(server.get(beside)) for name, (variable, beside) in EXTRA.items()
    }
    variables["API_SERVER_MAX_CONCURRENT_RUNS"] = _text(gateway.get("max_concurrent_runs"))
    return {name: value for name, value in variables.items() if value}


def with_key(found: Mapping[str, object], key: str) -> dict[str, object]:
    """Return the changes for a parsed configuration file to hold this key; empty if the file has no key."""
    server = JsonObject.of(found).get_object("platforms", "api_server")
    changed: dict[str, object] = {"extra": {"key": key}} if _text(server.get_object("extra").get("key")) else {}
    if _text(server.get("api_key")):
        changed["api_key"] = key
    return {"platforms": {"api_server": changed}} if changed else {}


def _read_files(engine: Engine, config_path: str, home: str) -> Flow[tuple[Mapping[str, str], Mapping[str, str]]]:
    """Read `.env` and the configuration file. A file that cannot be read or parsed counts as absent."""
    settings = yield from read_yaml(engine, config_path)
    dotenv = yield from read_env_file(engine, f"{home}/.env")
    return {} if isinstance(dotenv, Failure) else dotenv, {} if isinstance(settings, Failure) else yaml_variables(
        settings
    )


def _key(settings_files: tuple[Mapping[str, str], ...], configured_key: str, *, named: bool) -> str:
    return configured_key if named else _first(settings_files, "API_SERVER_KEY", configured_key)


def _first(settings_files: tuple[Mapping[str, str], ...], name: str, otherwise: str) -> str:
    return next((value for each in settings_files if (value := each.get(name, "").strip())), otherwise)


def _port(value: str) -> int:
    port = int(value) if value.isascii() and value.isdecimal() and len(value) <= 5 else 0
    return port if port <= MAX_PORT else 0


def _text(value: object) -> str:
    parts = as_array(value)
    return as_identity(value).strip() if parts is None else ",".join(map(_text, parts))
