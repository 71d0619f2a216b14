import json
from typing import Any

import pytest

from svc_proto.agent.interface import ModelCallFinished, TextDelta, ToolCallPending
from svc_proto.api.config import ApiConfig
from svc_proto.basics.brand import HERMES
from tests.api.harness import CONFIG, KEY, ROUTED, ApiCall
from tests.api.scripted_agent import TurnHarness, call_of, chatting, names

EVENTS = [(b"accept", b"text/event-stream")]


def post(book: TurnHarness, body: object = None, **options: Any) -> ApiCall:
    return book.call("POST", "/v1/runs", {"input": "Hi"} if body is None else body, **options)


def begun(book: TurnHarness, body: object = None) -> str:
    """Start a run without a reader and return its id."""
    answer = post(book, body).result
    assert answer.status == 202
    assert set(answer.json) == {"run_id", "status"}
    assert answer.json["status"] == "started"
    run_id = answer.json["run_id"]
    assert dict(answer.headers)[b"x-svc-run-id"] == run_id.encode()
    assert isinstance(run_id, str)
    return run_id


def status(book: TurnHarness, run_id: str) -> dict[str, Any]:
    answer = book.request("GET", f"/v1/runs/{run_id}")
    assert answer.status == 200
    found: dict[str, Any] = answer.json
    return found


def error_of(answer: Any) -> tuple[int, object]:
    return answer.status, answer.json["error"]["code"]


@pytest.mark.parametrize(
    ("body", "headers", "streams"),
    [
        ({"input": "Hi", "stream": True}, [], True),
        ({"input": "Hi"}, EVENTS, True),
        ({"input": "Hi"}, [(b"accept", b"text/event-stream, application/json")], True),
        ({"input": "Hi"}, [(b"accept", b"text/event-stream;q=0.9, */*;q=0.1")], True),
        ({"input": "Hi"}, [(b"accept", b"application/json, text/event-stream")], False),
        ({"input": "Hi"}, [(b"accept", b"*/*")], False),
        ({"input": "Hi", "stream": "false"}, [], False),
    ],
)
def test_answer_follows_the_accept_header(body: object, headers: Any, streams: bool) -> None:
    book = TurnHarness()
    call = post(book, body, headers=headers)
    assert call.head.status == (200 if streams else 202)
    assert dict(call.head.headers)[b"x-svc-run-id"] == book.hand.turn.run_id.encode()


def test_run_read_later() -> None:
    book = TurnHarness()
    run_id = begun(book)
    book.hand.emit(TextDelta("Hel"), ToolCallPending(call_of()))
    assert status(book, run_id)["last_event"] == "message.delta"
    call = book.call("GET", f"/v1/runs/{run_id}/events")
    assert names(call) == ["run.started", "message.delta"]
    shown = [(call.head.headers.get(b"x-svc-session-id") or b"").decode(), status(book, run_id)["session_id"]]
    assert shown == [book.hand.turn.session_id] * 2
    assert call.head.headers.get(b"x-svc-run-id") == run_id.encode()
    again = book.request("GET", f"/v1/runs/{run_id}/events")
    assert error_of(again) == (404, "run_not_found")
    assert "one consumer" in again.json["error"]["message"]
    book.hand.emit(TextDelta("lo"))
    call.vanish()
    assert not book.hand.cancelled  # the run continues
    assert error_of(book.request("GET", f"/v1/runs/{run_id}/events")) == (404, "run_not_found")
    book.hand.finish()
    assert status(book, run_id)["output"] == "Hello"


def test_run_read_after_its_end() -> None:
    book = TurnHarness()
    run_id = begun(book)
    book.hand.respond("x")
    head = book.request("HEAD", f"/v1/runs/{run_id}/events")
    assert (head.status, head.body) == (200, b"")
    book.after(299.0)
    call = book.call("GET", f"/v1/runs/{run_id}/events")
    assert names(call) == ["run.started", "message.delta", "run.completed"]
    assert call.answer is not None


def test_a_subscription_waits_a_second_for_its_run() -> None:
    book = TurnHarness()
    call = book.call("GET", "/v1/runs/run_x/events")
    assert call.answer is None
    book.after(0.9)
    assert call.answer is None
    book.after(0.1)
    assert error_of(call.result) == (404, "run_not_found")


def test_the_states_of_a_run() -> None:
    book = TurnHarness()
    run_id = begun(book, {"input": "Hi", "model": "default", "session_id": "s-1"})
    view = status(book, run_id)
    assert view == {
        "object": "svc.run",
        "run_id": run_id,
        "status": "running",
        "created_at": book.now.wall,
        "updated_at": book.now.wall,
        "session_id": "s-1",
        "model": "default",
        "last_event": "run.started",
    }
    book.after(2.5)
    book.hand.emit(TextDelta("Hello"), ModelCallFinished(150, 12))
    book.hand.finish()
    ended = {
        **view,
        "status": "completed",
        "updated_at": book.now.wall,
        "last_event": "run.completed",
        "output": "Hello",
        "usage": {"input_tokens": 150, "output_tokens": 12, "total_tokens": 162},
    }
    assert status(book, run_id) == ended
    assert [row["content"] for row in book.messages("s-1")] == ["Hi", "Hello"]
    book.after(3599.0)
    assert status(book, run_id) == ended
    book.after(1.0)
    assert error_of(book.request("GET", f"/v1/runs/{run_id}")) == (404, "run_not_found")


def test_failed_run() -> None:
    book = TurnHarness()
    call = post(book, headers=EVENTS)
    book.hand.finish("error", error="gone", code="upstream_error")
    assert names(call) == ["run.started", "run.failed"]
    assert call.named_events()[-1][1]["error"] == "gone"
    view = status(book, book.hand.turn.run_id)
    assert (view["status"], view["error"], view["last_event"]) == ("failed", "gone", "run.failed")
    assert "output" not in view


def test_a_run_is_stopped() -> None:
    book = TurnHarness()
    call = post(book, headers=EVENTS)
    run_id = book.hand.turn.run_id
    book.hand.request_approval()
    answer = book.request("POST", f"/v1/runs/{run_id}/stop", b"ignored")
    assert (answer.status, answer.json) == (200, {"run_id": run_id, "status": "stopping"})
    assert book.hand.cancelled
    assert names(call) == ["run.started", "approval.request", "run.cancelled"]
    view = status(book, run_id)
    assert (view["status"], view["last_event"]) == ("cancelled", "run.cancelled")
    assert "output" not in view
    assert error_of(book.request("POST", f"/v1/runs/{run_id}/stop")) == (404, "run_not_found")
    assert error_of(book.request("POST", "/v1/runs/run_x/stop")) == (404, "run_not_found")


def test_instructions_of_a_run() -> None:
    book, session, _ = chatting(files={CONFIG: ROUTED})
    assert book.hand.turn.model is not None
    assert book.hand.turn.model.model == "big"
    book.hand.finish()
    history = [{"role": "user", "content": "Hey"}, {"role": "assistant", "content": "Yes?"}]
    said = [("system", "Short."), ("user", "no"), ("user", "So")]
    body = {
        "input": [{"role": role, "content": text} for role, text in said],
        "conversation_history": history,
        "previous_response_id": "unknown",
        "instructions": "Now.",
        "apps": ["org.x"],
        "model": "fast",
        "session_id": session,
    }
    begun(book, body)
    turn = book.hand.turn
    assert (turn.prompt, turn.history) == ("So", tuple(history))
    assert turn.apps == ("org.x",)
    assert turn.system == "Be kind.\n\nShort.\n\nNow."
    assert turn.model is not None
    assert turn.model.model == "small"
    book.hand.finish()
    begun(book, {"input": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]})
    assert book.hand.turn.history == ({"role": "assistant", "content": "a"},)
    book.hand.finish()
    begun(book, {"input": [{"type": "input_text", "text": "part"}], "system_message": "Phone."})
    turn = book.hand.turn
    assert (turn.prompt, len(turn.history), turn.system) == ("part", 0, "Be kind.\n\nPhone.")


def test_a_run_continues_a_stored_response() -> None:
    book = TurnHarness()
    call = book.call("POST", "/v1/responses", {"input": "Hey"})
    book.hand.emit(TextDelta("Yes?"), ModelCallFinished(1, 1))
    book.hand.finish()
    previous = {"previous_response_id": call.result.json["id"]}
    stored = ({"role": "user", "content": "Hey"}, {"role": "assistant", "content": "Yes?"})
    earlier = {"role": "user", "content": "More"}
    run_id = begun(book, {"input": [earlier, {"role": "user", "content": "So"}], **previous})
    turn = book.hand.turn
    assert (turn.prompt, turn.history, turn.session_id) == ("So", (*stored, earlier), run_id)
    book.hand.finish()
    own = [{"role": "user", "content": "Own"}]
    for body, history in (
        ({**previous, "conversation_history": own}, tuple(own)),  # the explicit history has precedence
        ({"previous_response_id": "resp_x"}, ()),  # an unknown id is ignored here
        ({"previous_response_id": 7}, ()),
    ):
        begun(book, {"input": "So", **body})
        assert book.hand.turn.history == history
        book.hand.finish()


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", None, None),
        ([], None, None),
        ({}, None, "input"),
        ({"input": " "}, "missing_message", "input"),
        ({"input": "Hi", "stream": "maybe"}, None, "stream"),
        ({"input": "Hi", "instructions": 7}, None, "instructions"),
        ({"input": "Hi", "conversation_history": [7]}, None, "conversation_history[0]"),
        ({"input": "Hi", "session_id": "../x"}, "invalid_session_id", "session_id"),
    ],
)
def test_refused_bodies(body: object, code: object, param: object) -> None:
    book = TurnHarness()
    answer = book.request("POST", "/v1/runs", body)
    assert answer.status == 400
    assert (answer.json["error"]["code"], answer.json["error"]["param"]) == (code, param)
    assert book.turns == 0


def test_head_reports_run_streaming() -> None:
    answer = TurnHarness(ApiConfig(key=KEY, brand=HERMES)).request("HEAD", "/v1/runs", headers=EVENTS)
    fields = dict(answer.headers)
    assert (answer.status, fields[b"x-hermes-run-streaming"], fields[b"x-hermes-stream-mode"]) == (200, b"sse", b"sse")


def test_approval_is_requested_and_given() -> None:
    book = TurnHarness()
    call = post(book, headers=EVENTS)
    path = f"/v1/runs/{book.hand.turn.run_id}/approval"
    assert error_of(book.request("POST", path, {"choice": "once"})) == (409, "approval_not_pending")
    answers = book.hand.request_approval(choices=("once", "session", "deny"))
    assert error_of(book.request("POST", path, {"choice": "perhaps"})) == (400, "invalid_approval_choice")
    always = {"choice": "always", "call_id": "call_7"}
    assert error_of(book.request("POST", path, always)) == (400, "invalid_approval_choice")
    assert error_of(book.request("POST", path, b"[]")) == (400, None)
    once = {"choice": "approve", "call_id": "call_7"}
    assert error_of(book.request("POST", path, {**once, "call_id": "call_8"})) == (409, "approval_not_pending")
    answer = book.request("POST", path, once)
    assert (answer.status, answer.json["choice"], answer.json["resolved"]) == (200, "once", 1)
    assert answers == ["once"]
    book.hand.finish()
    assert names(call) == ["run.started", "approval.request", "approval.responded", "run.completed"]
    assert call.named_events()[1][1]["allow_permanent"] is False
    assert error_of(book.request("POST", path, {"choice": "once"})) == (409, "approval_not_active")
    assert error_of(book.request("POST", "/v1/runs/run_x/approval", {"choice": "once"})) == (404, "run_not_found")


def test_unanswered_approval_is_denied() -> None:
    book = TurnHarness()
    call = post(book, headers=EVENTS)
    run_id = book.hand.turn.run_id
    assert "approvals" not in status(book, run_id)
    answers = book.hand.request_approval()
    view, told = status(book, run_id), call.named_events()[-1][1]
    assert (view["status"], view["last_event"]) == ("waiting_for_approval", "approval.request")
    (question,) = view["approvals"]
    assert question == {name: told[name] for name in question}
    assert (question["call_id"], question["command"], question["description"]) == ("call_7", "rm x", "Remove")
    assert question["expires_at"] == book.now.wall + 60
    book.after(59.9)
    assert names(call)[-1] == "approval.request"
    book.after(0.1)
    assert answers == ["deny"]
    assert json.loads(call.stream()[-1].data)["choice"] == "deny"
    view = status(book, run_id)
    assert (view["status"], "approvals" in view) == ("running", False)


def test_a_lasting_answer_is_recorded_for_its_call_alone() -> None:
    book = TurnHarness()
    post(book, headers=EVENTS)
    for name in ("a", "b"):
        book.hand.request_approval(call_of(identity=name), pattern=f"rm {name}", choices=("once", "always", "deny"))
    answer = {"choice": "always", "call_id": "b"}
    assert book.request("POST", f"/v1/runs/{book.hand.turn.run_id}/approval", answer).json["resolved"] == 1
    book.after(1.0)
    assert [row["after"] for row in book.request("GET", "/api/changes").json["changes"]] == ["rm b"]


def test_two_approvals_at_once() -> None:
    book = TurnHarness()
    post(book, headers=EVENTS)
    run_id = book.hand.turn.run_id
    first, second = (book.hand.request_approval(call_of(identity=name)) for name in ("a", "b"))
    path = f"/v1/runs/{run_id}/approval"
    assert book.request("POST", path, {"choice": "deny"}).json["resolved"] == 1
    assert status(book, run_id)["status"] == "waiting_for_approval"
    assert (first, second) == (["deny"], [])
    assert error_of(book.request("POST", path, {"choice": "once"})) == (409, "approval_not_pending")
    book.after(2.0)  # an answer without a call id is accepted from now on
    assert book.request("POST", path, {"choice": "once"}).json["resolved"] == 1
    assert second == ["once"]
    assert status(book, run_id)["status"] == "running"
