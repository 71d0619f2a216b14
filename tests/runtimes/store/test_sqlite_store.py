"""Tests of a relay's stores in a file and in memory: locks, and the first chat request."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

from runtimes.failures import HostError
from runtimes.store import sql_store
from runtimes.store.sql_executor import BUSY_TIMEOUT
from runtimes.store.sqlite_store import SqliteStore
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import Store, StoreError
from svc_proto.api.chat.store_requests import GetChat
from svc_proto.facts import FailureKind
from svc_proto.store_requests import CheckStore, LoadSessions, SaveSession
from tests.runtimes.store.chat_stores import execute


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(open_store(path)) as opened:
        assert isinstance(opened, SqliteStore)
        yield opened


def test_invalid_text_is_replaced(store: Store) -> None:
    store.execute(SaveSession("a\0\ud800", {"n": 1}))
    assert store.execute(LoadSessions()) == ({"n": 1, "token_hash": "a\ufffd\ufffd"},)


def test_a_file_that_another_has_locked(store: Store, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store._connection.execute("PRAGMA busy_timeout=0")  # type: ignore[attr-defined]  # not for 5 s
        with pytest.raises(HostError) as caught:
            store.execute(SaveSession("a", {}))
        assert caught.value.failure.kind is FailureKind.TIMED_OUT
        assert "SQLITE_BUSY" in caught.value.failure.detail
        assert store.execute(LoadSessions()) == ()  # reading waits for no lock
        assert execute(store, GetChat(id="c")) is None  # neither does opening it for chats
        other.execute("ROLLBACK")
    store.execute(SaveSession("a", {}))
    assert store.execute(LoadSessions()) == ({"token_hash": "a"},)


def test_pragmas_of_a_connection(store: Store) -> None:
    names = ("busy_timeout", "journal_mode", "synchronous", "foreign_keys", "secure_delete")
    told = [store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]  # type: ignore[attr-defined]
    assert told == [BUSY_TIMEOUT, "wal", 2, 1, 1]


def test_without_chats_no_database_package_is_loaded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> Store:
        raise ImportError("no SQLAlchemy")

    with monkeypatch.context() as patched:
        patched.setattr(sql_store, "SqlStore", broken)
        assert store.execute_all([CheckStore(), SaveSession("a", {})]) == [None, None]
        with pytest.raises(ImportError, match="no SQLAlchemy"):
            store.execute(GetChat(id="c"))
        saved, there = store.execute_all([SaveSession("b", {}), GetChat(id="c")])
        assert saved is None
        assert isinstance(there, ImportError)
    assert execute(store, GetChat(id="c")) is None  # the open is retried
    assert store.execute(LoadSessions()) == ({"token_hash": "a"}, {"token_hash": "b"})


def test_a_failed_open_fails_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(where: str) -> NoReturn:
        raise StoreError(f"cannot open the store {where}: no driver")

    store = open_store("memory:")
    with monkeypatch.context() as patched:
        patched.setattr(sql_store, "SqlStore", broken)
        with pytest.raises(HostError, match="no driver") as caught:
            store.execute(GetChat(id="c"))
    assert caught.value.failure.kind is FailureKind.INTERNAL
    assert store.execute(GetChat(id="c")) is None  # the open is retried
    store.close()
