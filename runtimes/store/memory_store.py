"""The store `memory:`: paired sessions and audit events in memory of its own; chats open an in-memory database.

Loading SQLAlchemy takes 17 MiB and an eighth of a second, which a relay that stores nothing should not pay for. Session
records are stored as compressed JSON.
"""

import json
import weakref
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from threading import Lock
from typing import Any

from runtimes.failures import HostError
from runtimes.store.store_service import Store, StoreError, outcome_of
from svc_proto import store_requests
from svc_proto.basics.audit_event import MAX_EVENTS, AuditEvent
from svc_proto.basics.strict_json import loads_trusted
from svc_proto.commands import StoreRequest
from svc_proto.facts import FailureKind

__all__ = ["MemoryStore"]


class MemoryStore:
    """A private store that ends with its process. Threads may share it; a lock serializes them."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._records: dict[str, bytes] = {}  # compressed JSON by token hash
        self._alike = b""  # the first record: compression dictionary for the others
        self._events: deque[AuditEvent] = deque(maxlen=MAX_EVENTS)
        self._sql: Store | None = None  # an SQLite database in memory, for all other requests

    def execute(self, request: StoreRequest[Any]) -> object:
        """Perform a request and return its answer. Raise `HostError` if it fails."""
        with self._turn:
            match request:
                case store_requests.LoadSessions(token_hash=""):
                    page = nsmallest(request.limit, (key for key in self._records if key > request.after))
                    return tuple(map(self._record, page))
                case store_requests.LoadSessions(token_hash=wanted):
                    return (self._record(wanted),) if wanted in self._records else ()
                case store_requests.CountSessions():
                    return len(self._records)
                case store_requests.LoadSessionChanges():
                    raise HostError(FailureKind.NOT_FOUND, "a store in memory keeps no changes")
                case store_requests.LoadSessionRevision():
                    return 0
                case store_requests.SaveSession(again=True) if request.token_hash not in self._records:
                    raise HostError(FailureKind.NOT_FOUND, "the session is not stored any more")
                case store_requests.SaveSession():
                    self._records[request.token_hash] = self._packed(request.record)
                    return None
                case store_requests.DeleteSession():
                    self._records.pop(request.token_hash, None)
                    return None
                case store_requests.CheckStore():
                    return None
                case store_requests.AppendAuditEvent():
                    self._events.append(request.event)
                    return None
                case store_requests.ListAuditEvents():
                    return tuple(islice(reversed(self._events), request.limit))
                case _:
                    return self._database().execute(request)

    def execute_all(self, requests: Sequence[StoreRequest[Any]]) -> list[object]:
        """Perform each request on its own; return the answers in order, with the exception for each that failed."""
        return [outcome_of(self, request) for request in requests]

    def close(self) -> None:
        """Close the in-memory database, if it was opened."""
        if self._sql is not None:
            self._sql.close()

    def _database(self) -> Store:
        if self._sql is None:
            from runtimes.store.sql_store import SqlStore  # noqa: PLC0415, RUF100 - loads SQLAlchemy

            try:
                self._sql = SqlStore("sqlite://")
            except StoreError as error:
                raise HostError(FailureKind.INTERNAL, str(error)) from error
            weakref.finalize(self, self._sql.close)  # Python 3.13 warns about a connection that is not closed
        return self._sql

    def _record(self, token_hash: str) -> Mapping[str, object]:
        return {**self._unpacked(self._records[token_hash]), "token_hash": token_hash}

    def _packed(self, record: Mapping[str, object]) -> bytes:
        data = json.dumps(dict(record)).encode()
        self._alike = self._alike or data
        packer = zlib.compressobj(1, wbits=-zlib.MAX_WBITS, zdict=self._alike)
        return packer.compress(data) + packer.flush()

    def _unpacked(self, packed: bytes) -> Mapping[str, object]:
        record: Mapping[str, object] = loads_trusted(
            zlib.decompressobj(-zlib.MAX_WBITS, self._alike).decompress(packed)
        )
        return record
