"""The tables of chats for queries, with portable types; `runtimes.store.migrations` creates them."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

from runtimes.store.sql_executor import replace_unstorable

__all__ = ["CHAT_FENCES", "CHAT_MESSAGES", "CHAT_PICTURES", "CHAT_RESPONSES", "CHAT_SESSIONS"]


class _Words(TypeDecorator[str]):
    """Text of any length, ordered by code points; characters that some database refuses become U+FFFD."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text(collation="C") if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        return value if value is None else replace_unstorable(value)


_METADATA = MetaData()
_COUNT = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows only in an INTEGER column

CHAT_SESSIONS = Table(
    "chat_sessions",
    _METADATA,
    Column("id", _Words, primary_key=True),
    Column("started_at", Double),  # this and all other times: Unix seconds
    Column("updated_at", Double),
    Column("last_active", Double),
    Column("title", _Words),
    Column("source", _Words),
    Column("model", _Words),
    Column("system_prompt", _Words),
    Column("parent_id", _Words),  # no foreign key: the parent may have been deleted, or may never have existed
    Column("is_child", Boolean),
    Column("ended_at", Double),
    Column("end_reason", _Words),
    Column("pinned", Boolean),
    Column("archived", Boolean),
    Column("preview", _Words),
    Column("message_count", _COUNT),
    Column("tool_call_count", _COUNT),
    Column("input_tokens", _COUNT),
    Column("output_tokens", _COUNT),
)
CHAT_MESSAGES = Table(
    "chat_messages",
    _METADATA,
    Column("seq", _COUNT, primary_key=True, autoincrement=True),  # order of insertion
    Column("session_id", _Words),
    Column("id", _Words),
    Column("role", _Words),
    Column("text", _Words),  # the content if it is a text that every database can store, otherwise its words
    Column("exact", Text),  # the content as JSON where `text` is not enough: content parts
    Column("words", Text),  # searched text where it differs from `text` (`runtimes.store.search_text`)
    Column("timestamp", Double),
    Column("run_id", _Words),
    Column("tool_calls", Text),  # JSON; NULL: none
    Column("tool_call_id", _Words),
    Column("tool_name", _Words),
    Column("finish_reason", _Words),
    Column("reasoning", _Words),
    Column("input_tokens", _COUNT),  # both NULL: no usage
    Column("output_tokens", _COUNT),
    Column("extra", Text),  # JSON; NULL: no further members
)
CHAT_FENCES = Table(
    "chat_fences",
    _METADATA,
    Column("session_id", _Words, primary_key=True),
    Column("fence", _COUNT),  # the greatest fence of a write, see `svc_proto.cluster.leases`
)

CHAT_PICTURES = Table(
    "chat_pictures",
    _METADATA,
    Column("session_id", _Words, primary_key=True),
    Column("token", _Words, primary_key=True),  # media token of the relay
    Column("kind", _Words),  # media type
    Column("size", _COUNT),  # bytes of `data`
    Column("stored_at", Double),
    Column("data", LargeBinary),
)

CHAT_RESPONSES = Table(
    "chat_responses",
    _METADATA,
    Column("kind", _Words, primary_key=True),  # `response` or `conversation`
    Column("name", _Words, primary_key=True),
    Column("session_id", _Words),  # no foreign key: a response outlives its session
    Column("text", _Words),  # JSON; empty for a conversation
    Column("used_at", Double),
)
