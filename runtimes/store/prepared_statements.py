"""Statements as text, made once for one kind of database, and transactions that run them past SQLAlchemy's execution.

That costs several times what a short statement does. The text is SQLAlchemy's own, or one that has its values `:named`:
each request is written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import ClauseElement, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

from runtimes.store.sql_executor import BEGIN, SqlExecutor, Text

__all__ = ["PreparedStatements"]


class PreparedStatements:
    """What a store has prepared. Threads that share it take turns."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._texts: dict[ClauseElement | str, Text] = {}
        self._kept: PoolProxiedConnection | None = None  # of SQLite: to have one from the pool costs as much as a row

    @contextmanager
    def transaction(self, *, reads: bool) -> Iterator[SqlExecutor]:
        """One transaction. Raises SQLAlchemy's errors, as its own execution does."""
        engine = self.engine
        errors = engine.dialect.loaded_dbapi.Error
        raw, self._kept = self._kept, None
        try:
            raw = raw or engine.raw_connection()
            cursor = raw.cursor()
            if engine.dialect.name == "sqlite":  # most drivers begin by themselves
                cursor.execute(BEGIN[reads])
            yield SqlExecutor(engine.dialect.name, cursor, self.text_of)
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

    def text_of(self, statement: ClauseElement | str, values: Mapping[str, object]) -> Text:
        """Its text, and the order of the values, where this kind of database has them by order."""
        if isinstance(statement, str) and (not values or self.engine.dialect.name == "sqlite"):
            return statement, None
        prepared = self._texts.get(statement)
        if prepared is None:
            clause = text(statement) if isinstance(statement, str) else statement
            compiled = clause.compile(dialect=self.engine.dialect, column_keys=list(values))
            prepared = self._texts[statement] = str(compiled), getattr(compiled, "positiontup", None)
        return prepared
