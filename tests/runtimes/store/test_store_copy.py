from contextlib import closing
from pathlib import Path

import pytest

from runtimes.store import store_copy
from runtimes.store.store_copy import copy_store
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import Store, StoreError
from svc_proto.agent.interface import StoredPicture
from svc_proto.api.chat.records import ChatSession, Message
from svc_proto.api.chat.store_requests import ListChats, ListMessages, SavePicture, SaveResponse
from svc_proto.basics.audit_event import AuditEvent
from svc_proto.store_requests import AppendAuditEvent, ListAuditEvents, LoadSessions, SaveSession
from tests.runtimes.store.chat_stores import add, chat, create, execute, found, message
from tests.runtimes.store.postgresql_server import needs_postgresql, server

KINDS = ["file", pytest.param("postgresql", marks=needs_postgresql)]
COUNTS = {
    **dict.fromkeys(("paired_sessions", "chat_pictures", "chat_responses", "audit_events"), 1),
    "chat_sessions": 2,
    "chat_messages": 8,
    "chat_fences": 0,
}


def place(kind: str, folder: Path, name: str) -> str | Path:
    return server().fresh() if kind == "postgresql" else folder / f"{name}.db"


def fill(where: str | Path) -> None:
    with closing(open_store(where)) as store:
        store.execute(SaveSession("a", {"device_name": "Pixel 8", "grants": {"chat": None}}))
        create(store, chat("c", title="Früher", pinned=True), chat("d", parent_id="gone"))
        add(store, *[message(f"m{number}", f"cup {number}", at=number) for number in range(7)])
        add(store, message("x", ({"type": "text", "text": "a lone \ud800 surrogate"},), session_id="d"), to="d")
        store.execute(AppendAuditEvent(AuditEvent.of(1.0, "paired", "a device")))
        picture = StoredPicture(token="t", kind="image/png", data=bytes(range(256)))
        execute(store, SavePicture(session_id="c", picture=picture, now=1.0, most=9, size=999))
        execute(store, SaveResponse(kind="response", name="r", session_id="c", text="{}", now=1.0, most=9, size=9))


def all_of(store: Store) -> tuple[object, tuple[ChatSession, ...], list[tuple[Message, ...] | None]]:
    chats = execute(store, ListChats(limit=100, include_children=True, include_archived=True)).sessions
    rows = (store.execute(LoadSessions()), store.execute(ListAuditEvents(9)))
    return rows, chats, [execute(store, ListMessages(session_id=one.id)) for one in chats]


@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("to", KINDS)
def test_a_copy_equals_its_source(of: str, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = place(of, tmp_path, "old"), place(to, tmp_path, "new")
    fill(source)
    monkeypatch.setattr(store_copy, "BATCH_SIZE", 3)
    told: list[tuple[str, int, int]] = []
    counts = copy_store(source, target, lambda *step: told.append(step))
    assert counts == COUNTS
    assert told[0] == ("paired_sessions", 1, 1)
    assert [step[1:] for step in told if step[0] == "chat_messages"] == [(3, 8), (6, 8), (8, 8)]
    with closing(open_store(source)) as old, closing(open_store(target)) as new:
        assert all_of(new) == all_of(old)
        for store in (old, new):
            add(store, message("y", "cup after the move"))
        assert all_of(new) == all_of(old)
        assert found(new, "after") == ["y"]
    with pytest.raises(StoreError, match="not empty: there are rows in paired_sessions"):
        copy_store(source, target)


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    source, target = tmp_path / "old.db", tmp_path / "new.db"
    fill(source)

    def stop(table: str, done: int, count: int) -> None:
        if table == "chat_messages":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(source, target, stop)
    assert copy_store(source, target) == COUNTS


def test_databases_that_cannot_be_copied(tmp_path: Path) -> None:
    (tmp_path / "none.db").touch()
    with pytest.raises(StoreError, match="has schema version 0, not 10: svc db upgrade comes first"):
        copy_store(tmp_path / "none.db", tmp_path / "new.db")
    (tmp_path / "wrong.db").write_bytes(b"this is no database, and long enough" * 100)
    with pytest.raises(StoreError, match="cannot be copied: file is not a database"):
        copy_store(tmp_path / "wrong.db", tmp_path / "new.db")
    with pytest.raises(StoreError, match="cannot open"):
        copy_store(tmp_path / "none.db", tmp_path)
