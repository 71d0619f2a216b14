"""Differences between kinds of databases: opening of connections, and the begin of transactions."""

from sqlalchemy import Column, Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL
from sqlalchemy.pool import StaticPool

from runtimes.store.sql_executor import BEGIN, BUSY_TIMEOUT, prepare_sqlite

__all__ = ["advance_sequence", "open_engine", "read_only_engine", "repeatable_read_engine", "checkpoint_wal"]

STATEMENT_TIMEOUT = 20_000  # ms for one statement of PostgreSQL
CONNECT_TIMEOUT = 5  # s for a connection to PostgreSQL
CONNECTIONS = 4  # to a database server: requests take turns; more than two are for other work of a command

PGBOUNCER = "pgbouncer"  # parameter of a URL: `true` if PgBouncer is in front of the database

_READS = "svc_reads"
_POSTGRESQL = ("postgres", "postgresql")  # common spellings without the name of a driver


def open_engine(url: URL) -> Engine:
    """Return an engine whose connections are set up for this kind of database."""
    if url.drivername in _POSTGRESQL:
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        # A connection that was cut while idle is detected before its next use, and replaced.
        given = _postgresql(url) if url.get_backend_name() == "postgresql" else {}
        url = url.difference_update_query([PGBOUNCER])
        return create_engine(url, pool_pre_ping=True, pool_size=1, max_overflow=CONNECTIONS - 1, connect_args=given)
    # an in-memory database belongs to its connection, so all threads share one
    if url.database in (None, "", ":memory:"):
        engine = create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        engine = create_engine(url)
    event.listen(engine, "connect", prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def read_only_engine(engine: Engine) -> Engine:
    """Return the engine for transactions that only read; in SQLite they do not wait for the write lock."""
    return engine.execution_options(**{_READS: True})


def repeatable_read_engine(engine: Engine) -> Engine:
    """Return the engine for transactions that see the database as of one instant."""
    return engine if engine.dialect.name == "sqlite" else engine.execution_options(isolation_level="REPEATABLE READ")


def advance_sequence(connection: Connection, column: Column[int]) -> None:
    """Advance a column's sequence in PostgreSQL to the greatest value in the column; do nothing in other databases."""
    if connection.dialect.name == "postgresql":  # other databases derive the next number from the rows
        sequence = func.pg_get_serial_sequence(column.table.name, column.name)
        greatest = select(func.max(column)).scalar_subquery()
        connection.execute(select(func.setval(sequence, greatest)).where(greatest.is_not(None)))


def checkpoint_wal(engine: Engine) -> None:
    """Move changes from the SQLite log into the file and truncate the log, unless other connections prevent that.

    Do nothing in other databases.
    """
    if engine.dialect.name == "sqlite":
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()


def _postgresql(url: URL) -> dict[str, object]:
    """Return the arguments of PostgreSQL connections, except those that the URL sets.

    PgBouncer refuses `options`, and in transaction mode each transaction may get another server connection, on which
    no statement is prepared.
    """
    given: dict[str, object] = {"application_name": "svc", "connect_timeout": CONNECT_TIMEOUT}
    if url.query.get(PGBOUNCER) == "true":
        given["prepare_threshold"] = None
    else:
        given["options"] = f"-c statement_timeout={STATEMENT_TIMEOUT} -c lock_timeout={BUSY_TIMEOUT}"
    return {name: value for name, value in given.items() if name not in url.query}


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get(_READS)
    connection.exec_driver_sql(BEGIN[bool(reads)])
