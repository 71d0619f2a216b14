"""SQL store on SQLAlchemy: frequent requests run as prepared text, other chat requests through SQLAlchemy."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from runtimes.failures import HostError
from runtimes.store.dialects import checkpoint_wal, open_engine, read_only_engine
from runtimes.store.migrations import MIGRATIONS, Migration, migrate, version_in
from runtimes.store.prepared_statements import PreparedStatements
from runtimes.store.session_requests import SESSION_HANDLERS, SESSION_READS
from runtimes.store.sql_executor import SqlExecutor, store_failure
from runtimes.store.store_service import StoreError, outcome_of
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind

__all__ = ["SqlStore", "first_error_line", "migrate_engine", "open_sql_engine", "schema_of", "upgrade"]

_UNFIT = ("mysql", "mariadb")  # decision 22
Handler = Callable[[Connection, Any], object]
Quick = Callable[[SqlExecutor, Any], object]  # frequent requests: they run prepared statements and share transactions


class SqlStore:
    """A store in an SQL database; opening it migrates its schema, unless `migrations` is None.

    Threads may share it; a lock serializes them.
    """

    def __init__(self, where: str | Path, migrations: Sequence[Migration] | None = MIGRATIONS) -> None:
        self._turn = Lock()
        self._quick: dict[type, Quick] = dict(SESSION_HANDLERS)
        self._others: dict[type, Handler] = {}
        self._reads: frozenset[type] = SESSION_READS
        self._erases: frozenset[type] = frozenset()
        self._searches: frozenset[type] = frozenset()
        self._chats = False  # whether the chat requests are registered
        self._checked = False  # whether the search index was compared with the messages
        self._engine = open_sql_engine(where)
        self._reader = read_only_engine(self._engine)
        self._prepared = PreparedStatements(self._engine)
        if migrations is not None:
            try:
                migrate_engine(self._engine, migrations)
            except StoreError:
                self._engine.dispose()
                raise

    def execute(self, request: StoreRequest[Any]) -> object:
        """Perform a request in one transaction and return its answer. Raise `HostError` if it fails."""
        try:
            with self._turn:
                try:
                    return self._execute(request)
                except IntegrityError:  # another writer has just inserted this key: the second try finds its row
                    return self._execute(request)
                except DBAPIError as error:
                    if not self._repair_search(error):
                        raise
                    return self._execute(request)
        except SQLAlchemyError as error:
            raise _failure_of(error) from error

    def execute_all(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        """Return the answer to each request in order, or its exception.

        Consecutive frequent requests share a transaction, unless one of them fails.
        """
        answers: list[object] = []
        for quick, group in self._groups(requests):
            if quick and len(group) > 1:
                # One request fails: executed separately, each reports its own outcome.
                with suppress(Exception), self._turn:
                    answers += self._together(group)
                    continue
            answers += [outcome_of(self, request) for request in group]
        return answers

    def close(self) -> None:
        """Close the connections."""
        self._prepared.close()
        self._engine.dispose()

    def _groups(self, requests: Sequence[StoreRequest[Any]]) -> list[tuple[bool, list[StoreRequest[Any]]]]:
        """Split requests into consecutive groups: whether they can share a transaction, and the requests."""
        try:
            with self._turn:
                return [(quick, list(some)) for quick, some in groupby(requests, key=self._is_quick)]
        # The kind is unknown without the database: executed separately, each reports the error.
        except SQLAlchemyError:
            return [(False, list(requests))]

    def _execute(self, request: StoreRequest[Any]) -> object:
        return self._together([request])[0] if self._is_quick(request) else self._alone(request)

    def _together(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        with self._prepared.transaction(reads=self._reads.issuperset(map(type, requests))) as hand:
            return [self._quick[type(request)](hand, request) for request in requests]

    def _alone(self, request: StoreRequest[Any]) -> object:
        handler = self._others.get(type(request))
        if handler is None:
            raise HostError(FailureKind.UNSUPPORTED, f"the store has no {type(request).__name__}")
        if type(request) in self._searches and not self._checked:
            self._checked = True
            if self._check_search():
                return self._execute(request)
        with (self._reader if type(request) in self._reads else self._engine).begin() as connection:
            answer = handler(connection, request)
        if type(request) in self._erases:
            checkpoint_wal(self._engine)
        return answer

    def _is_quick(self, request: StoreRequest[Any]) -> bool:
        if type(request) not in self._quick and not self._chats:
            from runtimes.store.chat_requests import ERASES, READS, SEARCHES, chat_handlers  # noqa: PLC0415, RUF100 - only for chats
            from runtimes.store.search_index import new_chat_search  # noqa: PLC0415, RUF100 - a relay needs neither

            with self._reader.begin() as connection:
                quick, self._others = chat_handlers(new_chat_search(connection))
            self._quick |= quick
            self._reads |= READS
            self._erases |= ERASES
            self._searches |= SEARCHES
            self._chats = True
        return type(request) in self._quick

    def _check_search(self) -> bool:
        """Check the search index; return whether a repair was tried."""
        from runtimes.store.search_repair import check_search_index  # noqa: PLC0415, RUF100 - for searches alone

        repaired = check_search_index(self._engine)
        self._chats = self._chats and not repaired  # the search is selected anew
        return repaired

    def _repair_search(self, error: DBAPIError) -> bool:
        """Repair the search index if it caused this error; return whether that was so."""
        from runtimes.store.search_repair import is_search_damaged, repair_search_index  # noqa: PLC0415, RUF100 - rare

        if not is_search_damaged(error):
            return False
        self._prepared.close()
        repair_search_index(self._engine)
        self._chats = False
        return True


def upgrade(where: str | Path, *, keep: bool = True) -> tuple[int, int]:
    """Migrate the schema of a database, or with `keep` false only try to.

    Returns the version before and the version after. Raises `StoreError`; then the schema has not changed.
    """
    engine = open_sql_engine(where)
    try:
        return migrate_engine(engine, keep=keep)
    finally:
        engine.dispose()


def open_sql_engine(where: str | Path) -> Engine:
    """Return an engine for a store, without connecting. Raises `StoreError`."""
    try:
        url = URL.create("sqlite", database=str(where)) if isinstance(where, Path) else make_url(where)
        if url.get_backend_name() in _UNFIT:
            raise StoreError("cannot open the store: it can be SQLite or PostgreSQL, but not MariaDB or MySQL")
        return open_engine(url)
    except (SQLAlchemyError, ImportError) as error:
        hint = "; pip install 'svc-relay[postgres]'" if getattr(error, "name", None) == "psycopg" else ""
        raise StoreError(f"cannot open the store: {type(error).__name__}: {first_error_line(error)}{hint}") from error


def migrate_engine(
    engine: Engine, migrations: Sequence[Migration] = MIGRATIONS, *, keep: bool = True
) -> tuple[int, int]:
    """Migrate a schema in one transaction, rolled back unless `keep`; return the old and new version.

    Raises `StoreError`.
    """
    prepared = PreparedStatements(engine)
    try:
        with prepared.transaction(reads=False) as hand:
            return migrate(hand, migrations, keep=keep)
    except SQLAlchemyError as error:
        raise StoreError(f"cannot open the store {engine.url.render_as_string()}: {first_error_line(error)}") from error
    finally:
        prepared.close()


def schema_of(engine: Engine) -> tuple[int, int]:
    """Return the version of a database's schema (0 without one), and the newest known version."""
    prepared = PreparedStatements(engine)
    try:
        with prepared.transaction(reads=True) as hand:
            return version_in(hand) or 0, len(MIGRATIONS)
    finally:
        prepared.close()


def _failure_of(error: SQLAlchemyError) -> HostError:
    if isinstance(error, DBAPIError):
        return store_failure(error, error.orig, cut=error.connection_invalidated)
    return store_failure(error, None)


def first_error_line(error: Exception) -> str:
    """Return the first line of a database's error, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(cause).partition("\n")[0]
