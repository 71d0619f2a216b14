"""What only one kind of database understands."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, event

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


def _prepare_sqlite(connection: Any, record: object) -> None:
    cursor = connection.cursor()
    for pragma in _SQLITE:
        cursor.execute(pragma)
    cursor.close()
