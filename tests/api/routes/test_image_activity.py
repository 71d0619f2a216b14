from typing import Any

import pytest

from svc_proto.agent.interface import ToolCall
from tests.api.cluster_harness import ApiClusterHarness
from tests.api.scripted_agent import TurnHarness, call_of, chatting

MARKER = "The picture was taken.\nMEDIA:svc-relay://t0ken"


def shot(identity: str) -> ToolCall:
    return call_of("phone_screenshot", identity)


def activities(book: TurnHarness, session: str, query: str = "") -> list[dict[str, Any]]:
    body = book.request("GET", f"/api/sessions/{session}/image-activity{query}").json
    assert (body["session_id"], body["profile"]) == (session, "default")
    found: list[dict[str, Any]] = body["activities"]
    return found


def states(book: TurnHarness, session: str, query: str = "") -> list[tuple[str, str]]:
    return [(each["call_id"], each["state"]) for each in activities(book, session, query)]


def test_a_call_starts_and_completes() -> None:
    book, session, _ = chatting()
    assert activities(book, session) == []
    begun = book.now.wall
    book.hand.store_calls(shot("c-1"), call_of("terminal", "c-2"))
    call = {"call_id": "c-1", "tool_name": "phone_screenshot", "state": "started", "started_at": begun}
    assert activities(book, session) == [{**call, "completed_at": None}]
    book.after(2.0)
    book.hand.store_result(shot("c-1"), MARKER)
    book.hand.store_result(call_of("terminal", "c-2"), "MEDIA:/tmp/other.png")
    (found,) = activities(book, session)
    assert found == {**call, "state": "completed", "completed_at": pytest.approx(begun + 2.0, abs=0.5)}
    book.hand.finish()
    assert activities(book, session) == [found]
    unknown = book.request("GET", "/api/sessions/none/image-activity")
    assert (unknown.status, unknown.json["error"]["code"]) == (404, "session_not_found")


def test_calls_that_fail() -> None:
    book, session, _ = chatting()
    book.hand.store_calls(shot("c-1"), shot("c-2"))
    book.hand.store_result(shot("c-1"), "no phone is connected; a result says MEDIA: at the start of a line")
    assert states(book, session) == [("c-1", "failed"), ("c-2", "started")]
    book.hand.finish("error", error="broken")
    assert states(book, session) == [("c-1", "failed"), ("c-2", "failed")]
    assert [each["completed_at"] is None for each in activities(book, session)] == [False, True]


def test_an_id_that_a_later_turn_uses_again() -> None:
    book = TurnHarness()
    session = book.session()
    for result in (MARKER, "no phone is connected"):
        book.chat(session)
        book.hand.store_calls(shot("call_0"))
        book.hand.store_result(shot("call_0"), result)
        book.hand.finish()
    assert states(book, session) == [("call_0", "completed"), ("call_0", "failed")]


def test_calls_that_completed_earlier_are_left_out() -> None:
    book, session, _ = chatting()
    book.hand.store_calls(shot("c-1"), shot("c-2"), shot("c-3"))
    book.hand.store_result(shot("c-1"), MARKER)
    book.after(10.0)
    book.hand.store_result(shot("c-2"), MARKER)
    until = activities(book, session)[1]["completed_at"]
    assert states(book, session, f"?since={until}") == [("c-2", "completed"), ("c-3", "started")]
    assert states(book, session, f"?profile=default&since={until + 1}") == [("c-3", "started")]
    assert len(states(book, session, "?since=0")) == 3


@pytest.mark.parametrize(
    ("query", "status"),
    [("?since=now", 400), ("?since=true", 400), ("?since=1e999", 400), ("?since=%22", 400), ("?profile=work", 404)],
)
def test_a_wrong_query(query: str, status: int) -> None:
    book = TurnHarness()
    path = f"/api/sessions/{book.session()}/image-activity{query}"
    assert book.request("GET", path).status == status


def test_the_node_of_the_turn_answers() -> None:
    book = ApiClusterHarness()
    session = book.session()
    book.chat(session)
    book.hand.store_calls(shot("c-1"))
    assert states(book.at(1), session) == [("c-1", "started")]
    book.at(0).hand.finish("error", error="broken")
    for node in (0, 1):
        assert states(book.at(node), session) == [("c-1", "failed")]
