"""PostgreSQL's index of words: a `tsvector` in each row of `chat_messages`, and a GIN index of them.

A term finds the words that begin with it. What is a word does not depend on the database's locale: signs of ASCII are
blanks before PostgreSQL looks, and the rest has been folded by `runtimes.store.search_text`.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, column, func, or_, select
from sqlalchemy.dialects.postgresql import TSVECTOR

from runtimes.store.chat_tables import CHAT_MESSAGES
from runtimes.store.search import PortableSearch, contains_term
from runtimes.store.search_text import has_letters

__all__ = ["TsvectorSearch"]

_SEARCH = column("search", TSVECTOR)
_BLANKS = str.maketrans(dict.fromkeys(string.punctuation, " "))


class TsvectorSearch:
    """Asks the index; what it knows nothing of, such as an emoji, is looked for in the texts."""

    def find(self, connection: Connection, terms: tuple[str, ...], *, limit: int, offset: int) -> Sequence[int]:
        """The numbers of messages with all `terms` in their first 250,000 characters, best first, then newest."""
        known = {term: term.translate(_BLANKS).split() for term in terms if has_letters(term)}
        if not known:
            return PortableSearch().find(connection, terms, limit=limit, offset=offset)
        asked = _query(*(word for words in known.values() for word in words))
        # Several words in one term follow each other. Behind the 16,383rd word that is asked of the text alone.
        rows = [
            or_(_SEARCH.op("@@")(_query(" ".join(words))), contains_term(term))
            for term, words in known.items()
            if len(words) > 1
        ]
        rows += [contains_term(term) for term in terms if term not in known]
        seq = CHAT_MESSAGES.c.seq
        found = select(seq).where(_SEARCH.op("@@")(asked), *rows)
        found = found.order_by(func.ts_rank(_SEARCH, asked).desc(), seq.desc()).limit(limit).offset(offset)
        return connection.execute(found).scalars().all()

    def forget(self, connection: Connection) -> None:
        """The words of a row go with it."""


def _query(*words: str) -> ColumnElement[object]:
    """In quotes nothing has a meaning but the quote and the backslash, and both are blanks by now."""
    return func.to_tsquery("simple", " & ".join(f"'{word}':*" for word in words))
