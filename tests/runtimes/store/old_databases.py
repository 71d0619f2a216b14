"""Databases of each version of the schema, in `tests/runtimes/databases`.

Do not rewrite existing files: they stand for databases of users. Create a file for each new migration with
`create_database`.
"""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

from runtimes.store.migrations import MIGRATIONS
from runtimes.store.sql_store import SqlStore
from svc_proto.store_requests import SaveSession
from tests.runtimes.store.chat_stores import add, chat, create, message

KEPT = Path(__file__).parent.parent / "databases"
RECORD = {"device_name": "Pixel 8", "grants": {"chat": None}}
NEWEST = len(MIGRATIONS)


def create_database(version: int) -> None:
    """Write the compressed database of a schema version, with a session and, from version 2, a chat."""
    path = KEPT / f"{version}.db"
    store = SqlStore(path, MIGRATIONS[:version])
    store.execute(SaveSession("a", RECORD))
    if version >= 2:
        create(store, chat("c", title="Tea"))
        add(store, message("m", "Früher gab es Tee"), message("n", [{"type": "text", "text": "later"}]))
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("VACUUM")
    (KEPT / f"{version}.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def unpacked(version: int, folder: Path) -> Path:
    """Unpack the database of a schema version as `svc.db` in a folder; return its path."""
    path = folder / "svc.db"
    path.write_bytes(gzip.decompress((KEPT / f"{version}.db.gz").read_bytes()))
    return path
