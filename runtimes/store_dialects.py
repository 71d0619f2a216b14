"""What only one kind of database understands: how it is opened, and how its transactions begin."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL
from sqlalchemy.pool import StaticPool

__all__ = ["begin", "lock_schema", "number_on", "open_engine", "reader_of", "repeatable", "version_of", "wipe_log"]

BUSY_TIMEOUT = 5000  # ms that SQLite and PostgreSQL wait for another process's lock
STATEMENT_TIMEOUT = 20_000  # ms for one statement of PostgreSQL
CONNECT_TIMEOUT = 5  # s for its connections
CONNECTIONS = 4  # to a database server: those who ask take turns, so more than two are for what a command does besides

_READS = "svc_reads"
_POSTGRESQL = ("postgres", "postgresql")  # as people write it, without the name of a driver
_SCHEMA_LOCK = int.from_bytes(b"svc", "big")  # the number of an advisory lock

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
    if url.drivername in _POSTGRESQL:
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        # A connection that was cut while nobody looked is found out before it is used, and replaced.
        given = _postgresql(url) if url.get_backend_name() == "postgresql" else {}
        return create_engine(url, pool_pre_ping=True, pool_size=1, max_overflow=CONNECTIONS - 1, connect_args=given)
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


def repeatable(engine: Engine) -> Engine:
    """The same engine for transactions that see the database as it was when they began."""
    return engine if engine.dialect.name == "sqlite" else engine.execution_options(isolation_level="REPEATABLE READ")


def number_on(connection: Connection, column: Column[int]) -> None:
    """Have the numbers of a column go on behind the greatest that was given by hand."""
    if connection.dialect.name == "postgresql":  # others look at the rows
        sequence = func.pg_get_serial_sequence(column.table.name, column.name)
        greatest = select(func.max(column)).scalar_subquery()
        connection.execute(select(func.setval(sequence, greatest)).where(greatest.is_not(None)))


def begin(cursor: Any, engine: Engine, *, reads: bool) -> None:
    """Begin a transaction on a connection of the driver; most drivers do by themselves."""
    if engine.dialect.name == "sqlite":
        cursor.execute(_BEGIN[reads])


def lock_schema(connection: Connection) -> None:
    """Have whoever changes the schema do it one after the other, up to the end of the transaction."""
    if connection.dialect.name == "postgresql":  # SQLite has locked all of it by then
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")


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


def _postgresql(url: URL) -> dict[str, object]:
    """What its connections are given, but for what the URL says itself."""
    waits = f"-c statement_timeout={STATEMENT_TIMEOUT} -c lock_timeout={BUSY_TIMEOUT}"
    given = {"application_name": "svc", "connect_timeout": CONNECT_TIMEOUT, "options": waits}
    return {name: value for name, value in given.items() if name not in url.query}


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get(_READS)
    connection.exec_driver_sql(_BEGIN[bool(reads)])


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions are begun by us
    cursor = connection.cursor()
    for pragma in _SQLITE:
        cursor.execute(pragma)
    cursor.close()
