"""MCP to the letter, of relay and API: the handshake, what is no message, who may come back to what, and `ask`.

By the specification of the protocol, versions 2025-11-25 and 2026-07-28, and docs/mcp.md.
"""

from __future__ import annotations

import json
from typing import Any

from fuzz.audit import Audit, header
from fuzz.audits.paired import pair
from fuzz.part import Round, asking
from fuzz.world import API, API_KEY, REMOTE
from runtimes.sim.host import Host
from svc_proto.version import VERSION
from svc_proto.wire.sse import EventStreamDecoder
from tests.support.sim_http import RequestClient as Caller
from tests.support.sim_http import ServerAddress as Target

__all__ = ["MESSAGES", "NEWEST", "STATELESS", "Client", "Stream"]

NEWEST, STATELESS = "2025-11-25", "2026-07-28"
VERSIONS = (
    ("2024-11-05", "2024-11-05"),
    ("2025-03-26", "2025-03-26"),
    ("2025-06-18", "2025-06-18"),
    ("1999-01-01", NEWEST),
)
BOTH = "application/json, text/event-stream"
IDLE = 1_800.0  # s after which a session ends
OF_CALLER = 32  # sessions of one caller
EVERY = 0.5  # s between two pieces of progress
LISTED = 100  # chats
Members = dict[str, Any]
# What is said, and the status and code of the answer; each is an answer of its own, whatever was said before.
NO_MESSAGES: tuple[tuple[bytes, int, int], ...] = (
    (b"{", 400, -32700),
    (b"", 400, -32700),
    (b"[]", 400, -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', 400, -32600),
)
CALLS: tuple[tuple[str, Members, int], ...] = (  # with a session: what is asked, and the code of the refusal
    ("nothing", {}, -32601),
    ("tools/call", {"name": "nothing"}, -32602),
    ("tools/call", {"name": 5}, -32602),
    ("tools/list", {"cursor": "x"}, -32602),
    ("resources/read", {"uri": "x://y"}, -32002),
    ("resources/subscribe", {"uri": "x://y"}, -32002),
    ("prompts/get", {"name": "nothing"}, -32602),
    ("initialize", {"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {}}, -32600),
)


class Stream:
    """What is told of one request: its messages, the numbers of their events, and when they came."""

    def __init__(self, audit: Audit) -> None:
        self.told: list[Members] = []
        self.ids: list[str] = []
        self.times: list[float] = []
        self.request = 0  # its number, if that is of interest
        self._audit = audit
        self._decoder = EventStreamDecoder()

    def __call__(self, data: bytes) -> None:
        """More of it."""
        for event in self._decoder.receive_data(data):
            if event.data:
                self.told.append(json.loads(event.data))
                self.ids.append(event.id or "")
                self.times.append(self._audit.now)


class Client:
    """Who speaks to one of the two servers."""

    def __init__(self, audit: Audit, place: tuple[Host, Target], token: str, name: str) -> None:
        self.audit = audit
        self.place = place
        self.token = token
        self.name = name
        self.number = 0
        self.open_ones: dict[str, None] = {}

    @classmethod
    def of_relay(cls, audit: Audit, token: str) -> Client:
        """Somebody elsewhere who has a session of the relay."""
        return cls(audit, (audit.world.agent, REMOTE), token, "svc-relay")

    @classmethod
    def of_api(cls, audit: Audit) -> Client:
        """Somebody who has the API's key."""
        return cls(audit, (audit.world.home, API), API_KEY, "svc-agent")

    def leave(self) -> None:
        """Its sessions end."""
        for session in self.open_ones:
            self.audit.answer(self.begin("DELETE", None, session))

    def end(self, session: str) -> None:
        """One of them ends, and is good for nothing any more."""
        ended = self.audit.answer(self.begin("DELETE", None, session))
        self.audit.same((ended.status, ended.answer.body), (204, b""), "the end of a session")
        self.audit.right(self.request("ping", {}, session), 404, about="a session that has ended")
        self.open_ones.pop(session)

    def fields(self, session: str = "", **more: str) -> dict[str, str]:
        """What it shows."""
        fields = {"authorization": f"Bearer {self.token}", "accept": BOTH, "content-type": "application/json"}
        fields |= {"mcp-session-id": session, "mcp-protocol-version": NEWEST} if session else {}
        return {**fields, **{name.replace("_", "-"): value for name, value in more.items()}}

    def post(self, body: bytes | Members, session: str = "", **more: str) -> Caller:
        """Say it, and wait for the answer."""
        return self.audit.answer(self.begin("POST", body, session, **more), 200.0)

    def begin(
        self, method: str, body: bytes | Members | None, session: str = "", piece: Any = None, **more: str
    ) -> Caller:
        """The same, without waiting."""
        return self.audit.begin(self.place, method, "/mcp", body, self.fields(session, **more), piece)

    def request(self, method: str, params: Members, session: str, **more: str) -> Caller:
        """The next request."""
        self.number += 1
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return self.post(body, session, **more)

    def result(self, method: str, session: str, **params: Any) -> Members:
        """Of a request that is all right."""
        caller = self.request(method, params, session)
        self.audit.right(caller, 200, about=method)
        told = _last(caller)
        self.audit.same((told.get("jsonrpc"), told.get("id")), ("2.0", self.number), f"the number of {method}")
        if "result" not in told:
            self.audit.wrong(f"{method} of {params} is answered {told}")
        return dict(told["result"])

    def read(self, session: str, uri: str) -> Any:
        """A resource that is JSON."""
        (content,) = self.result("resources/read", session, uri=uri)["contents"]
        self.audit.same(content["uri"], uri, "which resource is read")
        return json.loads(content["text"])

    def open(self, version: str = NEWEST, agreed: str = NEWEST, *, elicits: bool = False) -> str:
        """A session, from the first word on."""
        audit = self.audit
        able: Members = {"elicitation": {}} if elicits else {}
        about = {"protocolVersion": version, "capabilities": able, "clientInfo": {"name": "a", "version": "1"}}
        caller = self.request("initialize", about, "")
        told = audit.right(caller, 200)["result"]
        audit.same((told["protocolVersion"], told["serverInfo"]["name"]), (agreed, self.name), "what is agreed on")
        audit.same(told["serverInfo"]["version"], VERSION, "the version of a server")
        identity = header(caller, "mcp-session-id")
        audit.same(len(identity) >= 32, True, "whether a session has a name that nobody guesses")
        noted = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, identity)
        audit.same((noted.status, noted.answer.body), (202, b""), "a note")
        self.open_ones[identity] = None
        return identity


def _last(caller: Caller) -> Members:
    told = caller.answer.json
    if told:
        return dict(told)
    return _messages(caller)[-1]


def _messages(caller: Caller) -> list[Members]:
    events = EventStreamDecoder().receive_data(caller.answer.body)
    return [json.loads(event.data) for event in events if event.data]


def _clients(audit: Audit) -> tuple[Client, Client]:
    one = pair(audit, leaves=True)
    return Client.of_relay(audit, one.token), Client.of_api(audit)


def _words(audit: Audit, clients: tuple[Client, Client]) -> None:
    """What is no message, or none that is known, is refused as the protocol has it; nothing else comes of it."""
    client = audit.pick(clients)
    session = client.open(*audit.pick((*VERSIONS, (NEWEST, NEWEST))))
    for body, status, code in audit.rng.sample(NO_MESSAGES, 3):
        caller = client.post(body, audit.pick((session, "")))
        audit.same((caller.status, caller.answer.json["error"]["code"]), (status, code), f"the answer to {body!r}")
    audit.same(client.result("ping", session), {}, "a ping")
    for method, params, code in audit.rng.sample(CALLS, 4):
        caller = client.request(method, params, session)
        told = _last(caller)
        if (told["id"], told["error"]["code"]) != (client.number, code):
            audit.wrong(f"{method} {params} is answered {told}, and it is {code}")
    rows: tuple[tuple[str, Members, dict[str, str], int], ...] = (
        (session, {}, {"accept": "application/json"}, 406),
        (session, {}, {"content_type": "text/plain"}, 415),
        (session, {}, {"mcp_protocol_version": "1999-01-01"}, 400),
        ("0" * 32, {}, {}, 404),
        ("", {}, {}, 400),
    )
    for where, params, more, status in audit.rng.sample(rows, 3):
        audit.right(client.request("ping", params, where, **more), status, about=f"a ping with {more} in {where!r}")
    listener = audit.answer(client.begin("GET", None, "0" * 32))
    audit.right(listener, 404, about="to listen in a session of nobody")
    client.end(session)
    audit.right(audit.answer(client.begin("DELETE", None, session)), 404, about="to end it again")


def _whose(audit: Audit, _clients_: tuple[Client, Client]) -> None:
    """A session is its caller's own, lasts for half an hour of silence, and of a caller's the oldest makes room."""
    relay = _clients(audit)[0]
    other = pair(audit, leaves=True)
    stranger = Client.of_relay(audit, other.token)
    session = relay.open()
    audit.right(stranger.request("ping", {}, session), 404, about="another's session")
    audit.right(audit.answer(stranger.begin("DELETE", None, session)), 404, about="to end another's session")
    if audit.chance(0.5):
        late = audit.pick((-5.0, 5.0))
        audit.rest(IDLE / 2)
        audit.right(relay.request("ping", {}, session), 200, about="a session that is used now and then")
        audit.rest(IDLE + late)
        audit.right(
            relay.request("ping", {}, session), 404 if late > 0 else 200, about=f"a session {late} s about its end"
        )
        if late < 0:  # and while somebody listens there, it does not end; who listens last is the one who does
            first = relay.begin("GET", None, session)
            audit.rest(1.0)
            listener = relay.begin("GET", None, session)
            audit.wait(lambda: first.over, 10.0, "two listen in one session")
            audit.rest(IDLE + 60.0)
            audit.same(listener.over, False, "whether who listens is told of an end")
            listener.hang_up(reset=True)
            audit.right(relay.request("ping", {}, session), 200, about="a session in which somebody has listened")
        relay.leave()
        return
    sessions = [session, *(relay.open() for _ in range(OF_CALLER - 1))]
    audit.rest(2.0)
    used = sessions[0]
    audit.same(relay.result("ping", used), {}, "a session that is used")
    audit.rest(2.0)
    fresh = relay.open()
    gone = next(each for each in sessions if each != used)
    kept = audit.pick([each for each in sessions if each != gone])
    audit.right(relay.request("ping", {}, gone), 404, about="the session that was silent for longest")
    for each in (kept, fresh):
        audit.right(relay.request("ping", {}, each), 200, about="a session that has its place")
    audit.right(audit.ask_here("DELETE", f"/sessions/{relay.token[:8]}"), 200)
    audit.right(relay.request("ping", {}, fresh), 401, about="a session whose token has ended")


def _ask(audit: Audit, clients: tuple[Client, Client]) -> None:
    """`ask` is a turn: its words come as progress, its chat goes on, and a call that is cancelled stops it."""
    _, client = clients
    session = client.open()
    (tool,) = client.result("tools/list", session)["tools"]
    audit.same((tool["name"], tool["inputSchema"]["required"]), ("ask", ["message"]), "the tool of the agent")
    chat, words = "", list[str]()
    for _ in range(2):
        word = audit.word()
        text = asking(word, Round(text=" ".join([word] * 12), wait=audit.pick((0.0, 7.0))))
        params: Members = {"name": "ask", "arguments": {"message": text, **({"session": chat} if chat else {})}}
        params |= {"_meta": {"progressToken": word}} if audit.chance(0.7) else {}
        caller = client.request("tools/call", params, session)
        audit.right(caller, 200)
        told = _last(caller)["result"]
        said, where = (block["text"] for block in told["content"])
        audit.same((said, told["isError"]), (f"{word} " * 12, False), "what the agent has said")
        audit.same(where, f"(session: {where[10:-1]})", "where it was said")
        audit.same(where[10:-1], chat or where[10:-1], "the chat that goes on")
        chat = where[10:-1]
        words.append(text)
        _progress(audit, caller, word, said, "_meta" in params)
    rows = audit.rows_of(chat)
    audit.same([row["content"] for row in rows if row["role"] == "user"], words, "what was asked in a chat")
    told = client.read(session, f"chat://sessions/{chat}")
    is_ = [{"role": row["role"], "content": row["content"], "at": row["created_at"]} for row in rows]
    audit.same((told["session"], told["messages"]), (chat, is_), "a chat")
    told = client.read(session, "chat://sessions")
    page = audit.right(audit.ask_api("GET", "/api/sessions?limit=100"), 200)
    due = [(each["id"], each["title"]) for each in page["sessions"]]
    audit.same(
        ([(each["id"], each["title"]) for each in told["sessions"]], told["total"]), (due, page["total"]), "the chats"
    )
    unknown = client.request(
        "tools/call", {"name": "ask", "arguments": {"message": "x", "session": audit.word()}}, session
    )
    audit.same(_last(unknown)["result"]["isError"], True, "a chat that is not there")
    _cancelled(audit, client, session)


def _progress(audit: Audit, caller: Caller, word: str, said: str, wanted: bool) -> None:
    """Words as they come, each once, a piece every half second at most; nothing to who does not want it."""
    if caller.answer.json:
        audit.same(wanted, False, "whether a call that wants progress is answered in one")
        return
    notes = [event["params"] for event in _messages(caller) if event.get("method") == "notifications/progress"]
    if not wanted:
        audit.same(notes, [], "progress that nobody wants")
        return
    audit.same({note["progressToken"] for note in notes}, {word}, "whose progress it is")
    told = "".join(note["message"] for note in notes if note["message"] != "waiting")
    if not told or not said.startswith(told):
        audit.wrong(f"told as progress is {told!r}, and said is {said!r}")
    steps = [note["progress"] for note in notes]
    if steps != sorted({*steps}):
        audit.wrong(f"progress goes {steps}")


def _cancelled(audit: Audit, client: Client, session: str) -> None:
    """A call that is cancelled stops its turn; one whose connection breaks goes on, and is read later."""
    text = asking(audit.word(), Round(text="a b", wait=20.0))
    body = {"jsonrpc": "2.0", "id": 7_000, "method": "tools/call"}
    params: Members = {"name": "ask", "arguments": {"message": text}, "_meta": {"progressToken": 7_000}}
    body |= {"params": params}
    heard = Stream(audit)
    caller = client.begin("POST", body, session, heard)
    audit.wait(lambda: text in audit.world.upstream.questions, 20.0, "the model is not asked")
    if audit.chance(0.5):
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7_000}}
        audit.same(client.post(note, session).status, 202, "a note")
        audit.rest(3.0)
        audit.same(text in audit.world.upstream.questions, False, "whether a model goes on for what was cancelled")
        caller.hang_up()
        return
    audit.rest(6.0)  # it is told as events by now
    if not all(heard.ids) or not heard.ids:
        audit.wrong(f"an answer that takes long has no number: {heard.told}")
    caller.hang_up(reset=True)
    audit.rest(audit.pick((1.0, 20.0)))
    again = audit.answer(client.begin("GET", None, session, last_event_id=heard.ids[-1]), 60.0)
    audit.right(again, 200)
    told = [*heard.told, *_messages(again)]
    steps = [each["params"]["progress"] for each in told[:-1]]
    audit.same(
        ([each.get("id") for each in told[:-1]], told[-1].get("id")), ([None] * len(steps), 7_000), "what is told"
    )
    audit.same(steps, sorted({*steps}), "how a call gets on, as it is told to who comes back")
    audit.same(told[-1]["result"]["content"][0]["text"], "a b ", "what the agent has said meanwhile")
    bad = audit.answer(client.begin("GET", None, session, last_event_id=audit.pick(("x", "99-1", "1"))))
    audit.right(bad, 400, "unknown_event")


def _stateless(audit: Audit, clients: tuple[Client, Client]) -> None:
    """Each request by itself: head and body say the same, and nothing has to be opened."""
    client = audit.pick(clients)
    name = "io.modelcontextprotocol"
    meta = {f"{name}/protocolVersion": STATELESS, f"{name}/clientCapabilities": {}}
    meta[f"{name}/clientInfo"] = {"name": "a", "version": "1"}
    body: Members = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    fields = {"mcp_protocol_version": STATELESS, "mcp_method": "tools/list"}
    told = audit.right(client.post(body, **fields), 200)
    names = [tool["name"] for tool in told["result"]["tools"]]
    audit.same(len(names), 1 if client.name == "svc-agent" else 34, "how many tools there are")
    wrong: tuple[tuple[dict[str, str], int], ...] = (
        ({**fields, "mcp_method": "tools/call"}, -32020),
        ({"mcp_protocol_version": STATELESS}, -32020),
        ({**fields, "mcp_protocol_version": "2099-01-01"}, -32022),
    )
    for more, code in wrong:
        caller = client.post(body, **more)
        told = (caller.status, caller.answer.json["error"]["code"])
        if told[0] != 400 or told[1] not in (code, -32020):
            audit.wrong(f"{more} is answered {told}, and it is 400 {code}")


def messages(audit: Audit) -> None:
    """What is said by MCP, and what is not; whose sessions are; and the agent as a tool."""
    clients = _clients(audit)
    for part in audit.rng.sample((_words, _whose, _ask, _ask, _stateless), 3):
        part(audit, clients)
    for client in clients:
        client.leave()


MESSAGES = (messages,)
