"""Audit log of a service: an event is stored, and a failure of the store is logged."""

from svc_proto.commands import Level, Query
from svc_proto.engine.audit_log import AuditLog
from svc_proto.facts import Started
from svc_proto.store_requests import AppendAuditEvent
from tests.support.core_harness import CoreHarness
from tests.support.playbook import IdleService


def test_events_are_stored_and_a_failure_is_logged() -> None:
    book = CoreHarness(IdleService())
    book.feed(Started())
    log = AuditLog(book.engine)
    book.within(lambda: log.record("paired", "0a1b2c3d Phone", "192.0.2.1", count=3, missing=None))
    (request,) = (command.request for command in book.commands if isinstance(command, Query))
    assert isinstance(request, AppendAuditEvent)
    event = request.event
    assert (event.at, event.event, event.principal) == (book.engine.now.wall, "paired", "0a1b2c3d Phone")
    assert event.address == "192.0.2.1"
    assert dict(event.about) == {"count": "3"}
    book.refuse = (AppendAuditEvent,)
    book.within(lambda: log.record("paired", "another"))
    book.after(1)
    assert book.events(Level.ERROR) == ["audit event not stored"]
