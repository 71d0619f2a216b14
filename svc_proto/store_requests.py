"""Requests of a core to the store: named, typed, never SQL.

A runtime answers each one in the order given, and `Done` means that the change survives a crash.
"""

from __future__ import annotations

from collections.abc import Mapping

from svc_proto.basics.audit_event import AuditEvent
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import StoreRequest

__all__ = ["AppendAuditEvent", "DeleteSession", "ListAuditEvents", "LoadSessions", "CheckStore", "SaveSession"]


@fast_frozen
class LoadSessions(StoreRequest[tuple[Mapping[str, object], ...]]):
    """All session records that were saved and not deleted; with `token_hash` only that one, if it exists."""

    answer = tuple

    token_hash: str = ""


@fast_frozen
class CheckStore(StoreRequest[None]):
    """Check that the store answers and accepts changes."""

    answer = type(None)


@fast_frozen
class SaveSession(StoreRequest[None]):
    """Create or replace the record under `token_hash` (SHA-256 hex of the token).

    With `again` only an existing record is replaced; otherwise the failure is `NOT_FOUND`.
    """

    answer = type(None)

    token_hash: str
    record: Mapping[str, object]
    again: bool = False


@fast_frozen
class DeleteSession(StoreRequest[None]):
    """Delete the record under `token_hash`; fine when there is none."""

    answer = type(None)

    token_hash: str


@fast_frozen
class AppendAuditEvent(StoreRequest[None]):
    """Append an event to the audit log, and drop the events beyond its limits of number and age."""

    answer = type(None)

    event: AuditEvent


@fast_frozen
class ListAuditEvents(StoreRequest[tuple[AuditEvent, ...]]):
    """The newest events of the audit log, newest first."""

    answer = tuple

    limit: int
