"""SQLite's index of words, an FTS5 table beside `chat_messages` which triggers keep in step.

A term finds the words that begin with it. The index holds no text of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, column, select, table
from sqlalchemy.exc import OperationalError

from runtimes.chat_search import PortableSearch, holds
from runtimes.chat_tables import CHAT_MESSAGES
from runtimes.chat_words import has_letters

__all__ = ["Fts5Search", "create_fts5"]

_INDEX = table("chat_search", column("rowid"), column("chat_search"), column("rank"))
_SCHEMA = (
    "CREATE VIEW chat_words AS SELECT seq, coalesce(words, text) AS words FROM chat_messages",
    # `remove_diacritics 0`: accents have been dropped by us.
    """CREATE VIRTUAL TABLE chat_search USING fts5(
        words, content='chat_words', content_rowid='seq', tokenize='unicode61 remove_diacritics 0')""",
    """CREATE TRIGGER chat_search_added AFTER INSERT ON chat_messages BEGIN
        INSERT INTO chat_search(rowid, words) VALUES (new.seq, coalesce(new.words, new.text));
    END""",
    """CREATE TRIGGER chat_search_deleted AFTER DELETE ON chat_messages BEGIN
        INSERT INTO chat_search(chat_search, rowid, words)
            VALUES ('delete', old.seq, coalesce(old.words, old.text));
    END""",
    """CREATE TRIGGER chat_search_changed AFTER UPDATE OF seq, text, words ON chat_messages BEGIN
        INSERT INTO chat_search(chat_search, rowid, words)
            VALUES ('delete', old.seq, coalesce(old.words, old.text));
        INSERT INTO chat_search(rowid, words) VALUES (new.seq, coalesce(new.words, new.text));
    END""",
    "INSERT INTO chat_search(chat_search) VALUES ('rebuild')",
)


def create_fts5(connection: Connection) -> None:
    """Index the messages there are and those to come; nothing where this SQLite has no FTS5."""
    try:
        connection.exec_driver_sql("CREATE VIRTUAL TABLE temp.chat_probe USING fts5(words)")
    except OperationalError:
        return
    connection.exec_driver_sql("DROP TABLE temp.chat_probe")
    for statement in _SCHEMA:
        connection.exec_driver_sql(statement)


class Fts5Search:
    """Asks the index; what it knows nothing of, such as an emoji, is looked for in the texts."""

    def find(self, connection: Connection, terms: tuple[str, ...], *, limit: int, offset: int) -> Sequence[int]:
        """The numbers of messages that hold all `terms`, best first by BM25, then newest first."""
        indexed = [term for term in terms if has_letters(term)]
        if not indexed:
            return PortableSearch().find(connection, terms, limit=limit, offset=offset)
        # In quotes nothing has a meaning but the quote itself.
        asked = " AND ".join('"{}"*'.format(term.replace('"', '""')) for term in indexed)
        found = select(_INDEX.c.rowid).where(_INDEX.c.chat_search.op("MATCH")(asked))
        if len(indexed) < len(terms):
            found = found.join(CHAT_MESSAGES, CHAT_MESSAGES.c.seq == _INDEX.c.rowid)
            found = found.where(*[holds(term) for term in terms if not has_letters(term)])
        found = found.order_by(_INDEX.c.rank, _INDEX.c.rowid.desc()).limit(limit).offset(offset)
        return connection.execute(found).scalars().all()

    def forget(self, connection: Connection) -> None:
        """Deleted words stay in old segments, with their places, until these are merged."""
        connection.exec_driver_sql("INSERT INTO chat_search(chat_search) VALUES ('optimize')")
