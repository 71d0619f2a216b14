"""Selection and opening of the store: in memory, or an SQL database.

SQLAlchemy is loaded for a store that is named by a database URL other than `sqlite://`. Other stores load it at the
first request for chats.
"""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from runtimes.files.private_files import ensure_private_folder
from runtimes.store.memory_store import MemoryStore
from runtimes.store.store_service import Store, StoreError

__all__ = ["ensure_private_store", "configured_store", "open_store", "store_files"]

REMEDY = "; SVC_HOME or SVC_DATABASE_URL can name a place on a file system with permissions and locks"


def open_store(where: str | Path) -> Store:
    """Open and migrate a store: an SQLAlchemy URL, a path of an SQLite file, or `memory:`. Raises `StoreError`.

    `memory:` or `sqlite://` opens no database yet, and so has nothing to migrate.
    An SQLite file gets mode 0600 as by `ensure_private_store`.
    """
    if where in ("memory:", "sqlite://"):
        return MemoryStore()
    ensure_private_store(where)
    if isinstance(where, str) and "://" in where:
        return _open_sql(where)
    return _open_file(Path(where).expanduser().absolute())


def configured_store(env: Mapping[str, str], settings: Mapping[str, str], home: Path) -> str | Path:
    """Return the configured store: `RELAY_SESSIONS_FILE`, `SVC_DATABASE_URL`, or a file of the home.

    A `RELAY_SESSIONS_FILE` that is set but empty means memory only (wire core 4.5). `settings` are the environment
    `env` and the settings of the home. Raises `StoreError`.
    """
    named = env.get("RELAY_SESSIONS_FILE", settings.get("RELAY_SESSIONS_FILE"))
    if named is not None:
        return named.strip() or "memory:"
    url = settings.get("SVC_DATABASE_URL")
    if url and "://" not in url and url != "memory:":
        raise StoreError("SVC_DATABASE_URL must be an SQLAlchemy URL, such as sqlite:////srv/svc.db or postgresql://…")
    return url or home / "svc.db"


def store_files(where: str) -> list[str]:
    """Return the paths of a store's file and of those that SQLite creates beside it; none for a server or in memory.

    The files need not exist.
    """
    path = where
    if "://" in where:
        scheme, _, rest = where.partition("://")
        path = rest.partition("/")[2].partition("?")[0].removeprefix("file:") if scheme.startswith("sqlite") else ""
    if path in ("", "memory:", ":memory:"):
        return []
    file = (Path(path) if "://" in where else Path(path).expanduser()).absolute()
    return [f"{file}{end}" for end in ("", "-wal", "-shm", "-journal")]


def ensure_private_store(where: str | Path) -> None:
    """Create the file of an SQLite store if it is missing, and restrict it to its owner. Raises `StoreError`.

    The missing folder of a path is created with mode 0700, but not that of a URL. SQLite itself parses a `file:` URI in
    a URL, and the mode of such a file does not change.
    """
    is_url = "://" in str(where)
    if is_url and "/file:" in str(where):
        return
    for file in store_files(str(where))[:1]:
        _ensure_private_file(Path(file), make_folder=not is_url)


def _ensure_private_file(path: Path, *, make_folder: bool) -> None:
    try:
        if make_folder and not path.parent.is_dir():
            ensure_private_folder(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError as error:
        remedy = REMEDY if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS) else ""
        raise StoreError(f"cannot open the store {path}: {error.strerror}{remedy}") from error


def _open_file(path: Path) -> Store:
    from runtimes.store.sqlite_store import SqliteStore  # noqa: PLC0415, RUF100 - loads SQLite

    return SqliteStore(path)


def _open_sql(where: str) -> Store:
    from runtimes.store.sql_store import SqlStore  # noqa: PLC0415, RUF100 - loads SQLAlchemy

    return SqlStore(where)
