"""Interface of a store, and the service that performs a core's store requests in order on one thread."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from attrs import frozen

from runtimes.host.pump import Pump
from runtimes.host.thread_pool import ThreadCall, ThreadPool
from svc_proto.commands import Query, StoreRequest
from svc_proto.facts import FailureKind

__all__ = ["StoreJob", "Store", "StoreError", "StoreService", "StoreWorker", "outcome_of"]

MAX_BATCH = 64  # requests of one transaction: other processes must not wait long for the file


class StoreError(Exception):
    """A store cannot be opened, migrated or copied; the text has the reason, and no password."""


class Store(Protocol):
    """Storage that performs a core's requests. All calls block and come from one thread at a time."""

    def execute(self, request: StoreRequest[Any]) -> object:
        """Perform a request and return its answer. Raises `HostError`."""

    def execute_all(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        """Return the answer to each request in order, or its exception; a durable store has synced the changes then."""

    def close(self) -> None:
        """Close the database."""


@frozen(eq=False)
class StoreJob:
    """A store request to be performed on the thread of its store."""

    store: Store
    request: StoreRequest[Any]

    def __call__(self) -> object:
        """Perform the request on the store and return its answer."""
        return self.store.execute(self.request)


class StoreWorker(ThreadPool):
    """The single thread of a store.

    Up to `MAX_BATCH` requests that arrive while it is busy are performed together, with one sync where possible.
    """

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        super().__init__("store", 1, post)

    def _carry_out(self, job: ThreadCall) -> Sequence[ThreadCall]:
        jobs = [job, *self._waiting(MAX_BATCH - 1)]
        asked = [(each, each.work) for each in jobs if isinstance(each.work, StoreJob) and each.begin()]
        if len(asked) == 1:
            asked[0][0].run()
        elif asked:
            answers = asked[0][1].store.execute_all([work.request for _, work in asked])
            for (each, _), answer in zip(asked, answers, strict=True):
                each.set_result(answer)
        return jobs


class StoreService:
    """Service that performs the `Query` commands of a core on the thread of its store."""

    def __init__(self, pump: Pump, worker: StoreWorker, store: Store | None) -> None:
        self._pump = pump
        self._worker = worker
        self._store = store
        pump.serve({Query: self._query})

    def _query(self, command: Query[Any]) -> None:
        store = self._store
        if store is None:
            self._pump.refuse(command.op, FailureKind.UNSUPPORTED, "no store")
            return
        self._pump.work(command.op, self._worker, StoreJob(store, command.request))


def outcome_of(store: Store, request: StoreRequest[Any]) -> object:
    """Return the answer to a request, or the exception."""
    try:
        return store.execute(request)
    except Exception as error:  # noqa: BLE001, RUF100 - any exception is the answer to this request
        return error
