import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runtimes.store.migrations import MIGRATIONS, migrate, version_in
from runtimes.store.sql_executor import SqlExecutor
from runtimes.store.store_service import StoreError
from tests.runtimes.store.old_databases import NEWEST, unpacked


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
