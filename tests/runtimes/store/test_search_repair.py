import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from runtimes.failures import HostError
from runtimes.store import search_repair
from runtimes.store.migrations import MIGRATIONS
from runtimes.store.search_repair import check_search_index, is_search_damaged
from runtimes.store.sql_executor import SqlExecutor
from runtimes.store.sql_store import SqlStore, open_sql_engine
from svc_proto.api.chat.store_requests import DeleteChat, ListMessages, SearchMessages
from tests.runtimes.store.chat_stores import add, chat, create, execute, message

DAMAGES = {
    "zeroed": ("UPDATE chat_search_data SET block = zeroblob(20) WHERE id > 10", "DELETE FROM chat_search_idx"),
    "emptied": ("DELETE FROM chat_search_data", "DELETE FROM chat_search_idx", "DELETE FROM chat_search_docsize"),
    "structure": ("UPDATE chat_search_data SET block = x'ffffffff' WHERE id = 10",),
    "a part is missing": ("DROP TABLE chat_search_data",),
    "missing": ("DROP TABLE chat_search",),
    "stale": ("DROP TRIGGER chat_search_changed", "UPDATE chat_messages SET text = 'pear'"),
}


def damaged(path: Path, *statements: str) -> SqlStore:
    """Create a store with two chats, execute SQL statements that damage it, and return the store opened anew."""
    store = SqlStore(path)
    create(store, chat(), chat("d"))
    for number in range(30):
        add(store, message(f"m{number}", f"apple number {number}", at=float(number)))
    add(store, message("other", "apple"), to="d")
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return SqlStore(path)


@pytest.fixture(params=[*DAMAGES.values()], ids=[*DAMAGES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SqlStore:
    return damaged(tmp_path / "svc.db", *request.param)


def found(store: SqlStore, query: str) -> int:
    return len(execute(store, SearchMessages(query=query, limit=50, offset=0)))


def test_a_search_finds_what_is_stored(store: SqlStore) -> None:
    rows = execute(store, ListMessages(session_id="c", limit=50, offset=0)) or ()
    fruit = str(rows[0].content).split()[0]
    with closing(store):
        assert found(store, fruit) == 31
        add(store, message("new", "plum"))
        assert found(store, "plum") == 1


@pytest.mark.parametrize("trigger", ["deleted", "changed"])
def test_missing_trigger_is_created_anew(tmp_path: Path, trigger: str) -> None:
    path = tmp_path / "svc.db"
    with closing(
        damaged(path, f"DROP TRIGGER chat_search_{trigger}", "UPDATE chat_messages SET text = 'pear'")
    ) as store:
        assert found(store, "pear") == 31
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE chat_messages SET text = 'plum'")
        connection.execute("DELETE FROM chat_messages WHERE id = 'other'")
        connection.commit()
        connection.execute("INSERT INTO chat_search(chat_search, rank) VALUES ('integrity-check', 1)")


def test_a_chat_can_be_deleted_and_goes_on(store: SqlStore, caplog: pytest.LogCaptureFixture) -> None:
    with closing(store), caplog.at_level(logging.WARNING):
        add(store, message("new", "plum"))
        assert execute(store, DeleteChat(id="c")) is True
        assert execute(store, ListMessages(session_id="c", limit=50, offset=0)) is None
        assert found(store, "plum") == 0
        assert found(store, "apple") + found(store, "pear") == 1
    assert "damaged search index repaired" in caplog.text


def test_an_index_that_cannot_be_repaired_is_detached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(hand: SqlExecutor) -> None:
        hand.execute("SELECT * FROM nothing")

    store = damaged(tmp_path / "svc.db", *DAMAGES["zeroed"])
    monkeypatch.setattr(search_repair, "_create_anew", fail)
    with closing(store):
        assert found(store, "ppl") == 31  # all texts are compared
        assert execute(store, DeleteChat(id="c")) is True
        assert found(store, "apple") == 1


def test_the_index_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[None] = []
    monkeypatch.setattr(search_repair, "check_search_index", lambda engine: checks.append(None))
    with closing(damaged(tmp_path / "svc.db")) as store:
        for _ in range(3):
            assert found(store, "apple") == 31
    assert len(checks) == 1


def test_other_errors_repair_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = damaged(tmp_path / "svc.db", "DROP TABLE chat_messages")
    monkeypatch.setattr(search_repair, "repair_search_index", pytest.fail)
    with closing(store), pytest.raises(HostError):
        add(store, message("new", "plum"))
    assert not is_search_damaged(OperationalError("", {}, ValueError()))
    locked = OperationalError("", {}, sqlite3.OperationalError("database is locked"))

    def fail(engine: Engine, work: object) -> None:
        raise locked

    monkeypatch.setattr(search_repair, "_in_transaction", fail)
    for engine in (open_sql_engine(tmp_path / "svc.db"), open_sql_engine("postgresql://localhost/none")):
        assert not check_search_index(engine)


def test_a_store_without_an_index_has_none_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_repair, "repair_search_index", pytest.fail)
    with closing(SqlStore(tmp_path / "svc.db", (*MIGRATIONS[:2], *MIGRATIONS[3:]))) as store:
        create(store, chat())
        add(store, message("m", "apple"))
        assert found(store, "apple") == 1
