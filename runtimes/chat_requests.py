"""The requests of `svc_proto.api.store` in SQL. Each function is called within a transaction of its own.

A function that changes a session locks its row first, so that counters are right with several writers at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import attrs
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    String,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from runtimes.chat_search import ChatSearch
from runtimes.chat_tables import CHAT_MESSAGES, CHAT_SESSIONS
from runtimes.chat_words import UNSTORABLE, searched, snippet, storable, terms
from runtimes.failures import HostError
from svc_proto.api.rows import ChatPage, ChatSession, Content, Message, SearchHit, Usage
from svc_proto.api.store import (
    AddMessages,
    CreateChat,
    DeleteChat,
    ForkChat,
    GetChat,
    ListChats,
    ListMessages,
    ListTitles,
    SearchMessages,
    UpdateChat,
)
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind

__all__ = ["ERASES", "READS", "Handler", "chat_handlers"]

Handler = Callable[[Connection, Any], object]
T = TypeVar("T")

PREVIEW = 60  # characters, wire api 3.1
MAX_NUMBER = 2**63 - 1  # what a database can hold
CHUNK = 500  # values in one statement: databases limit their number
BRANCHED = "branched"  # why a session ended that was forked, wire api 3.8

ERASES: frozenset[type[StoreRequest[Any]]] = frozenset({DeleteChat})  # nothing of what they delete may be left
READS: frozenset[type[StoreRequest[Any]]] = frozenset({GetChat, ListChats, ListMessages, ListTitles, SearchMessages})

_S = CHAT_SESSIONS.c
_M = CHAT_MESSAGES.c
_SESSION = [CHAT_SESSIONS.c[field.name] for field in attrs.fields(ChatSession)]
_MESSAGE = [column for column in CHAT_MESSAGES.c if column.name != "words"]
_CAN_BE_SET: Mapping[str, tuple[type, ...]] = {
    "title": (str, type(None)),
    "model": (str, type(None)),
    "pinned": (bool,),
    "archived": (bool,),
    "ended_at": (float, int, type(None)),
    "end_reason": (str, type(None)),
}
_ENDING = ("ended_at", "end_reason")
_NAMES = tuple(column.name for column in _SESSION)

# The statements of every turn, made once: to make one takes as long as to run it.
_ONE_SESSION = select(*_SESSION).where(_S.id == bindparam("wanted"))
_ONE_SESSION_LOCKED = _ONE_SESSION.with_for_update()
_SESSION_IS_THERE = select(_S.id).where(_S.id == bindparam("wanted"))
_KNOWN_MESSAGES = select(*_MESSAGE).where(
    _M.session_id == bindparam("wanted"), _M.id.in_(bindparam("ids", expanding=True))
)
_PAGE = (
    select(*_MESSAGE).where(_M.session_id == bindparam("wanted")).limit(bindparam("most")).offset(bindparam("skipped"))
)
_OLDEST_FIRST, _LATEST_FIRST = _PAGE.order_by(_M.seq), _PAGE.order_by(_M.seq.desc())
_NEW_SESSION, _NEW_MESSAGES = insert(CHAT_SESSIONS), insert(CHAT_MESSAGES)
_COUNTED = ("preview", "last_active", "updated_at", "message_count", "tool_call_count", "input_tokens", "output_tokens")
_COUNT_MESSAGES = (
    update(CHAT_SESSIONS)
    .where(_S.id == bindparam("wanted"))
    .values({name: bindparam(f"new_{name}") for name in _COUNTED})
)


def chat_handlers(search: ChatSearch) -> dict[type[StoreRequest[Any]], Handler]:
    """What answers each request."""
    return {
        CreateChat: _create_chat,
        GetChat: _get_chat,
        ListChats: _list_chats,
        UpdateChat: _update_chat,
        DeleteChat: lambda connection, request: _delete_chat(connection, request, search),
        ForkChat: _fork_chat,
        AddMessages: _add_messages,
        ListMessages: _list_messages,
        ListTitles: _list_titles,
        SearchMessages: lambda connection, request: _search_messages(connection, request, search),
    }


# --- sessions -----------------------------------------------------------------------------------------------------


def _create_chat(connection: Connection, request: CreateChat) -> bool:
    if _session(connection, request.session.id) is not None:
        return False
    _insert_session(connection, request.session)
    return True


def _get_chat(connection: Connection, request: GetChat) -> ChatSession | None:
    return _session(connection, request.id)


def _list_chats(connection: Connection, request: ListChats) -> ChatPage:
    wanted: list[ColumnElement[bool]] = []
    if request.source is not None:
        wanted.append(_S.source == request.source)
    if not request.include_children:
        wanted.append(_S.is_child.is_(False))
    if not request.include_archived:
        wanted.append(_S.archived.is_(False))
    rows = connection.execute(
        select(*_SESSION)
        .where(*wanted)
        .order_by(_S.last_active.desc(), _S.started_at.desc(), _S.id.desc())
        .limit(_natural(request.limit))
        .offset(_natural(request.offset))
    )
    total = connection.execute(select(func.count()).select_from(CHAT_SESSIONS).where(*wanted)).scalar_one()
    return ChatPage(sessions=tuple(map(_as_session, rows)), total=total)


def _update_chat(connection: Connection, request: UpdateChat) -> ChatSession | None:
    changes = dict(request.changes)
    for name, value in changes.items():
        if not isinstance(value, _CAN_BE_SET.get(name, ())):
            raise HostError(FailureKind.INVALID, f"cannot set {name:.40} to that")
    session = _session(connection, request.id, lock=True)
    if session is None:
        return None
    if session.end_reason is not None:
        changes = {name: value for name, value in changes.items() if name not in _ENDING}
    _set(connection, request.id, {**changes, "updated_at": request.now})
    return _session(connection, request.id)


def _delete_chat(connection: Connection, request: DeleteChat, search: ChatSearch) -> bool:
    if _session(connection, request.id, lock=True) is None:
        return False
    doomed = [request.id]
    while doomed:
        session_id = doomed.pop()
        connection.execute(delete(CHAT_MESSAGES).where(_M.session_id == session_id))
        connection.execute(delete(CHAT_SESSIONS).where(_S.id == session_id))
        # Looked up after the deletion, so that a session that is its own ancestor does not come again for ever.
        below = _S.parent_id == session_id
        doomed += connection.execute(select(_S.id).where(below, _S.is_child.is_(True))).scalars()
        connection.execute(update(CHAT_SESSIONS).where(below, _S.is_child.is_(False)).values(parent_id=None))
    search.forget(connection)
    return True


def _fork_chat(connection: Connection, request: ForkChat) -> ChatSession | bool:
    source = _session(connection, request.source, lock=True)
    if source is None:
        return True
    if _session(connection, request.session.id) is not None:
        return False
    fork = attrs.evolve(
        request.session,
        parent_id=source.id,
        preview=source.preview,
        last_active=max(request.session.last_active, source.last_active),
        message_count=source.message_count,
        tool_call_count=source.tool_call_count,
        input_tokens=source.input_tokens,
        output_tokens=source.output_tokens,
    )
    _insert_session(connection, fork)
    _copy_messages(connection, source.id, fork.id)
    if source.end_reason is None:
        _set(connection, source.id, {"ended_at": request.now, "end_reason": BRANCHED, "updated_at": request.now})
    return _session(connection, fork.id) or False


def _list_titles(connection: Connection, request: ListTitles) -> tuple[str, ...]:
    base, numbered = request.base, f"{request.base} #"
    alike = or_(_S.title == base, _S.title.startswith(numbered, autoescape=True))
    titles = connection.execute(select(_S.title).where(alike)).scalars()
    # Some databases compare without regard to case, and each sorts in its own way.
    return tuple(
        sorted(title for title in titles if title is not None and (title == base or title.startswith(numbered)))
    )


def _session(connection: Connection, session_id: str, *, lock: bool = False) -> ChatSession | None:
    row = connection.execute(_ONE_SESSION_LOCKED if lock else _ONE_SESSION, {"wanted": session_id}).one_or_none()
    return None if row is None else _as_session(row)


def _insert_session(connection: Connection, session: ChatSession) -> None:
    connection.execute(_NEW_SESSION, attrs.asdict(session, recurse=False))


def _set(connection: Connection, session_id: str, values: Mapping[str, object]) -> None:
    connection.execute(update(CHAT_SESSIONS).where(_S.id == session_id).values(**values))


def _as_session(row: Row[Any]) -> ChatSession:
    return ChatSession(**dict(zip(_NAMES, row, strict=True)))


# --- messages -----------------------------------------------------------------------------------------------------


def _add_messages(connection: Connection, request: AddMessages) -> bool:
    session = _session(connection, request.session_id, lock=True)
    if session is None:
        return False
    messages = {message.id: message for message in request.messages}  # the last of an id, in the place of the first
    old = _messages(connection, session.id, list(messages))
    fresh = [message for message in messages.values() if message.id not in old]
    for message in messages.values():
        if message.id in old:
            here = (_M.session_id == session.id) & (_M.id == message.id)
            connection.execute(update(CHAT_MESSAGES).where(here).values(**_columns(message, session.id)))
    if fresh:
        connection.execute(_NEW_MESSAGES, [_columns(message, session.id) for message in fresh])
    if messages:
        preview = session.preview
        if any("user" in (before.role, messages[before.id].role) for before in old.values()):
            preview = _first_preview(_texts_of_user(connection, session.id))
        elif preview is None:
            preview = _first_preview(_text_of(message.content) for message in fresh if message.role == "user")
        latest = max(message.timestamp for message in request.messages)
        counted = {
            "preview": preview,
            "last_active": max(session.last_active, latest),
            "updated_at": max(session.updated_at, latest),
            "message_count": session.message_count + len(fresh),
            **_counters(session, add=list(messages.values()), drop=list(old.values())),
        }
        values = {f"new_{name}": value for name, value in counted.items()}
        connection.execute(_COUNT_MESSAGES, {"wanted": session.id, **values})
    return True


def _list_messages(connection: Connection, request: ListMessages) -> tuple[Message, ...] | None:
    there = connection.execute(_SESSION_IS_THERE, {"wanted": request.session_id}).first()
    if there is None:
        return None
    limit = MAX_NUMBER if request.limit is None else _natural(request.limit)
    rows = connection.execute(
        _LATEST_FIRST if request.latest else _OLDEST_FIRST,
        {"wanted": request.session_id, "most": limit, "skipped": _natural(request.offset)},
    ).all()
    return tuple(map(_as_message, reversed(rows) if request.latest else rows))


def _search_messages(connection: Connection, request: SearchMessages, search: ChatSearch) -> tuple[SearchHit, ...]:
    wanted = terms(request.query)
    if not wanted:
        return ()
    found = search.find(connection, wanted, limit=_natural(request.limit), offset=_natural(request.offset))
    rows: dict[int, Row[Any]] = {}
    for chunk in _chunks(found):
        rows |= {row.seq: row for row in connection.execute(select(*_MESSAGE).where(_M.seq.in_(chunk)))}
    sessions: dict[str, ChatSession] = {}
    for ids in _chunks(dict.fromkeys(row.session_id for row in rows.values())):
        for row in connection.execute(select(*_SESSION).where(_S.id.in_(ids))):
            sessions[row.id] = _as_session(row)
    return tuple(
        SearchHit(
            message=_as_message(row),
            session=sessions[row.session_id],
            snippet=snippet(row.text, wanted),
            context=_around(connection, row.session_id, row.seq),
        )
        for row in (rows[seq] for seq in found)
    )


def _around(connection: Connection, session_id: str, seq: int) -> tuple[Message, ...]:
    mine = select(*_MESSAGE).where(_M.session_id == session_id).limit(1)
    before = connection.execute(mine.where(_M.seq < seq).order_by(_M.seq.desc()))
    after = connection.execute(mine.where(_M.seq > seq).order_by(_M.seq))
    return tuple(_as_message(row) for row in (*before, *after))


def _messages(connection: Connection, session_id: str, ids: list[str]) -> dict[str, Message]:
    """Those of a session that are there already, by id."""
    there: dict[str, Message] = {}
    for chunk in _chunks(ids):
        rows = connection.execute(_KNOWN_MESSAGES, {"wanted": session_id, "ids": chunk})
        there |= {row.id: _as_message(row) for row in rows}
    return there


def _copy_messages(connection: Connection, source: str, target: str) -> None:
    kept = [column for column in CHAT_MESSAGES.c if column.name not in ("seq", "session_id", "id")]
    position = cast(func.row_number().over(order_by=_M.seq), String)
    rows = (
        select(literal(target), literal(f"{target}:") + position, *kept).where(_M.session_id == source).order_by(_M.seq)
    )
    connection.execute(insert(CHAT_MESSAGES).from_select([_M.session_id, _M.id, *kept], rows))


def _counters(session: ChatSession, *, add: list[Message], drop: list[Message]) -> dict[str, int]:
    def change(count: Callable[[Message], int]) -> int:
        return sum(map(count, add)) - sum(map(count, drop))

    now = {
        "tool_call_count": session.tool_call_count + change(lambda message: len(message.tool_calls)),
        "input_tokens": session.input_tokens + change(lambda message: (message.usage or Usage()).input_tokens),
        "output_tokens": session.output_tokens + change(lambda message: (message.usage or Usage()).output_tokens),
    }
    return {name: _natural(count) for name, count in now.items()}


def _texts_of_user(connection: Connection, session_id: str) -> Iterator[str]:
    mine = (_M.session_id == session_id) & (_M.role == "user")
    yield from connection.execute(select(_M.text).where(mine).order_by(_M.seq)).scalars()


def _first_preview(texts: Iterator[str]) -> str | None:
    """Of the first text that has words."""
    line = next(filter(None, (" ".join(text.split()) for text in texts)), None)
    return line if line is None or len(line) <= PREVIEW else f"{line[:PREVIEW]}..."


# --- rows and values ----------------------------------------------------------------------------------------------


def _columns(message: Message, session_id: str) -> dict[str, object]:
    content, usage = message.content, message.usage
    text = _text_of(content)
    return {
        "session_id": session_id,
        "id": message.id,
        "role": message.role,
        "text": text,
        "exact": None if text == content else _to_json(content),
        "words": searched(text),
        "timestamp": message.timestamp,
        "run_id": message.run_id,
        "tool_calls": _to_json(message.tool_calls) if message.tool_calls else None,
        "tool_call_id": message.tool_call_id,
        "tool_name": message.tool_name,
        "finish_reason": message.finish_reason,
        "reasoning": message.reasoning,
        "input_tokens": None if usage is None else _natural(usage.input_tokens),
        "output_tokens": None if usage is None else _natural(usage.output_tokens),
    }


def _as_message(row: Row[Any]) -> Message:
    return Message(
        id=row.id,
        session_id=row.session_id,
        role=row.role,
        content=row.text if row.exact is None else _content(json.loads(row.exact)),
        timestamp=row.timestamp,
        run_id=row.run_id,
        tool_calls=() if row.tool_calls is None else tuple(json.loads(row.tool_calls)),
        tool_call_id=row.tool_call_id,
        tool_name=row.tool_name,
        finish_reason=row.finish_reason,
        reasoning=row.reasoning,
        usage=None
        if row.input_tokens is None
        else Usage(input_tokens=row.input_tokens, output_tokens=row.output_tokens),
    )


def _content(value: str | list[Mapping[str, object]]) -> Content:
    return value if isinstance(value, str) else tuple(value)


def _text_of(content: Content) -> str:
    """What there is to read in a content, as every database takes it."""
    if not isinstance(content, str):
        content = "\n".join(text for part in content if isinstance(text := part.get("text"), str))
    return storable(content)


def _to_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return json.dumps(value, default=_plain) if UNSTORABLE.search(text) else text


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _natural(number: int) -> int:
    return max(0, min(number, MAX_NUMBER))


def _chunks(values: Sequence[T] | Mapping[T, object]) -> Iterator[list[T]]:
    rest = iter(values)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
