"""Statements as text, made once for one kind of database, and transactions that run them past SQLAlchemy's execution.

That costs several times what a short statement does. The text is SQLAlchemy's own: each request is written once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ClauseElement, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

from runtimes.store_dialects import begin, version_of

__all__ = ["UNSTORABLE", "Hand", "Prepared", "storable"]

Row = tuple[Any, ...]
Text = tuple[str, Sequence[str] | None]  # a statement, and the names of its values where they are given by order

UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # PostgreSQL takes no NUL, and UTF-8 can carry no lone surrogate


def storable(text: str) -> str:
    """The text with U+FFFD for each character that not every database takes."""
    return UNSTORABLE.sub("\ufffd", text) if UNSTORABLE.search(text) else text


class Prepared:
    """What a store has prepared. Threads that share it take turns."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._texts: dict[ClauseElement, Text] = {}
        self._kept: PoolProxiedConnection | None = None  # of SQLite: to have one from the pool costs as much as a row

    @contextmanager
    def transaction(self, *, reads: bool) -> Iterator[Hand]:
        """One transaction. Raises SQLAlchemy's errors, as its own execution does."""
        engine = self.engine
        errors = engine.dialect.loaded_dbapi.Error
        raw, self._kept = self._kept, None
        try:
            raw = raw or engine.raw_connection()
            cursor = raw.cursor()
            begin(cursor, engine, reads=reads)
            yield Hand(self, cursor)
            raw.commit()
            if engine.dialect.name == "sqlite":  # others hang up while nobody looks
                raw, self._kept = None, raw
        except errors as error:
            cut = raw is not None and engine.dialect.is_disconnect(error, raw, None)
            if cut and raw is not None:
                raw.invalidate(error)
            raise DBAPIError.instance(None, None, error, errors, connection_invalidated=cut) from error
        finally:
            if raw is not None:
                raw.close()  # which rolls back what was not committed

    def close(self) -> None:
        """Let go of the connection that is kept."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def text_of(self, statement: ClauseElement, values: Mapping[str, object]) -> Text:
        """Its text, and the order of the values, where this kind of database has them by order."""
        prepared = self._texts.get(statement)
        if prepared is None:
            compiled = statement.compile(dialect=self.engine.dialect, column_keys=list(values))
            prepared = self._texts[statement] = str(compiled), getattr(compiled, "positiontup", None)
        return prepared


class Hand:
    """What runs statements in one transaction."""

    __slots__ = ("_cursor", "_prepared")

    def __init__(self, prepared: Prepared, cursor: Any) -> None:
        self._prepared = prepared
        self._cursor = cursor

    def rows(self, statement: ClauseElement, **values: object) -> list[Row]:
        """What a statement finds, in the order of its columns; a truth may be a number."""
        self._run(statement, values)
        found: list[Row] = self._cursor.fetchall()
        return found

    def change(self, statement: ClauseElement, **values: object) -> int:
        """How many rows a statement has changed."""
        self._run(statement, values)
        count: int = self._cursor.rowcount
        return count

    def version(self) -> object:
        """Another one once somebody else has changed something; None where the database cannot say."""
        return version_of(self._prepared.engine, self._cursor)

    def _run(self, statement: ClauseElement, values: Mapping[str, object]) -> None:
        text, order = self._prepared.text_of(statement, values)
        taken = {name: storable(value) if isinstance(value, str) else value for name, value in values.items()}
        self._cursor.execute(text, taken if order is None else [taken[name] for name in order])
