"""Selection of the search for a database, by its full-text index."""

from sqlalchemy import Connection, inspect

from runtimes.store.search import ChatSearch, PortableSearch

__all__ = ["new_chat_search"]

_PARTS = "SELECT name FROM sqlite_master WHERE name IN ('chat_search', 'chat_search_added')"  # the table, and a trigger


def new_chat_search(connection: Connection) -> ChatSearch:
    """Return the full-text search of SQLite or PostgreSQL if the database has its index, else the portable search."""
    kind = connection.dialect.name
    if kind == "sqlite" and len(connection.exec_driver_sql(_PARTS).all()) == 2:
        from runtimes.store.search_sqlite import Fts5Search  # noqa: PLC0415, RUF100 - one kind, not both

        return Fts5Search()
    if kind == "postgresql" and any(
        index["name"] == "chat_search" for index in inspect(connection).get_indexes("chat_messages")
    ):
        from runtimes.store.search_postgresql import TsvectorSearch  # noqa: PLC0415, RUF100 - one kind, not both

        return TsvectorSearch()
    return PortableSearch()
