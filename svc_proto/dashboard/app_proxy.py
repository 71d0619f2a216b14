"""Proxy for the phone's app: chats, history and settings of the API server, under the paths that the app requests.

A few routes, such as that of the active profile, have fixed answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.app_sign_in import PROFILE
from svc_proto.dashboard.ports import ApiServerPort
from svc_proto.dashboard.upstream import PRIVATE
from svc_proto.dashboard.validation import parse_body
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, json_response
from svc_proto.engine.router import Handler, Route
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.urls import encode_segment

if TYPE_CHECKING:
    from svc_proto.dashboard.openapi_types import AppMcpServerJson, AppMcpServersJson, OkJson

__all__ = ["routes"]

MAX_PAGE = 100  # chats of one page
MAX_ROWS = 500  # messages of one page
DAY = 86_400.0  # s
MAX_PRUNED = 10_000  # chats that one request looks at
TEST_TIMEOUT = 30.0  # s; the API server waits 20 s for an MCP server
CHANGES = ("title", "archived", "pinned")
MEMORY = {"active": "builtin", "providers": [{"name": "builtin", "available": True, "configured": True}]}


def routes(dashboard: ApiServerPort) -> list[Route]:
    """Return the routes of chats, history and settings for the phone's app."""
    view = _AppProxy(dashboard)
    one = "/api/sessions/{id}"
    rows: list[tuple[str, str, Handler]] = [
        ("GET", "/api/sessions", view.sessions),
        ("GET", "/api/profiles/sessions", view.sessions),
        ("GET", "/api/sessions/search", view.search),
        ("POST", "/api/sessions/prune", view.prune),
        ("GET", one, view.session),
        ("PATCH", one, view.change),
        ("DELETE", one, view.delete),
        ("GET", f"{one}/messages", view.messages),
        ("GET", f"{one}/export", view.export),
        ("GET", "/api/config", view.config),
        ("GET", "/api/config/schema", _answering({"fields": {}, "category_order": []})),
        ("GET", "/api/profiles", view.profiles),
        ("GET", "/api/profiles/active", _answering({"active": PROFILE, "current": PROFILE})),
        ("POST", "/api/profiles/active", _select_profile),
        ("GET", "/api/skills", view.skills),
        ("GET", "/api/model/info", view.model),
        ("GET", "/api/model/options", view.passing("GET", "/api/model/options")),
        ("POST", "/api/model/set", view.set_model),
        ("GET", "/api/mcp/servers", view.servers),
        ("PUT", "/api/mcp/servers/{name}/enabled", view.switch_server),
        ("POST", "/api/mcp/servers/{name}/test", view.test_server),
        ("GET", "/api/memory", _answering(MEMORY)),
        ("GET", "/api/dashboard/plugins", _answering([])),
    ]
    return [
        Route(method=method, pattern=pattern, access=DashboardAccess.OWNER, handler=handler)
        for method, pattern, handler in rows
    ]


class _AppProxy:
    def __init__(self, dashboard: ApiServerPort) -> None:
        self._dashboard = dashboard

    # --- chats ---

    def sessions(self, request: Request) -> Flow[Response]:
        """List one page of the chats, at most `MAX_PAGE`; each row names the profile.

        The list is empty if the query has a `profile` other than `all` and `PROFILE`.
        """
        query = JsonObject(request.query)
        if query.text("profile") not in ("", "all", PROFILE):
            return self._empty_list()
        wanted = {
            "limit": str(min(_number(query.text("limit"), MAX_PAGE) or MAX_PAGE, MAX_PAGE)),
            "offset": str(_number(query.text("offset"), 0)),
            "min_messages": str(_number(query.text("min_messages"), 0)),
            "archived": query.text("archived") or "exclude",
        }
        return self._rows(wanted)

    def _empty_list(self) -> Flow[Response]:
        yield from ()
        return json_response(200, {"sessions": [], "total": 0}, (PRIVATE,))

    def _rows(self, wanted: dict[str, str]) -> Flow[Response]:
        page = yield from self._object("GET", f"/api/sessions?{urlencode(wanted)}")
        rows = [
            {**row, "profile": PROFILE, "is_active": row.get("ended_at") is None} for row in page.objects("sessions")
        ]
        return json_response(200, {**page, "sessions": rows}, (PRIVATE,))

    def session(self, request: Request) -> Flow[Response]:
        """Return the record of one chat."""
        return self._call("GET", _path(request))

    def search(self, request: Request) -> Flow[Response]:
        """Search the messages of the chats for the words in `q`."""
        return self._call("GET", f"/api/sessions/search?q={encode_segment(request.query.get('q', ''))}")

    def change(self, request: Request) -> Flow[Response]:
        """Change the members in `CHANGES` of a chat, such as its title."""
        body = parse_body(request)
        changes = JsonObject({name: body[name] for name in CHANGES if name in body})
        return self._call("PATCH", _path(request), changes)

    def delete(self, request: Request) -> Flow[JsonResponse[OkJson]]:
        """Delete a chat."""
        yield from self._call("DELETE", _path(request))
        return json_response(200, {"ok": True}, (PRIVATE,))

    def messages(self, request: Request) -> Flow[Response]:
        """Return a page of the history, in chronological order, with the row number of each message as its `id`."""
        query = JsonObject(request.query)
        wanted = {
            "limit": str(min(_number(query.text("limit"), MAX_ROWS) or MAX_ROWS, MAX_ROWS)),
            "offset": str(_number(query.text("offset"), 0)),
            "order": "latest" if query.text("order") == "latest" else "oldest",
        }
        page = yield from self._object("GET", f"{_path(request)}/messages?{urlencode(wanted)}")
        rows = [{**row, "id": row.get("row_id"), "message_id": row.get("id")} for row in page.objects("messages")]
        return json_response(200, {**page, "messages": rows}, (PRIVATE,))

    def export(self, request: Request) -> Flow[Response]:
        """Return a chat with all messages."""
        chat = yield from self._object("GET", _path(request))
        history = yield from self._object("GET", f"{_path(request)}/messages")
        return json_response(200, {"session": chat.get_object("session"), **history}, (PRIVATE,))

    def prune(self, request: Request) -> Flow[Response]:
        """List the chats that are old enough and of the named source; with `dry_run` false, delete them instead.

        A request must name an age (days without activity), a source, or both. At most 10,000 chats are examined, and
        archived ones only with `include_archived`.
        """
        body = parse_body(request)
        days, source = body.number("older_than_days", 0), body.text("source")
        dry = body.get("dry_run") is not False
        if days is None and not source:
            raise Refused(400, "invalid", "older_than_days or source must name the chats")
        archived = "include" if body.get("include_archived") is True else "exclude"
        latest = self._dashboard.engine.now.wall - (days or 0) * DAY
        found: list[JsonObject] = []
        offset, full = 0, True
        while full and offset < MAX_PRUNED:
            wanted = {"limit": str(MAX_PAGE), "offset": str(offset), "archived": archived}
            page = (yield from self._object("GET", f"/api/sessions?{urlencode(wanted)}")).objects("sessions")
            found += [row for row in page if (row.number("last_active") or 0) <= latest]
            offset, full = offset + MAX_PAGE, len(page) == MAX_PAGE
        found = [row for row in found if not source or row.text("source") == source]
        if dry:
            names = ("id", "source", "title", "model", "started_at", "message_count")
            starts = [row.number("started_at") or 0 for row in found]
            answer = {
                "matched": len(found),
                "oldest_started_at": min(starts, default=None),
                "newest_started_at": max(starts, default=None),
                "sessions": [{name: row.get(name) for name in names} for row in found],
            }
            return json_response(200, answer, (PRIVATE,))
        for row in found:
            yield from self._call("DELETE", f"/api/sessions/{encode_segment(row.text('id'))}")
        return json_response(200, {"ok": True, "removed": len(found)}, (PRIVATE,))

    # --- settings ---

    def config(self, request: Request) -> Flow[Response]:
        """Return the members of the configuration file that clients may read."""
        found = yield from self._object("GET", "/api/config")
        return json_response(200, found.get_object("config"), (PRIVATE,))

    def profiles(self, request: Request) -> Flow[Response]:
        """Return a list with one row: the profile of this service, with its model and its number of skills."""
        found = yield from self._object("GET", "/api/config")
        skills = yield from self._object("GET", "/api/skills")
        row = {
            "name": PROFILE,
            "model": found.text("model"),
            "provider": found.text("provider"),
            "description": "",
            "is_default": True,
            "skill_count": len(skills.objects("skills")),
            "has_soul": False,
            "gateway_running": True,
        }
        return json_response(200, {"profiles": [row]}, (PRIVATE,))

    def skills(self, request: Request) -> Flow[Response]:
        """List the skills, each marked as enabled."""
        found = yield from self._object("GET", "/api/skills")
        return json_response(200, {"skills": [{**row, "enabled": True} for row in found.objects("skills")]}, (PRIVATE,))

    def model(self, request: Request) -> Flow[Response]:
        """Return the configured model with its provider, base URL and API mode."""
        found = yield from self._object("GET", "/api/config")
        names = ("model", "provider", "base_url", "api_mode")
        return json_response(200, {name: found.text(name) for name in names}, (PRIVATE,))

    def set_model(self, request: Request) -> Flow[Response]:
        """Change the model to one that the server offers.

        Raises `Refused` 400 for any other model, or a `scope` that is not `main`.
        """
        body = parse_body(request)
        if body.text("scope") not in ("", "main"):
            raise Refused(400, "invalid", "only the main model can be chosen")
        options = yield from self._object("GET", "/api/model/options")
        known = [name for row in options.objects("providers") for name in row.texts("models")]
        if body.text("model") not in known:
            raise Refused(400, "invalid", "the server does not offer this model")
        yield from self._call("PATCH", "/api/config", JsonObject(model=body.text("model")))
        return json_response(200, {"ok": True, "model": body.text("model")}, (PRIVATE,))

    def servers(self, request: Request) -> Flow[JsonResponse[AppMcpServersJson]]:
        """List the configured MCP servers; `enabled` is false for those in the state `off`."""
        found = yield from self._object("GET", "/api/mcp-servers")
        rows = [{**row, "enabled": row.text("state") != "off"} for row in found.objects("servers")]
        return json_response(200, {"servers": cast("list[AppMcpServerJson]", rows)}, (PRIVATE,))

    def switch_server(self, request: Request) -> Flow[Response]:
        """Set whether the agent uses an MCP server."""
        return self._call("PUT", f"{_server(request)}/enabled", parse_body(request))

    def test_server(self, request: Request) -> Flow[Response]:
        """Have the API server connect to an MCP server, and return its tools or its problem."""
        engine = self._dashboard.engine
        until = engine.now.mono + TEST_TIMEOUT
        return self._dashboard.require_api().call(engine, "POST", f"{_server(request)}/test", until=until)

    def passing(self, method: str, path: str) -> Handler:
        """Return the handler that forwards a request, without a body, to this method and path of the API server."""
        return lambda request: self._call(method, path)

    # --- helpers ---

    def _call(self, method: str, path: str, body: JsonObject | None = None) -> Flow[Response]:
        data = b"" if body is None else strict_json.dumps_bytes(body)
        return self._dashboard.require_api().call(self._dashboard.engine, method, path, data)

    def _object(self, method: str, path: str) -> Flow[JsonObject]:
        return JsonObject.parse_or_empty((yield from self._call(method, path)).body)


def _path(request: Request) -> str:
    return f"/api/sessions/{encode_segment(request.params['id'])}"


def _server(request: Request) -> str:
    return f"/api/mcp-servers/{encode_segment(request.params['name'])}"


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else default


def _answering(value: object) -> Handler:
    return lambda request: json_response(200, value, (PRIVATE,))


def _select_profile(request: Request) -> Response:
    if parse_body(request).text("name") != PROFILE:
        raise Refused(404, "not_found", f"this server runs the profile {PROFILE!r} only")
    return json_response(200, {"ok": True, "active": PROFILE, "current": PROFILE}, (PRIVATE,))
