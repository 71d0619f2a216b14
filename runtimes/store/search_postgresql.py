"""Search with PostgreSQL: a `tsvector` in each row of `chat_messages`, and a GIN index of them.

A term matches the words that begin with it. Words do not depend on the database's locale: ASCII punctuation becomes
blanks before PostgreSQL parses, and `runtimes.store.search_text` has folded the rest.
"""

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
    """Search with the index; terms without letters and digits, such as an emoji, are compared with the texts."""

    def find(self, connection: Connection, terms: tuple[str, ...], *, limit: int, offset: int) -> Sequence[int]:
        """Return the numbers of messages with all terms, best first, then newest.

        If no term has a letter or digit, the newest are first. Only the first 250,000 characters of a text are indexed.
        """
        known = {term: term.translate(_BLANKS).split() for term in terms if has_letters(term)}
        if not known:
            return PortableSearch().find(connection, terms, limit=limit, offset=offset)
        asked = _query(*(word for words in known.values() for word in words))
        # The words of one term follow each other. After the 16,383rd word, where positions end, only the text is
        # compared.
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
        """Do nothing: a row's words are deleted with the row."""


def _query(*words: str) -> ColumnElement[object]:
    """Return the text query for words that begin with each of these words.

    In quotes only the quote and the backslash are special, and both are blanks by now.
    """
    return func.to_tsquery("simple", " & ".join(f"'{word}':*" for word in words))
