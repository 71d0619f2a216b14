"""The relay's store requests in portable SQL. Each function runs within a transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from runtimes.failures import HostError
from runtimes.store.sql_executor import SqlExecutor, replace_unstorable
from svc_proto.basics.audit_event import MAX_AGE, MAX_EVENTS, AuditEvent
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.store_requests import (
    AppendAuditEvent,
    CheckStore,
    DeleteSession,
    ListAuditEvents,
    LoadSessions,
    SaveSession,
)

__all__ = ["SESSION_READS", "SESSION_HANDLERS"]

_SESSIONS = "SELECT token_hash, record FROM paired_sessions"
_CHANGE = "UPDATE paired_sessions SET record = :record, updated_at = :updated_at WHERE token_hash = :wanted"
_EVENTS = "SELECT at, event, principal, address, about FROM audit_events ORDER BY seq DESC LIMIT :limit"
_ADD_EVENT = """INSERT INTO audit_events (at, event, principal, address, about)
    VALUES (:at, :event, :principal, :address, :about)"""
_DROP_EVENTS = """DELETE FROM audit_events WHERE at < :since
    OR seq <= (SELECT max(seq) FROM audit_events) - :kept"""
_ADD = "INSERT INTO paired_sessions (token_hash, record, updated_at) VALUES (:wanted, :record, :updated_at)"
_DROP = "DELETE FROM paired_sessions WHERE token_hash = :wanted"


def _load(hand: SqlExecutor, request: LoadSessions) -> tuple[Mapping[str, object], ...]:
    wanted = request.token_hash
    if wanted:
        rows = hand.query(f"{_SESSIONS} WHERE token_hash = :wanted", wanted=wanted)
    else:
        rows = hand.query(f"{_SESSIONS} ORDER BY token_hash")
    # An unreadable row becomes a record without members: it stays stored and does not affect other phones.
    return tuple({**JsonObject.parse_or_empty(record), "token_hash": token_hash} for token_hash, record in rows)


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
    hand.execute(_DROP, wanted=request.token_hash)


def _check(hand: SqlExecutor, request: CheckStore) -> None:
    """Insert and delete a row: a full disk or a read-only database fails the transaction, which a query would not."""
    key = f"check-{uuid4().hex}"  # each its own, so that the checks of several nodes do not wait for each other
    hand.execute(_ADD, wanted=key, record="{}", updated_at="")
    hand.execute(_DROP, wanted=key)


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
    SaveSession: _save,
    DeleteSession: _delete,
    CheckStore: _check,
    AppendAuditEvent: _append,
    ListAuditEvents: _list,
}
SESSION_READS: frozenset[type[StoreRequest[Any]]] = frozenset({LoadSessions, ListAuditEvents})
