"""The key of this host's API server, by the chain of wire core 2.7.

First the agent's configuration file, then `.env` in the service home, then what the environment said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.dotenv import parse_dotenv
from svc_proto.engine.files import read_file, read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.voice.profiles import section

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["host_api_key"]


def host_api_key(engine: Engine, config_path: str, home: str, otherwise: str) -> Flow[str]:
    """The key; empty if there is none. A file that cannot be read counts as absent."""
    settings = yield from read_yaml(engine, config_path)
    if not isinstance(settings, Failure):
        server = section(section(settings, "platforms"), "api_server")
        for holder, name in ((section(server, "extra"), "key"), (server, "api_key")):
            key = holder.get(name)
            if isinstance(key, str) and key:
                return key
    lines = yield from read_file(engine, f"{home}/.env")
    if not isinstance(lines, Failure):
        key = parse_dotenv(lines.decode("utf-8", "replace")).get("API_SERVER_KEY")
        if key is not None:
            return key
    return otherwise
