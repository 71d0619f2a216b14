"""Statements as text, run in one transaction on a driver's connection; and how SQLite's connections are set up.

Nothing here needs SQLAlchemy: a relay with a file loads none.
"""

from __future__ import annotations

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
UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # PostgreSQL takes no NUL, and UTF-8 can carry no lone surrogate

# WAL: readers do not stop the writer. FULL: a session that was answered for survives a power cut. secure_delete: what
# was deleted is overwritten.
_SQLITE = (
    f"PRAGMA busy_timeout={BUSY_TIMEOUT}",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
)

# By whether it only reads. The driver by itself would not put changes of the schema into the transaction. IMMEDIATE:
# take the write lock first, so that two processes that write (or migrate) do it one after the other.
BEGIN = {False: "BEGIN IMMEDIATE", True: "BEGIN"}

_CUT = "CONNECTION_LOST"  # in place of a name or number: the server did not live to say one
_KINDS = (  # by how the names or numbers begin
    (("SQLITE_FULL", "53100"), FailureKind.NO_SPACE),
    (("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH", "25006", "28"), FailureKind.DENIED),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "55P03", "57014"), FailureKind.TIMED_OUT),
    (("SQLITE_CANTOPEN", "08", "57P", "53300", _CUT), FailureKind.UNREACHABLE),
)

Row = tuple[Any, ...]
Text = tuple[str, Sequence[str] | None]  # a statement, and the names of its values where they are given by order


class SqlExecutor:
    """What runs statements in one transaction: texts, and what `text_of` makes a text of. Values are `:named`."""

    __slots__ = ("_cursor", "_text_of", "kind")

    def __init__(
        self, kind: str, cursor: Any, text_of: Callable[[Any, Mapping[str, object]], Text] | None = None
    ) -> None:
        self.kind = kind  # of database: sqlite, postgresql
        self._cursor = cursor
        self._text_of = text_of

    def query(self, statement: object, **values: object) -> list[Row]:
        """What a statement finds, in the order of its columns; a truth may be a number."""
        self._run(statement, values)
        found: list[Row] = self._cursor.fetchall()
        return found

    def execute(self, statement: object, **values: object) -> int:
        """How many rows a statement has changed."""
        self._run(statement, values)
        count: int = self._cursor.rowcount
        return count

    def version(self) -> object:
        """Another one once somebody else has changed something; None where the database cannot say."""
        if self.kind != "sqlite":
            return None
        ((version,),) = self._cursor.execute("PRAGMA data_version")
        return id(self._cursor.connection), version

    def rollback(self) -> None:
        """Take back what was done in this transaction, which is over then."""
        self._cursor.connection.rollback()

    def _run(self, statement: object, values: Mapping[str, object]) -> None:
        text, order = (statement, None) if self._text_of is None else self._text_of(statement, values)
        if not values and text is statement:  # as it stands, with signs that a driver would take for values
            self._cursor.execute(text)
            return
        taken = {name: replace_unstorable(value) if isinstance(value, str) else value for name, value in values.items()}
        self._cursor.execute(text, taken if order is None else [taken[name] for name in order])


def replace_unstorable(text: str) -> str:
    """The text with U+FFFD for each character that not every database takes."""
    return UNSTORABLE.sub("\ufffd", text) if UNSTORABLE.search(text) else text


def prepare_sqlite(connection: Any, record: object = None) -> None:
    """Set a new connection of SQLite's driver up; SQLAlchemy has a record of it."""
    connection.isolation_level = None  # transactions are begun by us
    cursor = connection.cursor()
    for pragma in _SQLITE:
        cursor.execute(pragma)
    cursor.close()


def store_failure(error: Exception, cause: object, *, cut: bool = False) -> HostError:
    """In words that mean the same for every engine: SQLite names its errors, PostgreSQL numbers them."""
    name = str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
    if not name and (cut or hasattr(cause, "sqlstate")):
        name = _CUT
    kind = next((kind for names, kind in _KINDS if name.startswith(names)), FailureKind.INTERNAL)
    return HostError(kind, f"the store failed: {type(error).__name__}{f' {name}' if name else ''}")
