"""The store: named requests of a core, carried out in order on one thread, in memory or in any SQL database.

In memory means a dict for the relay's sessions and, for everything else, an SQLite database that nobody else sees.
SQLAlchemy is loaded when a database is opened, not before. SQL lives in `runtimes.schema` and `runtimes.chat_requests`,
and what only one kind of database understands in `runtimes.store_dialects` and `runtimes.chat_search_sqlite`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from runtimes.folders import private_folder
from runtimes.pump import Pump
from runtimes.workers import Workers
from svc_proto.commands import Query, StoreRequest
from svc_proto.facts import FailureKind

__all__ = ["Store", "StoreError", "StoreService", "open_store", "store_files"]


class StoreError(Exception):
    """A store cannot be opened; the text says which and why, without any password."""


class Store(Protocol):
    """Carries out requests. All calls block and come from one thread at a time."""

    def execute(self, request: StoreRequest[Any]) -> object:
        """The request's answer; raises `HostError`."""

    def close(self) -> None:
        """Let go of the database."""


class StoreService:
    """The service for `Query`."""

    def __init__(self, pump: Pump, worker: Workers, store: Store | None) -> None:
        self._pump = pump
        self._worker = worker
        self._store = store
        pump.serve({Query: self._query})

    def _query(self, command: Query[Any]) -> None:
        store = self._store
        if store is None:
            self._pump.refuse(command.op, FailureKind.UNSUPPORTED, "no store")
            return
        self._pump.work(command.op, self._worker, lambda: store.execute(command.request))


def open_store(where: str | Path) -> Store:
    """Open a store: an SQLAlchemy URL, a path of an SQLite file, or `memory:`. Migrates it. Raises `StoreError`.

    `memory:` opens nothing yet, and so has nothing to migrate.
    An SQLite file is created with mode 0600; a folder made for it gets mode 0700.
    """
    if where == "memory:":
        from runtimes.store_memory import MemoryStore  # noqa: PLC0415, RUF100 - it imports this module

        return MemoryStore()
    if isinstance(where, str) and "://" in where:
        return _open_sql(where)
    path = Path(where).expanduser().absolute()
    try:
        private_folder_for(path)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError as error:
        raise StoreError(f"cannot open the store {path}: {error.strerror}") from error
    return _open_sql(path)


def store_files(where: str) -> list[str]:
    """The files of a store that is named so, and those beside it that SQLite makes; none of a server's or in memory."""
    path = where
    if "://" in where:
        scheme, _, rest = where.partition("://")
        path = rest.partition("/")[2].partition("?")[0].removeprefix("file:") if scheme.startswith("sqlite") else ""
    if path in ("", "memory:", ":memory:"):
        return []
    file = Path(path).expanduser().absolute()
    return [f"{file}{end}" for end in ("", "-wal", "-shm", "-journal")]


def private_folder_for(path: Path) -> None:
    """Make the folder of a database file, if it is missing."""
    if not path.parent.is_dir():
        private_folder(path.parent)


def _open_sql(where: str | Path) -> Store:
    from runtimes.schema import SqlStore  # noqa: PLC0415, RUF100 - loads SQLAlchemy

    return SqlStore(where)
