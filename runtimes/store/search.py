"""Which messages hold the words of a query: for every database by comparing texts.

A database with an index of words has a `ChatSearch` of its own, in `runtimes.store.search_sqlite` and
`runtimes.store.search_postgresql`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, func, select

from runtimes.store.chat_tables import CHAT_MESSAGES

__all__ = ["ChatSearch", "PortableSearch", "contains_term"]


class ChatSearch(Protocol):
    """Finds the messages that hold the words of a query."""

    def find(self, connection: Connection, terms: tuple[str, ...], *, limit: int, offset: int) -> Sequence[int]:
        """The numbers (`seq`) of messages that hold all `terms` (at least one; of `search_text.terms`), best first."""
        ...

    def forget(self, connection: Connection) -> None:
        """Messages were deleted: keep no word of them."""
        ...


class PortableSearch:
    """Looks through all texts, newest first. A term is found inside of words too."""

    def find(self, connection: Connection, terms: tuple[str, ...], *, limit: int, offset: int) -> Sequence[int]:
        """The numbers of messages that hold all `terms`."""
        seq = CHAT_MESSAGES.c.seq
        found = select(seq).where(*map(contains_term, terms)).order_by(seq.desc()).limit(limit).offset(offset)
        return connection.execute(found).scalars().all()

    def forget(self, connection: Connection) -> None:
        """Nothing is kept beside the texts."""


def contains_term(term: str) -> ColumnElement[bool]:
    """The condition that a message's text has a term in it."""
    return func.coalesce(CHAT_MESSAGES.c.words, CHAT_MESSAGES.c.text).icontains(term, autoescape=True)
