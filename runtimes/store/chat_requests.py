"""The requests of `svc_proto.api.chat.store_requests` in SQL. Each handler runs within a transaction."""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

import attrs
from sqlalchemy import (
    ClauseElement,
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

from runtimes.failures import HostError
from runtimes.store.chat_tables import CHAT_FENCES, CHAT_MESSAGES, CHAT_SESSIONS
from runtimes.store.picture_requests import PICTURE_HANDLERS, copy_pictures, delete_named_pictures
from runtimes.store.response_requests import RESPONSE_HANDLERS
from runtimes.store.search import ChatSearch
from runtimes.store.search_text import build_snippet, fold_text, parse_terms
from runtimes.store.sql_executor import UNSTORABLE, SqlExecutor, replace_unstorable
from svc_proto.api.chat.records import ChatPage, ChatSession, Content, Message, SearchHit, Usage
from svc_proto.api.chat.store_requests import (
    AddMessages,
    BeginTurn,
    CreateChat,
    DeleteChat,
    DeleteResponse,
    FindPicture,
    ForkChat,
    GetChat,
    ListChats,
    ListMessages,
    ListTitles,
    SearchMessages,
    TruncateMessages,
    UpdateChat,
)
from svc_proto.basics.strict_json import loads_trusted
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind
from svc_proto.schema.json_object import content_text

__all__ = ["ERASES", "READS", "Handler", "chat_handlers"]

Handler = Callable[[Connection, Any], object]
FastHandler = Callable[[SqlExecutor, Any], object]
C = TypeVar("C", Connection, SqlExecutor)
T = TypeVar("T")

PREVIEW = 60  # characters, wire api 3.1
MAX_NUMBER = 2**63 - 1  # greatest integer of a database
CHUNK_SIZE = 500  # values in one statement: databases limit their number
KINDS_COUNTED = 100  # kinds of lists whose number of sessions is cached
BRANCHED = "branched"  # the end reason of a session that was forked, wire api 3.8

# these must leave no trace on the disk
ERASES: frozenset[type[StoreRequest[Any]]] = frozenset((DeleteChat, DeleteResponse, TruncateMessages))
SEARCHES: frozenset[type[StoreRequest[Any]]] = frozenset({SearchMessages})
READS: frozenset[type[StoreRequest[Any]]] = frozenset(
    {FindPicture, GetChat, ListChats, ListMessages, ListTitles, SearchMessages}
)

_S = CHAT_SESSIONS.c
_M = CHAT_MESSAGES.c
_F = CHAT_FENCES.c
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
_TRUTHS = ("is_child", "pinned", "archived")

# Statements of every turn, built once: building one takes as long as running it.
_ONE_SESSION = select(*_SESSION).where(_S.id == bindparam("wanted"))
_ONE_SESSION_LOCKED = _ONE_SESSION.with_for_update()
_SESSION_IS_THERE = select(_S.id).where(_S.id == bindparam("wanted"))
_ONE_MESSAGE = select(*_MESSAGE).where(_M.session_id == bindparam("wanted"), _M.id == bindparam("message"))
_PAGE = (
    select(*_MESSAGE).where(_M.session_id == bindparam("wanted")).limit(bindparam("most")).offset(bindparam("skipped"))
)
_OLDEST_FIRST, _LATEST_FIRST = _PAGE.order_by(_M.seq), _PAGE.order_by(_M.seq.desc())
_TEXTS_OF_USER = (
    select(_M.text).where(_M.session_id == bindparam("wanted"), _M.role == bindparam("role")).order_by(_M.seq)
)
_NEW_SESSION, _NEW_MESSAGE = insert(CHAT_SESSIONS), insert(CHAT_MESSAGES).inline()
_OLD_MESSAGE = (
    update(CHAT_MESSAGES)
    .where(_M.session_id == bindparam("wanted"), _M.id == bindparam("message"))
    .values({column.name: bindparam(f"new_{column.name}") for column in CHAT_MESSAGES.c if column.name != "seq"})
)
_COUNTED = ("preview", "last_active", "updated_at", "message_count", "tool_call_count", "input_tokens", "output_tokens")
_COUNT_MESSAGES = (
    update(CHAT_SESSIONS)
    .where(_S.id == bindparam("wanted"))
    .values({name: bindparam(f"new_{name}") for name in _COUNTED})
)
_FENCE = select(_F.fence).where(_F.session_id == bindparam("wanted"))
_NEW_FENCE = insert(CHAT_FENCES).values(session_id=bindparam("wanted"), fence=bindparam("new_fence"))
_RAISE_FENCE = update(CHAT_FENCES).where(_F.session_id == bindparam("wanted")).values(fence=bindparam("new_fence"))


def chat_handlers(search: ChatSearch) -> tuple[dict[type, FastHandler], dict[type, Handler]]:
    """Return two tables of handlers by type of request: of the frequent requests, then of the others.

    Handlers of the first table run prepared statements, those of the second one statements of SQLAlchemy.
    """
    counts = _SessionCounts()
    quick: dict[type, FastHandler] = {
        CreateChat: counts.changed_by(_create_chat),
        GetChat: _get_chat,
        ListChats: partial(_list_chats, counts),
        AddMessages: _add_messages,
        BeginTurn: partial(_begin_turn, counts),
        ListMessages: _list_messages,
    }
    others: dict[type, Handler] = {
        UpdateChat: counts.changed_by(_update_chat),
        DeleteChat: counts.changed_by(partial(_delete_chat, search)),
        ForkChat: counts.changed_by(_fork_chat),
        TruncateMessages: counts.changed_by(partial(_truncate_messages, search)),
        ListTitles: _list_titles,
        SearchMessages: partial(_search_messages, search),
        **PICTURE_HANDLERS,
        **RESPONSE_HANDLERS,
    }
    return quick, others


# --- sessions -----------------------------------------------------------------------------------------------------


class _SessionCounts:
    """Cached numbers of sessions by kind of list, in SQLite.

    A change by another connection, or a request that may change a number, discards all.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._version: object = None

    def known(self, hand: SqlExecutor, kind: Hashable) -> int | None:
        """Return the cached number of sessions, or None if it was not counted since the last change."""
        version = hand.version()
        if version is None or version != self._version:
            self._known.clear()
            self._version = version
        return self._known.get(kind)

    def store(self, kind: Hashable, count: int) -> None:
        """Store the counted number of sessions of a kind; do nothing if 100 kinds are stored."""
        if len(self._known) < KINDS_COUNTED:
            self._known[kind] = count

    def forget(self) -> None:
        """Discard the cached numbers."""
        self._known.clear()

    def changed_by(self, handler: Callable[[C, Any], object]) -> Callable[[C, Any], object]:
        """Return the handler of a request that may change the numbers, which discards the cached ones first."""

        def forgetting(connection: C, request: Any) -> object:
            self.forget()
            return handler(connection, request)

        return forgetting


@cache
def _statements_of(
    source: bool, include_children: bool, archived: bool | None, filled: bool
) -> tuple[ClauseElement, ClauseElement]:
    """Return the statements for a page of the sessions that pass these filters, and for their number.

    `archived` None means archived sessions and others.
    """
    wanted: list[ColumnElement[bool]] = []
    if source:
        wanted.append(_S.source == bindparam("source"))
    if not include_children:
        wanted.append(_S.is_child.is_(False))
    if archived is not None:
        wanted.append(_S.archived.is_(archived))
    if filled:
        wanted.append(_S.message_count >= bindparam("fewest"))
    page = (
        select(*_SESSION)
        .where(*wanted)
        .order_by(_S.last_active.desc(), _S.started_at.desc(), _S.id.desc())
        .limit(bindparam("most"))
        .offset(bindparam("skipped"))
    )
    return page, select(func.count()).select_from(CHAT_SESSIONS).where(*wanted)


def _create_chat(hand: SqlExecutor, request: CreateChat) -> bool:
    if hand.query(_SESSION_IS_THERE, wanted=request.session.id):
        return False
    hand.execute(_NEW_SESSION, **_values_of(request.session))
    return True


def _get_chat(hand: SqlExecutor, request: GetChat) -> ChatSession | None:
    rows = hand.query(_ONE_SESSION, wanted=request.id)
    return _as_session(rows[0]) if rows else None


def _list_chats(counts: _SessionCounts, hand: SqlExecutor, request: ListChats) -> ChatPage:
    wanted: dict[str, object] = {} if request.source is None else {"source": request.source}
    if request.min_messages:
        wanted["fewest"] = _natural(request.min_messages)
    archived = True if request.only_archived else None if request.include_archived else False
    page, count = _statements_of(
        request.source is not None, request.include_children, archived, bool(request.min_messages)
    )
    rows = hand.query(page, most=_natural(request.limit), skipped=_natural(request.offset), **wanted)
    key = (count, request.source)
    # The number of messages changes with every turn, so that number of sessions is not cached.
    total = None if request.min_messages else counts.known(hand, key)
    if total is None:
        ((total,),) = hand.query(count, **wanted)
        if not request.min_messages:
            counts.store(key, total)
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


def _delete_chat(search: ChatSearch, connection: Connection, request: DeleteChat) -> bool:
    if _session(connection, request.id, lock=True) is None:
        return False
    doomed = [request.id]
    while doomed:
        session_id = doomed.pop()
        connection.execute(delete(CHAT_MESSAGES).where(_M.session_id == session_id))
        connection.execute(delete(CHAT_SESSIONS).where(_S.id == session_id))
        # Looked up after the deletion, so that a session that is its own ancestor is not found again.
        below = _S.parent_id == session_id
        doomed += connection.execute(select(_S.id).where(below, _S.is_child.is_(True))).scalars()
        connection.execute(update(CHAT_SESSIONS).where(below, _S.is_child.is_(False)).values(parent_id=None))
    search.forget(connection)
    return True


def _truncate_messages(search: ChatSearch, connection: Connection, request: TruncateMessages) -> bool:
    session = _session(connection, request.session_id, lock=True)
    if session is None:
        return False
    mine = select(*_MESSAGE).where(_M.session_id == session.id).order_by(_M.seq)
    rows = connection.execute(mine.offset(_natural(request.keep)).limit(MAX_NUMBER)).all()
    if rows:
        gone = [_as_message(row) for row in rows]
        connection.execute(delete(CHAT_MESSAGES).where(_M.session_id == session.id, _M.seq >= rows[0].seq))
        texts = connection.execute(_TEXTS_OF_USER, {"wanted": session.id, "role": "user"}).scalars()
        counted = {
            "preview": _first_preview(texts),
            "updated_at": max(session.updated_at, request.now),
            "message_count": _natural(session.message_count - len(gone)),
            **_counters(session, add=[], drop=gone),
        }
        _set(connection, session.id, counted)
        delete_named_pictures(connection, session.id, [content_text(row.content) for row in gone])
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
    connection.execute(_NEW_SESSION, _values_of(fork))
    _copy_messages(connection, source.id, fork.id)
    copy_pictures(connection, source.id, fork.id)
    if source.end_reason is None:
        _set(connection, source.id, {"ended_at": request.now, "end_reason": BRANCHED, "updated_at": request.now})
    return _session(connection, fork.id) or False


def _list_titles(connection: Connection, request: ListTitles) -> tuple[str, ...]:
    base, numbered = request.base, f"{request.base} #"
    alike = or_(_S.title == base, _S.title.startswith(numbered, autoescape=True))
    titles = connection.execute(select(_S.title).where(alike)).scalars()
    # Some databases ignore case in comparisons, and each sorts in its own way.
    return tuple(
        sorted(title for title in titles if title is not None and (title == base or title.startswith(numbered)))
    )


def _session(connection: Connection, session_id: str, *, lock: bool = False) -> ChatSession | None:
    row = connection.execute(_ONE_SESSION_LOCKED if lock else _ONE_SESSION, {"wanted": session_id}).one_or_none()
    return None if row is None else _as_session(row)


def _set(connection: Connection, session_id: str, values: Mapping[str, object]) -> None:
    connection.execute(update(CHAT_SESSIONS).where(_S.id == session_id).values(**values))


def _values_of(session: ChatSession) -> dict[str, Any]:
    return {name: getattr(session, name) for name in _NAMES}


def _as_session(row: Sequence[Any]) -> ChatSession:
    values = dict(zip(_NAMES, row, strict=True))
    for name in _TRUTHS:
        values[name] = bool(values[name])
    return ChatSession(**values)


# --- messages -----------------------------------------------------------------------------------------------------


def _add_messages(hand: SqlExecutor, request: AddMessages) -> bool:
    session = _lock_session(hand, request.session_id, request.fence)
    if session is None:
        return False
    _append(hand, session, request.messages)
    return True


def _lock_session(hand: SqlExecutor, session_id: str, fence: int | None) -> ChatSession | None:
    """Return the session, locked until the transaction ends, or None if it does not exist.

    The stored fence is raised to `fence`, if given. Raise `HostError` (`DENIED`) if the stored fence is higher.
    """
    found = hand.query(_ONE_SESSION_LOCKED, wanted=session_id)
    if not found:
        return None
    session = _as_session(found[0])
    if fence is not None:
        _pass_fence(hand, session.id, fence)
    return session


def _append(hand: SqlExecutor, session: ChatSession, added: Sequence[Message]) -> None:
    """Store messages of a locked session, in place of stored ones with the same id, and update its counters."""
    messages = {message.id: message for message in added}  # the last message of an id, at the position of the first
    old: dict[str, Message] = {}
    for message in messages.values():
        columns = _columns(message, session.id)
        before = hand.query(_ONE_MESSAGE, wanted=session.id, message=message.id)
        if before:
            old[message.id] = _as_message(before[0])
            new = {f"new_{name}": value for name, value in columns.items()}
            hand.execute(_OLD_MESSAGE, wanted=session.id, message=message.id, **new)
        else:
            hand.execute(_NEW_MESSAGE, **columns)
    if messages:
        preview = session.preview
        if any("user" in (before.role, messages[before.id].role) for before in old.values()):
            preview = _first_preview(text for (text,) in hand.query(_TEXTS_OF_USER, wanted=session.id, role="user"))
        elif preview is None:
            fresh = (message for message in messages.values() if message.id not in old)
            preview = _first_preview(
                replace_unstorable(content_text(message.content)) for message in fresh if message.role == "user"
            )
        latest = max(message.timestamp for message in added)
        counted = {
            "preview": preview,
            "last_active": max(session.last_active, latest),
            "updated_at": max(session.updated_at, latest),
            "message_count": session.message_count + len(messages) - len(old),
            **_counters(session, add=list(messages.values()), drop=list(old.values())),
        }
        hand.execute(_COUNT_MESSAGES, wanted=session.id, **{f"new_{name}": value for name, value in counted.items()})


def _pass_fence(hand: SqlExecutor, session_id: str, fence: int) -> None:
    """Raise the fence of a locked session. Raises `HostError` (`DENIED`) if the stored fence is higher."""
    found = hand.query(_FENCE, wanted=session_id)
    if found and found[0][0] > fence:
        raise HostError(FailureKind.DENIED, "another node has the turns of this session now")
    if not found or found[0][0] < fence:
        hand.execute(_RAISE_FENCE if found else _NEW_FENCE, wanted=session_id, new_fence=fence)


def _begin_turn(counts: _SessionCounts, hand: SqlExecutor, request: BeginTurn) -> tuple[Message, ...] | None:
    if request.create is not None:
        counts.forget()
        _create_chat(hand, CreateChat(session=request.create))
    session = _lock_session(hand, request.session_id, request.fence)
    if session is None:
        return None
    # Read after locking: messages that another node has just stored are part of the history.
    before = _page(hand, session.id, latest=True, limit=_natural(request.history)) if request.history else ()
    _append(hand, session, request.messages)
    return before


def _list_messages(hand: SqlExecutor, request: ListMessages) -> tuple[Message, ...] | None:
    if not hand.query(_SESSION_IS_THERE, wanted=request.session_id):
        return None
    limit = MAX_NUMBER if request.limit is None else _natural(request.limit)
    return _page(hand, request.session_id, latest=request.latest, limit=limit, offset=_natural(request.offset))


def _page(hand: SqlExecutor, session_id: str, *, latest: bool, limit: int, offset: int = 0) -> tuple[Message, ...]:
    """Return messages oldest first; `latest` counts `offset` and `limit` from the newest."""
    rows = hand.query(_LATEST_FIRST if latest else _OLDEST_FIRST, wanted=session_id, most=limit, skipped=offset)
    return tuple(map(_as_message, reversed(rows) if latest else rows))


def _search_messages(search: ChatSearch, connection: Connection, request: SearchMessages) -> tuple[SearchHit, ...]:
    wanted = parse_terms(request.query)
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
            snippet=build_snippet(row.text, wanted),
            context=_around(connection, row.session_id, row.seq),
        )
        for row in (rows[seq] for seq in found)
    )


def _around(connection: Connection, session_id: str, seq: int) -> tuple[Message, ...]:
    mine = select(*_MESSAGE).where(_M.session_id == session_id).limit(1)
    before = connection.execute(mine.where(_M.seq < seq).order_by(_M.seq.desc()))
    after = connection.execute(mine.where(_M.seq > seq).order_by(_M.seq))
    return tuple(_as_message(row) for row in (*before, *after))


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


def _first_preview(texts: Iterable[str]) -> str | None:
    """Return the preview of the first text that has words, or None: at most 60 characters and an ellipsis."""
    line = next(filter(None, (" ".join(text.split()) for text in texts)), None)
    return line if line is None or len(line) <= PREVIEW else f"{line[:PREVIEW]}..."


# --- rows and values ----------------------------------------------------------------------------------------------


def _columns(message: Message, session_id: str) -> dict[str, object]:
    content, usage = message.content, message.usage
    text = replace_unstorable(content_text(content))
    return {
        "session_id": session_id,
        "id": message.id,
        "role": message.role,
        "text": text,
        "exact": None if text == content else _to_json(content),
        "words": fold_text(text),
        "timestamp": message.timestamp,
        "run_id": message.run_id,
        "tool_calls": _to_json(message.tool_calls) if message.tool_calls else None,
        "tool_call_id": message.tool_call_id,
        "tool_name": message.tool_name,
        "finish_reason": message.finish_reason,
        "reasoning": message.reasoning,
        "input_tokens": None if usage is None else _natural(usage.input_tokens),
        "output_tokens": None if usage is None else _natural(usage.output_tokens),
        "extra": _to_json(message.extra) if message.extra else None,
    }


def _as_message(row: Sequence[Any]) -> Message:
    _, session, identity, role, text, exact, timestamp, run_id, *rest = row
    calls, call_id, tool, finish, reasoning, asked, said, extra = rest
    return Message(
        id=identity,
        session_id=session,
        role=role,
        content=text if exact is None else _content(loads_trusted(exact)),
        timestamp=timestamp,
        run_id=run_id,
        tool_calls=() if calls is None else tuple(loads_trusted(calls)),
        tool_call_id=call_id,
        tool_name=tool,
        finish_reason=finish,
        reasoning=reasoning,
        usage=None if asked is None else Usage(input_tokens=asked, output_tokens=said),
        extra={} if extra is None else loads_trusted(extra),
    )


def _content(value: str | list[Mapping[str, object]]) -> Content:
    return value if isinstance(value, str) else tuple(value)


def _to_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=dict)
    return json.dumps(value, default=dict) if UNSTORABLE.search(text) else text


def _natural(number: int) -> int:
    return max(0, min(number, MAX_NUMBER))


def _chunks(values: Sequence[T] | Mapping[T, object]) -> Iterator[list[T]]:
    rest = iter(values)
    while chunk := list(islice(rest, CHUNK_SIZE)):
        yield chunk
