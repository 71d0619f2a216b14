"""The tables of chats, in types that every database knows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from runtimes.prepared import storable

__all__ = [
    "CHAT_FENCES",
    "CHAT_MESSAGES",
    "CHAT_RESPONSES",
    "CHAT_SESSIONS",
    "create_chat_fences",
    "create_chat_responses",
    "create_chat_tables",
]


class _Words(TypeDecorator[str]):
    """Text of any length, ordered by its characters' numbers; one that not every database takes becomes U+FFFD."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text(collation="C") if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        return value if value is None else storable(value)


_METADATA = MetaData()
_COUNT = BigInteger().with_variant(Integer, "sqlite")  # only an INTEGER numbers the rows of SQLite

CHAT_SESSIONS = Table(
    "chat_sessions",
    _METADATA,
    Column("id", _Words, primary_key=True),
    Column("started_at", Double, nullable=False),  # this and all other times: Unix seconds
    Column("updated_at", Double, nullable=False),
    Column("last_active", Double, nullable=False),
    Column("title", _Words),
    Column("source", _Words, nullable=False),
    Column("model", _Words),
    Column("system_prompt", _Words),
    Column("parent_id", _Words, index=True),  # no foreign key: the parent may have been deleted, or never have been
    Column("is_child", Boolean, nullable=False),
    Column("ended_at", Double),
    Column("end_reason", _Words),
    Column("pinned", Boolean, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("preview", _Words),
    Column("message_count", _COUNT, nullable=False),
    Column("tool_call_count", _COUNT, nullable=False),
    Column("input_tokens", _COUNT, nullable=False),
    Column("output_tokens", _COUNT, nullable=False),
    # One index orders every list; the filters are in it so that rows that are left out are never looked up.
    Index("ix_chat_sessions_recent", "last_active", "started_at", "id", "source", "is_child", "archived"),
)
CHAT_MESSAGES = Table(
    "chat_messages",
    _METADATA,
    Column("seq", _COUNT, primary_key=True, autoincrement=True),  # the order of insertion
    Column("session_id", _Words, ForeignKey(CHAT_SESSIONS.c.id, ondelete="CASCADE"), nullable=False),
    Column("id", _Words, nullable=False),
    Column("role", _Words, nullable=False),
    Column("text", _Words, nullable=False),  # the content, if it is a text that every database takes, else its words
    Column("exact", Text),  # the content as JSON, if `text` does not say it all: content parts
    Column("words", Text),  # what is searched, if it is not just `text` (`runtimes.chat_words`)
    Column("timestamp", Double, nullable=False),
    Column("run_id", _Words),
    Column("tool_calls", Text),  # JSON; NULL: none
    Column("tool_call_id", _Words),
    Column("tool_name", _Words),
    Column("finish_reason", _Words),
    Column("reasoning", _Words),
    Column("input_tokens", _COUNT),  # both NULL: no usage
    Column("output_tokens", _COUNT),
    UniqueConstraint("session_id", "id"),
    Index("ix_chat_messages_order", "session_id", "seq"),
)
CHAT_FENCES = Table(
    "chat_fences",
    _METADATA,
    Column("session_id", _Words, ForeignKey(CHAT_SESSIONS.c.id, ondelete="CASCADE"), primary_key=True),
    Column("fence", _COUNT, nullable=False),  # the greatest that came with a write, see `svc_proto.cluster.leases`
)

CHAT_RESPONSES = Table(
    "chat_responses",
    _METADATA,
    Column("kind", _Words, primary_key=True),  # `response` or `conversation`
    Column("name", _Words, primary_key=True),
    Column("session_id", _Words, nullable=False),  # no foreign key: a response outlives its session
    Column("text", _Words, nullable=False),  # JSON; empty for a conversation
    Column("used_at", Double, nullable=False),
)


def create_chat_tables(connection: Connection) -> None:
    """Create the tables of sessions and messages and their indexes."""
    _METADATA.create_all(connection, [CHAT_SESSIONS, CHAT_MESSAGES], checkfirst=False)


def create_chat_fences(connection: Connection) -> None:
    """Create the table that keeps nodes from writing whose time is up."""
    CHAT_FENCES.create(connection)


def create_chat_responses(connection: Connection) -> None:
    """Create the table of what nodes keep of `/v1/responses`."""
    CHAT_RESPONSES.create(connection)
