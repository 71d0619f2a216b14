"""Settings of the API that stand in the configuration file, under `platforms.api_server` and `gateway.api_server`.

They are read once, at its start, and weaker than `.env` and the environment (wire api 9). They become variables, so
that they are checked in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

__all__ = ["yaml_variables"]

EXTRA = {  # members of `platforms.api_server.extra`
    "host": "API_SERVER_HOST",
    "port": "API_SERVER_PORT",
    "key": "API_SERVER_KEY",
    "cors_origins": "API_SERVER_CORS_ORIGINS",
}


def yaml_variables(found: Mapping[str, object]) -> dict[str, str]:
    """What a parsed configuration file sets."""
    server = _member(_member(found, "platforms"), "api_server")
    extra = _member(server, "extra")
    variables = {variable: _text(extra.get(name)) for name, variable in EXTRA.items()}
    variables["API_SERVER_KEY"] = variables["API_SERVER_KEY"] or _text(server.get("api_key"))  # as invites have it
    gateway = _member(_member(found, "gateway"), "api_server")
    variables["API_SERVER_MAX_CONCURRENT_RUNS"] = _text(gateway.get("max_concurrent_runs"))
    return {name: value for name, value in variables.items() if value}


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_text(part) for part in value)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _member(holder: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = holder.get(name)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
