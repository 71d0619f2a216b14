import sqlite3
import stat
from contextlib import closing

from tests.clients.commands.command_process import CommandHome
from tests.runtimes.store.old_databases import NEWEST, unpacked


def test_upgrade(lonely: CommandHome) -> None:
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


def test_copy(lonely: CommandHome) -> None:
    home = lonely.home / "svc"
    home.mkdir()
    old = unpacked(1, home)
    target = lonely.home / "new" / "there.db"
    assert "svc db upgrade comes first" in lonely.run("svc", "db", "copy", str(old), str(target)).problem
    lonely.run("svc", "db", "upgrade")
    others = ("chat_sessions", "chat_messages", "chat_fences", "chat_pictures", "chat_responses", "audit_events")
    told = f"Copied 1 of paired_sessions, {', '.join(f'0 of {table}' for table in others)}.\n"
    assert lonely.run("svc", "db", "copy", str(old), str(target)).out == told
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    again = lonely.run("svc", "db", "copy", str(old), str(target))
    assert again.problem == "the store to copy to is not empty: there are rows in paired_sessions"
    third = lonely.run("svc", "db", "copy", str(target), f"sqlite:///{home}/third.db", "--json")
    assert third.json == {"copied": {"paired_sessions": 1, **dict.fromkeys(others, 0)}}
    assert lonely.run("svc", "db", "copy", str(home / "none.db"), str(target)).problem.startswith(
        "there is no database"
    )
    assert lonely.run("svc", "db", "copy", "memory:", str(target)).problem == "a database has to be a file or a URL"
