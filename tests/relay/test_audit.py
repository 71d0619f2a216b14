"""Audit events that the relay and the API store: which changes are recorded, and for which principal."""

from svc_proto.basics.audit_event import EVENT_NAMES, AuditEvent
from svc_proto.commands import Level, Query
from svc_proto.store_requests import AppendAuditEvent
from tests.api.test_authority import KeyHolder
from tests.api.test_change_ledger import approve, undo
from tests.relay.harness import PEER, REMOTE, RelayHarness
from tests.support.core_harness import CoreHarness


def recorded(book: CoreHarness) -> list[AuditEvent]:
    """Return the events that a core has sent to its store, also if that failed, oldest first."""
    requests = [command.request for command in book.commands if isinstance(command, Query)]
    return [request.event for request in requests if isinstance(request, AppendAuditEvent)]


def test_sessions_and_settings_are_recorded(book: RelayHarness) -> None:
    phone = book.pair(device_name="Phone")
    name = f"{phone.prefix} Phone"
    book.reconnect(phone.token)
    book.reconnect(phone.token, peer=PEER)
    body = {"ttl_seconds": 60, "grants": {"bridge": 5, "tui": False}}
    assert book.request("PATCH", f"/sessions/{phone.prefix}", body, token=phone.token, peer=REMOTE).status == 200
    assert book.request("DELETE", f"/sessions/{phone.prefix}").status == 200
    found = [(each.event, each.principal, each.address, dict(each.about)) for each in recorded(book)]
    assert found == [
        ("paired", name, REMOTE.host, {}),
        ("signed in", name, PEER.host, {}),
        ("session changed", name, REMOTE.host, {"session": name, "ttl": "60", "grants": "bridge=5, tui=none"}),
        ("session revoked", "operator", PEER.host, {"session": name}),
    ]
    assert not any(phone.token in repr(each) for each in recorded(book))
    book = RelayHarness()
    assert book.request("PATCH", "/relay/security", {"allow_insecure_api_bearer": True}).status == 200
    assert book.request("PATCH", "/relay/security", {"public_route": False}).status == 200
    assert [dict(each.about) for each in recorded(book)] == [
        {"allow_insecure_api_bearer": "True"},
        {"public_route": "False"},
    ]
    book.refuse = (AppendAuditEvent,)
    book.pair()
    assert "audit event not stored" in book.events(Level.ERROR)


def test_changes_at_the_agent() -> None:
    holder = KeyHolder(None)
    book, session = holder.book, holder.session
    assert session is not None
    book.request("PATCH", "/api/config", {"model": "private name"}, key=holder.key)
    book.request("POST", "/api/memory", {"target": "memory", "content": "private text"}, key=holder.key)
    approve(holder, "once", "phone_call 1")
    approve(holder, "always", "phone_call +15550100")
    undo(book, session.token_prefix)
    events = recorded(book)
    assert [(each.event, each.principal) for each in events] == [
        ("setting changed", session.principal_name),
        ("memory changed", session.principal_name),
        ("approval given", session.principal_name),
        ("changes undone", "owner"),
    ]
    assert (events[2].about["tool"], events[2].about["choice"]) == ("terminal", "always")
    assert "private" not in repr(events)
    assert "15550100" not in repr(events)
    assert {each.event for each in events} <= set(EVENT_NAMES)
