"""Store of one host, in memory: outlives its processes and performs requests one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from runtimes.failures import HostError
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import Store as SqlStore
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind
from svc_proto.store_requests import CheckStore, DeleteSession, LoadSessions, SaveSession

__all__ = ["STORE_TIME", "SimStore"]

STORE_TIME = 0.002  # s for one request: a commit on a disk


class SimStore:
    """Store whose `sessions` are the durable records by token hash, oldest first; tests may change them.

    Requests without a function of a test (`serve`), other than those for sessions, go to an SQLite database in memory.
    Requests of the types in `refused` fail without effect. A request takes about `seconds`.
    """

    def __init__(self) -> None:
        self.seconds = STORE_TIME
        self.sessions: dict[str, dict[str, object]] = {}
        self.refused: tuple[type[StoreRequest[Any]], ...] = ()
        self._sql: SqlStore | None = None  # made when first needed: most simulations have no chats
        self._answers: dict[type, Callable[[Any], object]] = {
            LoadSessions: self._load,
            SaveSession: self._save,
            DeleteSession: self._delete,
            CheckStore: lambda request: None,
        }

    def serve(self, request: type[StoreRequest[Any]], answer: Callable[[Any], object]) -> None:
        """Let a function answer a type of request; it may raise `HostError`."""
        self._answers[request] = answer

    def apply(self, request: StoreRequest[Any]) -> object:
        """Perform one request, durably."""
        if isinstance(request, self.refused):
            raise HostError(FailureKind.INTERNAL, "the store refuses")
        answer = self._answers.get(type(request))
        if answer is not None:
            return answer(request)
        if self._sql is None:
            self._sql = open_store("memory:")
        return self._sql.execute(request)

    def _load(self, request: LoadSessions) -> tuple[Mapping[str, object], ...]:
        wanted = request.token_hash
        return tuple(deepcopy(record) for key, record in self.sessions.items() if wanted in ("", key))

    def _save(self, request: SaveSession) -> None:
        if request.again and request.token_hash not in self.sessions:
            raise HostError(FailureKind.NOT_FOUND, "the session is not stored any more")
        self.sessions[request.token_hash] = deepcopy(dict(request.record))

    def _delete(self, request: DeleteSession) -> None:
        self.sessions.pop(request.token_hash, None)
