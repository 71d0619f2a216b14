"""The store: named requests of a core, carried out in order on one thread, in memory or in any SQL database.

In memory means a dict for the relay's sessions and, for everything else, an SQLite database that nobody else sees.
SQLAlchemy is loaded when a database is opened, not before. SQL lives in `runtimes.schema` and `runtimes.chat_requests`,
and what only one kind of database understands in `runtimes.store_dialects` and `runtimes.chat_search_sqlite`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen

from runtimes.folders import private_folder
from runtimes.pump import Pump
from runtimes.workers import Job, Workers
from svc_proto.commands import Query, StoreRequest
from svc_proto.facts import FailureKind

__all__ = [
    "Store",
    "StoreError",
    "StoreService",
    "StoreWorker",
    "named_store",
    "open_store",
    "outcome_of",
    "store_files",
]

TOGETHER = 64  # requests of one transaction: whoever else wants the file must not wait long


class StoreError(Exception):
    """A store cannot be opened; the text says which and why, without any password."""


class Store(Protocol):
    """Carries out requests. All calls block and come from one thread at a time."""

    def execute(self, request: StoreRequest[Any]) -> object:
        """The request's answer; raises `HostError`."""

    def execute_all(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        """The answer to each, in their order, or the exception in its place; what they change is on disk then."""

    def close(self) -> None:
        """Let go of the database."""


@frozen(eq=False)
class Asked:
    """A request as work for the thread of its store."""

    store: Store
    request: StoreRequest[Any]

    def __call__(self) -> object:
        """The answer."""
        return self.store.execute(self.request)


class StoreWorker(Workers):
    """The one thread of a store. What came while it was busy is carried out together, and waits for the disk once."""

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        super().__init__("store", 1, post)

    def _carry_out(self, job: Job) -> Sequence[Job]:
        jobs = [job, *self._waiting(TOGETHER - 1)]
        asked = [(each, each.work) for each in jobs if isinstance(each.work, Asked) and each.begin()]
        if len(asked) == 1:
            asked[0][0].run()
        elif asked:
            answers = asked[0][1].store.execute_all([work.request for _, work in asked])
            for (each, _), answer in zip(asked, answers, strict=True):
                each.settle(answer)
        return jobs


class StoreService:
    """The service for `Query`."""

    def __init__(self, pump: Pump, worker: StoreWorker, store: Store | None) -> None:
        self._pump = pump
        self._worker = worker
        self._store = store
        pump.serve({Query: self._query})

    def _query(self, command: Query[Any]) -> None:
        store = self._store
        if store is None:
            self._pump.refuse(command.op, FailureKind.UNSUPPORTED, "no store")
            return
        self._pump.work(command.op, self._worker, Asked(store, command.request))


def outcome_of(store: Store, request: StoreRequest[Any]) -> object:
    """The request's answer, or the exception."""
    try:
        return store.execute(request)
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the answer to this request
        return error


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


def named_store(env: Mapping[str, str], settings: Mapping[str, str], home: Path) -> str | Path:
    """Which store is wanted: `RELAY_SESSIONS_FILE` (wire core 4.5: set but empty is memory only), `SVC_DATABASE_URL`,
    else a file of the home. `settings` are those of the environment `env` and what stands in the home.
    """
    named = env.get("RELAY_SESSIONS_FILE", settings.get("RELAY_SESSIONS_FILE"))
    if named is not None:
        return named.strip() or "memory:"
    return settings.get("SVC_DATABASE_URL") or home / "svc.db"


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
