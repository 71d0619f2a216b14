"""Prepared SQL texts for one kind of database, and transactions that run them without SQLAlchemy's execution.

That execution costs several times as much as a short statement. A text is compiled by SQLAlchemy, or written with
`:named` values.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import ClauseElement, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

from runtimes.store.sql_executor import BEGIN, SqlExecutor, Text

__all__ = ["PreparedStatements"]

Texts = dict[ClauseElement | str, Text]
_SQLITE_TEXTS: Texts = {}  # of all stores: they have one version of SQLite


class PreparedStatements:
    """Cached statement texts of a store, and its transactions. Threads must not use it at the same time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._texts: Texts = _SQLITE_TEXTS if engine.dialect.name == "sqlite" else {}
        # of SQLite: getting a connection from the pool costs as much as a row
        self._kept: PoolProxiedConnection | None = None

    @contextmanager
    def transaction(self, *, reads: bool) -> Iterator[SqlExecutor]:
        """Yield the executor of one transaction: committed at the end of the context, rolled back after an exception.

        An error of the driver is raised as an error of SQLAlchemy.
        """
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
            if engine.dialect.name == "sqlite":  # servers may close an idle connection
                raw, self._kept = None, raw
        except errors as error:
            cut = raw is not None and engine.dialect.is_disconnect(error, raw, None)
            if cut and raw is not None:
                raw.invalidate(error)
            raise DBAPIError.instance(None, None, error, errors, connection_invalidated=cut) from error
        finally:
            if raw is not None:
                raw.close()  # rolls back what was not committed

    def close(self) -> None:
        """Close the connection that is kept."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def text_of(self, statement: ClauseElement | str, values: Mapping[str, object]) -> Text:
        """Return a statement's text, and the names of its values where the driver takes them by position."""
        if isinstance(statement, str) and (not values or self.engine.dialect.name == "sqlite"):
            return statement, None
        prepared = self._texts.get(statement)
        if prepared is None:
            clause = text(statement) if isinstance(statement, str) else statement
            compiled = clause.compile(dialect=self.engine.dialect, column_keys=list(values))
            prepared = self._texts[statement] = str(compiled), getattr(compiled, "positiontup", None)
        return prepared
