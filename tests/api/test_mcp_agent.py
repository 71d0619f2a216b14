"""`/mcp` of the API: a turn by `ask`, its words as progress, chats as resources, and who may."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from svc_proto.agent.contract import TextDelta
from svc_proto.api.config import ApiConfig
from svc_proto.api.mcp_agent import agent_offer
from svc_proto.api.store import ListChats, ListMessages
from svc_proto.basics.errors import Refused
from svc_proto.wire.sse import EventStreamDecoder
from tests.api.puppet import TurnBook
from tests.api.world import KEY, ApiBook, ApiCall

TYPES = [(b"accept", b"application/json, text/event-stream"), (b"content-type", b"application/json")]
VERSION = "2025-11-25"


class Client:
    """One session of MCP with the API."""

    def __init__(self, book: ApiBook, *, key: str | None = None) -> None:
        self.book = book
        self.key = key
        self.session = b""
        answer = self.call("initialize", protocolVersion=VERSION, capabilities={}).result
        assert answer.status == 200, answer
        self.about = answer.json["result"]
        self.session = answer.headers.get(b"mcp-session-id") or b""

    def call(self, method: str, identity: int | None = 1, /, **params: Any) -> ApiCall:
        headers = [*TYPES, *([(b"mcp-session-id", self.session)] if self.session else [])]
        numbered = {} if identity is None else {"id": identity}
        body = {"jsonrpc": "2.0", **numbered, "method": method, "params": params}
        return self.book.call("POST", "/mcp", body, key=self.key, headers=headers)

    def ask(self, method: str, **params: Any) -> Any:
        answer = self.call(method, **params).result.json
        return answer.get("result", answer.get("error"))


def texts(result: Any) -> list[str]:
    return [block["text"] for block in result["content"]]


def test_what_it_offers() -> None:
    client = Client(ApiBook())
    assert client.about["serverInfo"]["name"] == "svc-agent"
    assert sorted(client.about["capabilities"]) == ["resources", "tools"]
    (tool,) = client.ask("tools/list")["tools"]
    assert (tool["name"], tool["annotations"]["readOnlyHint"]) == ("ask", False)
    (listed,) = client.ask("resources/templates/list")["resourceTemplates"]
    assert listed["uriTemplate"] == "chat://sessions/{id}"


def test_chats_of_a_store_that_fails_are_refused_and_no_bug() -> None:
    book = ApiBook()
    client = Client(book)
    book.refuse = (ListChats, ListMessages)
    for uri in ("chat://sessions", "chat://sessions/any"):
        refused = client.ask("resources/read", uri=uri)
        assert (refused["code"], refused["message"]) == (-32603, "the session store is unavailable")
    assert "bug" not in book.events()


def test_a_turn_and_the_next_one_in_its_chat() -> None:
    book = ApiBook()
    client = Client(book)
    first = client.call("tools/call", name="ask", arguments={"message": "/echo Hello there"})
    book.after(1.0)
    words, session = texts(first.result.json["result"])
    assert words == "Hello there"
    identity = session.removeprefix("(session: ").removesuffix(")")
    second = client.call("tools/call", name="ask", arguments={"message": "/echo Again", "session": identity})
    book.after(1.0)
    assert texts(second.result.json["result"])[0] == "Again"
    rows = client.ask("resources/read", uri=f"chat://sessions/{identity}")["contents"][0]["text"]
    assert "Hello there" in rows
    assert "Again" in rows
    assert identity in client.ask("resources/read", uri="chat://sessions")["contents"][0]["text"]


def test_its_words_come_as_progress() -> None:
    book = ApiBook()
    client = Client(book)
    params = {"name": "ask", "arguments": {"message": "/count 100"}, "_meta": {"progressToken": "t"}}
    call = client.call("tools/call", **params)
    book.after(10.0)
    told = [json.loads(event.data) for event in EventStreamDecoder().receive_data(call.body) if event.data]
    notes = [each["params"] for each in told[:-1]]
    assert {note["progressToken"] for note in notes} == {"t"}
    assert all(one["progress"] < two["progress"] for one, two in pairwise(notes))
    assert texts(told[-1]["result"])[0].startswith("1 2 3")
    assert 2 < len(notes) < 10
    tool = client.call("tools/call", 2, **{**params, "arguments": {"message": "/wait 1"}})
    book.after(3.0)
    assert "[demo_wait]" in tool.text


def test_the_tool_by_itself() -> None:
    book = ApiBook()
    offered = agent_offer(book.api).tools[0]
    told = book.spawn(offered.tool.run({"message": "/echo Hi"}))
    book.after(1.0)
    assert told == ["Hi"]


def test_whoever_cancels_stops_the_turn() -> None:
    book = TurnBook()
    client = Client(book)
    client.call("tools/call", 7, name="ask", arguments={"message": "x"})
    book.after(1.0)
    assert len(book.api.runs) == 1
    assert client.call("notifications/cancelled", None, requestId=7).result.status == 202
    book.after(1.0)
    assert len(book.api.runs) == 0


def test_a_turn_that_was_cancelled_tells_nobody_of_its_words() -> None:
    book = TurnBook()
    client = Client(book)
    params = {"name": "ask", "arguments": {"message": "x"}, "_meta": {"progressToken": "t"}}
    client.call("tools/call", 7, **params)
    book.after(1.0)
    (run,) = book.api.runs._runs.values()
    assert client.call("notifications/cancelled", None, requestId=7).result.status == 202
    book.within(lambda: run.tell(TextDelta("too late")))
    book.after(1.0)
    assert len(book.api.runs) == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "the argument message is missing"),
        ({"message": "x", "session": "none"}, "there is no such session"),
    ],
)
def test_what_cannot_be_asked(arguments: dict[str, object], why: str) -> None:
    result = Client(ApiBook()).ask("tools/call", name="ask", arguments=arguments)
    assert (result["isError"], texts(result)) == (True, [why])


def test_a_turn_that_fails_and_one_that_is_stopped() -> None:
    book = ApiBook(ApiConfig(key=KEY, model_base_url="http://127.0.0.1:1/v1"))
    client = Client(book)
    call = client.call("tools/call", name="ask", arguments={"message": "x"})
    book.after(1_000.0)
    assert "cannot be reached" in call.text
    book = TurnBook()
    client = Client(book)
    call = client.call("tools/call", name="ask", arguments={"message": "x"})
    book.after(1.0)
    (run,) = book.api.runs._runs
    book.within(lambda: book.api.runs.stop(run))
    book.after(1.0)
    assert "the turn was stopped" in call.text


def test_a_server_at_its_end_and_a_chat_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise Refused(503, "gateway_draining", "the server is shutting down")

    book = ApiBook()
    client = Client(book)
    missing = client.ask("resources/read", uri="chat://sessions/none")
    assert missing["message"] == "there is no such session"
    assert client.ask("resources/read", uri="chat://other")["code"] == -32002
    monkeypatch.setattr(book.api, "refuse_while_stopping", refuse)
    call = client.call("tools/call", name="ask", arguments={"message": "x"})
    book.after(1.0)
    assert texts(call.result.json["result"]) == ["the server is shutting down"]


def test_it_needs_the_key_and_ends_with_it() -> None:
    book = ApiBook()
    refused = book.call("POST", "/mcp", {}, key="", headers=TYPES).result
    assert refused.status == 401
    client = Client(book)
    assert len(book.api.mcp.sessions) == 1
    headers = [*TYPES, (b"mcp-session-id", client.session)]
    listening = book.call("GET", "/mcp", headers=headers)
    book.within(lambda: book.api._end_holder("main key", "this API key was replaced"))
    assert len(book.api.mcp.sessions) == 0
    book.after(1.0)
    assert listening.gone
    again = Client(book)
    gone = book.call("DELETE", "/mcp", headers=[*TYPES, (b"mcp-session-id", again.session)]).result
    assert gone.status == 204
    book.stop()
