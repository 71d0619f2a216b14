"""Search with SQLite: an FTS5 table beside `chat_messages`, updated by triggers.

A term matches the words that begin with it. The index holds no text of its own.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, column, select, table

from runtimes.store.chat_tables import CHAT_MESSAGES
from runtimes.store.search import PortableSearch, contains_term
from runtimes.store.search_text import has_letters

__all__ = ["Fts5Search"]

_INDEX = table("chat_search", column("rowid"), column("chat_search"), column("rank"))


class Fts5Search:
    """Search with the index; terms without letters and digits, such as an emoji, are compared with the texts."""

    def find(self, connection: Connection, terms: tuple[str, ...], *, limit: int, offset: int) -> Sequence[int]:
        """Return the numbers of messages with all terms, best first by BM25, then newest.

        If no term has a letter or digit, the newest are first.
        """
        indexed = [term for term in terms if has_letters(term)]
        if not indexed:
            return PortableSearch().find(connection, terms, limit=limit, offset=offset)
        # In quotes only the quote itself is special.
        asked = " AND ".join('"{}"*'.format(term.replace('"', '""')) for term in indexed)
        found = select(_INDEX.c.rowid).where(_INDEX.c.chat_search.op("MATCH")(asked))
        if len(indexed) < len(terms):
            found = found.join(CHAT_MESSAGES, CHAT_MESSAGES.c.seq == _INDEX.c.rowid)
            found = found.where(*[contains_term(term) for term in terms if not has_letters(term)])
        found = found.order_by(_INDEX.c.rank, _INDEX.c.rowid.desc()).limit(limit).offset(offset)
        return connection.execute(found).scalars().all()

    def forget(self, connection: Connection) -> None:
        """Merge the segments of the index, as old ones still have the words of deleted messages."""
        connection.exec_driver_sql("INSERT INTO chat_search(chat_search) VALUES ('optimize')")
