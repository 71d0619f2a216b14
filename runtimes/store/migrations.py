"""Migrations of the schema as SQL text, applied when a database is opened.

A schema change is one more function at the end of `MIGRATIONS`. Existing functions and the texts that they run never
change.
"""

import secrets
import sqlite3
import string
from collections.abc import Callable, Sequence
from functools import partial

from runtimes.store.sql_executor import SqlExecutor
from runtimes.store.store_service import StoreError

__all__ = [
    "INDEXED",
    "KEPT_CHANGES",
    "MIGRATIONS",
    "Migration",
    "create_fts5",
    "drop_fts5",
    "drop_fts5_triggers",
    "migrate",
    "version_in",
]

Migration = Callable[[SqlExecutor], object]

KEPT_CHANGES = 100_000  # latest changes of sessions; a node that missed more reads all sessions
SECRET_BYTES = 32  # of entropy in the secret of a cluster
INDEXED = 250_000  # characters of a message: a `tsvector` takes 1 MiB, and each character up to four bytes

_MINE = "component = 'svc'"
_SCHEMA_LOCK = int.from_bytes(b"svc", "big")  # number of an advisory lock
_TYPES = {
    # Text is ordered by code points, and SQLite numbers rows only in an INTEGER column.
    True: {"words": "TEXT", "count": "INTEGER", "double": "DOUBLE", "number": "INTEGER", "bytes": "BLOB"},
    False: {
        "words": 'VARCHAR COLLATE "C"',
        "count": "BIGINT",
        "double": "DOUBLE PRECISION",
        "number": "BIGSERIAL",
        "bytes": "BYTEA",
    },
}
_VERSIONS = """CREATE TABLE schema_version (
    component VARCHAR(64) NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (component))"""
_PAIRED_SESSIONS = (  # the record is JSON; the time is ISO 8601 UTC, for people who inspect the table
    """CREATE TABLE paired_sessions (
    token_hash VARCHAR(128) NOT NULL, record TEXT NOT NULL, updated_at VARCHAR(32) NOT NULL,
    PRIMARY KEY (token_hash))""",
)
_CHATS = (
    # All times are Unix seconds. A parent has no foreign key: it may have been deleted, or may never have existed.
    """CREATE TABLE chat_sessions (
    id {words} NOT NULL, started_at {double} NOT NULL, updated_at {double} NOT NULL, last_active {double} NOT NULL,
    title {words}, source {words} NOT NULL, model {words}, system_prompt {words}, parent_id {words},
    is_child BOOLEAN NOT NULL, ended_at {double}, end_reason {words}, pinned BOOLEAN NOT NULL,
    archived BOOLEAN NOT NULL, preview {words}, message_count {count} NOT NULL, tool_call_count {count} NOT NULL,
    input_tokens {count} NOT NULL, output_tokens {count} NOT NULL, PRIMARY KEY (id))""",
    # One index orders every list; it includes the filters, so that filtered rows are never read.
    """CREATE INDEX ix_chat_sessions_recent
    ON chat_sessions (last_active, started_at, id, source, is_child, archived)""",
    "CREATE INDEX ix_chat_sessions_parent_id ON chat_sessions (parent_id)",
    """CREATE TABLE chat_messages (
    seq {number} NOT NULL, session_id {words} NOT NULL, id {words} NOT NULL, role {words} NOT NULL,
    text {words} NOT NULL, exact TEXT, words TEXT, timestamp {double} NOT NULL, run_id {words}, tool_calls TEXT,
    tool_call_id {words}, tool_name {words}, finish_reason {words}, reasoning {words}, input_tokens {count},
    output_tokens {count}, PRIMARY KEY (seq), UNIQUE (session_id, id),
    FOREIGN KEY(session_id) REFERENCES chat_sessions (id) ON DELETE CASCADE)""",
    "CREATE INDEX ix_chat_messages_order ON chat_messages (session_id, seq)",
)
_CHAT_FENCES = (
    """CREATE TABLE chat_fences (
    session_id {words} NOT NULL, fence {count} NOT NULL, PRIMARY KEY (session_id),
    FOREIGN KEY(session_id) REFERENCES chat_sessions (id) ON DELETE CASCADE)""",
)
_CHAT_RESPONSES = (  # no foreign key: a response outlives its session
    """CREATE TABLE chat_responses (
    kind {words} NOT NULL, name {words} NOT NULL, session_id {words} NOT NULL, text {words} NOT NULL,
    used_at {double} NOT NULL, PRIMARY KEY (kind, name))""",
)
_CHAT_PICTURES = (
    """CREATE TABLE chat_pictures (
    session_id {words} NOT NULL, token {words} NOT NULL, kind {words} NOT NULL, size {count} NOT NULL,
    stored_at {double} NOT NULL, data {bytes} NOT NULL, PRIMARY KEY (session_id, token),
    FOREIGN KEY(session_id) REFERENCES chat_sessions (id) ON DELETE CASCADE)""",
    # Enough for finding the oldest pictures without reading any.
    "CREATE INDEX ix_chat_pictures_stored ON chat_pictures (stored_at, session_id, token, size)",
)
_AUDIT_EVENTS = (
    """CREATE TABLE audit_events (
    seq {number} NOT NULL, at {double} NOT NULL, event {words} NOT NULL, principal {words} NOT NULL,
    address {words} NOT NULL, about TEXT NOT NULL, PRIMARY KEY (seq))""",
)
# The latest change of each session, so that a node reads only what it missed. Triggers write it, so that nodes of an
# older version and people who edit the table take part. `KEPT_CHANGES` bounds the table. Revisions become visible in
# their order, because the row of the last one is locked until the end of a transaction.
_SESSION_CHANGES = (
    # `checks` counts the checks whether the store can be written; SQLite does not write a row that stays equal
    "CREATE TABLE session_revision (value {count} NOT NULL, checks {count} NOT NULL)",
    "INSERT INTO session_revision (value, checks) VALUES (0, 0)",
    """CREATE TABLE session_changes (
    token_hash VARCHAR(128) NOT NULL, revision {count} NOT NULL, PRIMARY KEY (token_hash))""",
    "CREATE UNIQUE INDEX ix_session_changes_revision ON session_changes (revision)",
)
_NOTE_CHANGE_SQLITE = """CREATE TRIGGER paired_sessions_{event} AFTER {event} ON paired_sessions BEGIN
    UPDATE session_revision SET value = value + 1;
    INSERT OR REPLACE INTO session_changes (token_hash, revision)
        VALUES ({row}.token_hash, (SELECT value FROM session_revision));
    DELETE FROM session_changes WHERE revision <= (SELECT value FROM session_revision) - {kept};
END"""
_NOTE_CHANGE_POSTGRESQL = (
    # Locked before any row of a session: writers that lock the same sessions in another order would block each other.
    """CREATE FUNCTION lock_session_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM session_revision FOR UPDATE;
    RETURN NULL;
END $$""",
    """CREATE FUNCTION note_session_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    next BIGINT;
BEGIN
    UPDATE session_revision SET value = value + 1 RETURNING value INTO next;
    INSERT INTO session_changes (token_hash, revision) VALUES (coalesce(new.token_hash, old.token_hash), next)
        ON CONFLICT (token_hash) DO UPDATE SET revision = excluded.revision;
    DELETE FROM session_changes WHERE revision <= next - {kept};
    RETURN NULL;
END $$""",
    """CREATE TRIGGER paired_sessions_lock BEFORE INSERT OR UPDATE OR DELETE ON paired_sessions
    FOR EACH STATEMENT EXECUTE FUNCTION lock_session_revision()""",
    """CREATE TRIGGER paired_sessions_change AFTER INSERT OR UPDATE OR DELETE ON paired_sessions
    FOR EACH ROW EXECUTE FUNCTION note_session_change()""",
)
_CLUSTER_SECRET = ("CREATE TABLE cluster_secret (secret {words} NOT NULL)",)  # one row
_MESSAGE_EXTRAS = ("ALTER TABLE chat_messages ADD COLUMN extra TEXT",)
_FTS5 = (
    "CREATE VIEW chat_words AS SELECT seq, coalesce(words, text) AS words FROM chat_messages",
    # `remove_diacritics 0`: accents are removed before storing.
    """CREATE VIRTUAL TABLE chat_search USING fts5(
        words, content='chat_words', content_rowid='seq', tokenize='unicode61 remove_diacritics 0')""",
    """CREATE TRIGGER chat_search_added AFTER INSERT ON chat_messages BEGIN
        INSERT INTO chat_search(rowid, words) VALUES (new.seq, coalesce(new.words, new.text));
    END""",
    """CREATE TRIGGER chat_search_deleted AFTER DELETE ON chat_messages BEGIN
        INSERT INTO chat_search(chat_search, rowid, words)
            VALUES ('delete', old.seq, coalesce(old.words, old.text));
    END""",
    """CREATE TRIGGER chat_search_changed AFTER UPDATE OF seq, text, words ON chat_messages BEGIN
        INSERT INTO chat_search(chat_search, rowid, words)
            VALUES ('delete', old.seq, coalesce(old.words, old.text));
        INSERT INTO chat_search(rowid, words) VALUES (new.seq, coalesce(new.words, new.text));
    END""",
    "INSERT INTO chat_search(chat_search) VALUES ('rebuild')",
)
# Words must not depend on the database's locale: ASCII punctuation becomes blanks before PostgreSQL parses.
_QUOTED = "'{}'".format(string.punctuation.replace("'", "''"))
_TSVECTOR = (
    f"""ALTER TABLE chat_messages ADD COLUMN search tsvector GENERATED ALWAYS AS (to_tsvector('simple',
        translate(left(coalesce(words, text), {INDEXED}), {_QUOTED}, repeat(' ', {len(string.punctuation)}))
    )) STORED""",
    "CREATE INDEX chat_search ON chat_messages USING gin (search)",
)


def _create(statements: Sequence[str], hand: SqlExecutor) -> None:
    types = _TYPES[hand.kind == "sqlite"]
    for statement in statements:
        hand.execute(statement.format(**types))


def _create_session_changes(hand: SqlExecutor) -> None:
    """Create the table of changes of sessions, and the triggers that number each later change."""
    _create(_SESSION_CHANGES, hand)
    if hand.kind == "sqlite":
        for event, row in (("insert", "new"), ("update", "new"), ("delete", "old")):
            hand.execute(_NOTE_CHANGE_SQLITE.format(event=event, row=row, kept=KEPT_CHANGES))
    else:
        for statement in _NOTE_CHANGE_POSTGRESQL:
            hand.execute(statement.format(kept=KEPT_CHANGES))


def _create_cluster_secret(hand: SqlExecutor) -> None:
    """Create the secret with which nodes sign their messages."""
    _create(_CLUSTER_SECRET, hand)
    hand.execute("INSERT INTO cluster_secret (secret) VALUES (:secret)", secret=secrets.token_hex(SECRET_BYTES))


def _create_chat_search(hand: SqlExecutor) -> None:
    """Index present and future messages, where this kind of database can."""
    if hand.kind == "sqlite":
        create_fts5(hand)
    elif hand.kind == "postgresql":
        for statement in _TSVECTOR:
            hand.execute(statement)


def create_fts5(hand: SqlExecutor) -> None:
    """Create SQLite's full-text index; do nothing where SQLite has no FTS5."""
    try:
        hand.execute("CREATE VIRTUAL TABLE temp.chat_probe USING fts5(words)")
    except sqlite3.OperationalError:
        return
    for statement in ("DROP TABLE temp.chat_probe", *_FTS5):
        hand.execute(statement)


def drop_fts5(hand: SqlExecutor) -> None:
    """Drop SQLite's full-text index, as far as it exists."""
    drop_fts5_triggers(hand)
    try:
        hand.execute("DROP TABLE IF EXISTS chat_search")
    except sqlite3.DatabaseError:  # SQLite cannot open the table, so its parts are dropped one by one
        hand.execute("PRAGMA writable_schema=ON")
        hand.execute("DELETE FROM sqlite_master WHERE name = 'chat_search'")
        hand.execute("PRAGMA writable_schema=RESET")
        for part in ("data", "idx", "docsize", "config"):
            hand.execute(f"DROP TABLE IF EXISTS chat_search_{part}")
    hand.execute("DROP VIEW IF EXISTS chat_words")


def drop_fts5_triggers(hand: SqlExecutor) -> None:
    """Detach SQLite's full-text index: changes of messages do not reach it any more."""
    for name in ("added", "deleted", "changed"):
        hand.execute(f"DROP TRIGGER IF EXISTS chat_search_{name}")


MIGRATIONS: tuple[Migration, ...] = (
    partial(_create, _PAIRED_SESSIONS),
    partial(_create, _CHATS),
    _create_chat_search,
    partial(_create, _CHAT_FENCES),
    partial(_create, _CHAT_RESPONSES),
    partial(_create, _AUDIT_EVENTS),
    partial(_create, _MESSAGE_EXTRAS),
    _create_session_changes,
    _create_cluster_secret,
    partial(_create, _CHAT_PICTURES),
)


def migrate(hand: SqlExecutor, migrations: Sequence[Migration] = MIGRATIONS, *, keep: bool = True) -> tuple[int, int]:
    """Migrate a schema, or only try to if not `keep`; return the old and new version. Raises `StoreError`."""
    newest = len(migrations)
    if hand.kind == "postgresql":  # one migration at a time; SQLite has locked the database already
        hand.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
    version = version_in(hand)
    if version is None:
        hand.execute(_VERSIONS)
    before = version or 0
    if before > newest:
        raise StoreError(f"the store has schema version {before}, newer than {newest} known here")
    if before < newest:
        for migration in migrations[before:]:
            migration(hand)
        if not hand.execute(f"UPDATE schema_version SET version = :version WHERE {_MINE}", version=newest):  # noqa: S608 - a constant
            hand.execute("INSERT INTO schema_version (component, version) VALUES ('svc', :version)", version=newest)
    if not keep:
        hand.rollback()
    return before, newest


def version_in(hand: SqlExecutor) -> int | None:
    """Return the version of a database's schema: None without the table of versions, 0 without our row in it."""
    if hand.kind == "sqlite":
        there = hand.query("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'")
    else:
        there = hand.query("SELECT 1 WHERE to_regclass('schema_version') IS NOT NULL")
    if not there:
        return None
    found = hand.query(f"SELECT version FROM schema_version WHERE {_MINE}")  # noqa: S608 - a constant
    return int(found[0][0]) if found else 0
