"""Where this host's API server is, and its key: the chain of wire core 2.7, each value falling through for itself.

First the agent's configuration file, then `.env` in the service home, then the environment, then the defaults.
It is spoken to over TLS if `.env` or the environment gives it a certificate. One that runs has said where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import field, frozen

from svc_proto.basics.dotenv import parse_dotenv
from svc_proto.config import RelayConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_file, read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure

__all__ = ["ApiServer", "find_api"]

MAX_PORT = 65_535


@frozen(kw_only=True)
class ApiServer:
    """Host, port, key and whether it serves TLS; an empty key means open access."""

    host: str = "127.0.0.1"
    port: int = 8642
    key: str = field(default="", repr=False)
    tls: bool = False


def find_api(engine: Engine, config: RelayConfig) -> Flow[ApiServer]:
    """Go through the chain. A file that cannot be read or understood counts as absent."""
    settings = yield from read_yaml(engine, config.config_path)
    lines = yield from read_file(engine, f"{config.home}/.env")
    server: Mapping[str, object] = {}
    if not isinstance(settings, Failure):
        server = _object(_object(settings.get("platforms")).get("api_server"))
    dotenv = {} if isinstance(lines, Failure) else parse_dotenv(lines.decode("utf-8", "replace"))
    extra = _object(server.get("extra"))
    hosts = (extra.get("host"), server.get("host"), dotenv.get("API_SERVER_HOST"), config.api_host)
    ports = (extra.get("port"), server.get("port"), dotenv.get("API_SERVER_PORT"), config.api_port)
    keys = (extra.get("key"), server.get("api_key"), dotenv.get("API_SERVER_KEY"), config.api_key)
    if config.webapi_inside is not None:
        there = config.webapi
        return ApiServer(host=there.host, port=there.port, key=_first(keys), tls=there.tls)
    return ApiServer(
        host=_first(hosts) or "127.0.0.1",
        port=next((port for port in map(_port, ports) if port), 8642),
        key=_first(keys),
        tls=config.api_tls or bool(dotenv.get("API_SERVER_SSL_CERT")),
    )


def _first(values: tuple[object, ...]) -> str:
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def _port(value: object) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal() and len(value.strip()) <= 5:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_PORT:
        return value
    return 0


def _object(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
