"""SQLite file store: Python's own driver for the relay's requests, SQLAlchemy from the first chat request on.

Loading SQLAlchemy takes 17 MiB and almost half of the start-up time.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from runtimes.store.migrations import migrate
from runtimes.store.session_requests import SESSION_HANDLERS, SESSION_READS
from runtimes.store.sql_executor import BEGIN, SqlExecutor, prepare_sqlite, store_failure
from runtimes.store.store_service import Store, StoreError, outcome_of
from svc_proto.commands import StoreRequest

__all__ = ["SqliteStore"]
LOCK_REMEDY = "; is another program using it, or is it on a file system without locks? SVC_HOME names another folder"


class SqliteStore:
    """A store in a file; opening it migrates its schema. Threads may share it; a lock serializes them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = Lock()
        self._sql: Store | None = None  # the same file, from the first request on that is not the relay's
        try:
            self._connection = sqlite3.connect(path, check_same_thread=False)
            try:
                prepare_sqlite(self._connection)
                with self._transaction(reads=False) as hand:
                    migrate(hand)
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            remedy = LOCK_REMEDY if "lock" in str(error) else ""
            raise StoreError(f"cannot open the store {path}: {error}{remedy}") from error

    def execute(self, request: StoreRequest[Any]) -> object:
        """Perform a request in one transaction and return its answer. Raise `HostError` if it fails."""
        with self._turn:
            if self._is_ours(request):
                try:
                    return self._together([request])[0]
                except sqlite3.Error as error:
                    raise store_failure(error, error) from error
            sql = self._database()
        return sql.execute(request)

    def execute_all(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        """Return the answer to each request in order, or its exception.

        Requests share a transaction where possible; if one of them fails, each is executed on its own.
        """
        try:
            with self._turn:
                if all(map(self._is_ours, requests)):
                    return self._together(requests)
                sql = self._database()
            return sql.execute_all(requests)
        except Exception:  # noqa: BLE001, RUF100 - one request fails: each is retried alone
            return [outcome_of(self, request) for request in requests]

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        if self._sql is not None:
            self._sql.close()

    def _is_ours(self, request: StoreRequest[Any]) -> bool:
        return self._sql is None and type(request) in SESSION_HANDLERS

    def _together(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        with self._transaction(reads=SESSION_READS.issuperset(map(type, requests))) as hand:
            return [SESSION_HANDLERS[type(request)](hand, request) for request in requests]

    @contextmanager
    def _transaction(self, *, reads: bool) -> Iterator[SqlExecutor]:
        cursor = self._connection.execute(BEGIN[reads])
        try:
            yield SqlExecutor("sqlite", cursor)
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise

    def _database(self) -> Store:
        if self._sql is None:
            from runtimes.store.sql_store import SqlStore  # noqa: PLC0415, RUF100 - loads SQLAlchemy

            self._sql = SqlStore(self._path, None)
            self._connection.close()
        return self._sql
