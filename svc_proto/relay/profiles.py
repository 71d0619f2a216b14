"""The agent profiles that `auth.ok` lists (wire core 1.4): one made from the main configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from svc_proto.commands import Level
from svc_proto.engine.files import read_yaml
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["load_profiles", "profile"]


def load_profiles(engine: Engine, config_path: str) -> Flow[list[dict[str, object]]]:
    """Read the profiles. No configuration file gives the bare default; one that cannot be read gives none."""
    config = yield from read_yaml(engine, config_path)
    if isinstance(config, Failure):
        if config.kind is FailureKind.NOT_FOUND:
            return [profile("default", {})]
        engine.log(Level.WARNING, "configuration not read", problem=config.kind.value)
        return []
    return [profile("default", config)]


def profile(name: str, config: Mapping[str, object]) -> dict[str, object]:
    """One entry, from the parsed configuration of that profile."""
    model = _member(config, "model").get("default")
    description = config.get("description")
    return {
        "name": name,
        "model": model if isinstance(model, str) and model else "unknown",
        "description": description if isinstance(description, str) else "",
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


def _member(config: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = config.get(key)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
