"""The relay's store requests in portable SQL. Each handler runs within a transaction."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from runtimes.failures import HostError
from runtimes.store.migrations import KEPT_CHANGES
from runtimes.store.sql_executor import SqlExecutor, replace_unstorable
from svc_proto.basics import strict_json
from svc_proto.basics.audit_event import MAX_AGE, MAX_EVENTS, AuditEvent
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.store_requests import (
    AppendAuditEvent,
    CheckStore,
    CountSessions,
    DeleteSession,
    ListAuditEvents,
    LoadClusterSecret,
    LoadSessionChanges,
    LoadSessionRevision,
    LoadSessions,
    SaveSession,
    SessionChange,
)

__all__ = ["SESSION_READS", "SESSION_HANDLERS"]

_SESSION = "SELECT token_hash, record FROM paired_sessions WHERE token_hash = :wanted"
_SESSIONS = """SELECT token_hash, record FROM paired_sessions WHERE token_hash > :after
    ORDER BY token_hash LIMIT :limit"""
_CHANGES = """SELECT token_hash, revision, record FROM session_changes LEFT JOIN paired_sessions USING (token_hash)
    WHERE revision > :since ORDER BY revision LIMIT :limit"""
_REVISION = "SELECT value FROM session_revision"
_CHANGE = "UPDATE paired_sessions SET record = :record, updated_at = :updated_at WHERE token_hash = :wanted"
_EVENTS = "SELECT at, event, principal, address, about FROM audit_events ORDER BY seq DESC LIMIT :limit"
_ADD_EVENT = """INSERT INTO audit_events (at, event, principal, address, about)
    VALUES (:at, :event, :principal, :address, :about)"""
_DROP_EVENTS = """DELETE FROM audit_events WHERE at < :since
    OR seq <= (SELECT max(seq) FROM audit_events) - :kept"""
_ADD = "INSERT INTO paired_sessions (token_hash, record, updated_at) VALUES (:wanted, :record, :updated_at)"


def _load(hand: SqlExecutor, request: LoadSessions) -> tuple[Mapping[str, object], ...]:
    if request.token_hash:
        rows = hand.query(_SESSION, wanted=request.token_hash)
    else:
        rows = hand.query(_SESSIONS, after=request.after, limit=request.limit)
    return tuple(_record_of(token_hash, record) for token_hash, record in rows)


def _record_of(token_hash: str, record: str) -> Mapping[str, object]:
    """Return the session record of a row. An unreadable row has no members but `token_hash`, and stays stored."""
    try:
        members = strict_json.loads_trusted(record)
    except (ValueError, RecursionError):
        members = None
    return {**(members if isinstance(members, dict) else {}), "token_hash": token_hash}


def _count(hand: SqlExecutor, request: CountSessions) -> int:
    return int(hand.query("SELECT count(*) FROM paired_sessions")[0][0])


def _load_revision(hand: SqlExecutor, request: LoadSessionRevision) -> int:
    return int(hand.query(_REVISION)[0][0])


def _load_secret(hand: SqlExecutor, request: LoadClusterSecret) -> str:
    return str(hand.query("SELECT secret FROM cluster_secret")[0][0])


def _load_changes(hand: SqlExecutor, request: LoadSessionChanges) -> tuple[SessionChange, ...]:
    ((newest,),) = hand.query(_REVISION)
    if not max(newest - KEPT_CHANGES, 0) <= request.since <= newest:
        raise HostError(FailureKind.NOT_FOUND, "the store does not have all changes since then")
    return tuple(
        SessionChange(token_hash, revision, None if record is None else _record_of(token_hash, record))
        for token_hash, revision, record in hand.query(_CHANGES, since=request.since, limit=request.limit)
    )


def _save(hand: SqlExecutor, request: SaveSession) -> None:
    values = {
        "wanted": request.token_hash,
        "record": json.dumps(dict(request.record)),
        "updated_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if hand.execute(_CHANGE, **values):
        return
    if request.again:
        raise HostError(FailureKind.NOT_FOUND, "the session is not stored any more")
    hand.execute(_ADD, **values)


def _delete(hand: SqlExecutor, request: DeleteSession) -> None:
    hand.execute("DELETE FROM paired_sessions WHERE token_hash = :wanted", wanted=request.token_hash)


def _check(hand: SqlExecutor, request: CheckStore) -> None:
    """Check that the store accepts changes: update a row, which a full disk or a read-only database refuses."""
    hand.execute("UPDATE session_revision SET checks = checks + 1")


def _append(hand: SqlExecutor, request: AppendAuditEvent) -> None:
    event = request.event
    hand.execute(
        _ADD_EVENT,
        at=event.at,
        event=replace_unstorable(event.event),
        principal=replace_unstorable(event.principal),
        address=replace_unstorable(event.address),
        about=json.dumps(dict(event.about)),
    )
    hand.execute(_DROP_EVENTS, kept=MAX_EVENTS, since=event.at - MAX_AGE)


def _list(hand: SqlExecutor, request: ListAuditEvents) -> tuple[AuditEvent, ...]:
    rows = hand.query(_EVENTS, limit=request.limit)
    return tuple(
        AuditEvent(
            at=at,
            event=event,
            principal=principal,
            address=address,
            about={name: str(value) for name, value in JsonObject.parse_or_empty(about).items()},
        )
        for at, event, principal, address, about in rows
    )


SESSION_HANDLERS: Mapping[type[StoreRequest[Any]], Callable[[SqlExecutor, Any], object]] = {
    LoadSessions: _load,
    CountSessions: _count,
    LoadSessionChanges: _load_changes,
    LoadSessionRevision: _load_revision,
    LoadClusterSecret: _load_secret,
    SaveSession: _save,
    DeleteSession: _delete,
    CheckStore: _check,
    AppendAuditEvent: _append,
    ListAuditEvents: _list,
}
SESSION_READS: frozenset[type[StoreRequest[Any]]] = frozenset(
    {LoadSessions, CountSessions, LoadSessionChanges, LoadSessionRevision, LoadClusterSecret, ListAuditEvents}
)
