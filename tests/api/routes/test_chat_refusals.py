from typing import Any

import pytest

from svc_proto.agent.interface import ModelCallFinished, TextDelta
from svc_proto.api.chat.store_requests import AddMessages, BeginTurn, DeleteChat, GetChat
from svc_proto.wire.events import Headers, RequestData, RequestEnd, RequestHead
from tests.api.harness import KEY, PEER, ApiCall
from tests.api.routes.chat_stream_checks import CLOSING, OPENING, check, data_of
from tests.api.scripted_agent import TurnHarness, call_of, chatting, names
from tests.support.http_harness import FIRST


def refused(book: TurnHarness, path: str, body: object, **options: Any) -> tuple[int, object]:
    answer = book.request("POST", path, body, **options)
    return answer.status, answer.json["error"]["code"]


def begun(book: TurnHarness, session: str) -> ApiCall:
    """Send the head of a message with a body of 16 bytes."""
    call: ApiCall = book.connect_http1(book.caller, PEER)
    fields = [(b"host", b"127.0.0.1:8642"), (b"authorization", b"Bearer " + KEY.encode()), (b"content-length", b"16")]
    call.send_events(RequestHead(FIRST, "POST", f"/api/sessions/{session}/chat/stream", Headers(fields)))
    return call


def test_the_order_of_the_checks() -> None:
    book = TurnHarness()
    session = book.session()
    good, none = f"/api/sessions/{session}/chat/stream", "/api/sessions/probe/chat/stream"
    assert refused(book, none, b"[", key="wrong") == (401, "invalid_api_key")
    assert refused(book, none, b"[") == (404, "session_not_found")
    assert refused(book, good, b"[") == (400, None)
    assert refused(book, good, [1]) == (400, None)
    assert refused(book, good, {"message": " \u200b", "system_message": 7}) == (400, "missing_message")
    assert refused(book, good, {"message": "Hi", "system_message": 7}) == (400, "invalid_system_message")
    assert refused(book, good, b"x" * 10_000_001) == (413, "body_too_large")
    assert not any(isinstance(request, AddMessages | BeginTurn) for request in book.queries())


def test_shutdown_refuses_new_turns() -> None:
    book, session, running = chatting()
    late = begun(book, session)
    book.hand.emit(TextDelta("Half"))
    book.stop()
    assert book.hand.cancelled
    assert names(running)[-3:] == CLOSING
    assert data_of(running, "run.completed")["interrupted"] is True
    late.send_events(RequestData(FIRST, b'{"message":"Hi"}'), RequestEnd(FIRST))
    answer = late.result
    assert (answer.status, answer.json["error"]["code"]) == (503, "gateway_draining")
    assert answer.json["error"]["message"].startswith("gateway_draining")
    assert dict(answer.headers)[b"retry-after"] == b"1"


def test_shutdown_does_not_begin_waiting_turns() -> None:
    book = TurnHarness()
    session = book.session()
    first, second = book.chat(session, {"message": "one"}), book.chat(session, {"message": "two"})
    book.stop()
    assert check(first) == [*OPENING, *CLOSING]
    assert check(second) == ["error", "done"]
    assert book.turns == 1
    for call in (first, second):
        call.vanish()
    assert [each.code for each in book.exits] == [0]


def test_store_failure_is_reported() -> None:
    book = TurnHarness()
    session = book.session()
    book.refuse = (GetChat,)
    assert refused(book, f"/api/sessions/{session}/chat/stream", {"message": "Hi"}) == (503, "session_db_unavailable")
    book.refuse = (BeginTurn,)
    call = book.chat(session)
    assert check(call) == ["error", "done"]
    assert data_of(call, "error")["error"] == "session_db_unavailable"
    book.refuse = ()
    call = book.chat(session)
    book.hand.emit(TextDelta("lost"))
    book.refuse = (AddMessages,)
    book.hand.store_calls(call_of())  # its row is lost; the turn continues
    book.hand.respond("lost, too")
    assert names(call)[-2:] == ["error", "done"]
    assert data_of(call, "error")["error"] == "session_db_unavailable"


def test_deleted_session_ends_its_turns() -> None:
    book = TurnHarness()
    session = book.session()
    first, second = book.chat(session), book.chat(session)
    assert book.request("DELETE", f"/api/sessions/{session}").status == 204
    assert names(first)[-1] == "done"
    assert names(second) == ["error", "done"]
    late = book.session()
    book.hold = (BeginTurn,)
    call = book.chat(late)
    book.store.execute(DeleteChat(id=late))
    book.release()
    assert check(call) == ["error", "done"]
    assert data_of(call, "error")["error"] == "session_not_found"


def test_a_turn_that_begins_while_its_session_is_deleted() -> None:
    """Check that a deletion in progress also interrupts a turn that begins meanwhile."""
    book, session, first = chatting()
    book.hand.emit(TextDelta("kept"))
    second = begun(book, session)
    book.hold = (AddMessages,)
    deletion = book.call("DELETE", f"/api/sessions/{session}")
    second.send_events(RequestData(FIRST, b'{"message":"Hi"}'), RequestEnd(FIRST))
    assert deletion.answer is None
    book.hold = ()
    book.release()
    assert deletion.result.status == 204
    assert names(first)[-1] == "done"
    assert data_of(second, "run.completed")["interrupted"] is True
    assert names(second)[-1] == "done"


def test_session_deleted_during_the_answer() -> None:
    book, session, call = chatting()
    book.hand.emit(TextDelta("lost"))
    book.store.execute(DeleteChat(id=session))
    book.hand.finish()
    assert names(call)[-2:] == ["error", "done"]
    assert data_of(call, "error")["error"] == "session_not_found"


def test_a_stop_while_the_user_row_is_stored() -> None:
    book = TurnHarness()
    book.hold = (BeginTurn,)
    call = book.chat()
    run_id = dict(call.head.headers)[b"x-svc-run-id"].decode()
    assert book.request("POST", f"/v1/runs/{run_id}/stop").status == 200
    book.hold = ()
    book.release()
    assert check(call) == [*OPENING, *CLOSING]
    assert data_of(call, "run.completed")["interrupted"] is True
    assert book.turns == 0


def test_late_stop_does_not_undo_the_answer() -> None:
    book, _, call = chatting()
    book.hand.emit(TextDelta("All"))
    book.hold = (AddMessages,)
    book.hand.finish()
    run_id = data_of(call, "run.started")["run_id"]
    assert book.request("POST", f"/v1/runs/{run_id}/stop").status == 200
    book.hold = ()
    book.release()
    told = data_of(call, "run.completed")
    assert (told["completed"], told["interrupted"]) == (True, False)
    assert book.request("GET", f"/v1/runs/{run_id}").json["status"] == "completed"


@pytest.mark.parametrize(
    "path", ["/api/sessions/probe/chat/stream", "/v1/chat/completions", "/v1/runs", "/api/sessions/probe/messages"]
)
def test_probes_find_the_routes(path: str) -> None:
    answer = TurnHarness().request("HEAD", path, headers=[(b"accept", b"text/event-stream")])
    assert (answer.status, answer.body) == (200, b"")
    assert TurnHarness().request("HEAD", path, key="").status == 401
    assert TurnHarness().request("HEAD", "/nowhere").status == 404


def blocking(book: TurnHarness, session: str) -> ApiCall:
    return book.call("POST", f"/api/sessions/{session}/chat", {"message": "Hi"})


def test_blocking_turn() -> None:
    book = TurnHarness()
    session = book.session()
    call = blocking(book, session)
    book.hand.emit(TextDelta("Hel"), TextDelta("lo"), ModelCallFinished(1, 2))
    assert call.answer is None
    book.hand.finish()
    answer = call.result
    assert answer.status == 200
    assert dict(answer.headers)[b"x-svc-session-id"] == session.encode()
    assert answer.json["object"] == "svc.session.chat.completion"
    assert answer.json["session_id"] == session
    message = {"id": book.messages(session)[-1]["id"], "role": "assistant", "content": "Hello"}
    assert answer.json["message"] == message
    assert answer.json["usage"] == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    assert "error" not in answer.json


def test_failed_blocking_turn() -> None:
    book = TurnHarness()
    session = book.session()
    call = blocking(book, session)
    book.hand.finish("error", error="gone", code="upstream_error")
    assert (call.result.status, call.result.json["error"]["code"]) == (502, "agent_incomplete")
    call = blocking(book, session)
    book.hand.emit(TextDelta("Half"))
    book.hand.finish("error", error="gone", code="upstream_error")
    assert (call.result.status, call.result.json["error"], call.result.json["partial"]) == (200, "gone", True)
    book.refuse = (BeginTurn,)
    assert blocking(book, session).result.status == 503
    book.refuse = ()
    call = blocking(book, session)
    run_id = book.hand.turn.run_id
    book.request("POST", f"/v1/runs/{run_id}/stop")
    assert (call.result.status, call.result.json["error"]["code"]) == (502, "agent_incomplete")
