"""Routes of chat sessions, their messages and their pictures (wire api 3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from svc_proto.api.access import ApiAccess
from svc_proto.api.chat import store_requests
from svc_proto.api.chat.records import ChatSession, Message, SearchHit
from svc_proto.api.chat.titles import base_title, check_session_id, clean_title, title_of_copy
from svc_proto.api.chat.views import message_view, session_answer, session_view
from svc_proto.api.cluster.local_session_ownership import LocalSessionOwnership
from svc_proto.api.errors import invalid_request, not_found, session_not_found
from svc_proto.api.runs.run_manager import TurnPort
from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.validate import optional, single_line
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse, empty_response, json_response
from svc_proto.engine.router import Route
from svc_proto.engine.sync import Lock
from svc_proto.schema.coercion import is_truthy
from svc_proto.schema.json_object import as_text, content_text
from svc_proto.wire.events import Headers

if TYPE_CHECKING:
    from svc_proto.schema import api_types as types

__all__ = ["routes"]

DEFAULT_PAGE = 50  # sessions, wire api 3.2, if a client requests a page
MAX_PAGE = 200  # sessions of one page; a larger `limit` is cut
DEFAULT_HITS = 20  # wire api 3.8
MAX_HITS = 100  # hits of one search; a larger `limit` is cut
MAX_ROWS = 100_000  # sessions or messages of one answer
MAX_OFFSET = 2**53 - 1  # the largest integer of every JSON reader
MAX_NAME = 256  # characters of a model's name or of an end reason
MAX_CONTEXT = 200  # characters of each row around a hit
FIELDS = ("title", "end_reason", "pinned", "archived")  # members that PATCH accepts


class SessionsPort(TurnPort, Protocol):
    """Members of the API server that the routes of sessions use."""

    ownership: LocalSessionOwnership
    forks: Lock


def routes(api: SessionsPort) -> list[Route]:
    """Return the routes of chat sessions and their messages."""
    view = _ChatSessionRoutes(api)
    one = "/api/sessions/{id}"
    return [
        Route(method="GET", pattern="/api/sessions", access=ApiAccess.KEY, handler=view.list_all),
        Route(method="POST", pattern="/api/sessions", access=ApiAccess.KEY, handler=view.create),
        Route(method="GET", pattern="/api/sessions/search", access=ApiAccess.KEY, handler=view.search),
        Route(method="GET", pattern=one, access=ApiAccess.KEY, handler=view.read),
        Route(method="PATCH", pattern=one, access=ApiAccess.KEY, handler=view.change),
        Route(method="DELETE", pattern=one, access=ApiAccess.KEY, handler=view.delete),
        Route(method="GET", pattern=f"{one}/messages", access=ApiAccess.KEY, handler=view.messages),
        Route(method="DELETE", pattern=f"{one}/messages", access=ApiAccess.KEY, handler=view.truncate),
        Route(method="GET", pattern=f"{one}/pictures/{{token}}", access=ApiAccess.KEY, handler=view.picture),
        Route(method="POST", pattern=f"{one}/fork", access=ApiAccess.KEY, handler=view.fork),
    ]


class _ChatSessionRoutes:
    def __init__(self, api: SessionsPort) -> None:
        self._api = api

    # --- lists ---

    def list_all(self, request: Request) -> Flow[JsonResponse[types.SessionPageJson]]:
        """List the sessions, at most `MAX_ROWS`, or a page of them if the query has `limit` or `offset`.

        Archived sessions and children are listed only on request.
        """
        api, query = self._api, request.query
        limit = min(_lenient(query.get("limit"), DEFAULT_PAGE) or DEFAULT_PAGE, MAX_PAGE)
        if "limit" not in query and "offset" not in query:
            limit = MAX_ROWS
        offset = _lenient(query.get("offset"), 0)
        page = yield from api.run_store_request(
            store_requests.ListChats(
                limit=limit,
                offset=offset,
                source=query.get("source") or None,
                include_children=bool(is_truthy(query.get("include_children"))),
                include_archived=bool(is_truthy(query.get("include_archived"))) or query.get("archived") == "include",
                only_archived=query.get("archived") == "only",
                min_messages=_lenient(query.get("min_messages"), 0),
            )
        )
        body: types.SessionPageJson = {
            "sessions": [session_view(chat, api.brand_of(request)) for chat in page.sessions],
            "object": "list",
            "limit": limit,
            "offset": offset,
            "has_more": offset + len(page.sessions) < page.total,
            "total": page.total,
        }
        return json_response(200, body)

    def messages(self, request: Request) -> Flow[JsonResponse[types.MessagesJson]]:
        """List all messages of a session; a page of them if the client requests one (wire api 3.7)."""
        identity, query = request.params["id"], request.query
        limit, offset = _lenient(query.get("limit"), 0), _lenient(query.get("offset"), 0)
        order: Literal["latest", "oldest"] = "latest" if query.get("order") == "latest" else "oldest"
        paged = limit > 0 or offset > 0
        limit = min(limit or MAX_ROWS, MAX_ROWS)
        page_request = store_requests.ListMessages(
            session_id=identity, limit=limit if paged else None, offset=offset, latest=paged and order == "latest"
        )
        rows = yield from self._api.run_store_request(page_request)
        if rows is None:
            raise session_not_found(identity)
        first = offset
        if page_request.latest:  # counted from the end
            chat = yield from self._get(identity)
            first = max(chat.message_count - offset - len(rows), 0)
        views: list[types.MessageRowJson] = [
            {**message_view(row), "row_id": place} for place, row in enumerate(rows, first + 1)
        ]
        body: types.MessagesJson = {"session_id": identity, "messages": views}
        if paged:
            body["pagination"] = {"limit": limit, "offset": offset, "order": order, "returned": len(rows)}
        return json_response(200, body)

    def picture(self, request: Request) -> Flow[Response]:
        """Return a stored picture of a chat by its token. Raises `Refused` 404 if there is none."""
        wanted = store_requests.FindPicture(session_id=request.params["id"], token=request.params["token"])
        found = yield from self._api.run_store_request(wanted)
        if found is None:
            raise not_found("The chat has no such picture.")
        return Response(200, Headers(((b"content-type", found.kind.encode("ascii")),)), found.data)

    def search(self, request: Request) -> Flow[JsonResponse[types.HitsJson]]:
        """Search messages; unlike lists, this refuses invalid parameters (wire api 3.8)."""
        query = request.query.get("q", "").strip()
        if not query:
            raise invalid_request("q must be the words to look for", param="q")
        limit = min(_strict(request.query.get("limit"), "limit", DEFAULT_HITS), MAX_HITS)
        offset = _strict(request.query.get("offset"), "offset", 0)
        hits = yield from self._api.run_store_request(
            store_requests.SearchMessages(query=query, limit=limit, offset=offset)
        )
        results = [_hit_view(hit) for hit in hits]
        return json_response(200, {"query": query, "count": len(results), "results": results})

    # --- one session ---

    def create(self, request: Request) -> Flow[JsonResponse[types.SessionAnswerJson]]:
        api, body = self._api, request.json_object()
        identity = _chosen_id(body) or new_uuid(api.engine.entropy)
        title = clean_title(body.get("title"))
        model = optional(body, "model", partial(single_line, most=MAX_NAME))
        system_prompt = _system_prompt(body)
        if not model:
            model = (yield from api.settings()).name
        chat = ChatSession(
            id=identity,
            started_at=api.engine.now.wall,
            updated_at=api.engine.now.wall,
            last_active=api.engine.now.wall,
            title=title,
            model=model,
            system_prompt=system_prompt,
        )
        if not (yield from api.run_store_request(store_requests.CreateChat(session=chat))):
            raise _session_exists_error(identity)
        return json_response(201, session_answer(chat, api.brand_of(request)))

    def read(self, request: Request) -> Flow[JsonResponse[types.SessionAnswerJson]]:
        chat = yield from self._get(request.params["id"])
        return json_response(200, session_answer(chat, self._api.brand_of(request)))

    def change(self, request: Request) -> Flow[JsonResponse[types.SessionAnswerJson]]:
        api, identity = self._api, request.params["id"]
        changes = _changes(request.json_object(), api.engine.now.wall)
        if not changes:
            return (yield from self.read(request))
        chat = yield from api.run_store_request(
            store_requests.UpdateChat(id=identity, changes=changes, now=api.engine.now.wall)
        )
        if chat is None:
            raise session_not_found(identity)
        return json_response(200, session_answer(chat, api.brand_of(request)))

    def delete(self, request: Request) -> Flow[Response | StreamedResponse]:
        api, identity = self._api, request.params["id"]
        yield from self._get(identity)
        passed = yield from api.ownership.acquire(identity, request)
        if passed is not None:
            return passed
        try:
            # The session's turn stores its text now, and nothing after that.
            yield from api.runs.stop_session_runs_and_wait(identity)
            if not (yield from api.run_store_request(store_requests.DeleteChat(id=identity))):
                raise session_not_found(identity)
        finally:
            api.ownership.release(identity)
        api.engine.log(Level.INFO, "session deleted", session=identity)
        return empty_response()

    def truncate(self, request: Request) -> Flow[Response | StreamedResponse]:
        """Remove a message of the user and all after it, so that a turn can be repeated or its message changed.

        The session's turns are stopped before. Raises `Refused` 400 if `from_row` is no message of the user.
        """
        api, identity = self._api, request.params["id"]
        row_id = _strict(request.query.get("from_row"), "from_row", 0)
        yield from self._get(identity)
        passed = yield from api.ownership.acquire(identity, request)
        if passed is not None:
            return passed
        try:
            yield from api.runs.stop_session_runs_and_wait(identity)
            rows = yield from api.run_store_request(store_requests.ListMessages(session_id=identity, limit=MAX_ROWS))
            if not rows or not 0 < row_id <= len(rows) or rows[row_id - 1].role != "user":
                raise invalid_request("from_row must be the row_id of a message of the user", param="from_row")
            yield from api.run_store_request(
                store_requests.TruncateMessages(session_id=identity, keep=row_id - 1, now=api.engine.now.wall)
            )
        finally:
            api.ownership.release(identity)
        return empty_response()

    def fork(self, request: Request) -> Flow[JsonResponse[types.SessionAnswerJson]]:
        api, body = self._api, request.json_object()
        source = yield from self._get(request.params["id"])
        identity = _chosen_id(body) or new_uuid(api.engine.entropy)
        title = clean_title(body.get("title"))
        yield from api.forks.acquire()  # so that no other fork takes the free number before this one uses it
        try:
            if title is None and source.title is not None:
                title = yield from self._title_of_copy(source.title)
            now = api.engine.now.wall
            copy = ChatSession(
                id=identity,
                started_at=now,
                updated_at=now,
                last_active=now,
                title=title,
                source=source.source,
                model=source.model,
                system_prompt=source.system_prompt,
                parent_id=source.id,
            )
            made = yield from api.run_store_request(store_requests.ForkChat(source=source.id, session=copy, now=now))
        finally:
            api.forks.release()
        if made is True:
            raise session_not_found(source.id)
        if not isinstance(made, ChatSession):
            raise _session_exists_error(identity)
        return json_response(201, session_answer(made, api.brand_of(request)))

    def _title_of_copy(self, title: str) -> Flow[str]:
        """Return the title with the number after the highest one in use; a long title is cut before the number."""
        while True:
            stem = base_title(title)
            title = title_of_copy(title, (yield from self._api.run_store_request(store_requests.ListTitles(base=stem))))
            if base_title(title) == stem:
                return title

    def _get(self, identity: str) -> Flow[ChatSession]:
        chat = yield from self._api.run_store_request(store_requests.GetChat(id=identity))
        if chat is None:
            raise session_not_found(identity)
        return chat


# --- requests -----------------------------------------------------------------------------------------------------


def _changes(body: dict[str, object], now: float) -> dict[str, object]:
    changes: dict[str, object] = {}
    for name, value in body.items():
        if name not in FIELDS:
            text = f"these fields can be changed: {', '.join(FIELDS)}"
            raise invalid_request(text, code="unsupported_session_field", param=name[:MAX_NAME])
        if name == "title":
            changes["title"] = clean_title(value)
        elif name == "end_reason":
            reason = optional(body, name, partial(single_line, most=MAX_NAME))
            if reason:
                changes.update(end_reason=reason, ended_at=now)
        elif isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            changes[name] = bool(value)
        else:
            raise invalid_request(f"{name} must be true or false", param=name)
    return changes


def _chosen_id(body: dict[str, object]) -> str | None:
    for name in ("id", "session_id"):
        if body.get(name) is not None:
            return check_session_id(body[name], param=name)
    return None


def _system_prompt(body: dict[str, object]) -> str | None:
    value = as_text(body.get("system_prompt"))
    if value != body.get("system_prompt"):
        raise invalid_request("system_prompt must be a string", code="invalid_system_prompt", param="system_prompt")
    return value or None


def _lenient(text: str | None, default: int) -> int:
    """Return the number in a query parameter; the default for an absent, invalid or negative one (wire api 3.2)."""
    number = _number(text)
    return default if number is None else number


def _strict(text: str | None, name: str, default: int) -> int:
    if text is None:
        return default
    number = _number(text)
    if number is None:
        raise invalid_request(f"{name} must be a number from 0 on", param=name)
    return number


def _number(text: str | None) -> int | None:
    if text is None or not text.isascii() or not text.isdecimal():
        return None
    digits = text.lstrip("0") or "0"
    return MAX_OFFSET if len(digits) > len(str(MAX_OFFSET)) else min(int(digits), MAX_OFFSET)


# --- responses ----------------------------------------------------------------------------------------------------


def _session_exists_error(identity: str) -> Exception:
    return invalid_request(f"a session with this id exists: {identity}", code="session_exists", param="id", status=409)


def _hit_view(hit: SearchHit) -> types.HitJson:
    message, session = hit.message, hit.session
    return {
        "id": message.id,
        "session_id": session.id,
        "role": message.role,
        "snippet": hit.snippet,
        "timestamp": message.timestamp,
        "tool_name": message.tool_name,
        "source": session.source,
        "model": session.model,
        "session_started": session.started_at,
        "session_title": session.title,
        "context": [_context(row) for row in hit.context],
    }


def _context(row: Message) -> types.HitContextJson:
    return {"role": row.role, "content": content_text(row.content)[:MAX_CONTEXT]}
