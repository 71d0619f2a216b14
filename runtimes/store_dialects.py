"""What only one kind of database understands: how it is opened, and how its transactions begin."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import StaticPool

__all__ = ["begin", "open_engine", "reader_of", "version_of", "wipe_log"]

BUSY_TIMEOUT = 5000  # ms that SQLite waits for another process's lock

_READS = "svc_reads"

# WAL: readers do not stop the writer. FULL: a session that was answered for survives a power cut. secure_delete: what
# was deleted is overwritten.
_SQLITE = (
    f"PRAGMA busy_timeout={BUSY_TIMEOUT}",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
)

# By whether it only reads. The driver by itself would not put changes of the schema into the transaction. IMMEDIATE:
# take the write lock first, so that two processes that write (or migrate) do it one after the other.
_BEGIN = {False: "BEGIN IMMEDIATE", True: "BEGIN"}


def open_engine(url: URL) -> Engine:
    """An engine whose connections are set up as this kind of database needs it."""
    if url.get_backend_name() != "sqlite":
        return create_engine(url)
    if url.database in (None, "", ":memory:"):  # of this connection alone, so all threads share the one
        engine = create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        engine = create_engine(url)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def reader_of(engine: Engine) -> Engine:
    """The same engine for transactions that only read: they wait for nobody's lock."""
    return engine.execution_options(**{_READS: True})


def begin(cursor: Any, engine: Engine, *, reads: bool) -> None:
    """Begin a transaction on a connection of the driver; most drivers do by themselves."""
    if engine.dialect.name == "sqlite":
        cursor.execute(_BEGIN[reads])


def version_of(engine: Engine, cursor: Any) -> object:
    """Another value once another connection has changed something; None where the database cannot say."""
    if engine.dialect.name != "sqlite":
        return None
    ((version,),) = cursor.execute("PRAGMA data_version")
    return id(cursor.connection), version


def wipe_log(engine: Engine) -> None:
    """Take what was changed over into the file and empty the log, which still has what was there before."""
    if engine.dialect.name == "sqlite":
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get(_READS)
    connection.exec_driver_sql(_BEGIN[bool(reads)])


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions are begun by us
    cursor = connection.cursor()
    for pragma in _SQLITE:
        cursor.execute(pragma)
    cursor.close()
