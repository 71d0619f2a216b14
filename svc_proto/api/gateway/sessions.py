"""Methods for sessions: create, resume, activate, list, title, resize; and the description of a session."""

from svc_proto.api.chat.records import ChatSession, Message
from svc_proto.api.chat.store_requests import CreateChat, ListChats, ListMessages, UpdateChat
from svc_proto.api.chat.titles import clean_title
from svc_proto.api.gateway.connection import GatewayConnection, Method, Result
from svc_proto.api.gateway.live_session import LiveGateway, LiveSession
from svc_proto.api.gateway.settings import check_effort, chosen_model
from svc_proto.basics.entropy import new_uuid
from svc_proto.engine.flow import Flow
from svc_proto.schema.gateway_rpc import NOT_STORED, NOT_SUPPORTED, RpcCall
from svc_proto.schema.json_object import content_text
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError

__all__ = ["PROFILE", "PHONE_SOURCE", "build_info", "methods"]

PROFILE = "default"  # the one profile that this server runs
PHONE_SOURCE = "webui"  # of clients that read the history over HTTP
MAX_SOURCE = 64  # characters
MAX_LISTED = 200  # sessions in one list
MAX_ROWS = 100_000  # messages of one answer
SHOWN_OF_RESULT = 200  # characters of a tool's result


def methods(gateway: LiveGateway) -> dict[str, Method]:
    """Return the gateway's methods for sessions by name."""
    theme = _SessionMethods(gateway)
    return {
        "session.create": theme.create,
        "session.resume": theme.resume,
        "session.activate": theme.activate,
        "session.list": theme.list,
        "session.title": theme.title,
        "terminal.resize": theme.resize,
    }


def build_info(
    gateway: LiveGateway, session: LiveSession, chat: ChatSession, *, used: int = 0
) -> Flow[dict[str, object]]:
    """Return the description of a session; `used` are the tokens of its context, 0 if unknown."""
    settings = yield from gateway.api.settings()
    endpoint = yield from chosen_model(gateway, settings, chat)
    info: dict[str, object] = {
        "model": settings.name if endpoint is None else endpoint.model,
        "provider": (settings.provider or "custom") if endpoint is not None else "builtin",
        "personality": (session.personality if session.personality is not None else settings.personality) or "none",
        "approval_mode": "manual",
        "yolo": False,
        "fast": False,
        "profile_name": PROFILE,
        "title": chat.title or "",
        "running": session.state()["running"],
        "tools": {},
        "skills": {},
        "cwd": "",
        "version": gateway.api.config.version,
    }
    if session.effort is not None:
        info["reasoning_effort"] = session.effort
    if endpoint is not None and endpoint.context and used:
        info["usage"] = {"context_used": used, "context_max": endpoint.context}
    return info


def check_profile(call: RpcCall) -> None:
    """Raise `RpcError` if the call names a profile other than `default`, the only one of this server."""
    profile = call.params.text("profile")
    if profile not in ("", PROFILE):
        raise RpcError(NOT_SUPPORTED, f"this server runs the profile {PROFILE!r} only")


class _SessionMethods:
    def __init__(self, gateway: LiveGateway) -> None:
        self._gateway = gateway

    def create(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Store a new session, and attach the client to it."""
        api, params = self._gateway.api, call.params
        check_profile(call)
        effort = check_effort(params.text("reasoning_effort")) if params.text("reasoning_effort") else None
        settings = yield from api.settings()
        now = api.engine.now.wall
        chat = ChatSession(
            id=new_uuid(api.engine.entropy),
            started_at=now,
            updated_at=now,
            last_active=now,
            title=clean_title(params.string("title")),
            source=_source(call),
            model=settings.name,
        )
        yield from api.run_store_request(CreateChat(session=chat))
        session = self._gateway.open(chat, connection)
        session.effort = effort
        info = yield from build_info(self._gateway, session, chat)
        return {
            "session_id": chat.id,
            "stored_session_id": chat.id,
            "message_count": 0,
            "messages": [],
            "info": info,
        }

    def resume(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Open a stored session; return its snapshot and the texts of its oldest `MAX_ROWS` messages.

        Instructions are left out, and results of tools are cut to 200 characters. A call with the source `webui` gets
        no messages: the phone app sends it, and reads them over HTTP.
        """
        gateway = self._gateway
        check_profile(call)
        chat = yield from gateway.stored(call.session_id, code=NOT_STORED)
        rows: tuple[Message, ...] = ()
        if call.params.text("source") != PHONE_SOURCE:
            stored = yield from gateway.api.run_store_request(ListMessages(session_id=chat.id, limit=MAX_ROWS))
            rows = stored or ()
        session = gateway.open(chat, connection)
        snapshot = yield from self._snapshot(session, chat)
        session.show_question(connection)
        messages = [shown for row in rows if (shown := _message_row(row)) is not None]
        return {**snapshot, "resumed": chat.id, "message_count": chat.message_count, "messages": messages}

    def activate(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Attach a client to a session and return its snapshot, for example after the loss of the connection."""
        session = yield from self._gateway.find(connection, call)
        chat = yield from self._gateway.stored(session.id)
        snapshot = yield from self._snapshot(session, chat)
        session.show_question(connection)
        return snapshot

    def list(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """List the sessions that were active last: as many as `limit`, by default 20, at most 200.

        Archived sessions and children are left out.
        """
        limit = min(call.params.integer("limit", 1) or 20, MAX_LISTED)
        page = yield from self._gateway.api.run_store_request(ListChats(limit=limit))
        return {"sessions": [_session_row(chat) for chat in page.sessions]}

    def title(self, connection: GatewayConnection, call: RpcCall) -> Flow[Result]:
        """Set the title if the call has one, and return the title."""
        session = yield from self._gateway.find(connection, call)
        api, chat = self._gateway.api, (yield from self._gateway.stored(session.id))
        title = call.params.string("title")
        if title is None:
            return {"title": chat.title or ""}
        changes = {"title": clean_title(title)}
        yield from api.run_store_request(UpdateChat(id=chat.id, changes=changes, now=api.engine.now.wall))
        return {"title": changes["title"] or ""}

    def resize(self, connection: GatewayConnection, call: RpcCall) -> Result:
        """Return the given width of a terminal; the gateway does not use it."""
        return {"cols": call.params.get("cols")}

    def _snapshot(self, session: LiveSession, chat: ChatSession) -> Flow[dict[str, object]]:
        info = yield from build_info(self._gateway, session, chat)
        return {"session_id": session.id, "stored_session_id": session.id, **session.state(), "info": info}


def _source(call: RpcCall) -> str:
    source = call.params.text("source") or PHONE_SOURCE
    if len(source) > MAX_SOURCE or not source.isprintable():
        raise RpcError(INVALID_PARAMS, f"source must be one line of at most {MAX_SOURCE} characters")
    return source


def _session_row(chat: ChatSession) -> dict[str, object]:
    return {
        "id": chat.id,
        "title": chat.title or "",
        "preview": chat.preview or "",
        "started_at": chat.started_at,
        "message_count": chat.message_count,
        "source": chat.source,
    }


def _message_row(row: Message) -> dict[str, object] | None:
    text = content_text(row.content)
    if row.role == "tool":
        return {"role": "tool", "name": row.tool_name or "tool", "context": text[:SHOWN_OF_RESULT]}
    return {"role": row.role, "text": text} if text and row.role in ("user", "assistant") else None
