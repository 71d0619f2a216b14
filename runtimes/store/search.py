"""Search of messages for the words of a query, in any database, by comparison of texts.

A database with a full-text index has a `ChatSearch` of its own, in `runtimes.store.search_sqlite` and
`runtimes.store.search_postgresql`.
"""

from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, func, select

from runtimes.store.chat_tables import CHAT_MESSAGES

__all__ = ["ChatSearch", "PortableSearch", "contains_term"]


class ChatSearch(Protocol):
    """Search for messages that contain the words of a query."""

    def find(self, connection: Connection, terms: tuple[str, ...], *, limit: int, offset: int) -> Sequence[int]:
        """Return the numbers (`seq`) of messages with all `terms` (at least one, from `parse_terms`).

        The best are first if an index is used, otherwise the newest.
        """
        ...

    def forget(self, connection: Connection) -> None:
        """Remove the words of deleted messages from the index."""
        ...


class PortableSearch:
    """Search through all texts, newest first. A term also matches inside a word."""

    def find(self, connection: Connection, terms: tuple[str, ...], *, limit: int, offset: int) -> Sequence[int]:
        """Implement `ChatSearch.find` by a comparison with the texts of all messages."""
        seq = CHAT_MESSAGES.c.seq
        found = select(seq).where(*map(contains_term, terms)).order_by(seq.desc()).limit(limit).offset(offset)
        return connection.execute(found).scalars().all()

    def forget(self, connection: Connection) -> None:
        """Do nothing: there is no index."""


def contains_term(term: str) -> ColumnElement[bool]:
    """Return the condition that a message's text contains a term, in upper or lower case."""
    return func.coalesce(CHAT_MESSAGES.c.words, CHAT_MESSAGES.c.text).icontains(term, autoescape=True)
