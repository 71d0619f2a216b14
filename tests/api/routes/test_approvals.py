import json
from typing import Any

import pytest

from svc_proto.agent.interface import ApprovalRequested
from svc_proto.commands import WriteConfig
from tests.api.harness import ApiHarness
from tests.api.scripted_agent import call_of
from tests.api.test_authority import KeyHolder
from tests.api.test_change_ledger import APPROVALS
from tests.relay.test_audit import recorded


def listed(book: ApiHarness) -> list[dict[str, Any]]:
    answer = book.request("GET", "/api/approvals")
    assert answer.status == 200
    found: list[dict[str, Any]] = answer.json["approvals"]
    return found


def give(holder: KeyHolder, choice: str, pattern: str) -> None:
    """Let a run request approval of a tool call, and approve it with `choice`."""
    book, run = holder.book, holder.begin_run()
    asked = ApprovalRequested(call=call_of(), command="x", description="why", pattern=pattern)
    book.spawn(book.api.parts.approvals.request(book.hand.turn.session_id, asked, book.hand.host))
    assert holder.answer(run, choice) == 200


def end(book: ApiHarness, row: dict[str, Any]) -> int:
    return book.request("DELETE", "/api/approvals", {"pattern": row["pattern"], "session_id": row["session_id"]}).status


def test_approvals_are_listed_with_their_principal_and_ended() -> None:
    holder = KeyHolder(None)
    book, session = holder.book, holder.session
    assert session is not None
    assert listed(book) == []
    book.disk.put(APPROVALS, json.dumps({"always": ["of before"]}).encode())
    for choice, pattern in (("once", "phone_call 0"), ("session", "phone_call 1"), ("always", "phone_call +15550100")):
        give(holder, choice, pattern)
    rows = {each["pattern"]: each for each in listed(book)}
    assert set(rows) == {"of before", "phone_call 1", "phone_call +15550100"}
    assert (rows["of before"]["principal"], rows["of before"]["at"]) == (None, None)
    always, once = rows["phone_call +15550100"], rows["phone_call 1"]
    assert {each["principal"] for each in (always, once)} == {session.principal_name}
    assert always["session_id"] is None
    assert once["session_id"]
    assert once["at"] == book.now.wall
    assert end(book, {**once, "session_id": "another chat"}) == 404
    assert book.request("GET", "/api/approvals", key=holder.key).status == 401
    assert [end(book, each) for each in (always, once, once)] == [200, 200, 404]
    assert [each["pattern"] for each in listed(book)] == ["of before"]
    ended = [each for each in recorded(book) if each.event == "approval ended"]
    assert [(each.principal, dict(each.about)) for each in ended] == [("owner", {"approval": "phone_call"})] * 2


@pytest.mark.parametrize("body", [{}, {"pattern": 1}, {"pattern": None}, {"pattern": "x", "session_id": 7}])
def test_an_end_needs_a_pattern_and_texts(body: dict[str, Any]) -> None:
    assert ApiHarness().request("DELETE", "/api/approvals", body).status == 400


def test_approvals_that_cannot_be_read_or_removed() -> None:
    book = ApiHarness(files={APPROVALS: b"{}"})
    for method, body in (("GET", None), ("DELETE", {"pattern": "x"})):
        assert book.request(method, "/api/approvals", body).status == 503
    book = ApiHarness(files={APPROVALS: json.dumps({"always": ["phone_call 1"]}).encode()})
    book.refuse = (WriteConfig,)
    assert book.request("DELETE", "/api/approvals", {"pattern": "phone_call 1"}).status == 503
