"""Agent profiles, which `auth.ok` lists (wire core 1.4, 1.8); with discovery they are loaded again every 30 s.

The first, `default`, comes from the main configuration file. With profile discovery there are others: the first
`MAX_PROFILES` folders, by name, of `profiles/` beside that file, named like their folders. A folder `default`, and an
unreadable file, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from svc_proto.commands import Compute, Level
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_yaml
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import ProfileJson

__all__ = ["RESCAN_INTERVAL", "load_profiles", "profile_entry"]

RESCAN_INTERVAL = 30.0  # s, wire core 1.8
MAX_PROFILES = 100  # profiles of one folder; further ones are not listed


def load_profiles(engine: Engine, config_path: str, *, discover: bool = True) -> Flow[list[ProfileJson]]:
    """Return the entries of the profiles; without `discover`, at most that of the main configuration file.

    A missing file counts as empty. A profile whose file cannot be read is left out.
    """
    found: list[ProfileJson] = []
    yield from _add(engine, found, "default", config_path)
    if not discover:
        return found
    folder = config_path.rpartition("/")[0] + "/profiles"
    names = yield from run_operation(engine, Compute(engine.new_op(), "list_folders", (folder,)))
    for name in names[:MAX_PROFILES] if isinstance(names, tuple) else ():
        if name != "default":
            yield from _add(engine, found, str(name), f"{folder}/{name}/config.yaml")
    return found


def profile_entry(name: str, config: Mapping[str, object]) -> ProfileJson:
    """Return the entry of a profile for `auth.ok`: name, model and description; the other members are constant."""
    config = JsonObject.of(config)
    return {
        "name": name,
        "model": config.get_object("model").text("default") or "unknown",
        "description": config.text("description"),
        "system_message": None,
        "gateway_running": False,
        "has_soul": False,
        "skill_count": 0,
        "api_server_enabled": False,
        "api_server_url": None,
        "api_server_host": None,
        "api_server_port": None,
        "api_server_key_present": False,
    }


def _add(engine: Engine, found: list[ProfileJson], name: str, path: str) -> Flow[None]:
    config = yield from read_yaml(engine, path)
    if not isinstance(config, Failure):
        found.append(profile_entry(name, config))
    elif config.kind is FailureKind.NOT_FOUND:
        found.append(profile_entry(name, {}))
    else:
        engine.log(Level.WARNING, "profile not read", profile=name, problem=config.kind.value)
