import json
from itertools import pairwise
from typing import Any

import pytest

from svc_proto.agent.interface import TextDelta
from svc_proto.api.chat.store_requests import ListChats, ListMessages
from svc_proto.api.config import ApiConfig
from svc_proto.api.mcp_agent import agent_features
from svc_proto.api.runs import run_manager
from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Task
from svc_proto.service_clients.authority import Authority
from tests.api.harness import KEY, ApiHarness
from tests.api.scripted_agent import TurnHarness
from tests.mcp.http_harness import McpHttpSession, fields, stream_messages


def texts(result: Any) -> list[str]:
    return [block["text"] for block in result["content"]]


def test_offered_features() -> None:
    client = McpHttpSession(ApiHarness())
    assert client.about["serverInfo"]["name"] == "svc-agent"
    assert sorted(client.about["capabilities"]) == ["resources", "tools"]
    (tool,) = client.request("tools/list")["tools"]
    assert (tool["name"], tool["annotations"]["readOnlyHint"]) == ("ask", False)
    (listed,) = client.request("resources/templates/list")["resourceTemplates"]
    assert listed["uriTemplate"] == "chat://sessions/{id}"


def test_chats_with_a_failing_store_are_refused() -> None:
    book = ApiHarness()
    client = McpHttpSession(book)
    book.refuse = (ListChats, ListMessages)
    for uri in ("chat://sessions", "chat://sessions/any"):
        refused = client.request("resources/read", uri=uri)
        assert (refused["code"], refused["message"]) == (-32603, "the session store is unavailable")
    assert "bug" not in book.events()


def test_turn_and_next_turn_of_a_chat() -> None:
    book = ApiHarness()
    client = McpHttpSession(book)
    first = client.tool("ask", message="/echo Hello there")
    book.after(1.0)
    words, session = texts(first.result.json["result"])
    assert words == "Hello there"
    identity = session.removeprefix("(session: ").removesuffix(")")
    second = client.tool("ask", message="/echo Again", session=identity)
    book.after(1.0)
    assert texts(second.result.json["result"])[0] == "Again"
    rows = client.request("resources/read", uri=f"chat://sessions/{identity}")["contents"][0]["text"]
    shown = json.loads(rows)
    assert shown["session"] == identity
    assert [(row["role"], row["content"]) for row in shown["messages"]] == [
        *(("user", "/echo Hello there"), ("assistant", "Hello there")),
        *(("user", "/echo Again"), ("assistant", "Again")),
    ]
    chats = json.loads(client.request("resources/read", uri="chat://sessions")["contents"][0]["text"])
    (chat,) = chats.pop("sessions")
    assert (chat["id"], chat["title"], chats) == (identity, None, {"total": 1})
    assert chat["last_active"] == shown["messages"][-1]["at"]


def test_deltas_are_sent_as_progress() -> None:
    book = ApiHarness()
    client = McpHttpSession(book)
    call = client.tool("ask", token="t", message="/count 100")
    book.after(10.0)
    told = stream_messages(call)
    notes = [each["params"] for each in told[:-1]]
    assert {note["progressToken"] for note in notes} == {"t"}
    assert all(one["progress"] < two["progress"] for one, two in pairwise(notes))
    (words, _) = texts(told[-1]["result"])
    assert words.startswith("1 2 3")
    assert words.startswith("".join(note["message"] for note in notes))
    assert 2 < len(notes) < 10
    tool = client.tool("ask", token="t", message="/wait 1")
    book.after(3.0)
    assert b"[demo_wait]" in tool.body


def test_the_tool_by_itself() -> None:
    book = ApiHarness()
    offered = agent_features(book.api).tools[0]
    told = book.spawn(offered.tool.run({"message": "/echo Hi"}))
    book.after(1.0)
    assert told == ["Hi"]


def test_cancelled_turn_sends_no_progress() -> None:
    book = TurnHarness()
    client = McpHttpSession(book)
    client.tool("ask", 7, token="t", message="x")
    book.after(1.0)
    (run,) = book.api.runs._runs.values()
    assert client.cancel(7) == 202
    book.within(lambda: run.emit(TextDelta("too late")))
    book.after(1.0)
    assert len(book.api.runs) == 0


def test_a_turn_has_the_authority_of_its_client_and_reports_nothing_after_its_end() -> None:
    book, told = TurnHarness(), list[str]()
    authority = Authority("Tablet", lambda power: False)
    ask = agent_features(book.api, authority).tools[0].run_with_progress
    assert ask is not None
    tasks: list[Task] = []
    book.within(lambda: tasks.append(book.engine.spawn(ask({"message": "Hi"}, told.append))))
    assert book.hand.turn.authority is authority
    book.hand.emit(TextDelta("one"), TextDelta("two"))  # the second text waits for its interval
    (run,) = book.api.runs._runs.values()
    book.within(tasks[0].cancel)
    book.within(lambda: run.emit(TextDelta("three")))
    book.after(2.0)
    assert told == ["one"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [({}, "the argument message is missing"), ({"message": "x", "session": "none"}, "there is no such session")],
)
def test_invalid_ask_arguments(arguments: dict[str, object], why: str) -> None:
    result = McpHttpSession(ApiHarness()).request("tools/call", name="ask", arguments=arguments)
    assert (result["isError"], texts(result)) == (True, [why])


def test_failed_and_stopped_turns() -> None:
    book = ApiHarness(ApiConfig(key=KEY, model_base_url="http://127.0.0.1:1/v1"))
    client = McpHttpSession(book)
    call = client.tool("ask", message="x")
    book.after(1_000.0)
    assert b"cannot be reached" in call.body
    book = TurnHarness()
    client = McpHttpSession(book)
    call = client.tool("ask", message="x")
    book.after(1.0)
    (run,) = book.api.runs._runs
    book.within(lambda: book.api.runs.stop(run))
    book.after(1.0)
    assert b"the turn was stopped" in call.body


def test_draining_server_and_unknown_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(engine: Engine) -> None:
        raise Refused(503, "gateway_draining", "the server is shutting down")

    book = ApiHarness()
    client = McpHttpSession(book)
    missing = client.request("resources/read", uri="chat://sessions/none")
    assert missing["message"] == "there is no such session"
    assert client.request("resources/read", uri="chat://other")["code"] == -32002
    monkeypatch.setattr(run_manager, "check_not_stopping", refuse)
    call = client.tool("ask", message="x")
    book.after(1.0)
    assert texts(call.result.json["result"]) == ["the server is shutting down"]


def test_mcp_requires_the_key_and_ends_with_it() -> None:
    book = ApiHarness()
    refused = book.call("POST", "/mcp", {}, key="", headers=fields()).result
    assert refused.status == 401
    client = McpHttpSession(book)
    assert len(book.api.mcp.sessions) == 1
    listening = client.listen()
    book.within(lambda: book.api._revoke_credential("main key", "this API key was replaced"))
    assert len(book.api.mcp.sessions) == 0
    book.after(1.0)
    assert listening.gone
    assert McpHttpSession(book).end() == 204
    book.stop()
