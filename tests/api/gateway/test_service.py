import pytest

from svc_proto.api.chat.store_requests import CreateChat, GetChat
from svc_proto.api.gateway import service
from tests.api.gateway.test_attachments import PNG
from tests.api.gateway_client import open_chat, open_gateway
from tests.api.scripted_agent import TurnHarness
from tests.support.core_harness import SPOOL


def test_a_session_that_is_idle_and_without_clients_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_SESSIONS", 2)
    book = TurnHarness()
    phone = open_gateway(book)
    first = phone.new_session()
    phone.call("image.attach_bytes", session_id=first, content_base64=PNG)
    assert len(book.disk.files(SPOOL)) == 1
    phone.vanish()
    again = open_gateway(book)
    others = [again.new_session() for _ in range(4)]
    live = book.api.gateway.sessions
    assert [*live] == others  # those with a client stay
    assert not book.disk.files(SPOOL)
    assert again.call("session.activate", session_id=first)["session_id"] == first  # it is opened again


def test_the_idle_session_that_was_opened_first_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_SESSIONS", 3)
    book, phone, busy = open_chat("Hi")
    again, _ = phone.new_session(), phone.new_session()
    phone.call("session.resume", session_id=again)
    phone.vanish()
    new = open_gateway(book).new_session()
    assert [*book.api.gateway.sessions] == [busy, again, new]


def test_a_live_session_outlives_a_restart() -> None:
    book = TurnHarness()
    session = open_gateway(book).new_session()
    restarted = TurnHarness(store=book.store)
    phone = open_gateway(restarted)
    assert phone.call("prompt.submit", session_id=session, text="Hi")["status"] == "streaming"


def test_a_failing_store_is_reported_with_a_code_that_clients_show() -> None:
    book, phone, session = open_chat()
    book.hold = (GetChat, CreateChat)
    number = phone.begin("prompt.submit", session_id=session, text="Hi")
    book.release(fail=True)
    assert phone.answers[number]["error"]["code"] == 5008


def test_a_bug_is_answered_with_its_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    book = TurnHarness()
    phone = open_gateway(book)
    monkeypatch.setitem(book.api.gateway._methods, "session.list", lambda connection, call: 1 / 0)
    assert phone.refusal("session.list") == (-32000, "internal error bug-1")
