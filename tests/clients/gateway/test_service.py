from typing import Any

import pytest

from clients.gateway.api_connection import GatewayApiSettings
from clients.gateway.service import LOST, LOST_IN_TURN, MAX_CALLS
from svc_proto.api.gateway.connection import Result
from svc_proto.basics.errors import Refused
from svc_proto.commands import Abort, Exit, PauseReading
from svc_proto.engine.flow import Flow, sleep
from svc_proto.facts import Accepted, ChannelId, Closed, ReadClosed
from svc_proto.machines.line_buffer import MAX_LINE
from svc_proto.version import VERSION
from tests.clients.gateway.harness import KEY, LINES, PORT, STDIO, GatewayHarness, kinds
from tests.support.servers.api_server import ScriptedApi

LATE = 60.0  # s


def greeted(**options: Any) -> GatewayHarness:
    book = GatewayHarness(**options)
    (ready,) = book.new_messages()
    assert ready["params"] == {"type": "gateway.ready", "payload": {"skin": {}, "version": VERSION}}
    return book


def opened() -> tuple[GatewayHarness, str]:
    """Return a gateway and the id of a new session."""
    book = greeted()
    return book, book.result("session.create", cols=80)["session_id"]


def said(messages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the payloads of the events of one type."""
    return [message["params"].get("payload") for message in messages if message.get("params", {}).get("type") == kind]


# --- calls and events ---


def test_a_turn_and_its_history() -> None:
    book, session = opened()
    messages = book.call("prompt.submit", session_id=session, text="/echo hello")
    book.after(5.0)
    messages += book.new_messages()
    assert kinds(messages)[:2] == ["answer", "message.start"]
    (ended,) = said(messages, "message.complete")
    assert ended["status"] == "complete"
    (row,) = book.result("session.list")["sessions"]
    assert (row["id"], row["source"]) == (session, "tui")
    resumed = book.result("session.resume", session_id=session, cols=80)
    assert [each["role"] for each in resumed["messages"]] == ["user", "assistant"]
    assert (resumed["running"], resumed["info"]["cwd"]) == (False, "")
    assert {"name", "tools", "tool_count"} <= {*book.result("tools.list")["toolsets"][0]}


def test_source_resumed_session_and_errors_are_passed_on() -> None:
    book = GatewayHarness(resume="s-7")
    (ready,) = book.new_messages()
    assert ready["params"]["payload"]["resume_session_id"] == "s-7"
    book.result("session.create", source="desk")
    assert book.result("session.list")["sessions"][0]["source"] == "desk"
    assert book.error("session.resume", session_id="gone")[0] == 4007


def test_the_key_is_never_shown() -> None:
    book, session = opened()
    book.call("prompt.submit", session_id=session, text="/echo hello")
    assert KEY not in repr(book.logs) + repr(GatewayApiSettings(key=KEY)) + book.screen.heard.decode()


def test_a_wrong_key() -> None:
    code, message = greeted(settings=GatewayApiSettings(key="wrong")).error("session.list")
    assert (code, "API_SERVER_KEY" in message) == (5001, True)


@pytest.mark.parametrize("known", ["old", ""])
def test_the_key_of_this_host_is_read_from_its_files(known: str) -> None:
    book = greeted(settings=GatewayApiSettings(key=known, files=("/h/config.yaml", "/h")))
    assert book.error("session.list")[0] == 5001
    book.disk.put("/h/.env", f"API_SERVER_KEY={KEY}\n".encode())
    assert "sessions" in book.result("session.list")


# --- an API server that is down ---


def test_the_api_server_is_down_for_a_while() -> None:
    book = greeted()
    book.up = False
    reason = "the API server at http://localhost:8642 cannot be reached: connection refused"
    assert book.error("session.create") == (5001, reason)
    book.up = True
    created = book.result("session.create")
    assert created["messages"] == []
    assert [*book.api.gateway.sessions] == [created["session_id"]]  # the refused call is not sent later


def test_a_notification_that_can_not_be_sent_is_reported() -> None:
    book = greeted()
    book.up = False
    messages = book.send(
        b'{"method": "session.interrupt", "params": {"session_id": "s-1"}}\n{"method": "x"}\n{"id": 1, "method": "y"}\n'
    )
    reason = "the API server at http://localhost:8642 cannot be reached: connection refused"
    assert [each["params"] for each in messages if "params" in each] == [
        {"type": "error", "session_id": "s-1", "payload": {"message": f"session.interrupt was not sent: {reason}"}},
        {"type": "error", "payload": {"message": f"x was not sent: {reason}"}},
    ]
    assert [each["error"]["message"] for each in messages if "id" in each] == [reason]
    (record,) = (log for log in book.logs if log.event == "calls have failed")
    assert record.fields == {"reason": reason, "calls": 1, "notifications": 2}


def test_a_server_without_a_gateway() -> None:
    book = greeted()
    book.serve(PORT, ScriptedApi(KEY))
    assert book.error("session.list") == (5001, "the API server at http://localhost:8642 has no gateway for chats")


def test_an_api_server_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    book = greeted()

    def refuse(_: object) -> None:
        raise Refused(503, "draining", "it is being stopped")

    monkeypatch.setattr(book.api.gateway, "new_connection", refuse)
    assert book.error("session.list") == (5001, "the API server answers 503: it is being stopped")


def answer_late(book: GatewayHarness) -> None:
    """Patch the API server so that it answers `session.list` after `LATE` seconds."""

    def answer(*_: object) -> Flow[Result]:
        yield from sleep(book.servers[PORT].engine, LATE)
        return {}

    book.api.gateway._methods["session.list"] = answer


def disconnect(book: GatewayHarness, session: str) -> None:
    """Close the gateway's WebSocket from the API server's side."""
    (connection,) = book.api.gateway.sessions[session].connections
    book.within(lambda: connection._socket.close(1001), book.servers[PORT])


def test_a_lost_connection_ends_turns() -> None:
    book, session = opened()
    book.call("prompt.submit", session_id=session, text="/count 30")
    disconnect(book, session)
    messages = book.new_messages()
    assert kinds(messages) == ["error", "message.complete"]
    assert said(messages, "error") == [{"message": LOST_IN_TURN}]
    assert book.result("session.resume", session_id=session)["running"] is True
    book.after(60.0)
    assert said(book.new_messages(), "message.complete")[0]["status"] == "complete"


def test_a_lost_connection_ends_calls() -> None:
    book, session = opened()
    answer_late(book)
    assert book.call("session.list") == []
    disconnect(book, session)
    (answer,) = book.new_messages()
    assert (answer["id"], answer["error"]) == ("r1", {"code": 5001, "message": LOST})


# --- lines ---


@pytest.mark.parametrize(
    ("line", "code", "identity"),
    [
        (b"no json", -32700, None),
        (b"[]", -32600, None),
        (b'{"id": "r", "method": "tools.list", "params": []}', -32602, "r"),
        (b'{"id": "r", "method": "dance"}', -32601, "r"),
    ],
)
def test_invalid_calls(line: bytes, code: int, identity: object) -> None:
    (answer,) = greeted().send(line + b"\n")
    assert (answer["id"], answer["error"]["code"]) == (identity, code)


def test_notifications_and_empty_lines_are_not_answered() -> None:
    book = greeted()
    assert book.send(b'\n \n{"method": "tools.list"}\n') == []


def test_too_many_calls_at_a_time() -> None:
    book, _ = opened()
    answer_late(book)
    lines = [b'{"id": %d, "method": "session.list"}\n' % number for number in range(MAX_CALLS + 1)]
    (refused,) = book.send(b"".join(lines))
    assert (refused["id"], refused["error"]["code"]) == (MAX_CALLS, -32000)
    book.after(LATE)
    assert len(book.new_messages()) == MAX_CALLS
    (refused,) = greeted().send(b'{"method": "tools.list"}\n' * (MAX_CALLS + 1))  # before the API server is connected
    assert (refused["id"], refused["error"]["code"]) == (None, -32000)


# --- ends ---


def test_the_gateway_exits_after_its_input_and_turns() -> None:
    book, session = opened()
    book.call("prompt.submit", session_id=session, text="/count 5")
    book.feed(ReadClosed(LINES))
    assert book.exits == []
    book.after(60.0)
    assert "message.complete" in kinds(book.new_messages())
    assert book.exits == [Exit(0)]
    book, session = opened()
    answer_late(book)
    book.call("session.list")
    book.feed(ReadClosed(LINES))
    book.after(LATE)
    assert kinds(book.new_messages()) == ["answer"]
    assert book.exits == [Exit(0)]


@pytest.mark.short
@pytest.mark.parametrize("text", ["/count 30", "", None])
def test_the_gateway_exits_after_work_that_fails(text: str | None) -> None:
    book, session = opened()
    answer_late(book)
    if text is None:
        book.call("session.list")
    else:
        book.call("prompt.submit", session_id=session, text=text)
    book.feed(ReadClosed(LINES))
    if text != "":  # which is refused
        assert book.exits == []
        disconnect(book, session)
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


def test_a_signal_ends_the_gateway_and_the_turn_continues() -> None:
    book, session = opened()
    book.call("prompt.submit", session_id=session, text="/count 5")
    book.stop()
    assert book.exits == [Exit(0)]
    assert not book.api.gateway.sessions[session].connections
    assert book.api.gateway.sessions[session].is_busy


def test_a_line_without_an_end() -> None:
    book = greeted()
    (event,) = book.send(b"x" * (MAX_LINE + 1))
    assert event["params"]["type"] == "error"
    assert book.exits == [Exit(0)]


def test_a_second_client_is_refused() -> None:
    book = greeted()
    book.feed(Accepted(ChannelId(4), STDIO, STDIO))
    assert Abort(ChannelId(4)) in book.commands


def test_a_client_that_does_not_read_is_not_sent_more() -> None:
    book, session = opened()
    book.call("prompt.submit", session_id=session, text="/echo " + "x" * 90_000)
    book.after(5.0)
    book.new_messages()
    book.screen.reads = False
    for number in range(4):
        book.call("session.resume", number, session_id=session)
    assert any(isinstance(command, PauseReading) for command in book.commands)
    book.screen.read()
    assert book.call("session.list", "last")[-1]["id"] == "last"
