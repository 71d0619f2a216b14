"""The relay's store requests in portable SQL. Each function runs within a transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from runtimes.failures import HostError
from runtimes.store.sql_executor import SqlExecutor
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.store_requests import CheckStore, DeleteSession, LoadSessions, SaveSession

__all__ = ["SESSION_READS", "SESSION_HANDLERS"]

_SESSIONS = "SELECT token_hash, record FROM paired_sessions"
_CHANGE = "UPDATE paired_sessions SET record = :record, updated_at = :updated_at WHERE token_hash = :wanted"
_ADD = "INSERT INTO paired_sessions (token_hash, record, updated_at) VALUES (:wanted, :record, :updated_at)"


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
    hand.execute("DELETE FROM paired_sessions WHERE token_hash = :wanted", wanted=request.token_hash)


def _ping(hand: SqlExecutor, request: CheckStore) -> None:
    hand.query("SELECT 1")


SESSION_HANDLERS: Mapping[type[StoreRequest[Any]], Callable[[SqlExecutor, Any], object]] = {
    LoadSessions: _load,
    SaveSession: _save,
    DeleteSession: _delete,
    CheckStore: _ping,
}
SESSION_READS: frozenset[type[StoreRequest[Any]]] = frozenset({LoadSessions, CheckStore})
