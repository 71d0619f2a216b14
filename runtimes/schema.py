"""The SQL store: its migrations and the requests of the relay, in SQL that every database understands.

Tables and requests of chats are in `runtimes.chat_tables` and `runtimes.chat_requests`.

A schema change is one more function at the end of `MIGRATIONS`; functions already there never change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
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
    bindparam,
    delete,
    insert,
    inspect,
    literal_column,
    select,
    update,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from runtimes.failures import HostError
from runtimes.prepared import Hand, Prepared
from runtimes.store_dialects import lock_schema, open_engine, reader_of, wipe_log
from runtimes.store_service import StoreError, outcome_of
from svc_proto.commands import StoreRequest
from svc_proto.engine.store import DeleteSession, LoadSessions, Ping, SaveSession
from svc_proto.facts import FailureKind
from svc_proto.schema.members import Members

__all__ = ["MIGRATIONS", "PAIRED_SESSIONS", "SqlStore", "first_line", "migrated", "opened", "schema_of", "upgrade"]

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
_UNFIT = ("mysql", "mariadb")  # decision 22
_MINE = SCHEMA_VERSION.c.component == COMPONENT
Handler = Callable[[Connection, Any], object]
Quick = Callable[[Hand, Any], object]  # what is asked often: it runs prepared statements, together with others


def _create_paired_sessions(connection: Connection) -> None:
    PAIRED_SESSIONS.create(connection)


def _create_chats(connection: Connection) -> None:
    from runtimes.chat_tables import create_chat_tables  # noqa: PLC0415, RUF100 - only a new file needs it

    create_chat_tables(connection)


def _create_chat_search(connection: Connection) -> None:
    from runtimes.chat_index import create_chat_search  # noqa: PLC0415, RUF100 - only a new file needs it

    create_chat_search(connection)


def _create_chat_fences(connection: Connection) -> None:
    from runtimes.chat_tables import create_chat_fences  # noqa: PLC0415, RUF100 - only an older file needs it

    create_chat_fences(connection)


def _create_chat_responses(connection: Connection) -> None:
    from runtimes.chat_tables import create_chat_responses  # noqa: PLC0415, RUF100 - only an older file needs it

    create_chat_responses(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _create_paired_sessions,
    _create_chats,
    _create_chat_search,
    _create_chat_fences,
    _create_chat_responses,
)


class SqlStore:
    """A store in an SQL database; opening it brings its schema up to date. Threads may share it: they take turns."""

    def __init__(self, where: str | Path, migrations: tuple[Callable[[Connection], None], ...] = MIGRATIONS) -> None:
        self._turn = Lock()
        self._quick: dict[type, Quick] = dict(_QUICK)
        self._others: dict[type, Handler] = {}
        self._reads: frozenset[type] = frozenset({LoadSessions, Ping})
        self._erases: frozenset[type] = frozenset()
        self._chats = False  # whether the requests of chats are among them
        self._engine = opened(where)
        self._reader = reader_of(self._engine)
        self._prepared = Prepared(self._engine)
        try:
            migrated(self._engine, migrations)
        except StoreError:
            self._engine.dispose()
            raise

    def execute(self, request: StoreRequest[Any]) -> object:
        """The request's answer, in one transaction."""
        try:
            with self._turn:
                return self._together([request])[0] if self._is_quick(request) else self._alone(request)
        except SQLAlchemyError as error:
            raise _failure_of(error) from error

    def execute_all(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        """The answer to each, in their order, or the exception. What can be is carried out in one transaction."""
        answers: list[object] = []
        for quick, group in self._groups(requests):
            if quick and len(group) > 1:
                with suppress(Exception), self._turn:  # one of them cannot be done: each by itself tells which
                    answers += self._together(group)
                    continue
            answers += [outcome_of(self, request) for request in group]
        return answers

    def close(self) -> None:
        """Close the connections."""
        self._prepared.close()
        self._engine.dispose()

    def _groups(self, requests: Sequence[StoreRequest[Any]]) -> list[tuple[bool, list[StoreRequest[Any]]]]:
        """Those that follow one another and are alike: whether they are quick, and which they are."""
        try:
            with self._turn:
                return [(quick, list(some)) for quick, some in groupby(requests, key=self._is_quick)]
        except SQLAlchemyError:  # it could not be found out; each by itself tells why
            return [(False, list(requests))]

    def _together(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        with self._prepared.transaction(reads=self._reads.issuperset(map(type, requests))) as hand:
            return [self._quick[type(request)](hand, request) for request in requests]

    def _alone(self, request: StoreRequest[Any]) -> object:
        handler = self._others.get(type(request))
        if handler is None:
            raise HostError(FailureKind.UNSUPPORTED, f"the store has no {type(request).__name__}")
        with (self._reader if type(request) in self._reads else self._engine).begin() as connection:
            answer = handler(connection, request)
        if type(request) in self._erases:
            wipe_log(self._engine)
        return answer

    def _is_quick(self, request: StoreRequest[Any]) -> bool:
        if type(request) not in self._quick and not self._chats:
            from runtimes.chat_index import chat_search  # noqa: PLC0415, RUF100 - a relay never needs it
            from runtimes.chat_requests import ERASES, READS, chat_handlers  # noqa: PLC0415, RUF100 - nor this

            with self._reader.begin() as connection:
                quick, self._others = chat_handlers(chat_search(connection))
            self._quick |= quick
            self._reads |= READS
            self._erases |= ERASES
            self._chats = True
        return type(request) in self._quick


def upgrade(where: str | Path, *, keep: bool = True) -> tuple[int, int]:
    """Bring the schema of a database up to date, or with `keep` false only see whether that goes well.

    Which version it had, and which it has or would have. Raises `StoreError`; nothing has changed then.
    """
    engine = opened(where)
    try:
        return migrated(engine, keep=keep)
    finally:
        engine.dispose()


def opened(where: str | Path) -> Engine:
    """An engine for a store; nothing has been asked of it. Raises `StoreError`."""
    try:
        url = URL.create("sqlite", database=str(where)) if isinstance(where, Path) else make_url(where)
        if url.get_backend_name() in _UNFIT:
            raise StoreError("cannot open the store: it can be SQLite or PostgreSQL, but not MariaDB or MySQL")
        return open_engine(url)
    except (SQLAlchemyError, ImportError) as error:
        hint = "; pip install 'svc-relay[postgres]'" if getattr(error, "name", None) == "psycopg" else ""
        raise StoreError(f"cannot open the store: {type(error).__name__}: {first_line(error)}{hint}") from error


def migrated(
    engine: Engine, migrations: tuple[Callable[[Connection], None], ...] = MIGRATIONS, *, keep: bool = True
) -> tuple[int, int]:
    """Bring its schema up to date in one transaction, which is taken back unless `keep`: from and to which version.

    Raises `StoreError`.
    """
    newest = len(migrations)
    try:
        with engine.connect() as connection, connection.begin() as transaction:
            lock_schema(connection)
            SCHEMA_VERSION.create(connection, checkfirst=True)
            version = connection.execute(select(SCHEMA_VERSION.c.version).where(_MINE)).scalar()
            if version is None:
                version = 0
                connection.execute(insert(SCHEMA_VERSION).values(component=COMPONENT, version=version))
            if version > newest:
                raise StoreError(f"the store has schema version {version}, newer than {newest} known here")
            if version < newest:
                for migration in migrations[version:]:
                    migration(connection)
                connection.execute(update(SCHEMA_VERSION).where(_MINE).values(version=newest))
            if not keep:
                transaction.rollback()
    except SQLAlchemyError as error:
        raise StoreError(f"cannot open the store {engine.url.render_as_string()}: {first_line(error)}") from error
    return version, newest


def schema_of(engine: Engine) -> tuple[int, int]:
    """The version of its schema, 0 for a database without one, and the newest known."""
    with reader_of(engine).begin() as connection:
        if not inspect(connection).has_table(SCHEMA_VERSION.name):
            return 0, len(MIGRATIONS)
        version = connection.execute(select(SCHEMA_VERSION.c.version).where(_MINE)).scalar()
    return version or 0, len(MIGRATIONS)


def _load_sessions(hand: Hand, request: LoadSessions) -> tuple[Mapping[str, object], ...]:
    wanted = request.token_hash
    rows = hand.rows(_ONE_SESSION, wanted=wanted) if wanted else hand.rows(_ALL_SESSIONS)
    # One row that cannot be read has no members: it keeps no other phone out, and stays where it is.
    return tuple({**Members.parsed(record), "token_hash": token_hash} for token_hash, record in rows)


def _save_session(hand: Hand, request: SaveSession) -> None:
    values = {
        "wanted": request.token_hash,
        "new_record": json.dumps(dict(request.record)),
        "new_updated_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if hand.change(_CHANGE_SESSION, **values):
        return
    if request.again:
        raise HostError(FailureKind.NOT_FOUND, "the session is not stored any more")
    hand.change(_ADD_SESSION, **values)


def _delete_session(hand: Hand, request: DeleteSession) -> None:
    hand.change(_DROP_SESSION, wanted=request.token_hash)


def _ping(hand: Hand, request: Ping) -> None:
    hand.rows(_ONE)


_P = PAIRED_SESSIONS.c
_ONE = select(literal_column("1", Integer))
_NEW: dict[str, Any] = {"record": bindparam("new_record"), "updated_at": bindparam("new_updated_at")}
_ALL_SESSIONS = select(_P.token_hash, _P.record).order_by(_P.token_hash)
_ONE_SESSION = select(_P.token_hash, _P.record).where(_P.token_hash == bindparam("wanted"))
_CHANGE_SESSION = update(PAIRED_SESSIONS).where(_P.token_hash == bindparam("wanted")).values(_NEW)
_ADD_SESSION = insert(PAIRED_SESSIONS).values({"token_hash": bindparam("wanted"), **_NEW})
_DROP_SESSION = delete(PAIRED_SESSIONS).where(_P.token_hash == bindparam("wanted"))
_CUT = "CONNECTION_LOST"  # in place of a name or number: the server did not live to say one
_KINDS = (  # by how the names or numbers begin
    (("SQLITE_FULL", "53100"), FailureKind.NO_SPACE),
    (("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH", "25006", "28"), FailureKind.DENIED),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "55P03", "57014"), FailureKind.TIMED_OUT),
    (("SQLITE_CANTOPEN", "08", "57P", "53300", _CUT), FailureKind.UNREACHABLE),
)
_QUICK: dict[type, Quick] = {
    LoadSessions: _load_sessions,
    SaveSession: _save_session,
    DeleteSession: _delete_session,
    Ping: _ping,
}


def _failure_of(error: SQLAlchemyError) -> HostError:
    """In words that mean the same for every engine: SQLite names its errors, PostgreSQL numbers them."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    name = str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
    if not name and isinstance(error, DBAPIError) and (error.connection_invalidated or hasattr(cause, "sqlstate")):
        name = _CUT
    kind = next((kind for names, kind in _KINDS if name.startswith(names)), FailureKind.INTERNAL)
    return HostError(kind, f"the store failed: {type(error).__name__}{f' {name}' if name else ''}")


def first_line(error: Exception) -> str:
    """What the database says is wrong, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(cause).partition("\n")[0]
