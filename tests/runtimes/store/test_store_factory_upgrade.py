import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runtimes.store.migrations import MIGRATIONS, migrate, version_in
from runtimes.store.sql_executor import SqlExecutor
from runtimes.store.sql_store import upgrade
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import StoreError
from svc_proto.store_requests import LoadSessions
from tests.runtimes.store.chat_stores import execute, found, get
from tests.runtimes.store.old_databases import KEPT, NEWEST, RECORD, unpacked


def test_each_schema_version_has_a_database() -> None:
    assert {path.name for path in KEPT.iterdir()} == {f"{version + 1}.db.gz" for version in range(NEWEST)}


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_a_database_of_an_older_version(tmp_path: Path, version: int) -> None:
    path = unpacked(version, tmp_path)
    assert upgrade(path, keep=False) == (version, NEWEST)
    assert upgrade(path, keep=False) == (version, NEWEST)
    assert upgrade(path) == (version, NEWEST)
    assert upgrade(path) == (NEWEST, NEWEST)
    with closing(open_store(path)) as store:
        assert store.execute(LoadSessions()) == ({**RECORD, "token_hash": "a"},)
        if version >= 2:
            assert get(store).title == "Tea"
            assert found(store, "fruher") == ["m"]


@pytest.mark.parametrize(
    ("version", "change", "why"),
    [
        (1, "CREATE TABLE chat_sessions (id TEXT)", "table chat_sessions already exists"),
        (2, "CREATE TABLE chat_search (words TEXT)", "table chat_search already exists"),
        (2, "DROP TABLE chat_messages", "no such table: main.chat_messages"),
        (3, "UPDATE schema_version SET version = 99", r"schema version 99, newer than \d+ known here"),
    ],
)
@pytest.mark.parametrize("keep", [True, False])
def test_a_failed_upgrade_changes_nothing(tmp_path: Path, version: int, change: str, why: str, keep: bool) -> None:
    path = unpacked(version, tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    before = _dump(path)
    with pytest.raises(StoreError, match=why):
        upgrade(path, keep=keep)
    assert _dump(path) == before


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("record", ["x'ff'", "'{'", "'[1]'", "'{}'"])
def test_a_row_that_does_not_fit_is_shown_without_members_and_stays(tmp_path: Path, version: int, record: str) -> None:
    """A session record that is damaged, no object, or empty loads with its `token_hash` alone and stays stored."""
    path = unpacked(version, tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"INSERT INTO paired_sessions VALUES ('odd', {record}, '2026')")
    with closing(open_store(path)) as store:
        assert execute(store, LoadSessions()) == ({**RECORD, "token_hash": "a"}, {"token_hash": "odd"})
    with closing(sqlite3.connect(path)) as connection:
        same = connection.execute(f"SELECT record IS {record} FROM paired_sessions ORDER BY 1").fetchall()
    assert same == [(0,), (1,)]


def _dump(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            connection.execute("SELECT * FROM sqlite_master ORDER BY name").fetchall(),
            connection.execute("SELECT * FROM paired_sessions").fetchall(),
            connection.execute("SELECT * FROM schema_version").fetchall(),
        ]


def schema(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return type, name and statement, without white space, of each object of a database."""
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name")
    return [(kind, name, "".join(sql.split())) for kind, name, sql in rows]


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_migrations_create_the_schema_of_each_version(tmp_path: Path, version: int) -> None:
    with closing(sqlite3.connect(unpacked(version, tmp_path))) as before, closing(sqlite3.connect(":memory:")) as now:
        hand = SqlExecutor("sqlite", now.cursor())
        assert version_in(hand) is None
        assert migrate(hand, MIGRATIONS[:version]) == (0, version)
        assert version_in(hand) == version
        assert schema(now) == schema(before)


def test_a_table_of_versions_without_ours() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        hand = SqlExecutor("sqlite", connection.cursor())
        hand.execute("CREATE TABLE schema_version (component VARCHAR(64) PRIMARY KEY, version INTEGER)")
        hand.execute("INSERT INTO schema_version VALUES ('other', 99)")
        assert migrate(hand) == (0, NEWEST)
        assert migrate(hand) == (NEWEST, NEWEST)
        hand.execute("UPDATE schema_version SET version = 99 WHERE component = 'svc'")
        with pytest.raises(StoreError, match=f"version 99, newer than {NEWEST} known here"):
            migrate(hand)
