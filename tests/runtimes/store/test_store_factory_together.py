"""Tests of batches of store requests, each with its own answer, and of the number of sessions."""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError, ProgrammingError

from runtimes.failures import HostError
from runtimes.loops.waker import Waker
from runtimes.store import chat_requests, search_index
from runtimes.store.prepared_statements import PreparedStatements
from runtimes.store.sql_executor import SqlExecutor
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import StoreJob, StoreWorker
from svc_proto.api.chat.store_requests import CreateChat, DeleteChat, GetChat, ListChats, UpdateChat
from svc_proto.commands import StoreRequest
from svc_proto.store_requests import DeleteSession, LoadSessions, SaveSession
from tests.runtimes.scripted_core import TIMEOUT
from tests.runtimes.store.chat_stores import chat, create, execute


def commits(path: Path) -> sqlite3.Cursor:
    """Return the cursor of a second connection: its `PRAGMA data_version` changes with each commit of the store."""
    return sqlite3.connect(path).cursor()


def version(cursor: sqlite3.Cursor) -> int:
    ((number,),) = cursor.execute("PRAGMA data_version")
    return int(number)


def test_requests_together_are_one_transaction(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store, seen = open_store(path), commits(path)
    before = version(seen)
    requests = [SaveSession("a", {"n": 1}), SaveSession("b", {}), DeleteSession("a"), LoadSessions()]
    assert store.execute_all(requests) == [None, None, None, ({"token_hash": "b"},)]
    assert version(seen) == before + 1
    seen.connection.close()
    store.close()


def test_a_failed_chat_request_does_not_stop_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the selection of the search at the first chat request fails, only the chat requests fail."""

    def fail(connection: object) -> object:
        raise OperationalError("", {}, sqlite3.OperationalError("disk I/O error"))

    store = open_store(tmp_path / "s.db")
    with monkeypatch.context() as broken:
        broken.setattr(search_index, "new_chat_search", fail)
        saved, there, again = store.execute_all([SaveSession("a", {}), GetChat(id="none"), SaveSession("b", {})])
    assert isinstance(there, HostError)
    assert (saved, again) == (None, None)
    assert store.execute_all([LoadSessions(), GetChat(id="none")]) == [({"token_hash": "a"}, {"token_hash": "b"}), None]
    store.close()


def _break(hand: SqlExecutor) -> None:
    hand._cursor.connection.close()
    hand.version()


def test_a_broken_connection_is_replaced(tmp_path: Path) -> None:
    prepared = PreparedStatements(create_engine(f"sqlite:///{tmp_path / 's.db'}"))
    with pytest.raises(ProgrammingError, match="closed database"), prepared.transaction(reads=True) as hand:
        _break(hand)
    with prepared.transaction(reads=True) as hand:
        assert hand.version() is not None
    prepared.engine.dispose()


def test_session_counts_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_requests, "KINDS_COUNTED", 2)
    path = tmp_path / "s.db"
    store, other = open_store(path), open_store(path)

    def totals() -> tuple[int, ...]:
        kinds: list[dict[str, Any]] = [{}, {"source": "cli"}, {"include_archived": True}]
        return tuple(execute(store, ListChats(limit=1, **kind)).total for kind in kinds)

    assert totals() == totals() == (0, 0, 0)
    create(store, chat("a"), chat("b", source="cli"))
    assert totals() == totals() == (2, 1, 2)
    execute(store, UpdateChat(id="a", changes={"archived": True}, now=3.0))
    assert totals() == (1, 1, 2)
    create(other, chat("c", source="cli"))
    assert totals() == totals() == (2, 2, 3)
    execute(other, DeleteChat(id="b"))
    assert totals() == (1, 1, 2)
    assert execute(store, DeleteChat(id="c"))
    assert totals() == (0, 0, 1)
    for each in (store, other):
        each.close()


class Slow:
    """Fake store whose `execute` waits for `go`; `groups` has the number of requests of each call.

    Requests are their own answers, except that `execute_all` answers a `DeleteSession` with a KeyError.
    """

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.groups: list[int] = []

    def execute(self, request: StoreRequest[Any]) -> object:
        self.begun.set()
        self.go.wait(TIMEOUT)
        self.groups.append(1)
        return request

    def execute_all(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        self.groups.append(len(requests))
        return [KeyError("no") if isinstance(request, DeleteSession) else request for request in requests]

    def close(self) -> None: ...


def test_requests_queued_while_busy_form_a_batch() -> None:
    waker, store = Waker(), Slow()
    worker = StoreWorker(waker.post)
    told: dict[str, object] = {}

    def submit(name: str, request: StoreRequest[Any]) -> Any:
        def tell(result: object, error: BaseException | None) -> None:
            told[name] = error or result

        return worker.submit(StoreJob(store, request), tell)

    first = submit("first", LoadSessions())
    assert store.begun.wait(TIMEOUT)
    requests = [SaveSession("a", {}), DeleteSession("a"), CreateChat(session=chat())]
    jobs = [submit(str(number), request) for number, request in enumerate([*requests, LoadSessions()])]
    jobs[3].withdraw()
    store.go.set()
    worker.close(TIMEOUT)
    waker.drain()
    assert store.groups == [1, 3]
    assert told["first"] == first.work.request
    assert (told["0"], told["2"]) == (requests[0], requests[2])
    assert [type(told[name]) for name in ("1", "3")] == [KeyError, InterruptedError]
    waker.dispose()


def test_the_batch_size_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtimes.store.store_service.MAX_BATCH", 2)
    waker, store = Waker(), Slow()
    worker = StoreWorker(waker.post)
    worker.submit(StoreJob(store, LoadSessions()), lambda result, error: None)
    assert store.begun.wait(TIMEOUT)
    for _ in range(5):
        worker.submit(StoreJob(store, LoadSessions()), lambda result, error: None)
    store.go.set()
    worker.close(TIMEOUT)
    assert store.groups == [1, 2, 2, 1]
    waker.dispose()
