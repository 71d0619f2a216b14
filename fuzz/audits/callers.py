"""Who calls the phone's tools by MCP: questions, how a call gets on, who goes, who may only look, and who listens.

In versions with the handshake, and in 2026-07-28, where each request stands by itself (docs/mcp.md, decisions 96, 99,
153 and 160). A device that does as it is told stands for the phone.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from fuzz.audit import Audit
from fuzz.audits.messages import STATELESS, Client, Stream
from fuzz.audits.paired import pair, register, sign_in
from tests.support.sim_http import RequestClient as Caller

__all__ = ["CALLERS"]

META = "io.modelcontextprotocol/"
LOOKS = (
    *("ping", "current_app", "screen", "screen_hash", "diff_screen", "find_nodes", "describe_node", "screenshot"),
    *("get_apps", "clipboard_read", "events", "location", "search_contacts"),
)
ACTS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("tap", {"x": 1, "y": 1}), ("clipboard_write", {"text": "x"})),
    *(("wait", {"seconds": 1}), ("call", {"number": "1"})),
)
ASKED = 32  # questions of a caller in the stateless way that are remembered
PATIENCE = 180.0  # s for an answer to a question
EVERY, DEFER = 5.0, 5.0  # s between two notes of progress; until an answer is a stream
LISTENING = 32  # requests of a caller that listen
DENIED, NOBODY, READ_ONLY = "denied this, or did not answer", "nobody can be asked", "may only look"
RESOURCES = ("screen", "screenshot", "current_app", "apps", "notifications", "activity", "devices")
READ_BY: dict[str, tuple[str, dict[str, str]]] = {
    "screen": ("/screen", {"include_bounds": "true"}),
    "current_app": ("/current_app", {}),
    "apps": ("/get_apps", {}),
}
NOTES, DEVICES = "phone://notifications", "phone://devices"
WITHHELD = ("chat", "terminal", "bridge", "tui", "voice:config", "voice:stt", "voice:tts", "voice:realtime")
Members = dict[str, Any]


class _Bench:
    """A phone, and two who may drive it."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.phone = pair(audit, name=audit.word(), device_id=audit.word(), surface="android", form="phone")
        self.device = str(self.phone.shown["device_id"])
        self.drivers = [pair(audit) for _ in range(2)]
        for each in self.drivers:
            each.seat.hang_up()
        self.clients = [Client.of_relay(audit, each.token) for each in self.drivers]
        self.number = 0

    def leave(self) -> None:
        for client in self.clients:
            client.leave()
        self.phone.seat.hang_up()

    # --- the phone ---

    def came(self) -> Members:
        """What it is told to do now."""
        payload: Members = self.phone.seat.take()["payload"]
        return payload

    def nothing_came(self, about: str) -> None:
        self.audit.rest(1.0)
        self.audit.same([each["payload"].get("path") for each in self.phone.seat.heard], [], f"at a phone: {about}")

    # --- 2026-07-28 ---

    def by_itself(self, client: Client, method: str, params: Members, *, elicits: bool = True) -> tuple[Caller, Stream]:
        """A request that says all by itself."""
        self.number += 1
        asked: Members = {"elicitation": {}} if elicits else {}
        meta = {f"{META}protocolVersion": STATELESS, f"{META}clientCapabilities": asked}
        meta[f"{META}clientInfo"] = {"name": "a", "version": "1"}
        meta |= params.pop("_meta", {})
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": {**params, "_meta": meta}}
        fields = {"mcp_protocol_version": STATELESS, "mcp_method": method}
        fields |= {"mcp_name": params["name"]} if "name" in params else {}
        stream = Stream(self.audit)
        return client.begin("POST", body, "", stream, **fields), stream

    def result(self, caller: Caller, stream: Stream) -> Members:
        """What it comes to."""
        self.audit.right(self.audit.answer(caller, 250.0), 200)
        told = stream.told[-1] if stream.told else caller.answer.json
        if "result" not in told:
            self.audit.wrong(f"{told} is told, and a result is due")
        return dict(told["result"])


def _words(result: Members) -> str:
    return str(result["content"][0]["text"])


class _Asked:
    """One call that asks, and its question in the stateless way."""

    def __init__(self, bench: _Bench) -> None:
        self.bench, self.audit = bench, bench.audit
        self.client, self.other = bench.clients
        kinds = (("phone_call", {"number": "1"}), ("phone_broadcast", {"action": "a.b.C"}))
        self.name, given = self.audit.pick(kinds)
        self.given = {**given, "device": bench.device}

    def call(self, who: Client, name: str, given: Members, **more: object) -> tuple[Caller, Stream]:
        return self.bench.by_itself(who, "tools/call", {"name": name, "arguments": given, **more})

    def ask(self) -> str:
        return self.question(self.call(self.client, self.name, self.given), self.given, "a call that asks")

    def question(self, asked: tuple[Caller, Stream], given: Members, about: str) -> str:
        """That is what it comes to, and nothing else: the state under which it is asked."""
        audit, told = self.audit, self.bench.result(*asked)
        if told["resultType"] != "input_required":
            audit.wrong(f"{about} is answered {told}")
        confirm = told["inputRequests"]["confirm"]
        form = {"type": "object", "properties": {}}
        kind = (confirm["method"], confirm["params"]["mode"], confirm["params"]["requestedSchema"])
        audit.same(kind, ("elicitation/create", "form", form), "a question")
        said = confirm["params"]["message"]
        if any(json.dumps(value) not in said for name, value in given.items()):
            audit.wrong(f"asked is {said!r}, and it is about {given}")
        self.bench.nothing_came(about)
        return str(told["requestState"])

    def again(
        self, who: Client, state: str, said: str = "accept", name: str = "", **other: object
    ) -> tuple[Caller, Stream]:
        """It comes again, with an answer."""
        told = {"confirm": {"action": said, "content": {}}}
        given = {**other, "device": self.bench.device} if name else {**self.given, **other}
        return self.call(who, name or self.name, given, requestState=state, inputResponses=told)

    def misuse(self, state: str) -> str:
        """A yes with what it was not said to; the state that is good now."""
        key, number = next(iter(self.given)), self.audit.rng.randrange(5)
        sms = {"to": "1", "body": "x"}
        if number == 0:
            self.question(self.again(self.client, state, **{key: "2"}), {key: "2"}, "other arguments")
            return self.ask()  # what was shown with another call is good no more
        if number == 1:
            self.question(self.again(self.client, state, name="phone_send_sms", **sms), sms, "another tool")
            return self.ask()
        who, shown, about = (
            (self.other, state, "another caller"),
            (self.client, "0" * 32, "a state of nobody"),
            (self.client, "", "no state"),
        )[number - 2]
        self.question(self.again(who, shown), self.given, about)
        return state

    def use(self, state: str, action: str = "accept") -> None:
        """It is done after a yes, once."""
        audit, bench = self.audit, self.bench
        caller, stream = self.again(self.client, state, action)
        if action == "accept":
            came = bench.came()
            due = {each: self.given[each] for each in self.given if each != "device"}
            audit.same(came["body"], due, "what a phone is told")
            bench.phone.seat.reply(came, {"ok": True})
            told = bench.result(caller, stream)
            kind = (told["resultType"], told["isError"], told["structuredContent"])
            audit.same(kind, ("complete", False, {"ok": True}), "a call that was allowed")
        else:
            told = bench.result(caller, stream)
            audit.same((told["isError"], DENIED in _words(told)), (True, True), f"a call, behind {action}")
        bench.nothing_came(f"behind {action}")
        self.question(self.again(self.client, state), self.given, "a call that comes again with what was shown before")


def _confirmed(bench: _Bench) -> None:
    """A question in the stateless way is about one call of one caller; the yes to it is good once."""
    audit, asked = bench.audit, _Asked(bench)
    given = {"name": asked.name, "arguments": asked.given}
    muted = bench.result(*bench.by_itself(asked.client, "tools/call", given, elicits=False))
    audit.same((muted["isError"], NOBODY in _words(muted)), (True, True), "a call where nobody can be asked")
    state = asked.ask()
    for _ in range(audit.rng.randint(1, 3)):
        state = asked.misuse(state)
    asked.use(state, audit.pick(("accept", "accept", "accept", "decline", "cancel", "Accept")))
    if audit.chance(0.3):
        more = ASKED - audit.pick((0, 1))
        state = asked.ask()
        for _ in range(more):
            asked.ask()
        if more < ASKED:
            asked.use(state)
        else:
            asked.question(asked.again(asked.client, state), asked.given, "a question behind too many others")


# --- with the handshake ---


def _answered(bench: _Bench) -> None:
    """A question in a session is answered there, by its number, once, and in time."""
    audit, (client, other) = bench.audit, bench.clients
    session, second, foreign = client.open(elicits=True), client.open(elicits=True), other.open(elicits=True)
    for _ in range(audit.rng.randint(2, 3)):
        mark = audit.word()
        calls = [_begun(bench, client, session, "phone_call", {"number": f"{mark}-{n}"}) for n in range(2)]
        asks: list[str] = []
        for _, stream in calls:
            audit.wait(partial(_is_told, stream), 10.0, "nobody is asked")
            (told,) = stream.told
            audit.same(told["method"], "elicitation/create", "what is asked")
            asks.append(told["id"])
        audit.same(len({*asks}), 2, "the numbers of two questions")
        bench.nothing_came("before anybody has said so")
        place = audit.rng.randrange(2)
        good: Members = {"jsonrpc": "2.0", "id": asks[place], "result": {"action": "accept", "content": {}}}
        for who, where in ((client, second), (other, foreign)):
            audit.same(who.post(good, where).status, 202, "an answer elsewhere")
        audit.right(other.post(good, session), 404, about="an answer in another's session")
        bench.nothing_came("an answer elsewhere")
        way = audit.pick(("accept", "accept", "decline", "late"))
        if way == "late":
            audit.rest(PATIENCE - 8.0)
            audit.same([caller.over for caller, _ in calls], [False, False], "whether somebody is waited for")
            audit.rest(12.0)
            place = -1
        else:
            audit.same(client.post({**good, "result": {"action": way}}, session).status, 202, "an answer")
            audit.same(client.post(good, session).status, 202, "a second answer")
        for number, (caller, stream) in enumerate(calls):
            if way == "accept" and number == place:
                came = bench.came()
                audit.same(came["body"], {"number": f"{mark}-{number}"}, "what a phone is told")
                bench.phone.seat.reply(came, {"ok": True})
            elif way != "late" and number != place:  # which is not wanted any more
                note = {"method": "notifications/cancelled", "params": {"requestId": stream.request}}
                audit.same(client.post({"jsonrpc": "2.0", **note}, session).status, 202, "to want no answer")
                audit.answer(caller, 10.0)
                audit.same(
                    [each["id"] for each in stream.told if "result" in each], [], "an answer to what was cancelled"
                )
                late = client.post({**good, "id": asks[number]}, session)
                audit.same(late.status, 202, "an answer to what nobody asks any more")
                continue
            audit.right(audit.answer(caller, 10.0), 200)
            last = stream.told[-1]["result"]
            failed = not (way == "accept" and number == place)
            audit.same((last["isError"], DENIED in _words(last)), (failed, failed), f"a call behind {way}")
            off = [
                each["params"]["requestId"] for each in stream.told if each.get("method") == "notifications/cancelled"
            ]
            audit.same(off, asks[number : number + 1] if way == "late" else [], "a question that is taken back")
        bench.nothing_came(f"behind {way}")


def _is_told(stream: Stream) -> bool:
    return bool(stream.told)


def _begun(
    bench: _Bench, client: Client, session: str, name: str, given: Members, token: object = None
) -> tuple[Caller, Stream]:
    """A call of a tool, as it is told."""
    client.number += 1
    params: Members = {"name": name, "arguments": {**given, "device": bench.device}}
    params |= {} if token is None else {"_meta": {"progressToken": token}}
    stream = Stream(bench.audit)
    stream.request = client.number
    body: Members = {"jsonrpc": "2.0", "id": client.number, "method": "tools/call", "params": params}
    return client.begin("POST", body, session, stream), stream


def _waited(bench: _Bench) -> None:
    """How a call gets on is told every five seconds, to who wants to hear; what acts is done one after another."""
    audit, client = bench.audit, bench.clients[0]
    session, lasts = client.open(), audit.pick((3.0, 4.5, 6.0, 12.0, 26.0))
    wants = audit.chance(0.6)
    token = audit.pick((7, "seven")) if wants else None
    first, heard = _begun(bench, client, session, "phone_type", {"text": "1"}, token)
    came = bench.came()
    second, queued = _begun(bench, client, session, "phone_type", {"text": "2"})
    _begun(bench, client, session, "phone_find_nodes", {"text": "3"})
    audit.same(bench.came()["body"], {"text": "3"}, "what need not wait")
    began = audit.now
    way = audit.pick(("wait", "wait", "cancel first", "cancel second", "leave", "end", "end", "same"))
    audit.rest(1.0)
    bench.nothing_came("while another acts")
    if way == "same":  # a number that is under way
        client.number -= 1
        told = audit.answer(_begun(bench, client, session, "phone_type", {"text": "4"})[0]).answer.json
        audit.same(told["error"]["code"], -32600, "a number that is under way")
    if way.startswith("cancel"):
        place = (heard, queued)[way == "cancel second"]
        note = {"method": "notifications/cancelled", "params": {"requestId": place.request}}
        audit.same(client.post({"jsonrpc": "2.0", **note}, session).status, 202, "a note")
    if way == "end":
        audit.same(audit.answer(client.begin("DELETE", None, session)).status, 204, "an end")
        client.open_ones.pop(session)
    if way == "cancel first":
        audit.same(bench.came()["body"], {"text": "2"}, "what has waited for what was cancelled")
        return
    if way == "leave":
        first.hang_up(reset=True)
    audit.rest_until(began + lasts)
    if way == "end":
        bench.nothing_came("of a session that has ended")
        return
    bench.phone.seat.reply(came, {"n": 1})
    if way == "cancel second":
        bench.nothing_came("that was cancelled while it waited")
    else:
        then = bench.came()
        audit.same(then["body"], {"text": "2"}, "what has waited")
        bench.phone.seat.reply(then, {"n": 2})
        audit.right(audit.answer(second), 200)
    if way == "leave":
        return
    audit.right(audit.answer(first), 200)
    notes = [each["params"] for each in heard.told if "method" in each]
    due = int((audit.now - began) // EVERY) if wants else 0
    audit.near(len(notes), due, f"how often is told how a call of {lasts:.0f} s gets on", 1.0 if wants else 0.1)
    if lasts < EVERY - 1.0:
        audit.same(notes, [], "what is told of a call that is quick")
    steps = [note["progress"] for note in notes]
    audit.same(({note["progressToken"] for note in notes} - {token}, steps), (set(), sorted({*steps})), "progress")
    streamed = bool(heard.told)
    if abs(lasts - DEFER) > 0.7:
        audit.same(streamed, lasts > DEFER, f"whether a call of {lasts:.0f} s is told as events")
    last = heard.told[-1] if streamed else first.answer.json
    audit.same((last["id"], last["result"]["structuredContent"]), (heard.request, {"n": 1}), "what a call comes to")
    places = [each.split("-") for each in heard.ids]
    audit.same([int(place) for _, place in places], [*range(1, len(places) + 1)], "the numbers of events")
    audit.same(len({number for number, _ in places}) < 2, True, "the number of a stream")


def _left(bench: _Bench) -> None:
    """In the stateless way to leave is to cancel: what has waited is not done, and makes no place worse."""
    audit, (client, other) = bench.audit, bench.clients
    calls = [bench.by_itself(client, "tools/call", _type(bench, 0))]
    came = bench.came()
    for number in (1, 2):
        calls.append(bench.by_itself(client, "tools/call", _type(bench, number)))
        audit.rest(0.3)
    audit.same(came["body"], {"text": "0"}, "what comes first")
    elsewhere = bench.by_itself(other, "tools/call", _type(bench, 9))  # another caller's line is another's
    theirs = bench.came()
    audit.same(theirs["body"], {"text": "9"}, "what another caller wants")
    bench.phone.seat.reply(theirs, {"n": 9})
    audit.same(bench.result(*elsewhere)["structuredContent"], {"n": 9}, "what another caller is told")
    place = audit.rng.randrange(3)
    audit.rest(audit.pick((0.0, 1.0, 6.0)))
    calls[place][0].hang_up(reset=True)
    audit.rest(1.0)
    if place:
        bench.nothing_came("while another acts")
        bench.phone.seat.reply(came, {"n": 0})
        audit.same(bench.result(*calls[0])["structuredContent"], {"n": 0}, "what a call comes to")
    for number in range(1, 3):
        if number != place:
            came = bench.came()
            audit.same(came["body"], {"text": f"{number}"}, f"what comes behind, of three, when {place} has left")
            bench.phone.seat.reply(came, {"n": number})
            audit.same(bench.result(*calls[number])["structuredContent"], {"n": number}, "what a call comes to")
    bench.nothing_came("of who has left")


def _type(bench: _Bench, number: int) -> Members:
    return {"name": "phone_type", "arguments": {"text": f"{number}", "device": bench.device}}


# --- who may only look ---


def _looks(bench: _Bench) -> None:
    """`bridge:read` has the tools that only read, refuses others in words, and opens `/mcp` alone."""
    audit = bench.audit
    code = register(audit, grants=dict.fromkeys(WITHHELD, False) | {"bridge:read": 3_600}, ttl_seconds=3_600)
    seat = sign_in(audit, audit.host(), {"pairing_code": code})
    token = seat.take()["payload"]["session_token"]
    audit.world.secrets[token] = "a token that may only look"
    seat.hang_up()
    client = Client.of_relay(audit, token)
    session = client.open()
    told = client.result("tools/list", session)["tools"]
    audit.same([each["name"] for each in told], [f"phone_{name}" for name in LOOKS], "the tools that only look")
    audit.same({each["annotations"]["readOnlyHint"] for each in told}, {True}, "what is told of them")
    whole = {
        each["name"]: each["annotations"]
        for each in bench.clients[0].result("tools/list", bench.clients[0].open())["tools"]
    }
    audit.same(len(whole), 34, "how many tools there are")
    reads = [name for name, hints in whole.items() if hints["readOnlyHint"]]
    audit.same(reads, [each["name"] for each in told], "the tools that are told to be read-only")
    asks = [name for name, hints in whole.items() if hints["destructiveHint"]]
    due = [f"phone_{name}" for name in ("send_intent", "broadcast", "call", "send_sms", "send_mms")]
    audit.same(asks, due, "the tools that are told to be more than that")
    for name, given in audit.rng.sample(ACTS, 2):
        caller, _ = _begun(bench, client, session, f"phone_{name}", given)
        said = audit.answer(caller).answer.json["result"]
        audit.same((said["isError"], READ_ONLY in _words(said)), (True, True), f"{name} of who may only look")
    bench.nothing_came("of who may only look")
    caller, _ = _begun(bench, client, session, "phone_find_nodes", {"text": "x"})
    bench.phone.seat.reply(bench.came(), {"nodes": []})
    audit.same(audit.answer(caller).answer.json["result"]["structuredContent"], {"nodes": []}, "what who looks is told")
    for method, path in audit.rng.sample((("GET", "/screen"), ("POST", "/tap"), ("POST", "/type")), 2):
        status = audit.ask(token, method, path, {"text": "x"} if method == "POST" else None).status
        audit.same(status in (401, 403), True, f"{path} of who may only look is {status}")
    client.leave()


# --- who listens ---


def _listens(bench: _Bench) -> None:
    """A request that listens is told what it can hear of, then each change, and in the end that there is no more."""
    audit, client = bench.audit, bench.clients[0]
    wanted = audit.pick(([NOTES], [DEVICES, NOTES, NOTES], [NOTES, "phone://screen", "x://y"], ["phone://screen"], []))
    good = [uri for uri in dict.fromkeys(wanted) if uri in (NOTES, DEVICES)]
    caller, stream = bench.by_itself(
        client, "subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}}
    )
    audit.wait(lambda: bool(stream.told), 10.0, "nobody says that it listens")
    number, meta = bench.number, {f"{META}subscriptionId": bench.number}
    known = {"resourceSubscriptions": good} if good else {}
    first = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}
    audit.same(stream.told, [{**first, "params": {"notifications": known, "_meta": meta}}], "what is listened to")
    audit.rest(2.0)
    for _ in range(audit.rng.randint(1, 3)):
        before = len(stream.told)
        for n in range(audit.pick((1, 3))):
            note = {"package_name": "com.example", "title": audit.word(), "text": None, "key": f"{n}"}
            bench.phone.seat.say("notifications", "notification.posted", note)
        audit.rest(3.0)
        fresh = stream.told[before:]
        update = {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": NOTES, "_meta": meta},
        }
        if len(fresh) > 2 or [each for each in fresh if each != update] or bool(fresh) != (NOTES in good):
            audit.wrong(f"told is {fresh}, and listened to is {good}")
    if audit.chance(0.5):
        more = [bench.by_itself(client, "subscriptions/listen", {"notifications": {}}) for _ in range(LISTENING)]
        audit.rest(1.0)
        there = [(caller, each) for caller, each in more if each.told]
        full = [caller.answer.json["error"]["code"] for caller, each in more if not each.told]
        audit.same((len(there), full), (LISTENING - 1, [-32000]), "how many may listen")
        there[0][0].hang_up(reset=True)
        audit.rest(1.0)
        _, later = bench.by_itself(client, "subscriptions/listen", {"notifications": {}})
        audit.rest(1.0)
        audit.same([each["method"] for each in later.told], [first["method"]], "who has the place of one that has left")
    heard, ended = len(stream.told), audit.chance(0.5)
    path = f"/sessions/{client.token[:8]}"
    if ended:
        audit.right(audit.ask_here("DELETE", path), 200)
    else:  # the session stays, and lets nobody in here any more
        audit.right(audit.ask_here("PATCH", path, {"grants": {"bridge": False}}), 200)
    audit.wait(lambda: caller.over, 10.0, "who listens is told nothing of the end")
    last = [(each.get("id"), each.get("result", {}).get("resultType")) for each in stream.told[heard:]]
    audit.same(last, [] if ended else [(number, "complete")], "the end of who listens")
    late, _ = bench.by_itself(client, "tools/list", {})
    audit.right(audit.answer(late), 401 if ended else 403, about="who is not let in any more")
    client.open_ones.clear()


# --- what can be read ---


def _reads(bench: _Bench) -> None:
    """Resources and prompts: what a phone is asked for them, and what is told of it."""
    audit, client = bench.audit, bench.clients[0]
    session = client.open()
    audit.right(audit.ask_here("POST", f"/bridge/select-active?device={bench.device}", {}), 200)
    listed = client.result("resources/list", session)["resources"]
    audit.same([each["uri"] for each in listed], [f"phone://{name}" for name in RESOURCES], "the resources")
    for name, (path, wanted) in audit.rng.sample([*READ_BY.items()], 2):
        client.number += 1
        body: Members = {"jsonrpc": "2.0", "id": client.number, "method": "resources/read"}
        body["params"] = {"uri": f"phone://{name}"}
        caller = client.begin("POST", body, session)
        came = bench.came()
        audit.same((came["method"], came["path"], came["params"]), ("GET", path, wanted), f"what {name} is read by")
        fails = audit.chance(0.3)
        result = {"error": "away"} if fails else {"mark": audit.word()}
        bench.phone.seat.reply(came, result, 503 if fails else 200)
        told = audit.right(audit.answer(caller), 200)
        if fails:
            audit.same(told["error"]["code"], -32002, f"{name} that cannot be read")
            continue
        (content,) = told["result"]["contents"]
        kind = (content["uri"], content["mimeType"], json.loads(content["text"]))
        audit.same(kind, (f"phone://{name}", "application/json", result), f"what {name} is")
    rows = [row for row in client.read(session, DEVICES)["devices"] if row["device_id"] == bench.device]
    shown = [(row["device_name"], row["active"], {*row}) for row in rows]
    members = {"device_id", "device_name", "aliases", "active"}
    audit.same(shown, [(bench.phone.shown["device_name"], True, members)], "what is told of a phone")
    listed = client.result("prompts/list", session)["prompts"]
    told = {each["name"]: [row["name"] for row in each["arguments"]] for each in listed}
    audit.same(told, {"read_screen": [], "use_app": ["app", "task"], "catch_up": []}, "the prompts")
    given = {"app": audit.pick(("Maps", "{task}")), "task": audit.word()}
    prompt = client.result("prompts/get", session, name="use_app", arguments=given)
    ((who, said),) = [(row["role"], row["content"]["text"]) for row in prompt["messages"]]
    audit.same((who, f"open {given['app']} and {given['task']}." in said), ("user", True), f"a prompt: {said}")
    caller = client.request("prompts/get", {"name": "use_app", "arguments": {"app": "x"}}, session)
    audit.same(caller.answer.json["error"]["code"], -32602, "a prompt that lacks something")


PARTS = (_confirmed, _confirmed, _answered, _waited, _waited, _left, _looks, _listens, _reads)


def callers(audit: Audit) -> None:
    """Some who call a phone."""
    for part in audit.rng.sample(PARTS, 3):
        bench = _Bench(audit)
        part(bench)
        bench.leave()


CALLERS = (callers, callers)
