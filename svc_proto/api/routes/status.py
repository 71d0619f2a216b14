"""Health, models and capabilities (wire api 1, 5.1, 5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from svc_proto.api.access import SESSION_ID, SESSION_KEY, TOOL_PROGRESS, ApiAccess
from svc_proto.api.agent_settings import product_id
from svc_proto.api.chat.store_requests import ListChats
from svc_proto.api.chat.views import iso
from svc_proto.api.errors import model_not_found
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.basics.brand import Brand
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route, Router

if TYPE_CHECKING:
    from svc_proto.schema import api_types as types

__all__ = ["routes"]

# Endpoints that clients may detect, by the name in `endpoints`; only those of the route table are listed (wire api 5.2)
ENDPOINTS = {
    "health": ("GET", "/health"),
    "models": ("GET", "/v1/models"),
    "model": ("GET", "/v1/models/{id}"),
    "capabilities": ("GET", "/v1/capabilities"),
    "sessions": ("GET", "/api/sessions"),
    "session_create": ("POST", "/api/sessions"),
    "session": ("GET", "/api/sessions/{id}"),
    "session_update": ("PATCH", "/api/sessions/{id}"),
    "session_delete": ("DELETE", "/api/sessions/{id}"),
    "session_messages": ("GET", "/api/sessions/{id}/messages"),
    "session_fork": ("POST", "/api/sessions/{id}/fork"),
    "session_search": ("GET", "/api/sessions/search"),
    "session_chat": ("POST", "/api/sessions/{id}/chat"),
    "session_chat_stream": ("POST", "/api/sessions/{id}/chat/stream"),
    "chat_completions": ("POST", "/v1/chat/completions"),
    "responses": ("POST", "/v1/responses"),
    "runs": ("POST", "/v1/runs"),
    "run_status": ("GET", "/v1/runs/{run_id}"),
    "run_events": ("GET", "/v1/runs/{run_id}/events"),
    "run_stop": ("POST", "/v1/runs/{run_id}/stop"),
    "run_approval": ("POST", "/v1/runs/{run_id}/approval"),
    "skills": ("GET", "/v1/skills"),
    "toolsets": ("GET", "/v1/toolsets"),
    "config": ("GET", "/api/config"),
    "memory": ("GET", "/api/memory"),
}
FEATURES = {  # by the endpoint that they need
    "session_resources": "sessions",
    "session_fork": "session_fork",
    "session_search": "session_search",
    "session_chat": "session_chat",
    "session_chat_streaming": "session_chat_stream",
    "chat_completions": "chat_completions",
    "chat_completions_streaming": "chat_completions",
    "responses_api": "responses",
    "responses_streaming": "responses",
    "run_submission": "runs",
    "run_status": "run_status",
    "run_events_sse": "run_events",
    "run_stop": "run_stop",
    "run_approval": "run_approval",
    # The same features by the names of other servers of this kind (wire api leaves them open).
    "run_approval_response": "run_approval",
    "approval_events": "run_approval",
    "tool_progress_events": "session_chat_stream",
    "skills_api": "skills",
    "toolsets_api": "toolsets",
    "memory_api": "memory",
}


class StatusPort(TurnPort, Protocol):
    """Members of the API server that the routes of health, models and capabilities use."""

    started: Moment

    @property
    def router(self) -> Router:
        """The route table of the API server."""


def routes(api: StatusPort) -> list[Route]:
    """Return the routes of health, models and capabilities."""
    view = _ApiStatusRoutes(api)
    return [
        Route(method="GET", pattern="/health", access=ApiAccess.PUBLIC, handler=view.health),
        Route(method="GET", pattern="/v1/health", access=ApiAccess.PUBLIC, handler=view.health),
        Route(method="GET", pattern="/health/detailed", access=ApiAccess.KEY, handler=view.details),
        Route(method="GET", pattern="/v1/models", access=ApiAccess.KEY, handler=view.models),
        Route(method="GET", pattern="/v1/models/{id}", access=ApiAccess.KEY, handler=view.model),
        Route(method="GET", pattern="/v1/capabilities", access=ApiAccess.KEY, handler=view.capabilities),
    ]


class _ApiStatusRoutes:
    def __init__(self, api: StatusPort) -> None:
        self._api = api

    def health(self, request: Request) -> JsonResponse[types.HealthJson]:
        return json_response(200, self._identity(request, "ok"))

    def details(self, request: Request) -> Flow[JsonResponse[types.DetailedHealthJson]]:
        """Return the health of the store, the model and the runs as states and counts, and the server's uptime."""
        api = self._api
        settings = yield from api.settings()
        state_db: types.HealthCheckJson = {"status": "ok"}
        try:
            page = yield from api.run_store_request(ListChats(limit=1, include_children=True, include_archived=True))
            state_db["sessions"] = page.total
        except Refused:
            state_db["status"] = "degraded"
        model = "built-in" if settings.endpoint is None else "configured"
        active = len(api.runs)
        now = api.engine.now
        body: types.DetailedHealthJson = {
            **self._identity(request, state_db["status"]),
            "readiness": {
                "status": state_db["status"],
                "checks": {
                    "state_db": state_db,
                    "model": {"status": "ok", "detail": model},
                    "background_queues": {"status": "ok", "active_runs": active},
                },
            },
            "gateway_state": "draining" if api.engine.stopping else "running",
            "platforms": {},
            "active_agents": active,
            "gateway_busy": active > 0,
            "gateway_drainable": active == 0,
            "exit_reason": None,
            "updated_at": iso(now.wall),
            "uptime_seconds": int(now.mono - api.started.mono),
        }
        return json_response(200, body)

    def models(self, request: Request) -> Flow[JsonResponse[types.ModelsJson]]:
        rows = yield from self._models(request)
        return json_response(200, {"object": "list", "data": rows})

    def model(self, request: Request) -> Flow[JsonResponse[types.ModelJson]]:
        """Return the model of this id. Raises `Refused` 404 if it is not in the list of models."""
        wanted = request.params["id"]
        for row in (yield from self._models(request)):
            if row["id"] == wanted:
                return json_response(200, row)
        raise model_not_found(wanted)

    def _models(self, request: Request) -> Flow[list[types.ModelJson]]:
        api = self._api
        settings = yield from api.settings()
        created = int(api.engine.now.wall)
        brand = api.brand_of(request)
        name = self._shown_name(settings.name, brand)

        def row(model: str, root: str, parent: str | None) -> types.ModelJson:
            return {
                "id": model,
                "object": "model",
                "created": created,
                "owned_by": brand.name,
                "permission": [],
                "root": root,
                "parent": parent,
            }

        rows = [row(name, name, None)]
        rows += [row(alias, endpoint.model, name) for alias, endpoint in settings.aliases.items()]
        return rows

    def capabilities(self, request: Request) -> Flow[JsonResponse[types.CapabilitiesJson]]:
        api = self._api
        brand = api.brand_of(request)
        settings = yield from api.settings()
        there = {(route.method, route.pattern) for route in api.router.routes}
        endpoints: dict[str, types.EndpointJson] = {
            name: {"method": method, "path": path}
            for name, (method, path) in ENDPOINTS.items()
            if (method, path) in there
        }
        features: dict[str, bool | str] = {name: True for name, needed in FEATURES.items() if needed in endpoints}
        features["session_id_header"] = f"{brand.header_prefix}{SESSION_ID}"
        features["session_continuity_header"] = features["session_id_header"]
        features["session_key_header"] = f"{brand.header_prefix}{SESSION_KEY}"
        features["tool_progress_header"] = f"{brand.header_prefix}{TOOL_PROGRESS}"
        body: types.CapabilitiesJson = {
            "object": f"{brand.name}.capabilities",
            "platform": product_id(brand),
            "model": self._shown_name(settings.name, brand),
            "auth": {"type": "bearer", "required": bool(api.config.key)},
            "runtime": {
                "mode": "server",
                "tool_execution": "server",
                "split_runtime": False,
                "description": "The agent and its tools run on this server.",
            },
            "features": features,
            "endpoints": endpoints,
        }
        return json_response(200, body)

    def _shown_name(self, name: str, brand: Brand) -> str:
        """Return the configured name of the agent; in place of the default name, that of the client's brand."""
        return product_id(brand) if name == product_id(self._api.config.brand) else name

    def _identity(self, request: Request, status: Literal["ok", "degraded"]) -> types.HealthJson:
        api = self._api
        return {"status": status, "platform": product_id(api.brand_of(request)), "version": api.config.version}
