from contextlib import closing
from pathlib import Path

import pytest

from runtimes.store import session_requests
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import Store
from svc_proto.basics.audit_event import MAX_AGE, AuditEvent
from svc_proto.store_requests import AppendAuditEvent, ListAuditEvents
from tests.runtimes.store.chat_stores import execute


def listed(store: Store, limit: int) -> list[str]:
    return [each.principal for each in execute(store, ListAuditEvents(limit))]


@pytest.mark.parametrize("kind", ["file", "sqlite:///", "memory:"])
def test_events_are_listed_newest_first_and_dropped_by_age_and_number(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "svc.db" if kind == "file" else f"{kind}{tmp_path}/svc.db" if kind == "sqlite:///" else kind
    with closing(open_store(where)) as store:
        for at in range(4):
            event = AuditEvent.of(float(at), "paired", f"p{at}", "192.0.2.1", session="a \ud800 b")
            store.execute(AppendAuditEvent(event))
        assert listed(store, 3) == ["p3", "p2", "p1"]
        newest = execute(store, ListAuditEvents(1))[0]
        assert (newest.at, newest.event, newest.address, set(newest.about)) == (3.0, "paired", "192.0.2.1", {"session"})
        if kind != "memory:":
            store.execute(AppendAuditEvent(AuditEvent.of(MAX_AGE + 2.5, "paired", "new")))
            assert listed(store, 9) == ["new", "p3"]
            monkeypatch.setattr(session_requests, "MAX_EVENTS", 1)
            store.execute(AppendAuditEvent(AuditEvent.of(MAX_AGE + 2.5, "paired", "last")))
            assert listed(store, 9) == ["last"]
