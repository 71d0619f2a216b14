"""One host's store, in memory: outlives its processes, carries requests out one after another."""

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
    """`sessions` is what is on the disk now, by token hash, oldest first; tests may look and change.

    What a function of a test (`serve`) or `sessions` does not answer, an SQLite database in memory does. `refused` are
    the types of requests that fail, and are not carried out. A request takes about `seconds`.
    """

    def __init__(self) -> None:
        self.seconds = STORE_TIME
        self.sessions: dict[str, dict[str, object]] = {}
        self.refused: tuple[type[StoreRequest[Any]], ...] = ()
        self._sql: SqlStore | None = None  # made when it is first needed: most worlds have no chats
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
        """Carry one request out, durably."""
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
