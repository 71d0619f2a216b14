"""Tests of stores: paired sessions and their changes, reopening, migrations, private files, and errors."""

import resource
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from runtimes.failures import HostError
from runtimes.store import migrations, session_requests
from runtimes.store.memory_store import MemoryStore
from runtimes.store.sql_store import SqlStore, upgrade
from runtimes.store.store_factory import open_store, store_files
from runtimes.store.store_service import Store, StoreError, outcome_of
from svc_proto.api.chat.store_requests import DeleteChat, GetChat
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind
from svc_proto.store_requests import (
    CheckStore,
    CountSessions,
    DeleteSession,
    LoadClusterSecret,
    LoadSessionChanges,
    LoadSessionRevision,
    LoadSessions,
    SaveSession,
    SessionChange,
)
from tests.runtimes.store.chat_stores import chat, create, execute, get
from tests.runtimes.store.postgresql_server import needs_postgresql, server

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=["memory", "file", "url", pytest.param("postgresql", marks=needs_postgresql)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    where = {"memory": "memory:", "file": str(tmp_path / "s.db"), "url": f"sqlite:///{tmp_path / 'u.db'}"}
    opened = open_store(where.get(request.param) or server().empty())
    yield opened
    opened.close()


def failure_of(store: Store, request: StoreRequest[Any]) -> FailureKind:
    with pytest.raises(HostError) as caught:
        store.execute(request)
    return caught.value.failure.kind


def test_sessions(store: Store) -> None:
    assert store.execute(LoadSessions()) == ()
    store.execute(SaveSession("b", {"name": "two", "expires": None}))
    store.execute(SaveSession("a", {"name": "one", "grants": {"chat": 1.5}}))
    store.execute(SaveSession("b", {"name": "two again"}))
    store.execute(DeleteSession("none"))
    assert store.execute(LoadSessions()) == (
        {"name": "one", "grants": {"chat": 1.5}, "token_hash": "a"},
        {"name": "two again", "token_hash": "b"},
    )
    store.execute(DeleteSession("a"))
    assert store.execute(LoadSessions()) == ({"name": "two again", "token_hash": "b"},)
    assert failure_of(store, StoreRequest()) is FailureKind.UNSUPPORTED


def test_sessions_in_pages(store: Store) -> None:
    for name in "dacb":
        store.execute(SaveSession(name, {}))
    first = execute(store, LoadSessions(limit=3))
    assert [record["token_hash"] for record in first] == ["a", "b", "c"]
    assert execute(store, LoadSessions(after="c", limit=3)) == ({"token_hash": "d"},)
    assert execute(store, CountSessions()) == 4


def test_changes_of_sessions(store: Store) -> None:
    """A store returns the latest change of each session since a revision, in order and in pages.

    A store in memory has no changes.
    """
    if isinstance(store, MemoryStore):
        assert execute(store, LoadSessionRevision()) == 0
        assert failure_of(store, LoadSessionChanges(0)) is FailureKind.NOT_FOUND
        return
    before = execute(store, LoadSessionRevision())
    store.execute_all([SaveSession("b", {"n": 1}), SaveSession("a", {"n": 2}), SaveSession("b", {"n": 3}, again=True)])
    store.execute(DeleteSession("none"))
    store.execute(DeleteSession("a"))
    assert execute(store, LoadSessionRevision()) == before + 4
    latest = SessionChange("b", before + 3, {"n": 3, "token_hash": "b"}), SessionChange("a", before + 4, None)
    assert execute(store, LoadSessionChanges(before)) == latest
    assert execute(store, LoadSessionChanges(before, limit=1)) == latest[:1]
    assert execute(store, LoadSessionChanges(before + 3)) == latest[1:]
    assert execute(store, LoadSessionChanges(before + 4)) == ()
    for unknown in (-1, before + 5):
        assert failure_of(store, LoadSessionChanges(unknown)) is FailureKind.NOT_FOUND


def test_the_secret_of_the_cluster_is_random_and_stays(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    found = []
    for where in (path, path, "memory:"):
        with closing(open_store(where)) as store:
            found.append(execute(store, LoadClusterSecret()))
    assert found[0] == found[1] != found[2]
    assert len(bytes.fromhex(found[0])) == 32


def test_only_the_latest_changes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (migrations, session_requests):
        monkeypatch.setattr(module, "KEPT_CHANGES", 2)
    with closing(open_store(str(tmp_path / "s.db"))) as store:
        for name in "abcd":
            store.execute(SaveSession(name, {}))
        assert [change.token_hash for change in execute(store, LoadSessionChanges(2))] == ["c", "d"]
        assert failure_of(store, LoadSessionChanges(1)) is FailureKind.NOT_FOUND


def test_saving_again_does_not_recreate_a_deleted_session(store: Store) -> None:
    store.execute(SaveSession("a", {"name": "one"}))
    store.execute(SaveSession("a", {"name": "two"}, again=True))
    store.execute(DeleteSession("a"))
    assert failure_of(store, SaveSession("a", {"name": "three"}, again=True)) is FailureKind.NOT_FOUND
    assert store.execute(LoadSessions()) == ()


def test_sessions_and_chats_are_in_one_store(store: Store) -> None:
    record: dict[str, object] = {"n": 1}
    store.execute(SaveSession("a", record))
    record["n"] = "changed later"
    create(store, chat())
    store.execute(SaveSession("b", {"n": 2}))
    assert get(store) == chat()
    assert store.execute(LoadSessions()) == ({"n": 1, "token_hash": "a"}, {"n": 2, "token_hash": "b"})
    assert store.execute(LoadSessions("b")) == ({"n": 2, "token_hash": "b"},)


def test_a_failing_request_does_not_stop_others(store: Store) -> None:
    wrong = SaveSession("b", {"x": object()})  # outside of JSON
    first, error, sessions = store.execute_all([SaveSession("a", {}), wrong, LoadSessions()])
    assert (first, type(error), sessions) == (None, TypeError, ({"token_hash": "a"},))
    requests: list[StoreRequest[Any]] = [SaveSession("a", {"n": 1}), wrong, SaveSession("c", {"n": 3})]
    requests += [StoreRequest(), GetChat(id="none"), DeleteChat(id="none")]
    first, error, third, unknown, absent, deleted = store.execute_all(requests)
    assert (first, type(error), third, absent, deleted) == (None, TypeError, None, None, False)
    assert "the store has no StoreRequest" in str(unknown)
    with pytest.raises(TypeError):
        store.execute(wrong)
    assert store.execute(LoadSessions()) == ({"n": 1, "token_hash": "a"}, {"n": 3, "token_hash": "c"})


def test_check_store(store: Store) -> None:
    assert store.execute(CheckStore()) is None
    assert store.execute_all([CheckStore(), LoadSessions(), CheckStore()]) == [None, (), None]


@pytest.mark.parametrize("store", ["file", "url"], indirect=True)
def test_check_store_fails_while_nothing_can_be_written(store: Store) -> None:
    store.execute(SaveSession("a", {"name": "one"}))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # a write fails, as on a full disk
    try:
        answers = store.execute(LoadSessions()), outcome_of(store, CheckStore())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert answers[0] == ({"name": "one", "token_hash": "a"},)
    assert isinstance(answers[1], Exception)
    assert store.execute(CheckStore()) is None


def test_saved_sessions_survive_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "state" / "store.db"
    first = open_store(path)
    first.execute(SaveSession("a", {"name": "one"}))
    first.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    again = open_store(path)
    assert again.execute(LoadSessions()) == ({"name": "one", "token_hash": "a"},)
    again.close()


def test_file_of_a_url_is_private(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for _ in range(2):
        open_store(f"sqlite:///{path}?timeout=5").close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)
    open_store(f"sqlite:///file:{path}?mode=rw&uri=true").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with pytest.raises(StoreError, match="No such file or directory"):
        open_store(f"sqlite:///{tmp_path}/missing/store.db")
    assert not (tmp_path / "missing").exists()


def test_stores_that_cannot_be_opened(tmp_path: Path) -> None:
    corrupt = tmp_path / "corrupt.db"
    corrupt.write_bytes(b"this is no database, and long enough to be taken for one" * 100)
    for opening in (open_store, upgrade):
        with pytest.raises(StoreError, match=r"cannot open the store .*not a database"):
            opening(corrupt)
    with pytest.raises(StoreError, match="cannot open"):
        open_store(tmp_path)
    for opening in (open_store, upgrade):
        with pytest.raises(StoreError, match="cannot open"):
            opening("nosuchdatabase://user:secret@host/db")
    for url in ("mysql://svc@db/svc", "mysql+pymysql://db/svc", "mariadb+mariadbconnector://db/svc"):
        with pytest.raises(StoreError, match="SQLite or PostgreSQL, but not MariaDB or MySQL"):
            open_store(url)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StoreError, match="cannot open"):
        open_store(file / "store.db")


def test_a_query_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE paired_sessions")
    connection.close()
    assert failure_of(store, LoadSessions()) is FailureKind.INTERNAL
    store.close()


@pytest.mark.parametrize("name", ["memory:", "store.db"])
def test_a_relays_store_loads_no_chat_packages(tmp_path: Path, name: str) -> None:
    where = name if name == "memory:" else str(tmp_path / name)
    code = (
        "import sys; from runtimes.store.store_factory import open_store\n"
        "from svc_proto.store_requests import DeleteSession, LoadSessions, SaveSession\n"
        f"for _ in range(2): store = open_store({where!r}); store.execute(SaveSession('a', {{}})); "
        "store.execute(DeleteSession('a')); store.execute(LoadSessions()); store.close()\n"
        "sys.exit(any(name.startswith(('sqlalchemy', 'svc_proto.api')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


SAME_FILE = (
    "/srv/a.db sqlite:////srv/a.db sqlite+pysqlite:////srv/a.db?timeout=5 sqlite:///file:/srv/a.db?mode=rw&uri=true"
)
NO_FILE = "sqlite:// sqlite:///:memory: postgresql://me:secret@host/srv/a.db memory:"


@pytest.mark.parametrize(
    ("named", "file"),
    [
        *((named, "/srv/a.db") for named in SAME_FILE.split()),
        ("sqlite:///a.db", f"{Path.cwd()}/a.db"),
        ("~/a.db", f"{Path.home()}/a.db"),
        ("sqlite:///~/a.db", f"{Path.cwd()}/~/a.db"),
        *((named, None) for named in ("", *NO_FILE.split())),
    ],
)
def test_the_files_of_a_store(named: str, file: str | None) -> None:
    ends = ("", "-wal", "-shm", "-journal")
    assert store_files(named) == ([] if file is None else [f"{file}{end}" for end in ends])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_FULL", FailureKind.NO_SPACE),
        ("53100", FailureKind.NO_SPACE),
        ("SQLITE_READONLY_DIRECTORY", FailureKind.DENIED),
        ("SQLITE_BUSY", FailureKind.TIMED_OUT),
        ("SQLITE_CANTOPEN", FailureKind.UNREACHABLE),
        ("SQLITE_CORRUPT", FailureKind.INTERNAL),
        ("", FailureKind.INTERNAL),
    ],
)
def test_failure_kinds_of_database_errors(monkeypatch: pytest.MonkeyPatch, name: str, kind: FailureKind) -> None:
    cause = sqlite3.OperationalError("secret words")
    cause.sqlite_errorname = name
    store = SqlStore("sqlite://")

    def fail(self: SqlStore, requests: list[StoreRequest[Any]]) -> object:
        raise OperationalError("INSERT secret", {}, cause)

    monkeypatch.setattr(SqlStore, "_together", fail)
    with pytest.raises(HostError) as caught:
        store.execute(LoadSessions())
    assert caught.value.failure.kind is kind
    assert name in caught.value.failure.detail
    assert "secret" not in caught.value.failure.detail
    store.close()
