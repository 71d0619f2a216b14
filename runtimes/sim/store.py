"""Store of one host, in memory: outlives its processes and performs requests one after another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from heapq import nsmallest
from itertools import takewhile
from typing import Any

from runtimes.failures import HostError
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import Store as SqlStore
from svc_proto import store_requests
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind

__all__ = ["CLUSTER_SECRET", "STORE_TIME", "SimStore"]

CLUSTER_SECRET = "5ec2e7" * 10  # of all simulated stores
STORE_TIME = 0.002  # s for one request: a commit on a disk


class SimStore:
    """Store whose `sessions` are the durable records by token hash; tests may change them.

    `changes` has the revision of the latest change of each session, lowest first; a change by a test has none. Requests
    for chats go to a store in memory. Requests of the types in `refused` fail without effect. A request takes about
    `seconds`.
    """

    def __init__(self) -> None:
        self.seconds = STORE_TIME
        self.sessions: dict[str, dict[str, object]] = {}
        self.changes: dict[str, int] = {}
        self.refused: tuple[type[StoreRequest[Any]], ...] = ()
        self._sql: SqlStore | None = None  # made when first needed: most simulations have no chats
        self._is_snapshot = False
        self._order: list[str] | None = None  # of a snapshot: its hashes in order, made with the first page
        self._answers: dict[type, Callable[[Any], object]] = {
            store_requests.LoadSessions: self._load,
            store_requests.CountSessions: lambda request: len(self.sessions),
            store_requests.LoadSessionChanges: self._load_changes,
            store_requests.LoadSessionRevision: lambda request: self._revision,
            store_requests.LoadClusterSecret: lambda request: CLUSTER_SECRET,
            store_requests.SaveSession: self._save,
            store_requests.DeleteSession: self._delete,
            store_requests.CheckStore: lambda request: None,
        }

    def apply(self, request: StoreRequest[Any]) -> object:
        """Perform one request and return its answer. Raise `HostError` for a refused request."""
        if isinstance(request, self.refused):
            raise HostError(FailureKind.INTERNAL, "the store refuses")
        answer = self._answers.get(type(request))
        if answer is not None:
            return answer(request)
        if self._sql is None:
            self._sql = open_store("memory:")
        return self._sql.execute(request)

    def snapshot(self) -> SimStore:
        """Return a store with the present records and changes."""
        copy = SimStore()
        copy.sessions, copy.changes = dict(self.sessions), dict(self.changes)
        copy._is_snapshot = True
        return copy

    @property
    def _revision(self) -> int:
        return next(reversed(self.changes.values()), 0)

    def _load(self, request: store_requests.LoadSessions) -> tuple[Mapping[str, object], ...]:
        if request.token_hash:
            found = [self.sessions[request.token_hash]] if request.token_hash in self.sessions else []
        else:
            found = [self.sessions[token_hash] for token_hash in self._page(request.after, request.limit)]
        return tuple(found if self._is_snapshot else map(_copy_record, found))  # records of a snapshot never change

    def _page(self, after: str, limit: int) -> list[str]:
        """Return up to `limit` hashes that follow `after`, in order.

        Only a snapshot caches the order, since any other store may have changed after the last page.
        """
        if not self._is_snapshot:
            return nsmallest(limit, (token_hash for token_hash in self.sessions if token_hash > after))
        if self._order is None:
            self._order = sorted(self.sessions)
        first = bisect_right(self._order, after)
        return self._order[first : first + limit]

    def _load_changes(self, request: store_requests.LoadSessionChanges) -> tuple[store_requests.SessionChange, ...]:
        if not 0 <= request.since <= self._revision:
            raise HostError(FailureKind.NOT_FOUND, "the store does not have all changes since then")
        newest = takewhile(lambda item: item[1] > request.since, reversed(self.changes.items()))
        missed = list(newest)[: -request.limit - 1 : -1]
        return tuple(
            store_requests.SessionChange(token_hash, revision, _copy_record(self.sessions.get(token_hash)))
            for token_hash, revision in missed
        )

    def _save(self, request: store_requests.SaveSession) -> None:
        if request.again and request.token_hash not in self.sessions:
            raise HostError(FailureKind.NOT_FOUND, "the session is not stored any more")
        self.sessions[request.token_hash] = _copy_record(dict(request.record))
        self._note_change(request.token_hash)

    def _delete(self, request: store_requests.DeleteSession) -> None:
        if self.sessions.pop(request.token_hash, None) is not None:
            self._note_change(request.token_hash)

    def _note_change(self, token_hash: str) -> None:
        revision = self._revision + 1
        self.changes.pop(token_hash, None)
        self.changes[token_hash] = revision


def _copy_record(value: Any) -> Any:
    """Return a copy of a JSON value; objects and arrays are copied, too."""
    if isinstance(value, dict):
        return {name: _copy_record(member) for name, member in value.items()}
    return [_copy_record(member) for member in value] if isinstance(value, list) else value
