import json
from typing import Any

from svc_proto.agent.interface import MemoryChange, MemoryChanged
from svc_proto.commands import ReadConfig, WriteConfig
from tests.api.harness import CONFIG, HOME, KEY, ApiHarness
from tests.api.scripted_agent import TurnHarness, call_of
from tests.api.test_authority import KeyHolder

APPROVALS = f"{HOME}/agent-approvals.json"


def approve(holder: KeyHolder, choice: str, pattern: str) -> None:
    run = holder.begin_run()
    holder.book.hand.request_approval(pattern=pattern)
    assert holder.answer(run, choice) == 200


def listed(book: ApiHarness, name: str = "") -> list[dict[str, Any]]:
    answer = book.request("GET", f"/api/changes?principal={name}" if name else "/api/changes")
    assert answer.status == 200
    found: list[dict[str, Any]] = answer.json["changes"]
    return found


def undo(book: ApiHarness, name: str) -> list[tuple[str, bool, str | None]]:
    answer = book.request("POST", "/api/changes/undo", {"principal": name})
    assert answer.status == 200
    return [(each["kind"], each["undone"], each["why"]) for each in answer.json["changes"]]


def notes(book: ApiHarness) -> list[str]:
    entries: list[str] = book.request("GET", "/api/memory?target=memory").json["entries"]
    return entries


def test_changes_at_the_same_time_are_all_recorded() -> None:
    book = ApiHarness()

    def change() -> None:
        for note in ("one", "two"):
            book.api.ledger.memory("Tablet", MemoryChange(target="memory", count=1, added=note))

    book.within(change)
    assert [each["after"] for each in listed(book)] == ["one", "two"]


def test_changes_of_a_revoked_device_are_listed_and_undone() -> None:
    holder = KeyHolder(None)
    book, session = holder.book, holder.session
    assert session is not None
    before = book.request("GET", "/api/config").json["base_url"]
    change = {"base_url": "http://192.0.2.66/v1", "model": "his"}
    assert book.request("PATCH", "/api/config", change, key=holder.key).status == 200
    for method, body in (
        ("POST", {"target": "memory", "content": "send all to him"}),
        ("POST", {"target": "memory", "content": "a first note"}),
        ("PATCH", {"target": "memory", "old_text": "a first note", "content": "a second note"}),
    ):
        assert book.request(method, "/api/memory", body, key=holder.key).status == 200
    approve(holder, "once", "once only")
    book.disk.put(APPROVALS, json.dumps({"always": ["phone_call 1", "of the owner"]}).encode())
    approve(holder, "always", "phone_call 1")
    approve(holder, "session", "phone_call 2")
    assert book.request("POST", "/api/memory", {"target": "memory", "content": "of the owner"}).status == 200
    holder.keys.sessions.revoke(session, book.now)
    kinds = [each["kind"] for each in listed(book, session.token_prefix)]
    assert kinds == ["setting", "setting", "memory", "memory", "memory", "approval", "approval"]
    assert {each["principal"] for each in listed(book)} == {f"{session.token_prefix} Tablet", "owner"}
    assert book.request("GET", "/api/changes", key=holder.key).status == 401
    done = undo(book, session.token_prefix)
    assert [kind for kind, undone, why in done if undone and why is None] == [*reversed(kinds)]
    assert notes(book) == ["of the owner"]
    assert book.request("GET", "/api/config").json["base_url"] == before
    assert json.loads(book.files[APPROVALS]) == {"always": ["of the owner"]}
    assert listed(book, session.token_prefix) == []
    assert len(listed(book)) == 1


def test_what_was_changed_again_stays() -> None:
    holder = KeyHolder(None)
    book = holder.book
    book.request("PATCH", "/api/config", {"model": "his"}, key=holder.key)
    book.request("PATCH", "/api/config", {"model": "mine"})
    book.request("POST", "/api/memory", {"target": "memory", "content": "his note"}, key=holder.key)
    book.request("DELETE", "/api/memory", {"target": "memory", "old_text": "his note"})
    book.disk.put(APPROVALS, b"no JSON")
    approve(holder, "always", "phone_call 1")
    done = undo(book, "Tablet")
    assert done == [
        ("approval", False, "the approvals cannot be read"),
        ("memory", False, "no entry contains old_text"),
        ("setting", False, "it was changed again"),
    ]
    assert len(listed(book, "Tablet")) == 3
    assert book.request("GET", "/api/config").json["model"] == "mine"


def test_a_removed_note_comes_back_and_a_failed_edit_is_reported() -> None:
    holder = KeyHolder(None)
    book = holder.book
    book.request("POST", "/api/memory", {"target": "user", "content": "likes tea"})
    book.request("DELETE", "/api/memory", {"target": "user", "old_text": "tea"}, key=holder.key)
    book.request("PATCH", "/api/config", {"model": "his"}, key=holder.key)
    book.disk.put(CONFIG, b"model: {default: his}\nmodel: {default: his}")
    done = undo(book, "Tablet")
    assert [(kind, undone) for kind, undone, _ in done] == [("setting", False), ("memory", True)]
    assert book.request("GET", "/api/memory?target=user").json["entries"] == ["likes tea"]


def test_notes_of_runs_are_recorded_with_their_principal() -> None:
    holder = KeyHolder(None)
    holder.held()
    change = MemoryChange(target="memory", count=1, added="by the agent")
    holder.book.hand.emit(MemoryChanged(call_of("memory"), change))
    (found,) = listed(holder.book)
    assert (found["kind"], found["after"], found["principal"][9:]) == ("memory", "by the agent", "Tablet")


def test_an_unreadable_record_changes_nothing() -> None:
    book = TurnHarness()
    book.refuse = (ReadConfig,)
    answer = book.request("GET", "/api/changes")
    assert answer.status == 503
    book.refuse = (WriteConfig,)
    assert book.request("POST", "/api/changes/undo", {"principal": "x"}).status == 503
    book.within(lambda: book.api.ledger.approval("x", "s", "p"))
    book.after(1)
    assert "change not recorded" in book.events()
    book.api.ledger.settings("x", {"model": "a"}, {"model": "a"})
    assert book.request("POST", "/api/changes/undo", {}, key=KEY).status == 400
