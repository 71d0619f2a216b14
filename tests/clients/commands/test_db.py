"""`svc db upgrade`."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.clients.commands.support import Shelf
from tests.runtimes.old_databases import NEWEST, unpacked


def test_upgrade(lonely: Shelf) -> None:
    home = lonely.home / "svc"
    none = f"there is no database {home}/svc.db: servers make it when they first start"
    assert lonely.run("svc", "db", "upgrade").problem == none
    memory = lonely.run("svc", "db", "upgrade", env={"RELAY_SESSIONS_FILE": ""})
    assert memory.problem.startswith("these servers keep nothing on a disk")
    home.mkdir()
    unpacked(1, home)
    assert lonely.run("svc", "db", "upgrade", "--dry-run").out == f"The schema would go from version 1 to {NEWEST}.\n"
    assert lonely.run("svc", "db", "upgrade", "--json").json == {"from": 1, "to": NEWEST, "changed": True}
    assert lonely.run("svc", "db", "upgrade").out == f"The schema has version {NEWEST}, the newest known.\n"
    with closing(sqlite3.connect(home / "svc.db")) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 99")
    assert "newer than" in lonely.run("svc", "db", "upgrade").problem
