"""Audit log of a service: events are stored in the background; a failure is logged and the service goes on."""

from svc_proto.basics.audit_event import AuditEvent
from svc_proto.commands import Level, Query
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure
from svc_proto.store_requests import AppendAuditEvent

__all__ = ["AuditLog"]


class AuditLog:
    """Writer of audit events to the store, in flows of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def record(self, event: str, principal: str, address: str = "", /, **about: object) -> None:
        """Store an event of this moment in the background; `about` has details, such as the changed object."""
        entry = AuditEvent.of(self._engine.now.wall, event, principal, address, **about)
        self._engine.spawn(self._store(entry))

    def _store(self, entry: AuditEvent) -> Flow[None]:
        stored = yield from run_operation(self._engine, Query(self._engine.new_op(), AppendAuditEvent(entry)))
        if isinstance(stored, Failure):
            self._engine.log(Level.ERROR, "audit event not stored", kind=entry.event, problem=stored.kind.value)
