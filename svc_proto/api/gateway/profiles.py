"""Methods for the one profile, and fixed answers for processes and pets, which this service lacks."""

from svc_proto.agent.avatar import parse_avatar, read_avatar, write_avatar
from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
from svc_proto.api.gateway.live_session import LiveGateway
from svc_proto.api.gateway.sessions import PROFILE
from svc_proto.api.gateway.settings import CUSTOM, check_manage, check_model
from svc_proto.api.model_config_file import parse_prompt
from svc_proto.engine.flow import Flow
from svc_proto.schema.gateway_rpc import NO_SUCH_ROW, NOT_SUPPORTED, RpcCall
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError

__all__ = ["methods"]

AVATAR = "avatar"
NO_PETS = {"enabled": False}
NO_ASSET = {"found": False}
NO_PICTURE = "the picture must be a PNG, JPEG, GIF or WebP image of at most 512 kB, in base64"
PARTS = ("description", "soul", "model", "skills", "toolsets", "mcp_servers", "ui_meta")


def methods(gateway: LiveGateway) -> dict[str, Method]:
    """Return the gateway's methods for profiles, processes and pets by name."""
    theme = _ProfileMethods(gateway)
    return {
        "profiles.list": theme.list,
        "profiles.describe": theme.describe,
        "profiles.configure": theme.configure,
        "profiles.get_asset": theme.asset,
        "profiles.set_asset": theme.set_asset,
        "process.list": lambda connection, call: {"processes": []},  # the agent runs nothing in the background
        "process.kill": _refuse_process,
        "pet.info": lambda connection, call: NO_PETS,
        "pet.gallery": lambda connection, call: NO_PETS,
        "pet.disable": lambda connection, call: NO_PETS,
    }


class _ProfileMethods:
    def __init__(self, gateway: LiveGateway) -> None:
        self._gateway = gateway

    def list(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Return a list with one row: the profile `default`, with its model and its number of skills."""
        settings = yield from self._gateway.api.settings()
        skills = yield from self._gateway.api.parts.skills.list()
        avatar = yield from read_avatar(self._gateway.api.engine)
        row = {
            "name": PROFILE,
            "model": settings.name if settings.endpoint is None else settings.endpoint.model,
            "provider": "builtin" if settings.endpoint is None else settings.provider or CUSTOM,
            "description": "",
            "skill_count": len(skills),
            "is_default": True,
            "has_avatar": avatar is not None,
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
        """Change the model and the soul (the system prompt) in the configuration file; other parts do not change.

        Raises `RpcError` for a model that is not offered, and `Refused` 403 for a change without the right to manage.
        """
        _check_name(call)
        api, model, soul = self._gateway.api, call.params.text("model"), call.params.string("soul")
        change = {} if soul is None else parse_prompt(soul, "soul")
        if model:
            yield from check_model(api, model, of_server=True)
            change["model"] = model
        if change:
            check_manage(api, connection)
            yield from api.change_settings(connection.request, change)
        applied = {**dict.fromkeys(PARTS, False), "model": bool(model), "soul": soul is not None}
        return {"name": PROFILE, "applied": applied}

    def asset(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Return the profile's picture as a data URL; `found` is false without one, and for any other asset."""
        _check_name(call)
        found = (yield from read_avatar(self._gateway.api.engine)) if call.text("asset") == AVATAR else None
        if found is None:
            return NO_ASSET
        return {"found": True, "mime": found.kind, "data": found.url, "size": len(found.data)}

    def set_asset(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Store the profile's picture.

        Raises `RpcError` for another asset or data that is no picture, and `Refused` 403 without the right to manage.
        """
        _check_name(call)
        check_manage(self._gateway.api, connection)
        avatar = parse_avatar(call.text("data"))
        if call.text("asset") != AVATAR or avatar is None:
            raise RpcError(INVALID_PARAMS, NO_PICTURE)
        yield from write_avatar(self._gateway.api.engine, avatar)
        return {"ok": True, "size": len(avatar.data)}


def _check_name(call: RpcCall) -> None:
    if call.text("name") != PROFILE:
        raise RpcError(NOT_SUPPORTED, f"this server runs the profile {PROFILE!r} only")


def _refuse_process(connection: GatewayConnection, call: RpcCall) -> Result:
    raise RpcError(NO_SUCH_ROW, "there is no such process")
