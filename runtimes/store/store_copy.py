"""Copy of sessions, chats and audit events into another database, which may be of another kind."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Double, MetaData, String, Table, Text, func, insert, select
from sqlalchemy.exc import SQLAlchemyError

from runtimes.store.chat_tables import CHAT_FENCES, CHAT_MESSAGES, CHAT_PICTURES, CHAT_RESPONSES, CHAT_SESSIONS
from runtimes.store.dialects import advance_sequence, read_only_engine, repeatable_read_engine
from runtimes.store.sql_store import first_error_line, migrate_engine, open_sql_engine, schema_of
from runtimes.store.store_factory import ensure_private_store
from runtimes.store.store_service import StoreError

__all__ = ["copy_store"]

PAIRED_SESSIONS = Table(
    "paired_sessions",
    MetaData(),
    Column("token_hash", String, primary_key=True),
    Column("record", Text),
    Column("updated_at", String),
)
AUDIT_EVENTS = Table(
    "audit_events",
    MetaData(),
    Column("seq", BigInteger, primary_key=True),
    Column("at", Double),
    Column("event", Text),
    Column("principal", Text),
    Column("address", Text),
    Column("about", Text),
)
# A row comes after the rows that it refers to.
TABLES = (PAIRED_SESSIONS, CHAT_SESSIONS, CHAT_MESSAGES, CHAT_FENCES, CHAT_PICTURES, CHAT_RESPONSES, AUDIT_EVENTS)
BATCH_SIZE = 500  # rows


def copy_store(
    source: str | Path, target: str | Path, told: Callable[[str, int, int], None] = lambda table, done, of: None
) -> Mapping[str, int]:
    """Copy the tables in `TABLES` and return the number of rows of each.

    `told` is called after each batch with the table, the rows so far and the total. The source is read as of one
    instant and not changed. The target is migrated and must be empty; afterwards it has all rows or none. Raises
    `StoreError`.
    """
    ensure_private_store(target)
    before, after = open_sql_engine(source), open_sql_engine(target)
    try:
        had, newest = schema_of(before)
        if had != newest:
            raise StoreError(f"the store to copy has schema version {had}, not {newest}: svc db upgrade comes first")
        migrate_engine(after)
        with repeatable_read_engine(read_only_engine(before)).begin() as reader, after.begin() as writer:
            for table in TABLES:
                if writer.execute(select(func.count()).select_from(table)).scalar_one():
                    raise StoreError(f"the store to copy to is not empty: there are rows in {table.name}")
            counts = {table.name: _copy(table, reader, writer, told) for table in TABLES}
            advance_sequence(writer, CHAT_MESSAGES.c.seq)
            advance_sequence(writer, AUDIT_EVENTS.c.seq)
            return counts
    except SQLAlchemyError as error:
        raise StoreError(f"the store cannot be copied: {first_error_line(error)}") from error
    finally:
        before.dispose()
        after.dispose()


def _copy(table: Table, reader: Connection, writer: Connection, told: Callable[[str, int, int], None]) -> int:
    count = reader.execute(select(func.count()).select_from(table)).scalar_one()
    rows = reader.execute(select(table).order_by(*table.primary_key), execution_options={"yield_per": BATCH_SIZE})
    done = 0
    for some in rows.mappings().partitions(BATCH_SIZE):
        values: list[dict[str, Any]] = [dict(row) for row in some]
        writer.execute(insert(table), values)
        done += len(values)
        told(table.name, done, count)
    if done != count:
        raise StoreError(f"{table.name} has {count} rows, and {done} were read")
    return done
