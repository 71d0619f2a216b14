from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.engine.flow import Flow
from svc_proto.schema.mcp_messages import HANDSHAKE_VERSIONS, RequestId
from svc_proto.service_clients import mcp_client
from svc_proto.service_clients.mcp_client import (
    LONGEST,
    MAX_ASKED,
    MCP_CLIENT_TABLE,
    McpClient,
    McpClientState,
    McpClientTrigger,
    McpError,
)
from tests.engine.test_flow import Owner
from tests.engine.toy_service import open_book

ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "title": "A shop"}}


class Bag:
    """Fake `McpTransport` that records calls and messages; with `ends` it closes after the handshake."""

    def __init__(self, client: McpClient) -> None:
        self.client = client
        self.sent: list[dict[str, Any]] = []
        self.forgotten: list[RequestId] = []
        self.version = ""
        self.ends = False  # right after the handshake
        self.closed = 0

    def open(self) -> Flow[None]:
        yield from ()

    def set_protocol_version(self, version: str, text: bytes) -> Flow[None]:
        yield from ()
        self.version = version
        self.send(text, None)
        if self.ends:
            self.client.transport_closed(McpError("it has ended"))

    def send(self, text: bytes, identity: RequestId | None) -> None:
        message = json.loads(text)
        assert message["jsonrpc"] == "2.0"
        assert message.get("id") == identity or "method" not in message
        self.sent.append(message)

    def abandon_request(self, identity: RequestId) -> None:
        self.forgotten.append(identity)

    def close(self) -> None:
        self.closed += 1


class Talk:
    """A client, its messages, and the results of its calls."""

    def __init__(self) -> None:
        self.book = open_book()
        self.owner = Owner(self.book)
        self.over: list[str] = []
        self.changes = 0
        self.bags: list[Bag] = []

        def carry(client: McpClient) -> Bag:
            self.bags.append(Bag(client))
            return self.bags[0]

        self.client = McpClient(
            self.book.engine, carry, on_over=lambda why: self.over.append(str(why)), on_changed=self._change
        )
        self.bag = self.bags[0]

    def _change(self) -> None:
        self.changes += 1

    def act(self, call: Callable[[], object]) -> list[dict[str, Any]]:
        """Call a function and return the messages that follow."""
        before = len(self.bag.sent)
        self.book.act(call).drain_commands()
        return self.bag.sent[before:]

    def do(self, flow: Flow[Any]) -> list[dict[str, Any]]:
        return self.act(lambda: self.owner.spawn(flow))

    def hear(self, **members: object) -> list[dict[str, Any]]:
        return self.act(lambda: self.client.receive(json.dumps({"jsonrpc": "2.0", **members}).encode()))

    def after(self, seconds: float) -> list[dict[str, Any]]:
        before = len(self.bag.sent)
        self.book.after(seconds).drain_commands()
        return self.bag.sent[before:]

    @property
    def told(self) -> list[Any]:
        """Return the results of the calls since the last read of this property; of a failure its text."""
        told = [*self.owner.told]
        self.owner.told.clear()
        return [str(each) if isinstance(each, McpError) else each for each in told]


def opened() -> Talk:
    talk = Talk()
    talk.do(talk.client.open(10.0))
    talk.hear(id=1, result=ABOUT)
    assert talk.told == [None]
    return talk


@pytest.fixture
def talk() -> Talk:
    return opened()


def test_client_state_table() -> None:
    assert {(state.name, trigger.name): to.name for (state, trigger), to in MCP_CLIENT_TABLE.items()} == {
        ("NEW", "OPEN"): "OPENING",
        ("OPENING", "AGREE"): "OPEN",
        ("OPENING", "END"): "OVER",
        ("OPEN", "END"): "OVER",
    }
    assert len(McpClientState) == 4
    assert len(McpClientTrigger) == 3


def test_the_handshake() -> None:
    talk = Talk()
    assert (talk.client.title, dict(talk.client.offers), talk.client.ignored) == ("", {}, 0)
    (asked,) = talk.do(talk.client.open(10.0))
    assert (asked["method"], asked["params"]["protocolVersion"]) == ("initialize", HANDSHAKE_VERSIONS[-1])
    assert asked["params"]["capabilities"] == {}
    assert asked["params"]["clientInfo"]["name"] == "svc-agent"
    (noted,) = talk.hear(id=1, result=ABOUT)
    assert noted == {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    assert (talk.bag.version, talk.client.title, dict(talk.client.offers)) == ("2025-06-18", "A shop", {"tools": {}})
    assert talk.client.state is McpClientState.OPEN
    talk = Talk()
    talk.do(talk.client.open(10.0))
    talk.hear(id=1, result={**ABOUT, "serverInfo": {"name": "shop"}})
    assert talk.client.title == "shop"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"result": {"protocolVersion": "2099-01-01"}}, "it speaks version '2099-01-01' of the protocol, which is not"),
        ({"result": {}}, "it speaks version '' of"),
        ({"error": {"code": -1, "message": "go\naway"}}, "it refuses: go away"),
        ({"error": {}}, "it refuses: no reason given"),
    ],
)
def test_failed_handshake(answer: dict[str, object], why: str) -> None:
    talk = Talk()
    talk.do(talk.client.open(10.0))
    talk.hear(id=1, **answer)
    (failed,) = talk.told
    assert failed.startswith(why)
    assert (talk.client.state, talk.bag.closed, talk.over) == (McpClientState.OVER, 1, [])
    talk.do(talk.client.request("ping", {}, within=1.0))
    assert talk.told == ["it is not connected"]


def test_server_ending_with_the_handshake() -> None:
    talk = Talk()
    talk.bag.ends = True
    talk.do(talk.client.open(10.0))
    talk.hear(id=1, result=ABOUT)
    assert (talk.told, talk.client.state) == (["it has ended"], McpClientState.OVER)


def test_silent_server_fails_the_handshake() -> None:
    talk = Talk()
    talk.do(talk.client.open(10.0))
    assert talk.after(10.0) == []  # `initialize` is not cancelled
    assert talk.told == ["there was no answer in 10 s"]
    assert (talk.bag.forgotten, talk.bag.closed) == ([1], 1)


def test_answers_are_matched_by_id(talk: Talk) -> None:
    (one,) = talk.do(talk.client.request("tools/call", {"name": "a"}, within=60.0))
    (two,) = talk.do(talk.client.request("tools/call", {"name": "b"}, within=60.0))
    assert one["params"] == {"name": "a", "_meta": {"progressToken": one["id"]}}
    for wrong in (99, "99", "two", 1, -1, 10**30):
        talk.hear(id=wrong, result={"stolen": True})
    talk.hear(id=None, error={"code": 1, "message": "x"})
    assert talk.client.ignored == 7
    talk.hear(id=two["id"], result={"of": "b"})
    talk.hear(id=two["id"], result={"of": "b, again"})
    talk.hear(id=one["id"], result={"of": "a"})
    assert talk.told == [{"of": "b"}, {"of": "a"}]
    assert talk.bag.forgotten == [1, two["id"], one["id"]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'{"id":"2","result":{"content":[]},"error":null}', {"content": []}),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":2.0,"result":{"a":"\\ud83d","b":NaN}}', {"a": "\ufffd", "b": None}),
        (b'[{"jsonrpc":"2.0","id":2,"result":{"a":"caf\xe9"}}]', {"a": "caf\ufffd"}),
        (b'{"jsonrpc":"2.0","id":2,"result":7}', "its answer cannot be used: its result is no object"),
        (b'{"jsonrpc":"2.0","id":2,"result":{"a":', "its answer cannot be used: Expecting value at line 1, column 39"),
        (b'{"error":{"message":"bad line"},"id":null}', "its answer cannot be used: it refuses: bad line"),
        (b'{"result":' + b"[" * 80, "its answer cannot be used: nested deeper than 64 levels"),
    ],
)
def test_odd_response_is_read_or_fails_its_request_at_once(talk: Talk, text: bytes, told: object) -> None:
    talk.do(talk.client.request("tools/call", {"name": "a"}, within=60.0))
    talk.act(lambda: talk.client.receive(text))
    assert talk.told == [told]


def test_response_without_an_id_belongs_to_the_request_that_it_answers(talk: Talk) -> None:
    for name in ("a", "b"):
        talk.do(talk.client.request("tools/call", {"name": name}, within=60.0))
    broken = b'{"result":{'
    talk.act(lambda: talk.client.receive(broken))  # it could belong to either
    assert (talk.told, talk.client.ignored) == ([], 1)
    talk.act(lambda: talk.client.receive(broken, 3))
    assert len(talk.told) == 1
    talk.hear(id=2, result={"of": "a"})
    assert talk.told == [{"of": "a"}]
    talk.act(lambda: talk.client.receive(broken, 3))  # it has had its answer
    assert (talk.told, talk.client.ignored) == ([], 2)


def test_reason_of_an_unreadable_message(talk: Talk) -> None:
    for data, why in ((b"<html>", "Expecting value"), (b'{"method":"x"}', ""), (b"7", "")):
        assert talk.client.receive(data).startswith(why)
    talk.client.close()
    assert talk.client.receive(b"<html>") == ""


@pytest.mark.parametrize("closed", [False, True])
def test_only_the_refused_call_may_be_retried(talk: Talk, closed: bool) -> None:
    failures: list[McpError] = []
    ended_before: list[bool] = []  # whether `on_over` was called first, so that a repeated call gets a new connection

    def call(name: str) -> Flow[None]:
        try:
            yield from talk.client.request("tools/call", {"name": name}, within=60.0)
        except McpError as failed:
            failures.append(failed)
            ended_before.append(bool(talk.over))

    talk.do(call("a"))
    (refused,) = talk.do(call("b"))
    if closed:
        talk.book.act(talk.client.close)
    else:
        talk.book.act(lambda: talk.client.transport_closed(McpError("it forgot us"), refused=refused["id"]))
    assert [failed.unheard for failed in failures] == [False, not closed]
    assert ended_before == [not closed] * 2
    talk.do(call("c"))
    assert (failures[-1].unheard, str(failures[-1])) == (True, str(failures[0]))


def test_server_requests(talk: Talk) -> None:
    assert talk.hear(id="p", method="ping") == [{"jsonrpc": "2.0", "id": "p", "result": {}}]
    for method in ("sampling/createMessage", "elicitation/create", "roots/list", "tools/list"):
        (refused,) = talk.hear(id=7, method=method, params={})
        assert (refused["id"], refused["error"]["code"]) == (7, -32601)


def test_ignored_messages(talk: Talk) -> None:
    for text in (b"hello", b"[]", b"{", b'{"jsonrpc":"2.0","method":7}', b"\xff"):
        talk.act(lambda text=text: talk.client.receive(text))  # type: ignore[misc]  # a default of a lambda
    talk.hear(method="notifications/message", params={"data": "x"})
    assert talk.client.ignored == 6
    talk.hear(method="notifications/tools/list_changed")
    assert talk.changes == 1


def test_call_times_out_and_is_cancelled(talk: Talk) -> None:
    (asked,) = talk.do(talk.client.request("tools/call", {}, within=60.0))
    assert talk.after(59.9) == []
    (cancelled,) = talk.after(0.1)
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": asked["id"], "reason": "no caller waits for it any more"}
    assert talk.told == ["there was no answer in 60 s"]
    talk.hear(id=asked["id"], result={})
    assert talk.client.ignored == 1
    talk.do(talk.client.request("tools/call", {}, within=60.0))
    (cancelled,) = talk.act(talk.owner.cancel)  # the caller is cancelled
    assert cancelled["method"] == "notifications/cancelled"


def test_progress_extends_the_timeout_up_to_a_limit(talk: Talk) -> None:
    (asked,) = talk.do(talk.client.request("tools/call", {}, within=60.0))
    for token in (asked["id"], 99, "x", None, True):
        talk.hear(method="notifications/progress", params={"progressToken": token, "progress": 1})
    for _ in range(11):
        talk.after(55.0)
        talk.hear(method="notifications/progress", params={"progressToken": asked["id"], "progress": 1})
    assert talk.told == [f"there was no answer in {60 * LONGEST} s"]


def test_too_many_at_once(talk: Talk) -> None:
    for _ in range(MAX_ASKED):
        talk.do(talk.client.request("tools/call", {}, within=60.0))
    assert talk.do(talk.client.request("tools/call", {}, within=60.0)) == []
    assert talk.told == [f"{MAX_ASKED} requests wait for its answer already"]


def test_failed_request_and_failed_connection(talk: Talk) -> None:
    talk.do(talk.client.request("tools/call", {}, within=60.0))
    talk.do(talk.client.request("tools/call", {}, within=60.0))
    talk.act(lambda: talk.client.failed(2, McpError("broken")))
    talk.act(lambda: talk.client.failed(2, McpError("again")))
    assert talk.told == ["broken"]
    assert talk.act(lambda: talk.client.transport_closed(McpError("it has ended"))) == []  # no caller is left
    talk.act(lambda: talk.client.transport_closed(McpError("again")))
    talk.act(talk.client.close)
    assert (talk.told, talk.over, talk.bag.closed) == (["it has ended"], ["it has ended"], 1)
    talk.hear(id=3, method="ping")
    assert "method" in talk.bag.sent[-1]
    talk.do(talk.client.request("tools/call", {}, within=60.0))
    assert talk.told == ["it has ended"]


def test_first_result_of_a_request_counts(talk: Talk) -> None:
    talk.do(talk.client.request("tools/call", {}, within=60.0))

    def both() -> None:
        asked = talk.client._pending[2]
        talk.client._answer(asked, McpError("first"))
        talk.client._answer(asked, McpError("second"))

    talk.act(both)
    assert talk.told == ["first"]


def test_a_list_in_pages(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    (asked,) = talk.do(talk.client.list_all("tools/list", "tools", within=60.0))
    assert "cursor" not in asked["params"]
    (asked,) = talk.hear(id=2, result={"tools": [], "nextCursor": "c"})
    assert asked["params"]["cursor"] == "c"
    talk.hear(id=3, result={"tools": [{"name": "a"}, 7, {"name": "b"}], "nextCursor": 7})
    assert talk.told == [[{"name": "a"}, {"name": "b"}]]
    monkeypatch.setattr(mcp_client, "MAX_PAGES", 3)
    talk.do(talk.client.list_all("tools/list", "tools", within=60.0))
    for number in (4, 5, 6):
        talk.hear(id=number, result={"tools": [{}], "nextCursor": "c"})
    assert talk.told == [[{}, {}, {}]]  # an endless list
    monkeypatch.setattr(mcp_client, "MAX_ROWS", 2)
    talk.do(talk.client.list_all("tools/list", "tools", within=60.0))
    talk.hear(id=7, result={"tools": [{}, {}, {}], "nextCursor": "c"})
    assert talk.told == [[{}, {}]]
    talk.do(talk.client.list_all("tools/list", "tools", within=60.0))
    assert talk.hear(id=8, result={"tools": [{}, {}], "nextCursor": "c"}) == []  # these are as many as requested
    assert talk.told == [[{}, {}]]


@given(
    st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "message", "tools"]), inner
                )
            ),
            max_leaves=12,
        ),
        max_size=8,
    )
)
def test_no_server_message_is_a_bug(values: list[Any]) -> None:
    talk = opened()
    talk.do(talk.client.list_all("tools/list", "tools", within=60.0))
    for value in values:
        members = value if isinstance(value, dict) else {"id": 2, "result": value}
        for said in (value, {"jsonrpc": "2.0", **members}, {"jsonrpc": "2.0", "method": "ping", **members}):
            talk.act(lambda said=said: talk.client.receive(json.dumps(said)))  # type: ignore[misc]  # a default
    talk.after(1_000.0)
    assert len(talk.told) == 1
