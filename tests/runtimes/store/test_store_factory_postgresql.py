"""Tests of the PostgreSQL store: stops, cut connections, locks, and its own order and search."""

import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from runtimes.failures import HostError
from runtimes.store.migrations import INDEXED, MIGRATIONS
from runtimes.store.sql_store import SqlStore
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import Store, StoreError
from svc_proto.api.chat.store_requests import ListChats
from svc_proto.facts import FailureKind
from svc_proto.store_requests import CheckStore, LoadSessions, SaveSession
from tests.runtimes.store.chat_stores import add, chat, create, execute, found, get, message, messages_of
from tests.runtimes.store.postgresql_server import needs_postgresql, server

pytestmark = needs_postgresql


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(open_store(server().empty())) as opened:
        yield opened


def failure(store: Store) -> FailureKind:
    with pytest.raises(HostError) as caught:
        store.execute(SaveSession("a", {}))
    return caught.value.failure.kind


def test_concurrent_opens_create_the_schema_once() -> None:
    url = server().fresh()
    stores: list[Store] = []
    threads = [threading.Thread(target=lambda: stores.append(open_store(url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 4
    stores[0].execute(SaveSession("a", {"n": 1}))
    for store in stores:
        assert store.execute(LoadSessions()) == ({"n": 1, "token_hash": "a"},)
        store.close()


def test_the_store_reconnects_after_a_restart(store: Store) -> None:
    store.execute(SaveSession("a", {"n": 1}))
    create(store, chat())
    server().stop()
    try:
        assert failure(store) is FailureKind.UNREACHABLE
        with pytest.raises(StoreError, match="cannot open the store"):
            open_store(server().url("svc"))
    finally:
        server().start()
    assert store.execute(LoadSessions()) == ({"n": 1, "token_hash": "a"},)
    assert get(store) == chat()


def test_a_connection_cut_while_idle(store: Store) -> None:
    store.execute(CheckStore())
    server().execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'svc'")
    assert store.execute(CheckStore()) is None
    assert store.execute_all([SaveSession("a", {}), LoadSessions()]) == [None, ({"token_hash": "a"},)]


@pytest.mark.parametrize("waits", ["lock_timeout", "statement_timeout"])
def test_waits_for_locks_time_out(waits: str) -> None:
    import psycopg

    url = server().empty()
    with closing(open_store(f"{url}&options=-c%20{waits}=50")) as store:
        with psycopg.connect(url, autocommit=True) as other, other.transaction():
            other.execute("LOCK TABLE paired_sessions")
            assert failure(store) is FailureKind.TIMED_OUT
        store.execute(SaveSession("a", {}))


def test_default_timeouts_of_a_url() -> None:
    with closing(SqlStore(server().empty())) as store, store._engine.connect() as connection:
        shown = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in ("statement_timeout", "lock_timeout")]
    assert shown == ["20s", "5s"]


def test_the_password_is_not_in_error_texts() -> None:
    with pytest.raises(StoreError) as caught:
        open_store("postgres://svc:secret@127.0.0.1:1/svc")
    assert "postgresql+psycopg://svc:***@127.0.0.1:1/svc" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_error_text_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install 'svc-relay\[postgres\]'"):
        open_store(server().url("svc"))


def test_lists_have_the_order_of_other_stores(store: Store) -> None:
    names = ["b", "A", "a", "Ä", "_", "B"]  # a locale, also that of this server, has _ A Ä a B b
    create(store, *[chat(name) for name in names])
    page = execute(store, ListChats(limit=10))
    assert [session.id for session in page.sessions] == sorted(names, reverse=True)


def test_words_are_searched_in_the_index(store: Store) -> None:
    create(store, chat())
    add(store, *[message(f"m{number}", f"word{number} tea") for number in range(60)])
    plan = server().execute(
        "SET enable_seqscan = off;"
        "EXPLAIN SELECT seq FROM chat_messages WHERE search @@ to_tsquery('simple', 'word7:*')",
        "svc",
    )
    assert "chat_search" in str(plan)
    assert found(store, "word5") == ["m5", *[f"m{number}" for number in range(50, 60)]]


def test_messages_beyond_the_index_limit(store: Store) -> None:
    text = "First " + "".join(f"w{number} " for number in range(40_000)) + "last"
    create(store, chat())
    add(store, message("m", text))
    assert messages_of(store) == (message("m", text),)
    assert found(store, "first w1") == ["m"]
    assert len(text) > INDEXED
    assert found(store, "last") == []


def test_words_that_follow_each_other_far_into_a_message(store: Store) -> None:
    create(store, chat())
    add(store, message("m", "a " * 17_000 + "snake_case"), message("n", "case snake"))
    assert found(store, "snake_case") == ["m"]


def test_a_database_without_the_index_is_searched_all_the_same() -> None:
    url = server().fresh()
    SqlStore(url, MIGRATIONS[:2]).close()
    server().execute("UPDATE schema_version SET version = 3", url.partition("@/")[2].partition("?")[0])
    with closing(open_store(url)) as store:
        create(store, chat())
        add(store, message("m", "a cup of tea"))
        assert found(store, "tea") == ["m"]
