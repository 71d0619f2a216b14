"""Stores for tests of chat requests, and short forms of the requests."""

from pathlib import Path
from typing import Any, TypeVar

import pytest

from runtimes.store.migrations import MIGRATIONS
from runtimes.store.sql_store import SqlStore
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import Store
from svc_proto.api.chat.records import ChatSession, Message, SearchHit
from svc_proto.api.chat.store_requests import AddMessages, CreateChat, GetChat, ListMessages, SearchMessages
from svc_proto.commands import StoreRequest
from tests.runtimes.store.postgresql_server import needs_postgresql, server

EMBEDDED = ("memory", "file", "portable")
KINDS = (*EMBEDDED, pytest.param("postgresql", marks=needs_postgresql))
T = TypeVar("T")


def new_store(kind: str, folder: Path) -> Store:
    """Open an empty store of a kind; the portable one has no word index, the PostgreSQL database is shared."""
    if kind == "postgresql":
        return open_store(server().empty())
    if kind == "portable":
        return SqlStore("sqlite://", (*MIGRATIONS[:2], *MIGRATIONS[3:]))
    return open_store("memory:" if kind == "memory" else folder / "chats.db")


def execute(store: Store, request: StoreRequest[T]) -> T:
    """Execute a request and return its answer; assert that the answer has the type that the request names."""
    answer: Any = store.execute(request)
    assert isinstance(answer, request.answer), answer
    return answer  # type: ignore[no-any-return]  # checked in the line above


def chat(session_id: str = "c", at: float = 1.0, **more: Any) -> ChatSession:
    """Return a session that started at that time."""
    return ChatSession(**{"id": session_id, "started_at": at, "updated_at": at, "last_active": at, **more})


def message(message_id: str, content: Any = "hello", at: float = 2.0, **more: Any) -> Message:
    """Return a message, by default of a user and in session `c`."""
    return Message(**{"id": message_id, "session_id": "c", "role": "user", "content": content, "timestamp": at, **more})


def create(store: Store, *sessions: ChatSession) -> None:
    """Insert sessions; assert that each is created."""
    for session in sessions:
        assert execute(store, CreateChat(session=session))


def add(store: Store, *messages: Message, to: str = "c") -> None:
    """Append messages to session `to`; assert that the store has added them."""
    assert execute(store, AddMessages(session_id=to, messages=messages))


def get(store: Store, session_id: str = "c") -> ChatSession:
    """Return a session; assert that it is stored."""
    session = execute(store, GetChat(id=session_id))
    assert session is not None
    return session


def messages_of(store: Store, session_id: str = "c", **window: Any) -> tuple[Message, ...]:
    """Return messages of a session; assert that the session is stored."""
    messages = execute(store, ListMessages(session_id=session_id, **window))
    assert messages is not None
    return messages


def ids(store: Store, session_id: str = "c", **window: Any) -> list[str]:
    """Return the ids of messages of a session; assert that the session is stored."""
    return [one.id for one in messages_of(store, session_id, **window)]


def search(store: Store, query: str, limit: int = 50, offset: int = 0) -> tuple[SearchHit, ...]:
    return execute(store, SearchMessages(query=query, limit=limit, offset=offset))


def found(store: Store, query: str) -> list[str]:
    """Return the sorted ids of the messages that a search finds."""
    return sorted(hit.message.id for hit in search(store, query))
