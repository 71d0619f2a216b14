"""The phone's tools, by the agent of a chat and by MCP: which command each comes to, and what its answer says.

One row for each route of Device Control (wire bridge 3 and 6): what a tool is given, and what the phone has to get. A
device that does as it is told in the table's words stands for the phone.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from attrs import define

from fuzz.audit import Audit
from fuzz.audits.heard import Events, Listener
from fuzz.audits.messages import Client
from fuzz.audits.paired import Paired, pair
from fuzz.part import Round, asking
from fuzz.world import REMOTE
from tests.support.sim_http import RequestClient as Caller

__all__ = ["PHONE_TOOLS"]

Given = dict[str, Any]
ASKED_THERE = ("call", "send_sms", "send_mms")  # by a phone that has gates, wire bridge 5.2
POINT = {"x": 310, "y": "870"}
FROM_TO = {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}
SMS = {"to": "+15550100", "body": "words"}
# Name, method, path, what it is given, what the phone gets (None: the same), whether somebody is asked.
TOOLS: tuple[tuple[str, str, str, Given, Given | None, bool], ...] = (
    ("ping", "GET", "/ping", {}, None, False),
    ("setup", "POST", "/setup", {}, None, False),
    ("current_app", "GET", "/current_app", {}, None, False),
    ("return_to_app", "POST", "/return_to_hermes", {}, None, False),
    ("screen", "GET", "/screen", {}, {"include_bounds": "true"}, False),
    ("screen", "GET", "/screen", {"include_bounds": False}, {"include_bounds": "true"}, False),
    ("screen", "GET", "/screen", {"include_bounds": "true"}, {"include_bounds": "true"}, False),
    ("screen_hash", "GET", "/screen_hash", {}, None, False),
    ("diff_screen", "POST", "/diff_screen", {"previous_hash": "aa"}, None, False),
    (
        "find_nodes",
        "POST",
        "/find_nodes",
        {"text": "a", "class_name": "b", "clickable": True, "limit": 512},
        None,
        False,
    ),
    ("find_nodes", "POST", "/find_nodes", {"text": "a", "limit": "1", "more": 5}, {"text": "a", "limit": 1}, False),
    ("describe_node", "POST", "/describe_node", {"nodeId": "w0:1"}, None, False),
    ("get_apps", "GET", "/get_apps", {}, None, False),
    ("tap", "POST", "/tap", {"nodeId": "w0:1", "duration_ms": 3000}, None, False),
    ("tap", "POST", "/tap", {**POINT, "nodeId": None}, {"x": 310, "y": 870}, False),
    ("tap_text", "POST", "/tap_text", {"text": "OK"}, None, False),
    ("long_press", "POST", "/long_press", {"x": 0, "y": 0, "duration": 100}, None, False),
    ("drag", "POST", "/drag", {**FROM_TO, "duration_ms": 3000}, None, False),
    ("type", "POST", "/type", {"text": 55}, {"text": "55"}, False),
    ("swipe", "POST", "/swipe", {**FROM_TO, "duration_ms": 1}, None, False),
    ("scroll", "POST", "/scroll", {"direction": "up", "nodeId": "w0:1"}, None, False),
    ("press_key", "POST", "/press_key", {"key": "quick_settings"}, None, False),
    ("wait", "POST", "/wait", {"ms": 15_000}, None, False),
    ("wait", "POST", "/wait", {"ms": 0.0}, {"ms": 0}, False),
    ("open_app", "POST", "/open_app", {"package": "com.example"}, None, False),
    ("clipboard_read", "GET", "/clipboard", {}, None, False),
    ("clipboard_write", "POST", "/clipboard", {"text": ""}, None, False),
    ("media", "POST", "/media", {"action": "volume_down"}, None, False),
    ("events", "GET", "/events", {"limit": 500, "since": 7}, {"limit": "500", "since": "7"}, False),
    ("events_stream", "POST", "/events/stream", {"enabled": "true"}, {"enabled": True}, False),
    ("location", "GET", "/location", {}, None, False),
    ("search_contacts", "POST", "/search_contacts", {"query": "Ada", "limit": 100}, None, False),
    ("share_media", "POST", "/share_media", {"text": "t", "attachments": [{"media": "m", "x": 1}]}, None, False),
    ("send_mms", "POST", "/send_mms", {"to": "+1", "text": "b"}, None, True),
    ("send_intent", "POST", "/send_intent", {"action": "a", "extras": {"n": 1}, "component": "p/c"}, None, True),
    ("broadcast", "POST", "/broadcast", {"action": "a", "data": "d:"}, None, True),
    ("call", "POST", "/call", {"number": "+15550100"}, None, True),
    ("send_sms", "POST", "/send_sms", SMS, None, True),
)
# Name, what it is given, and what has to be in the complaint: nothing comes to the phone.
BAD: tuple[tuple[str, Given, str], ...] = (
    ("tap", {"x": -1, "y": 4}, "x must be at least 0"),
    ("tap", {"nodeId": "a", "duration_ms": 3001}, "duration_ms must be at most 3000"),
    ("long_press", {"nodeId": "a", "duration": 99}, "duration must be at least 100"),
    ("drag", {"start_x": 1, "start_y": 2, "end_x": 3}, "end_y is missing"),
    ("wait", {"ms": 15_001}, "ms must be at most 15000"),
    ("wait", {"ms": True}, "ms must be a whole number"),
    ("find_nodes", {"limit": 0}, "limit must be at least 1"),
    ("find_nodes", {"limit": 513}, "limit must be at most 512"),
    ("find_nodes", {"clickable": 1}, "clickable must be true or false"),
    ("events", {"limit": 501}, "limit must be at most 500"),
    ("search_contacts", {"query": "a", "limit": 101}, "limit must be at most 100"),
    ("search_contacts", {}, "query is missing"),
    ("press_key", {"key": "enter"}, "key must be one of back, home"),
    ("scroll", {"direction": "round"}, "direction must be one of up"),
    ("media", {"action": "stop"}, "action must be one of play"),
    ("type", {"text": None}, "text is missing"),
    ("type", {"text": ["a"]}, "text must be a string"),
    ("share_media", {"attachments": {}}, "attachments must be an array"),
    ("send_intent", {"action": "a", "extras": []}, "extras must be an object"),
    ("swipe", {"start_x": 1}, "give direction"),
)
# What a phone answers: its status and result, and words that the model has to read of it; none that were not so.
STOP = "do not try the same by other means"
FAILURES: tuple[tuple[int, Given, tuple[str, ...]], ...] = (
    (403, {"error": "user denied destructive action", "error_code": "user_denied", "final": True}, ("403", STOP)),
    (403, {"error": "blocked package com.bank"}, ("403", "blocked package com.bank", STOP)),
    (403, {"error": "off", "error_code": "bridge_disabled"}, ("403 bridge_disabled: off", "turn it on")),
    (423, {"error": "locked", "error_code": "keyguard_blocked", "final": True}, ("423", "unlock", STOP)),
    (400, {"error": "no", "error_code": "permission_denied", "required_action": "Do so."}, ("400", "grant", "Do so.")),
    (404, {"error": "node not found"}, ("404: node not found",)),
    (503, {"error": "away", "error_code": "service_unavailable"}, ("503", "accessibility")),
    (500, {"error": "boom", "instruction": "Stay.", "final": True}, ("500: boom", "Stay.", STOP)),
)
SCREEN = {
    "packageName": "p",
    "rootBounds": {"left": 100, "top": 0, "right": 1100, "bottom": 2000},
    "nodes": [
        {"nodeId": "w0:0", "text": "T", "viewId": None, "bounds": {"left": 1}, "clickable": True, "focused": False}
    ],
    "truncated": False,
    "nodeCount": 1,
}
SWIPES = {  # wire bridge 6: 15, 30 or 45 % of the axis, about the middle of the screen
    ("up", "short"): (600, 1150, 600, 850),
    ("down", None): (600, 700, 600, 1300),
    ("left", "medium"): (750, 1000, 450, 1000),
    ("right", "long"): (375, 1000, 825, 1000),
}


@define(eq=False)
class _Call:
    """A tool that somebody uses, and what came of it."""

    name: str
    given: Given
    caller: Caller
    events: Events
    heard: Listener | None = None  # what the model is asked where it is the agent's of a chat; else it is by MCP
    denied: bool = False


class _Hands:
    """A phone, and those who drive it."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.phone: Paired = pair(
            audit, name=f"phone {audit.word()}", device_id=audit.word(), surface="android", form="phone"
        )
        self.device = str(self.phone.shown["device_id"])
        self.driver = pair(audit, leaves=True)
        self.client = Client.of_relay(audit, self.driver.token)
        self.session = self.client.open()
        self.gates = audit.chance(0.4)  # it says that it has gates, so it is left to ask
        if self.gates:
            self.phone.seat.say(
                "bridge", "bridge.status", {"device": {}, "bridge": {}, "safety": {"blocklist_count": 3}}
            )
            audit.rest(0.3)

    def steps(self) -> None:
        audit = self.audit
        for row in audit.rng.sample(TOOLS, 9):
            self.use(*row)
        for name, given, words in audit.rng.sample(BAD, 2):
            self.misuse(name, given, words)
        for failure in audit.rng.sample(FAILURES, 2):
            self.fail(*failure)
        self.swipe()
        audit.pick((self.in_order, self.stopped, self.several, self.without, self.shoot))()
        self.phone.seat.hang_up()
        self.client.end(self.session)

    # --- asking for it ---

    def begin(self, name: str, given: Given, *, ours: bool | None = None) -> _Call:
        """Use a tool: the agent in a chat, whose model wants it, or a client of MCP."""
        audit, tool = self.audit, f"phone_{name}"
        given = {**given, "device": self.device}
        ours = audit.chance(0.5) if ours is None else ours
        events = Events()
        if not ours:
            body = {"jsonrpc": "2.0", "id": 900 + audit.crowd.number(), "method": "tools/call"}
            body |= {"params": {"name": tool, "arguments": given}}
            caller = self.client.begin("POST", body, self.session, events)
            return _Call(name, given, caller, events)
        text = asking(audit.word(), Round(calls=[[tool, given]]), Round(text="Done."))
        heard = Listener(audit, text)
        chat = audit.new_chat()
        path = f"/api/sessions/{chat}/chat/stream"
        caller = audit.begin_api("POST", path, {"message": text, "approvals": True}, events)
        return _Call(name, given, caller, events, heard)

    def came(self, call: _Call) -> Given:
        """The command that came to the phone."""
        seat = self.phone.seat
        self.audit.wait(lambda: bool(seat.heard) or call.caller.over, 30.0, f"{call.name} does not come to the phone")
        if not seat.heard:
            self.audit.wrong(f"{call.name} with {call.given} came to nothing: {self.found(call)}")
        payload: Given = seat.take()["payload"]
        return payload

    def found(self, call: _Call) -> tuple[bool, str]:
        """Whether it failed, and what the caller, or the model, has to read."""
        audit = self.audit
        audit.right(audit.answer(call.caller, 100.0), 200)
        if call.heard is None:
            told = call.events.told[-1][1] if call.events.told else call.caller.answer.json
            if "result" not in told:
                audit.wrong(f"{call.name} is answered {told}")
            result = told["result"]
            (block,) = result["content"]
            if not result["isError"]:
                audit.same(result["structuredContent"], json.loads(block["text"]), "a result in both forms")
            return bool(result["isError"]), str(block["text"])
        call.heard.stop()
        audit.same(len(call.heard.asked), 2, f"how often a model was asked that uses {call.name}")
        answer = call.heard.rows(1)[-1]
        audit.same((answer["role"], answer["tool_call_id"]), ("tool", "call_0_0"), "what a model is told of its call")
        text = str(answer["content"])
        self.check_events(call, text)
        return text.startswith("error: "), text.removeprefix("error: ")

    def check_events(self, call: _Call, text: str) -> None:
        """What who watches is told of a tool: that it begins, and how it ended, with what it was given."""
        audit, failed = self.audit, text.startswith("error: ")
        told = [data for name, data in call.events.told if name.startswith("tool.")]
        names = [name for name in call.events.names if name.startswith(("tool.", "approval"))]
        asked = ["tool.pending", "approval.request", "approval.responded"]
        begins = [*asked[: len(asked) * ("approval.request" in names)], *["tool.started"] * (not call.denied)]
        due = [*begins, "tool.failed" if failed else "tool.completed"]
        audit.same(names, due, f"events of {call.name}")
        for data in told:
            ids = (data["tool_name"], data["call_id"], data["tool_call_id"], data["args"])
            audit.same(ids, (f"phone_{call.name}", "call_0_0", "call_0_0", call.given), "an event of a tool")
        if failed:
            audit.same(told[-1]["error"], text.removeprefix("error: "), "why a tool has failed")
        audit.same(call.events.names[-1], "done", "the last event")

    # --- what is done ---

    def use(self, name: str, method: str, path: str, given: Given, gets: Given | None, asks: bool) -> None:
        """One tool with one answer of the phone: the command is the right one, and the answer comes whole."""
        audit = self.audit
        call = self.begin(name, given)
        gated = asks and name in ASKED_THERE and self.gates
        if asks and not gated and not self.allow(call):
            return
        came = self.came(call)
        sent = {key: value for key, value in (given if gets is None else gets).items() if value is not None}
        if name == "share_media":
            audit.same(came["body"].pop("attachments")[0]["media"], "m", "what is shared")
            sent.pop("attachments")
        is_ = {"request_id": came["request_id"], "method": method, "path": path, "body": sent}
        is_["params"] = sent if method == "GET" else {}
        audit.same(came, is_, f"what {name} comes to")
        result: Given = {"mark": audit.word(), "password": "seen"} if name != "screen" else SCREEN
        self.phone.seat.reply(came, result)
        failed, text = self.found(call)
        if name == "screen":
            bounds = given.get("include_bounds") == "true"
            node = {"nodeId": "w0:0", "text": "T", "clickable": True, **({"bounds": {"left": 1}} if bounds else {})}
            result = {**SCREEN, "nodes": [node]}
        audit.same((failed, json.loads(text)), (False, result), f"what {name} gives")

    def allow(self, call: _Call) -> bool:
        """Somebody is asked first: in the chat, or by the client, which here cannot ask. Whether it is done."""
        audit = self.audit
        if call.heard is None:
            failed, text = self.found(call)
            audit.same((failed, "nobody can be asked" in text), (True, True), f"{call.name} where nobody can be asked")
            audit.same(self.phone.seat.heard, [], "what came to the phone that nobody has allowed")
            return False
        audit.wait(lambda: "approval.request" in call.events.names, 30.0, f"nobody is asked for {call.name}")
        audit.same(self.phone.seat.heard, [], "what came to the phone before somebody has allowed it")
        (asked,) = [data for name, data in call.events.told if name == "approval.request"]
        audit.same(
            (asked["tool"], asked["choices"]),
            (f"phone_{call.name}", ["once", "session", "always", "deny"]),
            "who is asked",
        )
        wanted = {key: value for key, value in call.given.items() if key != "device"}
        if any(
            json.dumps(value) not in json.dumps(json.loads(asked["command"].partition(" ")[2]))
            for value in wanted.values()
        ):
            audit.wrong(f"asked is {asked['command']}, and it is about {wanted}")
        yes = audit.chance(0.6)
        path = f"/v1/runs/{asked['run_id']}/approval"
        body = {"choice": "once" if yes else "deny", "call_id": asked["call_id"]}
        audit.right(audit.ask_api("POST", path, body), 200)
        call.denied = not yes
        if not yes:
            failed, text = self.found(call)
            audit.same((failed, "do not" in text), (True, True), f"{call.name}, which was denied: {text}")
            audit.same(self.phone.seat.heard, [], "what came to the phone that was denied")
        return yes

    def misuse(self, name: str, given: Given, words: str) -> None:
        """What a model gets wrong is said, and nothing comes to the phone."""
        call = self.begin(name, given)
        failed, text = self.found(call)
        self.audit.same((failed, words in text), (True, True), f"{name} with {given}: {text!r}")
        self.audit.same(self.phone.seat.heard, [], f"what came to the phone of {name} with {given}")

    def fail(self, status: int, result: Given, words: tuple[str, ...]) -> None:
        """What a phone refuses, or cannot do, is said with what it means."""
        call = self.begin("tap", {"nodeId": "w0:1"})
        self.phone.seat.reply(self.came(call), result, status)
        failed, text = self.found(call)
        if not failed or any(word.lower() not in text.lower() for word in words):
            self.audit.wrong(f"{status} {result} is told as {text!r}, failed: {failed}, and {words} have to be in it")

    def swipe(self) -> None:
        """A direction becomes a line on the screen as it is now."""
        audit = self.audit
        (direction, distance), line = audit.pick(SWIPES.items())
        given = {"direction": direction, **({} if distance is None else {"distance": distance})}
        call = self.begin("swipe", given)
        first = self.came(call)
        audit.same((first["method"], first["path"]), ("GET", "/screen"), "what is looked at before a swipe")
        self.phone.seat.reply(first, SCREEN)
        then = self.came(call)
        told = (then["path"], tuple(then["body"][name] for name in FROM_TO))
        audit.same(told, ("/swipe", line), f"a swipe {given}")
        self.phone.seat.reply(then, {"ok": True})
        audit.same(self.found(call)[0], False, "whether a swipe failed")

    def in_order(self) -> None:
        """What one answer wants done on the screen is done one after another, in its order; who looks need not wait."""
        audit = self.audit
        device = {"device": self.device}
        calls = [["phone_type", {"text": f"{n}", **device}] for n in range(3)]
        text = asking(audit.word(), Round(calls=[*calls, ["phone_ping", device]]), Round(text="Done."))
        heard = Listener(audit, text)
        caller = audit.begin_api("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": text}]})
        waiting: list[Given] = []
        typed: list[str] = []
        while len(typed) < 3 or waiting:
            audit.rest(0.5)
            while self.phone.seat.heard:
                waiting.append(self.phone.seat.take()["payload"])
            acting = [each for each in waiting if each["path"] == "/type"]
            audit.same(len(acting), 1, "how many act on the screen at once")
            for each in waiting:
                typed += [each["body"]["text"]] if each["path"] == "/type" else []
                self.phone.seat.reply(each, {"n": len(typed), "path": each["path"]})
            waiting = []
            if len(typed) == 3:
                break
        audit.right(audit.answer(caller), 200)
        audit.same(typed, ["0", "1", "2"], "the order of what is typed")
        heard.stop()
        last = heard.rows()[-4:]
        told = [(row["tool_call_id"], json.loads(row["content"])["path"]) for row in last]
        due = [(f"call_0_{n}", "/type" if n < 3 else "/ping") for n in range(4)]
        audit.same(told, due, "the results of several calls")

    def stopped(self) -> None:
        """Of several calls of a turn that is stopped only that is done which was begun."""
        audit, device = self.audit, {"device": self.device}
        calls = [["phone_type", {"text": f"{n}", **device}] for n in range(3)]
        text = asking(audit.word(), Round(calls=calls), Round(text="never"))
        chat, events = audit.new_chat(), Events()
        turn = audit.begin_api("POST", f"/api/sessions/{chat}/chat/stream", {"message": text}, events)
        done = audit.rng.randrange(3)
        came: Given = self.phone.seat.take()["payload"]
        for number in range(done):
            audit.same(came["body"], {"text": f"{number}"}, "what a phone is told in a turn")
            self.phone.seat.reply(came, {"ok": True})
            came = self.phone.seat.take()["payload"]
        audit.stop_run(events.told[0][1]["run_id"])
        audit.answer(turn)
        begun = [data["call_id"] for name, data in events.told if name == "tool.started"]
        audit.same(begun, [f"call_0_{n}" for n in range(done + 1)], "the calls that were begun of a stopped turn")
        audit.rest(3.0)
        audit.same([each["payload"] for each in self.phone.seat.heard], [], "what comes to a phone of a stopped turn")
        self.phone.seat.reply(came, {"ok": True})
        audit.rest(1.0)
        audit.same(self.phone.seat.heard, [], "what comes to a phone of a turn that was stopped")

    def several(self) -> None:
        """Of two phones the one that is named is meant, by MCP and by the agent."""
        audit = self.audit
        other = pair(audit, name=f"phone {audit.word()}", device_id=audit.word(), surface="android", form="phone")
        before, self.device = self.device, str(other.shown["device_id"])
        call = self.begin("ping", {})
        other.seat.obey({"a": 1})
        audit.same(self.found(call), (False, '{"a":1}'), "what the phone that is named has answered")
        audit.same(self.phone.seat.heard, [], "what the other phone is told")
        self.device = f"nobody {audit.word()}"
        failed, text = self.found(self.begin("ping", {}))
        audit.same((failed, "unknown_device" in text), (True, True), f"a phone that is not there: {text}")
        self.device = before
        other.seat.hang_up()

    def without(self) -> None:
        """A phone that leaves while it is waited for: that is told, and not tried again."""
        audit = self.audit
        call = self.begin("tap", {"nodeId": "w0:1"})
        self.came(call)
        self.phone.seat.hang_up()
        failed, text = self.found(call)
        audit.same((failed, text[:24]), (True, "502 phone_disconnected: "), f"a phone that has left: {text}")

    def shoot(self) -> None:
        """A picture: uploaded by the phone, shown to the user by a marker, and to a client of MCP whole."""
        audit = self.audit
        data = b"\x89PNG\r\n\x1a\n" + audit.word().encode()
        headers = {"authorization": f"Bearer {self.phone.token}"}
        upload = {"content_type": "image/png", "file_name": "s.png", "content": _base64(data)}
        caller = audit.answer(audit.begin((self.phone.host, REMOTE), "POST", "/media/upload", upload, headers))
        token = audit.right(caller, 200)["token"]
        marker = audit.pick((f"MEDIA:hermes-relay://{token}", f"MEDIA:svc-relay://{token}"))
        call = self.begin("screenshot", {})
        came = self.came(call)
        audit.same((came["method"], came["path"]), ("GET", "/screenshot"), "what a picture comes to")
        self.phone.seat.reply(came, {"media": marker})
        if call.heard is not None:
            failed, text = self.found(call)
            audit.same((failed, text.splitlines()[-1]), (False, f"MEDIA:svc-relay://{token}"), "what a picture gives")
            return
        audit.right(audit.answer(call.caller), 200)
        told = call.events.told[-1][1] if call.events.told else call.caller.answer.json
        due = [{"type": "image", "data": _base64(data), "mimeType": "image/png"}]
        audit.same((told["result"]["content"], told["result"]["isError"]), (due, False), "a picture by MCP")


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def phone_tools(audit: Audit) -> None:
    """Tools of the phone: commands, answers, refusals, order and pictures."""
    _Hands(audit).steps()


PHONE_TOOLS = (phone_tools, phone_tools)
