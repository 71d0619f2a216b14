"""Tests of stores in files and in memory: several processes, killed processes, older versions."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from runtimes.store.store_factory import open_store
from svc_proto.api.chat.records import ChatSession, Message
from svc_proto.api.chat.store_requests import (
    DeleteChat,
    GetChat,
    ListChats,
    ListMessages,
    SearchMessages,
    TruncateMessages,
)
from svc_proto.commands import StoreRequest
from svc_proto.store_requests import LoadSessions
from tests.runtimes.store.chat_stores import add, chat, create, execute, ids, message

ROOT = Path(__file__).parents[3]


@contextmanager
def writer(path: Path, name: str, count: int) -> Iterator[subprocess.Popen[str]]:
    """Run `chat_writer` and yield it when it is ready; it writes once its standard input has a line."""
    command = [sys.executable, "-m", "tests.runtimes.store.chat_writer", str(path), name, str(count)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


def begin(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def checked(path: Path) -> tuple[ChatSession, tuple[Message, ...]]:
    """Check the file's integrity, index and counters; return the chat `c` and its messages."""
    store = open_store(path)
    session, messages = execute(store, GetChat(id="c")), execute(store, ListMessages(session_id="c"))
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO chat_search(chat_search, rank) VALUES ('integrity-check', 1)")
        connection.rollback()
    assert session is not None
    assert messages is not None
    assert session.message_count == len(messages)
    assert session.output_tokens == sum(row.usage.output_tokens for row in messages if row.usage is not None)
    assert session.last_active == max([1.0, *(row.timestamp for row in messages)])
    return session, messages


def test_two_processes_on_one_file(tmp_path: Path) -> None:
    path, count = tmp_path / "s.db", 12  # SQLite is unfair: a writer may wait until the others have finished
    store = open_store(path)
    create(store, chat())
    with writer(path, "one", count) as one, writer(path, "two", count) as two:
        begin(one)
        begin(two)
        for number in range(count):  # this process writes, too
            add(store, message(f"three:{number}", at=float(number)))
            assert len(execute(store, ListChats(limit=5)).sessions) == 1
        assert one.stdout is not None
        assert two.stdout is not None
        assert one.stdout.read().split() == two.stdout.read().split() == list(map(str, range(count)))
        assert one.wait() == two.wait() == 0
    hits = execute(store, SearchMessages(query="word", limit=1000))
    assert len(hits) == 2 * count
    store.close()
    session, messages = checked(path)
    assert session.message_count == 5 * count
    for name in ("one", "two", "three"):  # the order of each
        mine = [row.id for row in messages if row.id.startswith(name)]
        assert mine == sorted(mine, key=lambda row: int(row.split(":")[1]))
    for asked, said in pairwise(messages):  # a request is one transaction
        assert not asked.id.endswith("asked") or said.id == asked.id.replace("asked", "said")


def test_a_killed_process_loses_no_finished_request(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_store(path)
    create(store, chat())
    store.close()
    kept: list[str] = []
    for turn in range(4):
        with writer(path, f"w{turn}", 100_000) as child:
            assert child.stdout is not None
            begin(child)
            done = [int(child.stdout.readline()) for _ in range(1 + 23 * turn)]
            child.kill()  # during a later one
            done += map(int, child.stdout.read().split())  # printed before that
        kept += [f"w{turn}:{number}:{what}" for number in done for what in ("asked", "said")]
        _, messages = checked(path)
        there = [row.id for row in messages]
        more = there[len(kept) :]
        assert there[: len(kept)] == kept
        # The current request at most is there too, complete.
        number = done[-1] + 1
        assert more in ([], [f"w{turn}:{number}:asked", f"w{turn}:{number}:said"])
        kept += more


def test_reading_waits_for_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = open_store(path)
    create(store, chat())
    execute(store, GetChat(id="c"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE chat_sessions SET title = 'not yet'")
    assert execute(store, GetChat(id="c")) == chat()
    assert execute(store, ListMessages(session_id="c")) == ()
    assert execute(store, ListChats(limit=1)).total == 1
    assert store.execute(LoadSessions()) == ()
    other.execute("ROLLBACK")
    other.close()
    store.close()


def test_threads_take_turns_in_memory() -> None:
    store = open_store("memory:")
    create(store, chat())
    ready = threading.Barrier(4)

    def work(name: int) -> None:
        ready.wait()
        for number in range(25):
            add(store, message(f"{name}:{number}"))
            assert execute(store, GetChat(id="c")) is not None

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len({*ids(store)}) == 100
    store.close()


def test_stores_in_memory_are_apart() -> None:
    one, two, three = open_store("memory:"), open_store("memory:"), open_store("sqlite:///:memory:")
    create(one, chat())
    for other in (two, three):
        assert execute(other, GetChat(id="c")) is None
    with ThreadPoolExecutor(1) as pool:  # one database for all threads
        create(three, chat())
        assert pool.submit(execute, three, GetChat(id="c")).result() == chat()
    for store in (one, two, three):
        store.close()


@pytest.mark.parametrize("where", ["", "WHERE is_child IS 0 AND archived IS 0", "WHERE source = 'x'"])
def test_lists_and_windows_are_read_from_an_index(tmp_path: Path, where: str) -> None:
    path = tmp_path / "s.db"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        for query, index in (
            (
                f"SELECT * FROM chat_sessions {where} ORDER BY last_active DESC, started_at DESC, id DESC LIMIT 50",
                "USING INDEX ix_chat_sessions_recent",
            ),
            (f"SELECT count(*) FROM chat_sessions {where}", "USING COVERING INDEX"),
            ("SELECT * FROM chat_messages WHERE session_id = 'x' ORDER BY seq DESC", "INDEX ix_chat_messages_order"),
            ("SELECT * FROM chat_messages WHERE session_id = 'x' AND id IN ('y')", "INDEX sqlite_autoindex"),
        ):
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}"))
            assert index in plan
            assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("deletion", [DeleteChat(id="c"), TruncateMessages(session_id="c", keep=0, now=1.0)])
def test_nothing_of_a_deleted_chat_is_left_in_the_files(tmp_path: Path, deletion: StoreRequest[bool]) -> None:
    path = tmp_path / "svc.db"
    store = open_store(path)
    create(store, chat("c"), chat("kept"))
    for number in range(20):
        add(store, message(f"m{number}", f"deletedmessage{number} " + "filling " * 100))
        add(store, message(f"k{number}", f"keptmessage{number}", session_id="kept"), to="kept")
    assert execute(store, deletion)
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"deletedmessage" not in left
    assert b"filling" not in left
    assert b"keptmessage" in left
    assert len(execute(store, SearchMessages(query="keptmessage7", limit=5))) == 1
    store.close()
