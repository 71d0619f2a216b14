"""Requests of a core to the store: named, typed, never SQL.

A runtime carries them out in the order given. With a durable store, `Done` means that the change survives a crash.
"""

from collections.abc import Mapping

from svc_proto.basics.audit_event import AuditEvent
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import StoreRequest

__all__ = [
    "AppendAuditEvent",
    "CheckStore",
    "CountSessions",
    "DeleteSession",
    "ListAuditEvents",
    "LoadClusterSecret",
    "LoadSessionChanges",
    "LoadSessionRevision",
    "LoadSessions",
    "SESSIONS_PAGE",
    "SaveSession",
    "SessionChange",
]

SESSIONS_PAGE = 50  # records of one answer, for which a core takes one to three milliseconds


@fast_frozen
class LoadSessions(StoreRequest[tuple[Mapping[str, object], ...]]):
    """Request a page of the stored session records, in order of their token hash, that follow the hash `after`.

    Fewer than `limit` records mean that no more follow. With `token_hash` only the record of that hash, if it exists.
    """

    answer = tuple

    token_hash: str = ""
    after: str = ""
    limit: int = SESSIONS_PAGE


@fast_frozen
class CountSessions(StoreRequest[int]):
    """Request the number of stored session records."""

    answer = int


@fast_frozen
class SessionChange:
    """The latest change of a stored session. `record` is None if it was deleted."""

    token_hash: str
    revision: int
    record: Mapping[str, object] | None


@fast_frozen
class LoadSessionChanges(StoreRequest[tuple[SessionChange, ...]]):
    """Request a page of the sessions that changed after revision `since`, oldest change first, each session once.

    Each save and deletion by any process has the next revision, in the order in which they become visible. Fewer than
    `limit` changes mean that no more follow. The failure is `NOT_FOUND` if the store does not have all changes since
    then: it keeps the latest ones, and a store that was restored starts at an older revision.
    """

    answer = tuple

    since: int
    limit: int = SESSIONS_PAGE


@fast_frozen
class LoadSessionRevision(StoreRequest[int]):
    """Request the revision of the latest change of a stored session; 0 without one."""

    answer = int


@fast_frozen
class LoadClusterSecret(StoreRequest[str]):
    """Request the secret with which the nodes that share this store sign their messages. It never changes."""

    answer = str


@fast_frozen
class CheckStore(StoreRequest[None]):
    """Request a check that the store answers and accepts changes."""

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
    """Request the `limit` newest events of the audit log, newest first."""

    answer = tuple

    limit: int
