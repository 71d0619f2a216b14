"""Routes of configuration, memory, skills, toolsets and models (wire api 8), MCP servers and recorded changes.

Refusals have the short form on the paths in `errors.MANAGEMENT`, else OpenAI's form. A refused change of notes and the
answer to a switch of a skill have forms of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from attrs import asdict

from svc_proto.agent.memory import TARGETS, MemoryChangeResult, usage_of
from svc_proto.api.access import ApiAccess
from svc_proto.api.agent_settings import is_usable_base_url, origin_of
from svc_proto.api.change_ledger import ChangeLedger
from svc_proto.api.errors import invalid_request
from svc_proto.api.model_config_file import parse_change
from svc_proto.api.ports import ManagementPort
from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import boolean, text
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Handler, Route
from svc_proto.facts import Failure
from svc_proto.service_clients.model_probe import find_abilities, list_models, try_model

if TYPE_CHECKING:
    from svc_proto.api.openapi import change_types
    from svc_proto.schema import api_types as types

__all__ = ["routes"]

CUSTOM = "custom"  # provider name of any OpenAI-compatible endpoint, wire api 9
BUILT_IN = "builtin"  # provider name if no model is configured
HINT = "GET /api/skills/{name} reads one"
NO_TOGGLE = "skills cannot be switched off here: move the skill's folder out of the skills folder"


class ConfigurationPort(ManagementPort, Protocol):
    """Members of the API server that the routes of configuration use."""

    ledger: ChangeLedger


def routes(api: ConfigurationPort) -> list[Route]:
    """Return the routes of configuration, memory, skills, toolsets, models, MCP servers and recorded changes."""
    view = _ManagementRoutes(api)
    rows: list[tuple[str, str, Handler]] = [
        ("GET", "/api/config", view.config),
        ("PATCH", "/api/config", view.change_config),
        ("GET", "/api/memory", view.memory),
        ("POST", "/api/memory", view.add_memory),
        ("PATCH", "/api/memory", view.replace_memory),
        ("DELETE", "/api/memory", view.remove_memory),
        ("GET", "/api/skills", view.skills),
        ("GET", "/api/skills/{name}", view.skill),
        ("GET", "/api/skills/toggle", view.skill),
        ("PUT", "/api/skills/toggle", view.toggle_skill),
        ("GET", "/v1/skills", view.skill_rows),
        ("GET", "/v1/toolsets", view.toolsets),
        ("GET", "/api/mcp-servers", view.servers),
        ("POST", "/api/mcp-servers/reload", view.reload_servers),
        ("PUT", "/api/mcp-servers/{name}/enabled", view.switch_server),
        ("POST", "/api/mcp-servers/{name}/test", view.test_server),
        ("GET", "/api/available-models", view.models),
        ("GET", "/api/model/options", view.model_options),
    ]
    return [
        *(
            Route(method=method, pattern=path, access=_access(method), handler=handler)
            for method, path, handler in rows
        ),
        Route(method="POST", pattern="/api/model/probe", access=ApiAccess.MAIN_KEY, handler=view.probe_model),
        Route(method="GET", pattern="/api/changes", access=ApiAccess.MAIN_KEY, handler=view.changes),
        Route(method="POST", pattern="/api/changes/undo", access=ApiAccess.MAIN_KEY, handler=view.undo_changes),
    ]


class _ManagementRoutes:
    def __init__(self, api: ConfigurationPort) -> None:
        self._api = api

    # --- configuration ---

    def config(self, request: Request) -> Flow[JsonResponse[types.ConfigJson]]:
        settings = yield from self._api.settings()
        body: types.ConfigJson = {
            "model": settings.model,
            "provider": settings.provider,
            "api_mode": settings.api_mode,
            "base_url": settings.base_url,
            "config": settings.shown,
        }
        return json_response(200, body)

    def change_config(self, request: Request) -> Flow[JsonResponse[types.ConfigChangedJson]]:
        """Change the configuration file, and return model, provider and base URL as they are in force after that.

        The environment has precedence over the file. An empty change writes nothing.
        """
        change = parse_change(request.json_object())
        if change:
            yield from self._api.change_settings(request, change)
        settings = yield from self._api.settings()
        return json_response(
            200,
            {"ok": True, "model": settings.model, "provider": settings.provider, "base_url": settings.base_url},
        )

    def models(self, request: Request) -> Flow[JsonResponse[types.AvailableModelsJson]]:
        api = self._api
        settings = yield from api.settings()
        endpoint = settings.endpoint
        configured = (settings.provider or CUSTOM) if endpoint is not None else BUILT_IN
        provider = request.query.get("provider", "").strip() or configured
        listed: tuple[str, ...] | None = None
        if endpoint is not None and provider == configured:
            listed = yield from api.model_list.list_models(endpoint)
        configured_models = (
            (endpoint.model if endpoint is not None else settings.name,) if provider == configured else ()
        )
        label = configured.replace("-", " ").replace("_", " ").title()
        body: types.AvailableModelsJson = {
            "provider": provider,
            "models": [{"id": name, "description": ""} for name in listed or configured_models],
            "providers": [
                {
                    "id": configured,
                    "label": label,
                    "aliases": [],
                    "authenticated": endpoint is None or bool(endpoint.api_key) or listed is not None,
                }
            ],
        }
        return json_response(200, body)

    def model_options(self, request: Request) -> Flow[JsonResponse[types.ModelOptionsJson]]:
        from svc_proto.api.gateway.settings import model_options  # noqa: PLC0415, RUF100 - loaded at the first use

        return json_response(200, (yield from model_options(self._api)))

    def probe_model(self, request: Request) -> Flow[JsonResponse[change_types.ModelProbedJson]]:
        """List the models of `base_url`, or of the configured server; with `model`, describe and test that one.

        No model is tested if the server does not respond; an error status of the list does not prevent the test. If the
        model has tools, its stored profiles on that server are dropped. Raises `Refused` 400 without a usable address.
        """
        api, body = self._api, request.json_object()
        endpoint = (yield from api.settings()).endpoint
        url = (body.string("base_url") or (endpoint.base_url if endpoint is not None else "")).rstrip("/")
        if not is_usable_base_url(url):
            raise invalid_request(
                "base_url must be an http:// or https:// URL with a host, without a password or a query"
            )
        # The key of the configured server is sent to that server alone.
        key = endpoint.api_key if endpoint is not None and origin_of(endpoint.base_url) == origin_of(url) else ""
        listing = yield from list_models(api.engine, url, key)
        problem = listing.problem or (f"it answered {listing.status}" if listing.status != 200 else "")
        found: change_types.ModelProbedJson = {"base_url": url, "models": list(listing.names), "problem": None}
        name = body.string("model")
        if name and not listing.problem:
            able = yield from find_abilities(api.engine, url, name, key, listing)
            trial = yield from try_model(api.engine, url, name, key)
            tools = False if trial.refuses_tools else trial.called_tool or able.has_tools
            problem = "" if trial.refuses_tools else trial.problem
            if tools:
                yield from api.parts.profiles.forget(url, name)
            found |= {"model": name, "context": able.context, "tools": tools, "seconds": round(trial.seconds, 3)}
        found["problem"] = problem or None
        return json_response(200, found)

    # --- memory ---

    def memory(self, request: Request) -> Flow[JsonResponse[types.MemoryJson]]:
        requested_target = request.query.get("target", "all")
        targets: list[types.MemoryListJson] = []
        for target in TARGETS if requested_target == "all" else (_parse_target(requested_target),):
            entries = yield from self._api.parts.memory.entries(target)
            if isinstance(entries, Failure):
                raise Refused(503, "memory_unavailable", "the memory store is not available")
            targets.append(
                {
                    "target": target,
                    "entries": list(entries),
                    "entry_count": len(entries),
                    "usage": usage_of(target, entries),
                }
            )
        flat = requested_target != "all"
        return json_response(200, {**targets[0], "targets": targets} if flat else {"targets": targets})

    def add_memory(self, request: Request) -> Flow[JsonResponse[types.MemoryChangedJson | types.MemoryRefusedJson]]:
        target, content = _texts(request, "target", "content")
        return self._changed(request, (yield from self._api.parts.memory.add(target, content)))

    def replace_memory(self, request: Request) -> Flow[JsonResponse[types.MemoryChangedJson | types.MemoryRefusedJson]]:
        target, old_text, content = _texts(request, "target", "old_text", "content")
        return self._changed(request, (yield from self._api.parts.memory.replace(target, old_text, content)))

    def remove_memory(self, request: Request) -> Flow[JsonResponse[types.MemoryChangedJson | types.MemoryRefusedJson]]:
        target, old_text = _texts(request, "target", "old_text")
        return self._changed(request, (yield from self._api.parts.memory.remove(target, old_text)))

    def _changed(
        self, request: Request, change: MemoryChangeResult
    ) -> JsonResponse[types.MemoryChangedJson | types.MemoryRefusedJson]:
        self._api.memory_changed(request, change)
        return json_response(change.status, change.body)

    # --- changes by principal ---

    def changes(self, request: Request) -> Flow[JsonResponse[change_types.ChangesJson]]:
        """Return what the named principal has changed, oldest first; without a name, the changes of all."""
        found = yield from self._api.ledger.find(request.query.get("principal", ""))
        return json_response(200, {"changes": [cast("change_types.ChangeJson", asdict(change)) for change in found]})

    def undo_changes(self, request: Request) -> Flow[JsonResponse[change_types.UndoneChangesJson]]:
        """Undo what a principal has changed, newest first; report for each change whether it was undone."""
        name = text(request.json_object().get("principal"), "principal")
        done = yield from self._api.ledger.undo(name)
        self._api.record_audit("changes undone", request, of=name, count=sum(not each.kept for each in done))
        rows: list[change_types.UndoneChangeJson] = [
            {**cast("change_types.ChangeJson", asdict(each.change)), "undone": not each.kept, "why": each.kept or None}
            for each in done
        ]
        return json_response(200, {"ok": all(not each.kept for each in done), "changes": rows})

    # --- skills and tools ---

    def skills(self, request: Request) -> Flow[JsonResponse[types.SkillsJson]]:
        found = yield from self._api.parts.skills.list()
        category = request.query.get("category")
        rows = [skill.row for skill in found if not category or skill.category == category]
        body: types.SkillsJson = {
            "success": True,
            "skills": rows,
            "categories": sorted(dict.fromkeys(skill.category for skill in found if skill.category is not None)),
            "count": len(rows),
            "hint": HINT,
        }
        return json_response(200, body)

    def skill_rows(self, request: Request) -> Flow[JsonResponse[types.SkillRowsJson]]:
        found = yield from self._api.parts.skills.list()
        return json_response(200, {"object": "list", "data": [skill.row for skill in found]})

    def skill(self, request: Request) -> Flow[JsonResponse[types.SkillJson]]:
        name = request.params.get("name", "toggle")  # a skill may have the name `toggle`
        return json_response(200, (yield from self._api.parts.skills.read(name, request.query.get("file_path"))))

    def toggle_skill(self, request: Request) -> JsonResponse[types.NotImplementedHereJson]:
        return json_response(501, {"error": "skill_toggle_not_implemented", "detail": NO_TOGGLE})

    def toolsets(self, request: Request) -> JsonResponse[types.ToolsetsJson]:
        rows = self._api.parts.toolbox.toolsets()
        return json_response(200, {"object": "list", "platform": "api_server", "data": rows})

    def servers(self, request: Request) -> Flow[JsonResponse[types.McpServersJson]]:
        """Return the state of the MCP servers; those not yet needed are not started."""
        yield from self._api.settings()
        found = self._api.parts.servers
        return json_response(200, {"servers": [] if found is None else found.report()})

    def switch_server(self, request: Request) -> Flow[JsonResponse[change_types.McpSwitchedJson]]:
        """Set in the configuration file whether the agent uses an MCP server."""
        enabled = boolean(request.json_object().get("enabled"), "enabled")
        name = (yield from self._server_row(request))["name"]
        yield from self._api.config_file.switch_server(name, enabled=enabled)
        self._api.record_audit("setting changed", request, settings=f"mcp_servers.{name}.enabled")
        return json_response(200, {"ok": True, "name": name, "enabled": enabled})

    def test_server(self, request: Request) -> Flow[JsonResponse[change_types.McpTestedJson]]:
        """Start an MCP server if it is not ready, wait at most 20 s, and report its state with its tools or problem."""
        row = yield from self._server_row(request, test=True)
        return json_response(200, {"ok": row["state"] == "ready", "error": row["problem"], **row})

    def _server_row(self, request: Request, *, test: bool = False) -> Flow[types.McpServerRowJson]:
        yield from self._api.settings()
        found = self._api.parts.servers
        if found is not None and test:
            yield from found.test(request.params["name"])
        for row in [] if found is None else found.report():
            if row["name"] == request.params["name"]:
                return row
        raise Refused(404, "not_found", "no MCP server of this name is configured")

    def reload_servers(self, request: Request) -> Flow[JsonResponse[types.McpServersJson]]:
        """Restart all MCP servers, wait at most 20 s until each is ready or has failed, and return their states."""
        yield from self._api.settings()
        found = self._api.parts.servers
        if found is not None:
            yield from found.reload()
        return json_response(200, {"servers": [] if found is None else found.report()})


def _access(method: str) -> ApiAccess:
    """Return the access policy for a method: `KEY` for GET, `MANAGE` for any other method."""
    return ApiAccess.KEY if method == "GET" else ApiAccess.MANAGE


def _parse_target(text: str) -> types.NoteTarget:
    for target in TARGETS:
        if target == text:
            return target
    raise invalid_request(f"target must be one of {', '.join(TARGETS)}")


def _texts(request: Request, *names: str) -> list[str]:
    """Return the texts in the members `names` of the body. Raises `Refused` 400 if one is missing or no text.

    The first must name a list of notes (`memory` or `user`).
    """
    body = request.json_object()
    values = [text(body.get(name), name) for name in names]
    _parse_target(values[0])
    return values
