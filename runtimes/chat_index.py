"""Which index of words a database has, and is given."""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from runtimes.chat_search import ChatSearch, PortableSearch

__all__ = ["chat_search", "create_chat_search"]


def create_chat_search(connection: Connection) -> None:
    """A migration: index the messages there are and those to come, where this kind of database can."""
    kind = connection.dialect.name
    if kind == "sqlite":
        from runtimes.chat_search_sqlite import create_fts5  # noqa: PLC0415, RUF100 - one kind, not both

        create_fts5(connection)
    elif kind == "postgresql":
        from runtimes.chat_search_postgresql import create_tsvector  # noqa: PLC0415, RUF100 - the same

        create_tsvector(connection)


def chat_search(connection: Connection) -> ChatSearch:
    """What finds messages in this database."""
    kind, there = connection.dialect.name, inspect(connection)
    if kind == "sqlite" and there.has_table("chat_search"):
        from runtimes.chat_search_sqlite import Fts5Search  # noqa: PLC0415, RUF100 - one kind, not both

        return Fts5Search()
    if kind == "postgresql" and any(index["name"] == "chat_search" for index in there.get_indexes("chat_messages")):
        from runtimes.chat_search_postgresql import TsvectorSearch  # noqa: PLC0415, RUF100 - the same

        return TsvectorSearch()
    return PortableSearch()
