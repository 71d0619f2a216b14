"""Execution of SQL texts in one transaction of a driver, and the set-up of SQLite connections.

Nothing here needs SQLAlchemy: a relay with an SQLite file does not load it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtimes.failures import HostError
from svc_proto.facts import FailureKind

__all__ = [
    "BEGIN",
    "BUSY_TIMEOUT",
    "UNSTORABLE",
    "SqlExecutor",
    "prepare_sqlite",
    "replace_unstorable",
    "store_failure",
]

BUSY_TIMEOUT = 5000  # ms that SQLite and PostgreSQL wait for another process's lock
UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # PostgreSQL refuses NUL, and UTF-8 cannot encode a lone surrogate

# WAL: readers do not stop the writer. FULL: a session that was answered for survives a power cut. secure_delete:
# deleted data is overwritten.
_SQLITE = (
    f"PRAGMA busy_timeout={BUSY_TIMEOUT}",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
)

# By whether the transaction only reads. The driver's own transactions exclude changes of the schema. IMMEDIATE: take
# the write lock first, so that two processes that write (or migrate) do so one after the other.
BEGIN = {False: "BEGIN IMMEDIATE", True: "BEGIN"}

# in place of an error name or number: the connection was lost before the server could send one
_CUT = "CONNECTION_LOST"
_KINDS = (  # by the beginning of error names or numbers
    (("SQLITE_FULL", "53100"), FailureKind.NO_SPACE),
    (("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH", "25006", "28"), FailureKind.DENIED),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "55P03", "57014"), FailureKind.TIMED_OUT),
    (("SQLITE_CANTOPEN", "08", "57P", "53300", _CUT), FailureKind.UNREACHABLE),
)

Row = tuple[Any, ...]
# a statement, and the names of its values where the driver takes them by position
Text = tuple[str, Sequence[str] | None]


class SqlExecutor:
    """Executor of statements in one transaction: texts, or objects that `text_of` compiles. Values are `:named`."""

    __slots__ = ("_cursor", "_text_of", "kind")

    def __init__(
        self, kind: str, cursor: Any, text_of: Callable[[Any, Mapping[str, object]], Text] | None = None
    ) -> None:
        self.kind = kind  # kind of database: sqlite, postgresql
        self._cursor = cursor
        self._text_of = text_of

    def query(self, statement: object, **values: object) -> list[Row]:
        """Run a statement and return its rows, columns in the order of the statement; a boolean may be a number."""
        self._run(statement, values)
        found: list[Row] = self._cursor.fetchall()
        return found

    def execute(self, statement: object, **values: object) -> int:
        """Run a statement and return the number of rows that it has changed."""
        self._run(statement, values)
        count: int = self._cursor.rowcount
        return count

    def version(self) -> object:
        """Return a value that differs after a change by another connection; None where the database has none."""
        if self.kind != "sqlite":
            return None
        ((version,),) = self._cursor.execute("PRAGMA data_version")
        return id(self._cursor.connection), version

    def rollback(self) -> None:
        """Roll back and end this transaction."""
        self._cursor.connection.rollback()

    def _run(self, statement: object, values: Mapping[str, object]) -> None:
        text, order = (statement, None) if self._text_of is None else self._text_of(statement, values)
        # without values a text passes unchanged: a driver could parse its characters as placeholders
        if not values and text is statement:
            self._cursor.execute(text)
            return
        taken = {name: replace_unstorable(value) if isinstance(value, str) else value for name, value in values.items()}
        self._cursor.execute(text, taken if order is None else [taken[name] for name in order])


def replace_unstorable(text: str) -> str:
    """Return the text with U+FFFD for each character that some database cannot store."""
    return UNSTORABLE.sub("\ufffd", text) if UNSTORABLE.search(text) else text


def prepare_sqlite(connection: Any, record: object = None) -> None:
    """Set up a new connection of SQLite's driver; SQLAlchemy passes a record of it."""
    connection.isolation_level = None  # this package begins transactions itself
    cursor = connection.cursor()
    for pragma in _SQLITE:
        cursor.execute(pragma)
    cursor.close()


def store_failure(error: Exception, cause: object, *, cut: bool = False) -> HostError:
    """Convert a database error into a failure whose kind does not depend on the engine.

    The detail has the engine's name or number of the error, if known: SQLite names its errors, PostgreSQL numbers them.
    """
    name = str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
    if not name and (cut or hasattr(cause, "sqlstate")):
        name = _CUT
    kind = next((kind for names, kind in _KINDS if name.startswith(names)), FailureKind.INTERNAL)
    return HostError(kind, f"the store failed: {type(error).__name__}{f' {name}' if name else ''}")
