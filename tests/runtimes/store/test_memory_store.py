"""Tests of the store in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from runtimes.failures import HostError
from runtimes.store import sql_store
from runtimes.store.store_factory import open_store
from runtimes.store.store_service import StoreError
from svc_proto.api.chat.records import ChatSession
from svc_proto.api.chat.store_requests import CreateChat, GetChat
from svc_proto.facts import FailureKind
from svc_proto.store_requests import DeleteSession, LoadSessions, SaveSession

ROOT = Path(__file__).parents[3]
CHAT = ChatSession(id="c", started_at=1.0, updated_at=1.0, last_active=1.0)


def test_a_relay_in_memory_needs_no_database() -> None:
    code = (
        "import sys; from runtimes.store.store_factory import open_store\n"
        "from svc_proto.store_requests import DeleteSession, LoadSessions, SaveSession\n"
        "store = open_store('memory:'); store.execute(SaveSession('a', {})); store.execute(DeleteSession('a'))\n"
        "store.execute(LoadSessions()); store.close(); sys.exit('sqlalchemy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_sessions_and_chats_live_side_by_side() -> None:
    store = open_store("memory:")
    record: dict[str, object] = {"name": "one"}
    store.execute(SaveSession("a", record))
    record["name"] = "changed later"
    assert store.execute(CreateChat(session=CHAT)) is True
    assert store.execute(GetChat(id="c")) == CHAT
    assert store.execute(LoadSessions()) == ({"name": "one", "token_hash": "a"},)
    store.execute(DeleteSession("a"))
    assert store.execute(LoadSessions()) == ()
    store.close()


def test_a_failed_open_fails_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(where: str) -> NoReturn:
        raise StoreError(f"cannot open the store {where}: no driver")

    store = open_store("memory:")
    with monkeypatch.context() as patched:
        patched.setattr(sql_store, "SqlStore", broken)
        with pytest.raises(HostError, match="no driver") as caught:
            store.execute(GetChat(id="c"))
    assert caught.value.failure.kind is FailureKind.INTERNAL
    assert store.execute(GetChat(id="c")) is None  # the open is retried
    store.close()
