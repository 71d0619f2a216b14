"""Methods for the settings of a session (model, personality, reasoning effort) and for the list of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.api.agent_settings import AgentSettings
from svc_proto.api.chat.records import ChatSession
from svc_proto.api.chat.store_requests import UpdateChat
from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow
from svc_proto.schema.gateway_rpc import NOT_SUPPORTED, RpcCall
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError
from svc_proto.service_clients.authority import MANAGE

if TYPE_CHECKING:
    from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
    from svc_proto.api.gateway.live_session import GatewayPort, LiveGateway
    from svc_proto.api.ports import SettingsPort
    from svc_proto.schema.api_types import ModelOptionsJson

__all__ = [
    "CUSTOM",
    "EFFORTS",
    "NO_PERSONALITY",
    "check_effort",
    "check_manage",
    "check_model",
    "chosen_model",
    "methods",
    "model_options",
]

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
NO_PERSONALITY = "none"
BUILT_IN, CUSTOM = "builtin", "custom"  # provider names, as in `routes.management`
ROUTES = "routes"  # slug of the models that `model_routes` of the configuration names
PREFIX = "/personality "
FIXED = {"approvals.mode": "manual", "fast": "normal", "yolo": "0"}  # settings with the one value that exists here
UNLIMITED = 1_000  # names in one list


def methods(gateway: LiveGateway) -> dict[str, Method]:
    """Return the gateway's methods for settings and models by name."""
    theme = _SettingMethods(gateway)
    return {
        "config.get": theme.get,
        "config.set": theme.set,
        "model.options": theme.options,
        "complete.slash": theme.complete,
    }


def check_effort(value: str) -> str:
    """Return the value, if it is a known reasoning effort. Raises `RpcError` if it is not."""
    if value not in EFFORTS:
        raise RpcError(NOT_SUPPORTED, f"the reasoning effort must be one of {', '.join(EFFORTS)}")
    return value


def chosen_model(gateway: LiveGateway, settings: AgentSettings, chat: ChatSession) -> Flow[ModelEndpoint | None]:
    """Return the endpoint of a session with the model chosen for it, or else the server's; None: the built-in agent.

    A chosen model counts only while the server offers it.
    """
    endpoint, name = settings.endpoint, chat.model or ""
    if name in settings.aliases:
        return settings.aliases[name]
    if endpoint is None or name in ("", settings.name, endpoint.model):
        return endpoint
    listed = yield from gateway.api.model_list.list_models(endpoint)
    return evolve(endpoint, model=name) if name in (listed or ()) else endpoint


def model_options(api: SettingsPort, chosen: str = "") -> Flow[ModelOptionsJson]:
    """Return the models by provider, and which one is current: `chosen` if it is offered, else the server's."""
    settings = yield from api.settings()
    endpoint = settings.endpoint
    if endpoint is None:
        row = {"slug": BUILT_IN, "name": "Built-in agent", "models": [settings.name], "is_current": True}
        return {"providers": [{**row, "authenticated": True}], "provider": BUILT_IN, "model": settings.name}
    listed = yield from api.model_list.list_models(endpoint)
    slug, models = settings.provider or CUSTOM, list(listed or (endpoint.model,))
    if endpoint.model not in models:
        models.insert(0, endpoint.model)
    current = chosen if chosen in (*models, *settings.aliases) else endpoint.model
    of_alias = current in settings.aliases
    providers: list[dict[str, object]] = [
        {
            "slug": slug,
            "name": slug.replace("-", " ").replace("_", " ").title(),
            "models": models[:UNLIMITED],
            "total_models": len(models),
            "is_current": not of_alias,
            "authenticated": bool(endpoint.api_key) or listed is not None,
        }
    ]
    if settings.aliases:
        row = {"slug": ROUTES, "name": "Routes", "models": [*settings.aliases], "is_current": of_alias}
        providers.append({**row, "authenticated": True})
    return {"providers": providers, "provider": ROUTES if of_alias else slug, "model": current}


def check_manage(api: GatewayPort, connection: GatewayConnection) -> None:
    """Check that a client may change the server's settings. Raises `Refused` 403."""
    if not api.authority(connection.request).holds(MANAGE):
        raise Refused(403, "grant_required", "this needs the right manage, which the pairing withholds")


def check_model(api: SettingsPort, name: str, *, of_server: bool) -> Flow[object]:
    """Return the provider of the named model.

    Raises `RpcError` if the server does not offer the model, or with `of_server` if it is the alias of a route.
    """
    options = yield from model_options(api, name)
    if options["model"] != name or (of_server and options["provider"] == ROUTES):
        raise RpcError(NOT_SUPPORTED, f"the server does not offer the model {name[:100]!r}")
    return options["provider"]


class _SettingMethods:
    def __init__(self, gateway: LiveGateway) -> None:
        self._gateway = gateway

    def get(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Return a setting of the session, or of the server. Raises `RpcError` for an unknown one."""
        key = call.text("key")
        session = (yield from self._gateway.find(connection, call)) if "session_id" in call.params else None
        settings = yield from self._gateway.api.settings()
        if key == "personality":
            own = None if session is None else session.personality
            return {"value": (settings.personality if own is None else own) or NO_PERSONALITY}
        if key == "reasoning":
            return {"value": (session.effort if session is not None else None) or "medium", "display": "show"}
        if key == "approvals.mode":
            return {"value": "manual"}
        raise RpcError(NOT_SUPPORTED, f"no setting {key[:40]!r}")

    def set(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Change a setting of the session, or the model of the server.

        A model is set for the server as well with `--global`, and for the server alone without a session. Settings in
        `FIXED` accept their one value, and nothing changes. Raises `RpcError` for an unknown setting or value, and
        `Refused` 403 if the client may not change the server's model.
        """
        key, value = call.text("key"), call.text("value").strip()
        if key == "model":
            return (yield from self._set_model(connection, call, value))
        if FIXED.get(key) == value:
            return {"value": value}
        if key not in ("personality", "reasoning"):
            raise RpcError(NOT_SUPPORTED, f"{key[:40]!r} cannot be set to that here")
        session = yield from self._gateway.find(connection, call)
        if key == "reasoning":
            session.effort = check_effort(value)
            return {"value": value}
        settings = yield from self._gateway.api.settings()
        if value != NO_PERSONALITY and value not in settings.personalities:
            raise RpcError(NOT_SUPPORTED, f"no personality {value[:40]!r}")
        session.personality = value
        return {"value": value}

    def options(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Return the models that can be chosen, and which one is current: the session's if the call names a session."""
        chosen = ""
        if "session_id" in call.params:
            session = yield from self._gateway.find(connection, call)
            chosen = (yield from self._gateway.stored(session.id)).model or ""
        return (yield from model_options(self._gateway.api, chosen))

    def complete(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Return the completions of `/personality`; none for any other command."""
        settings = yield from self._gateway.api.settings()
        text = call.text("text")
        names = [NO_PERSONALITY, *settings.personalities] if text.startswith(PREFIX) else []
        begun = text.removeprefix(PREFIX)
        return {"items": [{"text": f"{PREFIX}{name}"} for name in names[:UNLIMITED] if name.startswith(begun)]}

    def _set_model(self, connection: GatewayConnection, call: RpcCall, value: str) -> Flow[Result]:
        api = self._gateway.api
        words = value.split()
        everywhere = "--global" in words or "session_id" not in call.params
        if "--provider" in words:
            del words[words.index("--provider") : words.index("--provider") + 2]
        name = next((word for word in words if not word.startswith("--")), "")
        if not name:
            raise RpcError(INVALID_PARAMS, "value must name a model")
        if everywhere:
            check_manage(api, connection)
        provider = yield from check_model(api, name, of_server=everywhere)
        if "session_id" in call.params:
            session = yield from self._gateway.find(connection, call)
            request = UpdateChat(id=session.id, changes={"model": name}, now=api.engine.now.wall)
            yield from api.run_store_request(request)
        if everywhere:
            yield from api.change_settings(connection.request, {"model": name})
        return {"value": name, "provider": provider}
