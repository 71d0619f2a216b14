"""The SQL store: its migrations and the requests of the relay, in SQL that every database understands.

Tables and requests of chats are in `runtimes.chat_tables` and `runtimes.chat_requests`.

A schema change is one more function at the end of `MIGRATIONS`; functions already there never change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from runtimes.failures import HostError
from runtimes.store import StoreError
from runtimes.store_dialects import chat_search, create_chat_search, open_engine, reader_of, wipe_log
from svc_proto.commands import StoreRequest
from svc_proto.engine.store import DeleteSession, LoadSessions, SaveSession
from svc_proto.facts import FailureKind

__all__ = ["MIGRATIONS", "SqlStore"]

_METADATA = MetaData()

SCHEMA_VERSION = Table(
    "schema_version",
    _METADATA,
    Column("component", String(64), primary_key=True),
    Column("version", Integer, nullable=False),
)
PAIRED_SESSIONS = Table(
    "paired_sessions",
    _METADATA,
    Column("token_hash", String(128), primary_key=True),
    Column("record", Text, nullable=False),  # JSON
    Column("updated_at", String(32), nullable=False),  # ISO 8601 UTC, for people who look
)
COMPONENT = "svc"
Handler = Callable[[Connection, Any], object]


def _create_paired_sessions(connection: Connection) -> None:
    PAIRED_SESSIONS.create(connection)


def _create_chats(connection: Connection) -> None:
    from runtimes.chat_tables import create_chat_tables  # noqa: PLC0415, RUF100 - only a new file needs it

    create_chat_tables(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _create_paired_sessions,
    _create_chats,
    create_chat_search,
)


class SqlStore:
    """A store in an SQL database; opening it brings its schema up to date. Threads may share it: they take turns."""

    def __init__(self, where: str | Path, migrations: tuple[Callable[[Connection], None], ...] = MIGRATIONS) -> None:
        self._turn = Lock()
        self._handlers: dict[type, Handler] = dict(_HANDLERS)
        self._reads: frozenset[type] = frozenset({LoadSessions})
        self._erases: frozenset[type] = frozenset()
        self._chats = False  # whether the requests of chats are among them
        try:
            url = URL.create("sqlite", database=str(where)) if isinstance(where, Path) else make_url(where)
            self._engine = open_engine(url)
            self._reader = reader_of(self._engine)
        except (SQLAlchemyError, ImportError) as error:
            raise StoreError(f"cannot open the store: {type(error).__name__}: {_first_line(error)}") from error
        try:
            _migrate(self._engine, migrations)
        except SQLAlchemyError as error:
            self._engine.dispose()
            raise StoreError(f"cannot open the store {url.render_as_string()}: {_first_line(error)}") from error
        except StoreError:
            self._engine.dispose()
            raise

    def execute(self, request: StoreRequest[Any]) -> object:
        """The request's answer, in one transaction."""
        try:
            with self._turn:
                with self._begin(request) as connection:
                    answer = self._handler(connection, request)(connection, request)
                if type(request) in self._erases:
                    wipe_log(self._engine)
                return answer
        except SQLAlchemyError as error:
            raise _failure_of(error) from error

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _begin(self, request: StoreRequest[Any]) -> AbstractContextManager[Connection]:
        return (self._reader if type(request) in self._reads else self._engine).begin()

    def _handler(self, connection: Connection, request: StoreRequest[Any]) -> Handler:
        handler = self._handlers.get(type(request))
        if handler is None and not self._chats:
            from runtimes.chat_requests import ERASES, READS, chat_handlers  # noqa: PLC0415, RUF100 - a relay never needs it

            self._handlers |= chat_handlers(chat_search(connection))
            self._reads |= READS
            self._erases |= ERASES
            self._chats = True
            handler = self._handlers.get(type(request))
        if handler is None:
            raise HostError(FailureKind.UNSUPPORTED, f"the store has no {type(request).__name__}")
        return handler


def _migrate(engine: Engine, migrations: tuple[Callable[[Connection], None], ...]) -> None:
    with engine.begin() as connection:
        SCHEMA_VERSION.create(connection, checkfirst=True)
        mine = SCHEMA_VERSION.c.component == COMPONENT
        version = connection.execute(select(SCHEMA_VERSION.c.version).where(mine)).scalar()
        if version is None:
            version = 0
            connection.execute(insert(SCHEMA_VERSION).values(component=COMPONENT, version=version))
        if version > len(migrations):
            raise StoreError(f"the store has schema version {version}, newer than {len(migrations)} known here")
        if version == len(migrations):
            return
        for migration in migrations[version:]:
            migration(connection)
        connection.execute(update(SCHEMA_VERSION).where(mine).values(version=len(migrations)))


def _load_sessions(connection: Connection, request: LoadSessions) -> tuple[Mapping[str, object], ...]:
    table = PAIRED_SESSIONS.c
    rows = connection.execute(select(table.token_hash, table.record).order_by(table.token_hash))
    return tuple({**json.loads(record), "token_hash": token_hash} for token_hash, record in rows)


def _save_session(connection: Connection, request: SaveSession) -> None:
    values = {"record": json.dumps(dict(request.record)), "updated_at": datetime.now(UTC).isoformat(timespec="seconds")}
    changed = connection.execute(
        update(PAIRED_SESSIONS).where(PAIRED_SESSIONS.c.token_hash == request.token_hash).values(values)
    )
    if not changed.rowcount:
        connection.execute(insert(PAIRED_SESSIONS).values(token_hash=request.token_hash, **values))


def _delete_session(connection: Connection, request: DeleteSession) -> None:
    connection.execute(delete(PAIRED_SESSIONS).where(PAIRED_SESSIONS.c.token_hash == request.token_hash))


_KINDS = (  # by how the names or numbers begin
    (("SQLITE_FULL", "53100"), FailureKind.NO_SPACE),
    (("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH", "25006", "28"), FailureKind.DENIED),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"), FailureKind.TIMED_OUT),
    (("SQLITE_CANTOPEN", "08"), FailureKind.UNREACHABLE),
)
_HANDLERS: dict[type, Handler] = {
    LoadSessions: _load_sessions,
    SaveSession: _save_session,
    DeleteSession: _delete_session,
}


def _failure_of(error: SQLAlchemyError) -> HostError:
    """In words that mean the same for every engine: SQLite names its errors, PostgreSQL numbers them."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    name = str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
    kind = next((kind for names, kind in _KINDS if name.startswith(names)), FailureKind.INTERNAL)
    return HostError(kind, f"the store failed: {type(error).__name__}{f' {name}' if name else ''}")


def _first_line(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(cause).partition("\n")[0]
