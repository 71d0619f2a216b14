"""What a phone is told to do, route by route: what it can use reaches it as it was said, and nothing else does."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from fuzz.audit import Audit
from fuzz.audits.paired import Paired, pair
from tests.support.sim_http import RequestClient as Caller

__all__ = ["DRIVEN"]

Bodies = tuple[dict[str, Any], ...]
POINT, LINE = {"x": 1, "y": 2}, {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}
NUMBERS: Bodies = ({"x": "x"}, {"x": -1}, {"x": 1.5}, {"x": "1.5"}, {"x": True}, {"x": [1]}, {"x": None}, {"x": ""})


def _spoilt(good: dict[str, Any], name: str) -> Bodies:
    """The same, with a number that is none."""
    return tuple({**good, name: bad["x"]} for bad in NUMBERS)


def _spoilt_by(name: str, *values: Any, **more: Any) -> Bodies:
    return (*({**more, name: value} for value in values), {**more})


def _word(name: str, **more: Any) -> tuple[Bodies, Bodies]:
    """A text that has to be there, and to say something."""
    good: Bodies = ({name: "a word", **more}, {name: 5, **more}, {name: "é ", **more, "more": {"a": [None]}})
    return good, _spoilt_by(name, "", "  ", None, True, ["x"], {}, **more)


def _text(name: str) -> tuple[Bodies, Bodies]:
    """A text that has to be there, and may be empty."""
    return ({name: ""}, {name: "x"}, {name: 5}), _spoilt_by(name, None, True, ["x"], {})


def _flag(name: str) -> tuple[Bodies, Bodies]:
    good = tuple({name: each} for each in (True, False, "true", "false"))
    return good, _spoilt_by(name, "True", 1, "yes", None, [])


DIRECTIONS = ("up", "DOWN", "left", "right")
ROUTES: dict[str, tuple[Bodies, Bodies]] = {  # of POST: what is good, and what is not
    "/setup": (({}, {"a": 1}), ()),
    "/diff_screen": _word("previous_hash"),
    "/find_nodes": (
        ({}, {"text": "x", "class_name": "c", "clickable": "true", "limit": "5"}),
        ({"limit": "x"}, {"clickable": "no"}),
    ),
    "/describe_node": (({"nodeId": "w0:1"}, {"node_id": "w0:1"}), ({}, {"nodeId": " "}, {"nodeId": True})),
    "/tap": (
        (POINT, {"x": "3", "y": "4"}, {"nodeId": "w0:1"}, {**POINT, "duration_ms": 5}),
        (*_spoilt(POINT, "x"), {"x": 1}, {}, {"nodeId": " "}, {**POINT, "duration_ms": "x"}),
    ),
    "/tap_text": _word("text"),
    "/long_press": (
        (POINT, {"node_id": "w0:1"}, {"nodeId": "w0:1", "duration": 100}),
        (*_spoilt(POINT, "y"), {"y": 1}, {}),
    ),
    "/drag": (
        (LINE, {**LINE, "duration_ms": "9"}),
        (*_spoilt(LINE, "end_x"), *(_spoilt(LINE, "start_y")[1:2] * 4), {**LINE, "duration_ms": 1.5}, {"start_x": 1}),
    ),
    "/type": _text("text"),
    "/swipe": (
        (LINE, {**LINE, "start_x": -5}, *({"direction": each} for each in DIRECTIONS)),
        ({**LINE, "end_y": "x"}, {"start_x": 1}, {"direction": "away"}, {}),
    ),
    "/scroll": (tuple({"direction": each} for each in DIRECTIONS), ({"direction": "away"}, {"direction": 5}, {})),
    "/press_key": _word("key"),
    "/wait": (({}, {"ms": 5}, {"ms": "5"}), ({"ms": "x"}, {"ms": 1.5}, {"ms": []})),
    "/open_app": _word("package"),
    "/clipboard": _text("text"),
    "/media": _word("action"),
    "/send_intent": _word("action", extras={"a": 1}),
    "/broadcast": _word("action"),
    "/events/stream": _flag("enabled"),
    "/search_contacts": _word("query", limit=5),
    "/call": _word("number"),
    "/send_sms": _word("to", body="hello"),
    "/return_to_svc": (({}, {"a": 1}), ()),
    "/return_to_hermes": (({},), ()),
}
QUERIES: dict[str, tuple[Bodies, Bodies]] = {  # of GET
    **{
        path: (({}, {"a": "b c"}), ())
        for path in ("/ping", "/current_app", "/screen_hash", "/get_apps", "/apps", "/location")
    },
    "/screenshot": (({},), ()),
    "/clipboard": (({},), ()),
    "/screen": (({}, {"include_bounds": "true"}, {"include_bounds": "false"}), ({"include_bounds": "yes"},)),
    "/events": (({}, {"limit": "5", "since": "0"}), ({"limit": "x"}, {"since": "1.5"})),
}
MOST_AT_ONCE = 40
EMPTY = (b"nonsense", b"[1]", b"5", b"", b"null", b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": 1} x')  # wire bridge 2.1
MOST_KEPT, SHOWN = 8_192, 500  # characters of a record's params; of more, those that are shown
ASKS = "asks_its_user"  # in a call: only for a phone that asks by itself (decision 49)


def driven(audit: Audit) -> None:
    """Each route with what it takes, and what it does not."""
    phone, one = pair(audit, device_id=audit.word(), surface="android", form="phone"), pair(audit, leaves=True)
    seat, device = phone.seat, phone.shown["device_id"]
    rows = [("POST", path, *rows) for path, rows in ROUTES.items()] + [
        ("GET", path, *rows) for path, rows in QUERIES.items()
    ]
    for method, path, good, bad in audit.rng.sample(rows, 14):
        for fits, body in [(True, audit.pick(good))] + [
            (False, each) for each in audit.rng.sample(bad, min(6, len(bad)))
        ]:
            target = path
            if method == "GET":
                query = {**body, "device": device}
                target += "?" + "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
                caller = audit.begin_as(one.token, method, target)
            else:
                caller = audit.begin_as(one.token, method, target, {**body, "device": device})
            audit.wait(lambda: bool(seat.heard) or caller.over, 10.0, f"{method} {path} comes to nothing")  # noqa: B023
            if not fits:
                if seat.heard:
                    audit.wrong(f"{method} {path} with {body} reached a phone: {seat.heard}")
                audit.right(caller, 400, "invalid_field", f"{method} {path} with {body}")
                continue
            if caller.over:
                audit.wrong(f"{method} {path} with {body} got {caller.status} {caller.answer.body!r:.200}")
            told = seat.take()["payload"]
            sent = {name: value for name, value in body.items() if value is not None}
            theirs = path.replace("_svc", "_hermes")
            is_ = (method, theirs, sent, sent if method == "GET" else {})
            audit.same((told["method"], told["path"], told["body"], told["params"]), is_, "what a phone is told")
            word = {"said": audit.word()}
            seat.reply(told, word)
            audit.same(audit.right(audit.answer(caller), 200), word, f"what {path} is answered")
    _at_once(audit, one.token, phone.seat, device)
    for part in audit.rng.sample((_unread, _long, _asks_itself, _by_head), 3):
        part(audit, one, phone)
    seat.hang_up()


def _done(audit: Audit, caller: Caller, phone: Paired) -> dict[str, Any]:
    """What the phone is told, which it does."""
    audit.wait(lambda: bool(phone.seat.heard) or caller.over, 10.0, f"{caller.path} comes to nothing")
    if caller.over:
        audit.wrong(f"{caller.method} {caller.path} got {caller.status} {caller.answer.body!r:.200}")
    told = phone.seat.obey({"a": 1})
    audit.right(audit.answer(caller), 200)
    return told


def _unread(audit: Audit, one: Paired, phone: Paired) -> None:
    """A body that is no object counts as none."""
    for body in audit.rng.sample(EMPTY, 3):
        target = f"/setup?device={phone.shown['device_id']}&q=1"
        told = _done(audit, audit.begin_as(one.token, "POST", target, body, content_type="text/plain"), phone)
        audit.same((told["params"], told["body"]), ({"q": "1"}, {}), f"what a phone is told of {body!r}")


def _long(audit: Audit, one: Paired, phone: Paired) -> None:
    """Of what is long the activity keeps the beginning, and that says nothing secret; the phone gets all of it."""
    device = phone.shown["device_id"]
    secret = audit.pick(({"token": "hush"}, {"a": [{"Secret": "hush"}]}, {}))
    room = MOST_KEPT - 1 - len(json.dumps({**_hidden(secret), "text": ""}, separators=(",", ":")))
    for size in audit.rng.sample((room, room + 1, room + 5_000), 2):
        body = {**secret, "text": "x" * size}
        told = _done(audit, audit.begin_as(one.token, "POST", "/type", {**body, "device": device}), phone)
        audit.same(told["body"], body, "what a phone is told that is long")
        (record,) = audit.right(audit.ask_here("GET", "/bridge/activity?limit=1"), 200)["activity"]
        kept = {**_hidden(secret), "text": "x" * size}
        start = json.dumps(kept, separators=(",", ":"))[:SHOWN]
        audit.same(
            record["params"], kept if size == room else {"[truncated]": start}, f"what is kept of {size} characters"
        )


def _hidden(secret: dict[str, Any]) -> dict[str, Any]:
    return {"token": "[redacted]"} if "token" in secret else {"a": [{"Secret": "[redacted]"}]} if secret else {}


def _asks_itself(audit: Audit, one: Paired, phone: Paired) -> None:
    """What nobody was asked about goes to a phone that asks, which is not told that, and to no other."""
    device, asks = phone.shown["device_id"], False
    for _ in range(4):
        if audit.chance(0.5):
            asks = not asks
            phone.seat.say("bridge", "bridge.status", {"bridge": {}, "safety": {"blocklist_count": 1} if asks else {}})
            audit.rest(0.3)
        path, body = audit.pick((("/call", {"number": "+15550100"}), ("/send_sms", {"to": "+15550100", "body": "a"})))
        mark = audit.pick((True, 1, "yes", False))
        caller = audit.begin_as(one.token, "POST", path, {**body, ASKS: mark, "device": device})
        if asks or mark is False:
            audit.same(_done(audit, caller, phone)["body"], body, "what a phone is told that asks its user")
        else:
            audit.right(audit.answer(caller), 409, "phone_asks_nobody", f"{path} with {mark!r}")
            audit.same(phone.seat.heard, [], "what a phone is told that asks nobody")


def _by_head(audit: Audit, one: Paired, phone: Paired) -> None:
    """HEAD is answered as GET is, and is one to the phone."""
    path = audit.pick(("/ping", "/current_app", "/clipboard"))
    caller = audit.begin_as(one.token, "HEAD", f"{path}?device={phone.shown['device_id']}")
    told = _done(audit, caller, phone)
    audit.same((told["method"], told["path"], caller.answer.body), ("GET", path, b""), "a command by HEAD")
    (record,) = audit.right(audit.ask_here("GET", "/bridge/activity?limit=1"), 200)["activity"]
    audit.same((record["method"], record["path"], record["decision"]), ("GET", path, "executed"), "its record")


def _at_once(audit: Audit, token: str, seat: Any, device: str) -> None:
    """Many at once, answered in another order: each caller has his own answer, and one that is not in time is lost."""
    many = audit.rng.randint(2, MOST_AT_ONCE)
    callers = [audit.begin_as(token, "GET", f"/ping?device={device}&n={number}") for number in range(many)]
    told = [seat.take()["payload"] for _ in range(many)]
    names = [each["request_id"] for each in told]
    audit.same(len({*names}), many, "how many names commands have")
    numbers = {each["params"]["n"]: each["request_id"] for each in told}
    audit.same(sorted(numbers, key=int), [str(number) for number in range(many)], "what comes to a phone")
    for number in audit.rng.sample(range(many), many):
        reply = {"request_id": numbers[str(number)], "status": 200, "result": {"n": number}}
        seat.say("bridge", "bridge.response", reply)
    for number, caller in enumerate(callers):
        audit.same(audit.right(audit.answer(caller), 200), {"n": number}, "the answer of one of many")
    shown = audit.right(audit.ask_here("GET", f"/bridge/activity?limit={many}"), 200)["activity"]
    order = [each["params"].get("n") for each in shown if each["device_id"] == device]
    due = [each["params"]["n"] for each in told]
    audit.same(order, due[::-1], "the activity of many at once")


DRIVEN = (driven,)
