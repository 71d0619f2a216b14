"""What only one kind of database understands: how it is opened, and how its transactions begin."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL
from sqlalchemy.pool import StaticPool

from runtimes.store.sql_executor import BEGIN, BUSY_TIMEOUT, prepare_sqlite

__all__ = ["advance_sequence", "open_engine", "read_only_engine", "repeatable_read_engine", "checkpoint_wal"]

STATEMENT_TIMEOUT = 20_000  # ms for one statement of PostgreSQL
CONNECT_TIMEOUT = 5  # s for its connections
CONNECTIONS = 4  # to a database server: those who ask take turns, so more than two are for what a command does besides

_READS = "svc_reads"
_POSTGRESQL = ("postgres", "postgresql")  # as people write it, without the name of a driver


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
    event.listen(engine, "connect", prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def read_only_engine(engine: Engine) -> Engine:
    """The same engine for transactions that only read: they wait for nobody's lock."""
    return engine.execution_options(**{_READS: True})


def repeatable_read_engine(engine: Engine) -> Engine:
    """The same engine for transactions that see the database as it was when they began."""
    return engine if engine.dialect.name == "sqlite" else engine.execution_options(isolation_level="REPEATABLE READ")


def advance_sequence(connection: Connection, column: Column[int]) -> None:
    """Have the numbers of a column go on behind the greatest that was given by hand."""
    if connection.dialect.name == "postgresql":  # others look at the rows
        sequence = func.pg_get_serial_sequence(column.table.name, column.name)
        greatest = select(func.max(column)).scalar_subquery()
        connection.execute(select(func.setval(sequence, greatest)).where(greatest.is_not(None)))


def checkpoint_wal(engine: Engine) -> None:
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
    connection.exec_driver_sql(BEGIN[bool(reads)])
