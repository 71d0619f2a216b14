"""What only one kind of database understands."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, event

__all__ = ["prepare"]

BUSY_TIMEOUT = 5000  # ms that SQLite waits for another process's lock

# WAL: readers do not stop the writer. FULL: a session that was answered for survives a power cut.
_SQLITE = (
    f"PRAGMA busy_timeout={BUSY_TIMEOUT}",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
)


def prepare(engine: Engine) -> None:
    """Have each new connection set up as this kind of database needs it."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)


def _begin_sqlite(connection: Connection) -> None:
    # The driver by itself would not put changes of the schema into the transaction. IMMEDIATE: take the write lock
    # first, so that two processes that migrate do it one after the other.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions are begun by us
    cursor = connection.cursor()
    for pragma in _SQLITE:
        cursor.execute(pragma)
    cursor.close()
