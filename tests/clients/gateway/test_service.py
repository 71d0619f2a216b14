"""The gateway: JSON-RPC lines in front, the API server's sessions and turns behind (wire terminal 2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from clients.gateway.api_connection import GatewayApiSettings
from clients.gateway.service import MAX_IMAGE, MAX_SESSIONS
from svc_proto.commands import Abort, Exit, PauseReading
from svc_proto.facts import Accepted, ChannelId, Closed, ReadClosed
from svc_proto.machines.line_buffer import MAX_LINE
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.version import VERSION
from tests.clients.gateway.harness import LINES, STDIO, GatewayHarness, kinds


def greeted(**options: Any) -> GatewayHarness:
    book = GatewayHarness(**options)
    (ready,) = book.new_messages()
    assert ready["params"] == {"type": "gateway.ready", "payload": {"skin": {}, "version": VERSION}}
    return book


def opened(**options: Any) -> GatewayHarness:
    """Return a gateway with the session s-1."""
    book = greeted(**options)
    assert book.result("session.create", {"cols": 80})["session_id"] == "s-1"
    return book


def submit(book: GatewayHarness, text: str = "Hi", session: str = "s-1") -> list[dict[str, Any]]:
    return book.call("prompt.submit", {"session_id": session, "text": text})


def said(messages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the payloads of the events of one type."""
    return [message["params"].get("payload") for message in messages if message.get("params", {}).get("type") == kind]


# --- sessions ---


def test_a_session_is_created_at_the_api_server() -> None:
    book = greeted(settings=GatewayApiSettings(profile="work"))
    result = book.result("session.create", {"cols": 80, "title": "Trip"})
    assert result == {
        "session_id": "s-1",
        "stored_session_id": "s-1",
        "message_count": 0,
        "messages": [],
        "info": {"model": "", "tools": {}, "skills": {}, "cwd": "", "version": VERSION},
    }
    assert book.api.seen == [("POST", "/api/sessions", {"title": "Trip", "profile": "work"})]


@pytest.mark.parametrize("params", [{}, {"limit": 2}, {"limit": "x"}, {"limit": -1}])
def test_the_list(params: dict[str, object]) -> None:
    book = opened()
    book.result("session.create")
    rows = book.result("session.list", params)["sessions"]
    assert [row["id"] for row in rows] == ["s-1", "s-2"]
    assert rows[0] == {
        "id": "s-1",
        "title": "",
        "preview": "",
        "started_at": 0,
        "message_count": 0,
        "source": "api_server",
    }


def test_a_stored_session_is_resumed() -> None:
    book = greeted()
    book.api.sessions["old"] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 5]},
        {"role": "tool", "tool_name": "df", "content": "62%"},
        {"role": "assistant", "content": None},
        {"role": "system", "content": "secret"},
    ]
    result = book.result("session.resume", {"session_id": "old", "cols": 80})
    assert (result["session_id"], result["resumed"], result["message_count"]) == ("old", "old", 3)
    assert result["messages"] == [
        {"role": "user", "text": "Hi"},
        {"role": "assistant", "text": "a\nb"},
        {"role": "tool", "name": "df", "context": "62%"},
    ]
    assert (result["running"], result["inflight"], result["status"]) == (False, None, "idle")
    assert result["info"]["model"] == "svc-agent"
    assert submit(book, session="old")


def test_a_session_that_is_not_stored() -> None:
    assert greeted().error("session.resume", {"session_id": "gone"})[0] == 4007


@pytest.mark.parametrize("method", ["prompt.submit", "session.interrupt", "terminal.resize", "approval.respond"])
def test_a_session_that_is_not_open_here(method: str) -> None:
    for named in ({"session_id": "s-9"}, {"session_id": 9}, {}):  # a relay's own `terminal.resize` names none
        assert greeted().error(method, {**named, "text": "x", "choice": "once"})[0] == 4001


def test_a_session_resumed_while_its_turn_is_under_way() -> None:
    book = opened()
    book.api.held = True
    submit(book, "Long")
    result = book.result("session.resume", {"session_id": "s-1"})
    assert (result["running"], result["status"]) == (True, "streaming")
    assert result["inflight"] == {"user": "Long", "assistant": "", "streaming": True}


def test_not_too_many_sessions_are_kept_open() -> None:
    book = opened()
    book.api.held = True
    submit(book)
    for _ in range(MAX_SESSIONS):
        book.result("session.create")
    assert book.error("terminal.resize", {"session_id": "s-2"})[0] == 4001
    assert book.result("terminal.resize", {"session_id": "s-1", "cols": 5}) == {"cols": 5}  # its turn still runs


# --- turns ---


def test_a_turn() -> None:
    book = opened()
    messages = submit(book)
    assert messages[0]["result"] == {"status": "streaming"}
    assert kinds(messages) == ["answer", "message.start", *["message.delta"] * 5, "message.complete"]
    assert all(message["params"]["session_id"] == "s-1" for message in messages[1:])
    assert "payload" not in messages[1]["params"]
    assert [payload["text"] for payload in said(messages, "message.delta")] == list("Hello")
    assert said(messages, "message.complete") == [
        {"text": "Hello", "usage": {"input_tokens": 1, "output_tokens": 2}, "status": "complete"}
    ]
    assert book.api.seen[-1] == ("POST", "/api/sessions/s-1/chat/stream", {"message": "Hi", "approvals": True})
    assert submit(book)[0]["result"] == {"status": "streaming"}


def test_the_key_is_sent_and_never_shown() -> None:
    book = opened(key="s3cret")
    assert kinds(submit(book))[-1] == "message.complete"
    assert "s3cret" not in repr(book.logs) + repr(GatewayApiSettings(key="s3cret")) + book.screen.heard.decode()


def test_a_wrong_key() -> None:
    book = greeted(key="right", settings=GatewayApiSettings(key="wrong"))
    code, message = book.error("session.list")
    assert (code, "API_SERVER_KEY" in message) == (5001, True)


def test_a_replaced_key_is_read_again() -> None:
    book = greeted(key="new", settings=GatewayApiSettings(key="old", files=("/h/config.yaml", "/h")))
    assert book.error("session.list")[0] == 5001
    book.disk.put("/h/.env", b"API_SERVER_KEY=new\n")
    assert "sessions" in book.result("session.list")
    book.disk.remove("/h/.env")
    assert "sessions" in book.result("session.list")


def test_a_key_that_only_the_files_have_is_found() -> None:
    """The gateway reads the key from the files that its settings name; the relay does not have it then."""
    book = greeted(key="new", settings=GatewayApiSettings(files=("/h/config.yaml", "/h")))
    book.disk.put("/h/.env", b"API_SERVER_KEY=new\n")
    assert "sessions" in book.result("session.list")
    elsewhere = greeted(key="new", settings=GatewayApiSettings())
    elsewhere.disk.put("/h/.env", b"API_SERVER_KEY=new\n")
    assert elsewhere.error("session.list")[0] == 5001


def test_one_turn_at_a_time() -> None:
    book = opened()
    book.api.held = True
    assert kinds(submit(book)) == ["answer"]
    (busy,) = submit(book)
    assert busy["error"]["code"] == 4009
    book.api.release()
    book.wake(book.now.mono)
    assert kinds(book.new_messages())[-1] == "message.complete"


def test_an_interrupt() -> None:
    book = opened()
    book.api.held = True
    submit(book)
    messages = book.call("session.interrupt", {"session_id": "s-1"})
    assert kinds(messages) == ["message.start", "message.complete", "answer"]
    assert messages[1]["params"]["payload"]["status"] == "interrupted"
    assert messages[2]["result"] == {"status": "interrupted"}
    assert book.result("session.interrupt", {"session_id": "s-1"}) == {"status": "interrupted"}
    book.api.held = False
    assert kinds(submit(book))[-1] == "message.complete"


def test_an_interrupted_run_is_stopped_at_the_server() -> None:
    book = opened()
    book.api.held = True
    submit(book)
    turn = book.gateway._sessions["s-1"].turn
    assert turn is not None
    turn.run_id = "run_7"
    book.call("session.interrupt", {"session_id": "s-1"})
    assert book.api.seen[-1] == ("POST", "/v1/runs/run_7/stop", {})


def test_images_are_sent_with_the_next_prompt() -> None:
    book = opened()
    for method, params in (
        ("image.attach_bytes", {"content_base64": "QUJD", "filename": "a.JPG"}),
        ("image.attach.bytes", {"bytes_base64": "REVG", "format": "png", "filename_hint": "b"}),
        ("image.attach_bytes", {"content_base64": "QUJD", "filename": "no suffix!"}),
    ):
        assert book.result(method, {"session_id": "s-1", **params})["attached"] is True
    submit(book, "Look")
    assert [part.get("image_url", part) for part in book.api.seen[-1][2]["message"]] == [
        {"type": "text", "text": "Look"},
        {"url": "data:image/jpeg;base64,QUJD"},
        {"url": "data:image/png;base64,REVG"},
        {"url": "data:image/png;base64,QUJD"},
    ]
    submit(book, "Again")
    assert book.api.seen[-1][2]["message"] == "Again"
    big = {"session_id": "s-1", "content_base64": "x" * (MAX_IMAGE + 1)}
    assert book.error("image.attach_bytes", big)[0] == -32602


def test_approvals() -> None:
    book = opened()
    respond = {"session_id": "s-1", "choice": "once"}
    assert book.error("approval.respond", respond)[0] == 4009
    assert book.error("approval.respond", {**respond, "choice": "perhaps"})[0] == -32602
    book.api.held = True
    submit(book)
    turn = book.gateway._sessions["s-1"].turn
    assert turn is not None
    turn.run_id = "run_7"
    assert book.result("approval.respond", {**respond, "all": True}) == {"resolved": 1}
    assert book.api.seen[-1] == ("POST", "/v1/runs/run_7/approval", {"choice": "once", "all": True})
    book.result("approval.respond", {**respond, "call_id": "call_7"})
    assert book.api.seen[-1][2] == {"choice": "once", "all": False, "call_id": "call_7"}
    book.api.problem = (200, b'{"resolved": "all"}')
    assert book.result("approval.respond", respond) == {"resolved": 0}


def test_answers_to_unused_requests_are_expired() -> None:
    book = opened()
    for method in ("clarify.respond", "sudo.respond", "secret.respond"):
        assert book.result(method, {"request_id": "x"}) == {"status": "expired"}


def test_the_tools_are_those_of_the_api_server() -> None:
    tool = {"name": "memory", "description": "Keep notes."}
    nothing = {"name": "", "description": "", "tool_count": 0, "enabled": True, "tools": []}
    book = opened()
    assert book.result("tools.list") == {
        "toolsets": [
            {"name": "memory", "description": "Notes", "tool_count": 1, "enabled": True, "tools": [tool]},
            nothing,
        ]
    }


# --- an API server that is down, or odd ---


def test_the_api_server_is_down() -> None:
    book = greeted()
    book.up = False
    code, message = book.error("session.create")
    assert (code, message) == (
        5001,
        "the API server at http://localhost:8642 cannot be reached: connection refused",
    )
    book.up = True
    assert book.result("session.create")["session_id"] == "s-1"
    book.up = False
    messages = submit(book)
    assert kinds(messages) == ["answer", "error", "message.start", "message.complete"]
    assert said(messages, "error") == [{"message": message}]
    assert said(messages, "message.complete")[0]["status"] == "error"
    book.up = True
    assert kinds(submit(book))[-1] == "message.complete"


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ((500, b'{"error": {"message": "No model"}}'), "answers 500: No model"),
        ((503, b'{"error": "draining"}'), "answers 503: draining"),
        ((502, b"<html>"), "answers 502: no reason given"),
        ((500, b"[]"), "answers 500: no reason given"),
        ((200, b"<html>"), "not JSON"),
        ((200, b"{}"), "gave no session id"),
        ((200, b"[]"), "gave no session id"),
    ],
)
def test_an_odd_answer(problem: tuple[int, bytes], text: str) -> None:
    book = greeted()
    book.api.problem = problem
    code, message = book.error("session.create")
    assert (code, text in message) == (5001, True), message


def test_a_list_without_a_name() -> None:
    book = greeted()
    book.api.problem = (200, b'[{"id": 7, "title": "x", "started_at": 5.5}, 8]')
    (row,) = book.result("session.list")["sessions"]
    assert (row["id"], row["title"], row["started_at"]) == ("7", "x", 5.5)
    book.api.problem = (200, b'{"sessions": null}')
    assert book.result("session.list") == {"sessions": []}


def test_a_turn_that_is_refused() -> None:
    book = opened()
    book.api.problem = (500, b'{"error": {"message": "No model"}}')
    assert "No model" in said(submit(book), "error")[0]["message"]


# --- lines ---


@pytest.mark.parametrize(
    ("line", "code", "identity"),
    [
        (b"no json", -32700, None),
        (b"[]", -32600, None),
        (b"{}", -32600, None),
        (b'{"id": [], "method": "x"}', -32600, None),
        (b'{"id": 5, "method": 5}', -32600, 5),
        (b'{"id": "r", "method": "tools.list", "params": []}', -32602, "r"),
        (b'{"id": "r", "method": "dance"}', -32601, "r"),
        (b'{"id": "r", "method": "session.resume"}', -32602, "r"),
    ],
)
def test_invalid_calls(line: bytes, code: int, identity: object) -> None:
    (answer,) = greeted().send(line + b"\n")
    assert (answer["id"], answer["error"]["code"]) == (identity, code)


def test_notifications_and_empty_lines_are_not_answered() -> None:
    book = greeted()
    assert book.send(b'\n \n{"method": "tools.list"}\n') == []
    (event,) = book.send(b'{"method": "session.interrupt", "params": {"session_id": "s-9"}}\n')
    assert event["params"]["type"] == "error"


def test_a_bug_is_an_error_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    book = greeted()
    monkeypatch.setattr(ApiClient, "list_objects", lambda *_: 1 / 0)
    code, message = book.error("session.list")
    assert (code, message) == (-32000, "internal error bug-1")


def test_a_bug_is_an_error_of_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    book = opened()
    monkeypatch.setattr(ApiClient, "stream_turn", lambda *_: 1 / 0)
    messages = submit(book)
    assert said(messages, "error") == [{"message": "internal error bug-1"}]
    assert said(messages, "message.complete")[0]["status"] == "error"


# --- ends ---


def test_the_gateway_exits_after_its_input_and_turns() -> None:
    book = opened()
    book.api.held = True
    submit(book)
    book.feed(ReadClosed(LINES))
    assert book.exits == []
    book.api.release()
    book.wake(book.now.mono)
    assert kinds(book.new_messages())[-1] == "message.complete"
    assert book.exits == [Exit(0)]


def test_the_gateway_writes_all_output_before_it_exits() -> None:
    book = greeted()
    book.screen.reads = False
    book.call("tools.list")
    book.feed(ReadClosed(LINES))
    assert book.exits == []
    book.screen.read()
    assert book.exits == [Exit(0)]


def test_a_closed_output_ends_the_gateway() -> None:
    book = greeted()
    book.feed(Closed(LINES, "broken pipe"))
    assert book.exits == [Exit(0)]


def test_a_signal_ends_the_gateway() -> None:
    book = opened()
    book.api.held = True
    submit(book)
    book.stop()
    assert book.exits == [Exit(0)]


def test_a_line_without_an_end() -> None:
    book = greeted()
    (event,) = book.send(b"x" * (MAX_LINE + 1))
    assert event["params"]["type"] == "error"
    assert book.exits == [Exit(0)]


def test_a_second_client_is_refused() -> None:
    book = greeted()
    book.feed(Accepted(ChannelId(4), STDIO, STDIO))
    assert Abort(ChannelId(4)) in book.commands


def test_a_client_that_does_not_read_holds_the_turn() -> None:
    book = opened()
    book.screen.reads = False
    book.api.turns.append([("assistant.delta", {"delta": "x" * 1000})] * 1000)
    messages = submit(book)
    assert any(isinstance(command, PauseReading) for command in book.commands)
    book.screen.read()
    assert kinds([*messages, *book.new_messages()])[-1] == "message.complete"


def test_the_session_to_resume_is_passed_on() -> None:
    (ready,) = GatewayHarness(resume="s-7").new_messages()
    assert ready["params"]["payload"]["resume_session_id"] == "s-7"
