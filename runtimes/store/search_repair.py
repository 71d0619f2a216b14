"""Check and repair of SQLite's full-text index, without which the messages are complete.

Another program, a restored file or a bad sector can damage the index alone. A request that meets the damage has the
index repaired, and is repeated. A search on a damaged index may find nothing without an error. So the first search of a
process compares the index with the messages.
"""

import logging
import sqlite3
from collections.abc import Callable

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from runtimes.host.logs import LogWriter
from runtimes.store.dialects import read_only_engine
from runtimes.store.migrations import create_fts5, drop_fts5, drop_fts5_triggers
from runtimes.store.prepared_statements import PreparedStatements
from runtimes.store.sql_executor import SqlExecutor

__all__ = ["check_search_index", "is_search_damaged", "repair_search_index"]

DAMAGED = ("SQLITE_CORRUPT_VTAB", "SQLITE_CORRUPT_INDEX")
NAMES = ("chat_search", "chat_words")  # in the error texts of a missing part of the index
_CHECK = "INSERT INTO chat_search(chat_search, rank) VALUES ('integrity-check', 1)"
_TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'chat_search%'"
TRIGGERS = 3  # which keep the index equal to the messages


def is_search_damaged(error: SQLAlchemyError) -> bool:
    """Report whether a request has failed because of the full-text index of SQLite."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    if not isinstance(cause, sqlite3.Error):
        return False
    return getattr(cause, "sqlite_errorname", "") in DAMAGED or any(name in str(cause) for name in NAMES)


def check_search_index(engine: Engine) -> bool:
    """Compare the index with the messages, and repair it if they differ or a trigger is missing.

    Return whether a repair was tried. The result is False, too, if the comparison fails for another reason. It takes
    about a second for 30 MB of text. In databases other than SQLite, do nothing and return False.
    """
    if engine.dialect.name != "sqlite":
        return False
    try:
        _in_transaction(engine, _check)
    except DBAPIError as error:
        if not is_search_damaged(error) or not _exists(engine):  # another program may hold the lock
            return False
        repair_search_index(engine)
        return True
    return False


def repair_search_index(engine: Engine) -> None:
    """Create the index anew from the messages; if that is impossible detach it, so that all else goes on."""
    log = LogWriter(logging.getLogger("svc"))
    steps = (("created anew", _create_anew), ("detached", drop_fts5_triggers))
    for how, repair in steps:
        try:
            _in_transaction(engine, repair)
        except SQLAlchemyError:
            continue
        log.log(logging.WARNING, "damaged search index repaired", how=how)
        return
    log.log(logging.ERROR, "damaged search index not repaired")


def _exists(engine: Engine) -> bool:
    """Report whether there is a part of the index; there is none where SQLite has no FTS5."""
    with read_only_engine(engine).connect() as connection:
        return bool(connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name LIKE 'chat_search%'").all())


def _check(hand: SqlExecutor) -> None:
    hand.execute(_CHECK)
    if len(hand.query(_TRIGGERS)) != TRIGGERS:
        raise sqlite3.DatabaseError("a trigger of chat_search is missing")


def _create_anew(hand: SqlExecutor) -> None:
    drop_fts5(hand)
    create_fts5(hand)


def _in_transaction(engine: Engine, work: Callable[[SqlExecutor], object]) -> None:
    prepared = PreparedStatements(engine)
    try:
        with prepared.transaction(reads=False) as hand:
            work(hand)
    finally:
        prepared.close()
