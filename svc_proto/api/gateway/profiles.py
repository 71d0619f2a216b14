"""Methods for the one profile, and for features that this service lacks but whose absence clients read as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.api.gateway.sessions import PROFILE
from svc_proto.api.gateway.settings import CUSTOM, check_model
from svc_proto.engine.flow import Flow
from svc_proto.schema.gateway_rpc import NO_SUCH_ROW, NOT_SUPPORTED, RpcCall
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import RpcError

if TYPE_CHECKING:
    from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
    from svc_proto.api.gateway.service import ApiGateway

__all__ = ["methods"]

NO_PETS = {"enabled": False}
NO_ASSET = {"found": False}
PARTS = ("description", "soul", "model", "skills", "toolsets", "mcp_servers", "ui_meta")


def methods(gateway: ApiGateway) -> dict[str, Method]:
    """Return the methods by name."""
    theme = _ProfileMethods(gateway)
    return {
        "profiles.list": theme.list,
        "profiles.describe": theme.describe,
        "profiles.configure": theme.configure,
        "profiles.get_asset": theme.asset,
        "process.list": lambda connection, call: {"processes": []},  # the agent runs nothing in the background
        "process.kill": _refuse_process,
        "pet.info": lambda connection, call: NO_PETS,
        "pet.gallery": lambda connection, call: NO_PETS,
        "pet.disable": lambda connection, call: NO_PETS,
    }


class _ProfileMethods:
    def __init__(self, gateway: ApiGateway) -> None:
        self._gateway = gateway

    def list(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """List the one profile."""
        settings = yield from self._gateway.api.settings()
        skills = yield from self._gateway.api.parts.skills.list()
        row = {
            "name": PROFILE,
            "model": settings.name if settings.endpoint is None else settings.endpoint.model,
            "provider": "builtin" if settings.endpoint is None else settings.provider or CUSTOM,
            "description": "",
            "skill_count": len(skills),
            "is_default": True,
            "has_avatar": False,
            "ui_meta": {},
        }
        return {"profiles": [row]}

    def describe(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Describe the one profile; its soul is the system prompt of the configuration."""
        _check_name(call)
        api = self._gateway.api
        settings = yield from api.settings()
        skills = yield from api.parts.skills.list()
        endpoint = settings.endpoint
        toolsets = [JsonObject.of(row) for row in api.parts.toolbox.toolsets()]
        return {
            "name": PROFILE,
            "description": "",
            "soul": settings.system,
            "model": {
                "provider": "builtin" if endpoint is None else settings.provider or CUSTOM,
                "default": settings.name if endpoint is None else endpoint.model,
            },
            "skills": [{"name": skill.name, "enabled": True} for skill in skills],
            "toolsets": [
                {
                    "name": row.text("name"),
                    "description": row.text("description"),
                    "tool_count": len(row.texts("tools")),
                    "enabled": row.get("enabled") is not False,
                }
                for row in toolsets
            ],
            "toolsets_pinned": False,
        }

    def configure(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Choose the model of the profile; its other parts are those of the configuration file, and do not change."""
        _check_name(call)
        api, model = self._gateway.api, call.params.text("model")
        if model:
            yield from check_model(api, model, of_server=True)
            yield from api.config_file.change_model({"model": model})
        return {"name": PROFILE, "applied": {**dict.fromkeys(PARTS, False), "model": bool(model)}}

    def asset(self, connection: GatewayConnection, call: RpcCall) -> Result:
        """Report that the profile has no picture."""
        _check_name(call)
        return NO_ASSET


def _check_name(call: RpcCall) -> None:
    if call.text("name") != PROFILE:
        raise RpcError(NOT_SUPPORTED, f"this server runs the profile {PROFILE!r} only")


def _refuse_process(connection: GatewayConnection, call: RpcCall) -> Result:
    raise RpcError(NO_SUCH_ROW, "there is no such process")
