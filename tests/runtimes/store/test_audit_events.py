from pathlib import Path

import pytest

from runtimes.store import session_requests
from runtimes.store.store_factory import open_store
from svc_proto.basics.audit_event import MAX_AGE, AuditEvent
from svc_proto.store_requests import AppendAuditEvent, ListAuditEvents


@pytest.mark.parametrize("kind", ["file", "sqlite:///", "memory:"])
def test_events_are_listed_newest_first_and_dropped_by_age(kind: str, tmp_path: Path) -> None:
    where = tmp_path / "svc.db" if kind == "file" else f"{kind}{tmp_path}/svc.db" if kind == "sqlite:///" else kind
    store = open_store(where)
    events = [AuditEvent.of(float(at), "paired", f"p{at}", "192.0.2.1", session="a \ud800 b") for at in range(4)]
    for event in events:
        store.execute(AppendAuditEvent(event))
    found = store.execute(ListAuditEvents(3))
    assert isinstance(found, tuple)
    assert [each.principal for each in found] == ["p3", "p2", "p1"]
    assert (found[0].at, found[0].event, found[0].address) == (3.0, "paired", "192.0.2.1")
    assert set(found[0].about) == {"session"}
    if kind != "memory:":
        store.execute(AppendAuditEvent(AuditEvent.of(MAX_AGE + 2.5, "paired", "new")))
        found = store.execute(ListAuditEvents(9))
        assert isinstance(found, tuple)
        assert [each.principal for each in found] == ["new", "p3"]
    store.close()


def test_events_beyond_the_limit_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_requests, "MAX_EVENTS", 2)
    store = open_store(tmp_path / "svc.db")
    for at in range(5):
        store.execute(AppendAuditEvent(AuditEvent.of(float(at), "paired", f"p{at}")))
    found = store.execute(ListAuditEvents(9))
    assert isinstance(found, tuple)
    assert [each.principal for each in found] == ["p4", "p3"]
    store.close()
