"""The bridge: whom a command means, what a caller is answered, and what the activity says of it, to the letter."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from attrs import define, field

from fuzz.audit import Audit
from fuzz.audits.hushed import arguments, fields, redacted
from fuzz.audits.paired import Paired, pair
from fuzz.terms import Wish
from tests.support.sim_http import RequestClient as Caller

__all__ = ["BRIDGES", "bridge"]

PATIENCE = 30.0  # s, wire bridge 2.1
RING = 100  # records, wire bridge 4.2
SUMMARY = 500  # characters
NAMES = (("Pixel 7", "phone"), ("Onyx Note", "tablet"), ("My Fold", "phone"), ("Slate", "eink"), ("Slate", "desktop"))
REFUSALS = ("user_denied", "bridge_disabled", "keyguard_blocked", "bridge_capability_denied", "bridge_policy_invalid")
CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("GET", "/ping", {}),
    ("GET", "/screen", {"include_bounds": "true"}),
    ("POST", "/tap", {"x": 3, "y": "4"}),
    ("POST", "/type", {"text": "words", "Password": "hush", "more": [{"OTP": 1, "access_token": "t"}], "none": None}),
    ("POST", "/return_to_svc", {}),
    ("POST", "/return_to_hermes", {"a": {"b": 1}}),
    ("POST", "/clipboard", {"text": ""}),
    ("GET", "/clipboard", {"secret": "x"}),
    ("POST", "/wait", {"ms": 5}),
)
BAD_CALLS: tuple[tuple[str, str, object], ...] = (
    ("POST", "/tap", {"x": -1, "y": 4}),
    ("POST", "/tap", {"x": 3}),
    ("POST", "/tap_text", {"text": "  "}),
    ("POST", "/type", {}),
    ("POST", "/open_app", {"package": " "}),
    ("POST", "/ping", None),
    ("GET", "/tap", None),
)


@define(eq=False)
class _Phone:
    """A phone as the relay has to know it."""

    paired: Paired
    id: str
    name: str
    form: str
    status: dict[str, Any] | None = None
    reported: float = -1.0
    sent: list[dict[str, Any]] = field(factory=list)

    @property
    def aliases(self) -> list[str]:
        words = [self.id, _reduced(self.id), self.name, _reduced(self.name)]
        known = f"{_reduced(self.id)} {_reduced(self.name)}"
        if any(sign in known for sign in ("boox", "onyx", "notemax")):
            words += ["boox", "notemax", "note", "tablet"]
        if any(sign in known for sign in ("pixel", "fold")):
            words += ["phone", "fold", "pixel"]
        words += {"phone": ["phone"], "tablet": ["tablet"], "eink": ["tablet"], "boox": ["tablet"]}.get(self.form, [])
        return [word for word in dict.fromkeys(words) if word]


@define(eq=False)
class _Waiting:
    """A command on its way."""

    caller: Caller
    phone: _Phone
    request_id: str
    since: float
    record: dict[str, Any]


class _Bridge:
    """All phones, in the order in which they came."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.phones: list[_Phone] = []
        self.active: str | None = None
        self.recent: str | None = None
        self.waiting: list[_Waiting] = []
        self.left: _Phone | None = None  # the last that has left behind a report
        self.records: list[dict[str, Any]] = []  # of ours, newest last
        self.callers = [pair(audit) for _ in range(2)]
        for one in self.callers:
            one.seat.hang_up()
        if audit.world.phone_service.state.name != "ONLINE":
            audit.rest(45.0)  # the reference phone comes back by then
        body = audit.right(audit.ask_here("GET", "/bridge/devices"), 200)
        self.others = [record["device_id"] for record in body["devices"]]
        self.active, self.recent = body["active_device_id"], body["most_recent_device_id"]
        activity = audit.right(audit.ask_here("GET", "/bridge/activity"), 200)["activity"]
        self.before = [record["request_id"] for record in activity]

    def steps(self) -> None:
        audit = self.audit
        self.join()
        others = (self.join, self.report, self.select, self.leave, self.miss, self.refuse)
        kinds = (*[self.call] * 5, *[self.answer] * 5, *others)
        for _ in range(audit.rng.randint(16, 30)):
            if not self.phones:
                self.join()
            audit.pick(kinds)()
            self.settle()
            if audit.chance(0.35) and self.phones:
                audit.pick((self.look, self.look_at_devices, self.look_at_status))()
        if audit.chance(0.15) and self.phones:
            self.fill()
        self.wait_out()
        self.look()
        for phone in self.phones:
            phone.paired.seat.hang_up()

    # --- phones ---

    def join(self) -> None:
        """A phone comes, perhaps one that is there already, with another socket."""
        audit = self.audit
        again = audit.chance(0.3) and self.phones
        if self.left is not None and audit.chance(0.6):  # what it has reported is known still
            phone, self.left = self.left, None
            host, form = phone.paired.host, phone.form
            phone.paired = pair(audit, host=host, name=phone.name, device_id=phone.id, surface="android", form=form)
            phone.sent.clear()
        elif again:
            phone = audit.pick(self.phones)
            lost = [one for one in self.waiting if one.phone is phone]
            self.phones.remove(phone)
            fresh = pair(
                audit, host=phone.paired.host, name=phone.name, device_id=phone.id, surface="android", form=phone.form
            )
            before = phone.paired.seat
            phone.paired = fresh
            phone.sent.clear()
            for one in lost:
                self.lost(one)
            before.hang_up()
        else:
            name, form = audit.pick(NAMES)
            phone_id = audit.pick((f"id-{audit.word()}", f"Ph {audit.word()}"))
            surface = audit.pick(("android", "quest", "desktop"))
            fresh = pair(audit, name=name, device_id=phone_id, surface=surface, form=form)
            phone = _Phone(fresh, phone_id, name, form)
            if surface == "desktop":  # is one as soon as it says something of itself
                self.report_as(phone)
        self.phones.append(phone)
        self.recent = phone.id
        if self.active is None:
            self.active = phone.id

    def report(self) -> None:
        self.report_as(self.audit.pick(self.phones))

    def report_as(self, phone: _Phone) -> None:
        """A status: the newest is all that counts; what is none is ignored."""
        audit = self.audit
        kind = audit.rng.randrange(5)
        status: Any = {"device": {"battery_percent": audit.rng.randint(0, 100)}, "mark": audit.word(), "safety": {}}
        if kind == 0:
            status = {"battery": 5, "screen_on": True, "token": "hush", "mark": audit.word()}
        elif kind == 1 and phone.status is not None:
            phone.paired.seat.say("bridge", "bridge.status", audit.pick(([], "x", None)))
            audit.rest(0.3)
            return
        phone.paired.seat.say("bridge", "bridge.status", status)
        phone.reported = audit.now
        audit.rest(0.3)
        phone.status = status

    def leave(self) -> None:
        audit, phone = self.audit, self.audit.pick(self.phones)
        phone.paired.seat.hang_up()
        audit.rest(0.5)
        self.gone(phone)

    def gone(self, phone: _Phone) -> None:
        self.phones.remove(phone)
        self.left = phone if phone.status is not None else self.left
        self.active = None if self.active == phone.id else self.active
        self.recent = None if self.recent == phone.id else self.recent
        for one in [one for one in self.waiting if one.phone is phone]:
            self.lost(one)

    def select(self) -> None:
        audit, selector = self.audit, self.selector()
        key = audit.pick(("device", "device_id", "deviceId"))
        caller = audit.ask_here("POST", "/bridge/select-active", {key: selector})
        phone = self.check_meant(caller, selector)
        if isinstance(phone, _Phone):
            is_ = {"ok": True, "active_device_id": phone.id, "device_id": phone.id, "device_name": phone.name}
            audit.same(caller.answer.json, {**is_, "alias_used": selector, "aliases": phone.aliases}, "a choice")
            self.active = phone.id

    def selector(self) -> str:
        audit, phone = self.audit, self.audit.pick(self.phones)
        choices = [phone.id, phone.name, *phone.aliases, phone.id.upper(), f"{phone.id}!", "nobody"]
        return str(audit.pick(choices))

    def check_meant(self, caller: Caller, selector: str) -> _Phone | str:
        """Whom a selector means, or what is answered where it means nobody, or several."""
        meant = self.meant(selector)
        if isinstance(meant, _Phone):
            if caller.status in (404, 409):
                self.audit.wrong(f"{selector!r} means {meant.id}, and got {caller.status} {caller.answer.body!r:.200}")
            return meant
        status = 404 if meant == "unknown_device" else 409
        self.audit.right(caller, status, meant, f"the selector {selector!r}")
        return meant

    def usual(self) -> _Phone:
        """Who is meant where nobody is named: the active one, else who came last, else whose status is the newest."""
        known = {phone.id: phone for phone in self.phones}
        first = known.get(self.active or "") or known.get(self.recent or "")
        return first or max(self.phones, key=lambda phone: phone.reported if phone.status else -1.0)

    def meant(self, selector: str) -> _Phone | str:
        for phone in self.phones:
            if phone.id == selector:
                return phone
        called = [phone for phone in self.phones if selector in phone.aliases or _reduced(selector) in phone.aliases]
        reference = self.others and _is_reference(selector)
        if len(called) + bool(reference) > 1:
            return "ambiguous_device"
        return called[0] if called else "unknown_device"

    # --- commands ---

    def call(self) -> None:
        """Somebody has a phone do something."""
        audit = self.audit
        by, (method, path, given) = audit.pick(self.callers), audit.pick(CALLS)
        selector = self.selector() if audit.chance(0.7) else None
        if selector is None and self.others and (self.active not in [phone.id for phone in self.phones]):
            selector = audit.pick(self.phones).id
        chosen = {} if selector is None else {audit.pick(("device", "device_id", "deviceId")): selector}
        query = {**audit.pick(({}, {}, {"q": "1 2"})), **fields(audit)}
        body = {**arguments(audit), **given} if method == "POST" else None
        if method == "GET":
            query = {**query, **given, **chosen}
        elif audit.chance(0.5):
            query = {**query, **chosen}
        else:
            body = {**(body or {}), **chosen}
        target = path + ("?" + "&".join(f"{key}={quote(str(value))}" for key, value in query.items()) if query else "")
        low = audit.wall
        caller = audit.begin_as(by.token, method, target, body)
        phone = self.usual() if selector is None else self.meant(selector)
        if not isinstance(phone, _Phone):
            self.check_meant(audit.answer(caller), selector or "")
            return
        seat = phone.paired.seat
        audit.wait(lambda: bool(seat.heard) or caller.over, 10.0, f"{method} {path} reaches nobody")
        if caller.over:
            audit.wrong(f"{method} {target} got {caller.status} {caller.answer.body!r:.200}, and {phone.id} is there")
        told = seat.take()
        request_id = told["payload"]["request_id"]
        params = {key: value for key, value in query.items() if key not in chosen}
        sent = {key: value for key, value in (body or {}).items() if value is not None and key not in chosen}
        is_ = {"request_id": request_id, "method": method, "path": path.replace("_svc", "_hermes"), "params": params}
        is_["body"] = sent if method == "POST" else params
        audit.same((told["channel"], told["type"], told["payload"]), ("bridge", "bridge.command", is_), "a command")
        if any(record["request_id"] == request_id for record in self.records):
            audit.wrong(f"the id {request_id} was given before")
        record = {"request_id": request_id, "method": method, "path": path, "params": redacted({**params, **sent})}
        record |= {"response_status": None, "result_summary": None, "error": None, "decision": "pending"}
        record |= {"device_id": phone.id, "device_name": phone.name, "alias_used": selector}
        record |= {"asked_by": by.shown["device_name"], "sent_at": low}
        self.records.append(record)
        self.waiting.append(_Waiting(caller, phone, request_id, audit.now, record))

    def answer(self) -> None:
        """A phone answers one of its commands, in any order and in any way."""
        audit = self.audit
        if not self.waiting:
            return
        one = audit.pick(self.waiting)
        payload, status, body, decision = self.reply()
        payload["request_id"] = one.request_id
        others = [phone for phone in self.phones if phone is not one.phone]
        if others and audit.chance(0.15):  # somebody else does, which is nothing
            audit.pick(others).paired.seat.say(
                "bridge", "bridge.response", {"request_id": one.request_id, "status": 200}
            )
            audit.rest(0.3)
        if audit.now > one.since + PATIENCE - 1.0:
            return
        one.phone.paired.seat.say("bridge", "bridge.response", payload)
        audit.answer(one.caller, 10.0)
        self.waiting.remove(one)
        audit.same((one.caller.status, one.caller.answer.json), (status, body), f"what a phone answered by {payload}")
        record, said = one.record, payload.get("status")
        if isinstance(said, int) and not isinstance(said, bool) and 200 <= said <= 599:
            record["response_status"] = said
        result = payload.get("result")
        record["result_summary"] = None if result is None else _summary(redacted(result))
        failed = status >= 400
        error = payload.get("error")
        if error is None and failed and isinstance(result, dict):
            error = result.get("error")
        record["error"] = error[:SUMMARY] if isinstance(error, str) else record["error"]
        if (
            not isinstance(error, str)
            and isinstance(said, int)
            and not isinstance(said, bool)
            and not 200 <= said <= 599
        ):
            record["error"] = body["error"]
        record["decision"] = decision
        if audit.chance(0.2):  # once more, which changes nothing
            one.phone.paired.seat.say("bridge", "bridge.response", {**payload, "status": 200, "result": {"late": 1}})
            audit.rest(0.3)

    def reply(self) -> tuple[dict[str, Any], int, Any, str]:
        """What a phone says: its payload, the status and body that its caller gets, and the decision."""
        audit, mark = self.audit, {"mark": self.audit.word()}
        long = {"text": "x" * audit.pick((SUMMARY - 11, SUMMARY - 10, SUMMARY + 5)), "deep": [[1, {"Token": "t"}]]}
        error = {"error": f"no {audit.word()}"}
        code = audit.pick(REFUSALS)
        said: tuple[tuple[dict[str, Any], int, Any, str], ...] = (
            ({"status": 200, "result": mark}, 200, mark, "executed"),
            ({"status": 200, "result": long}, 200, long, "executed"),
            ({"status": 204, "result": None}, 204, {}, "executed"),
            ({"status": 399, "result": [1, mark]}, 399, [1, mark], "executed"),
            ({"status": 400, "result": error}, 400, error, "error"),
            ({"status": 500, "result": {**error, "secret": "s"}}, 500, {**error, "secret": "s"}, "error"),
            ({"status": 403, "result": error}, 403, error, "blocked"),
            ({"status": 423, "result": error}, 423, error, "blocked"),
            ({"status": 400, "result": {**error, "error_code": code}}, 400, {**error, "error_code": code}, "blocked"),
            ({"status": 200, "result": {"status": "blocked"}}, 200, {"status": "blocked"}, "blocked"),
            ({"status": 200, "result": {"blocked": True}}, 200, {"blocked": True}, "blocked"),
            ({"status": 200, "result": mark, "blocked": True}, 200, mark, "blocked"),
            ({"status": 200, "result": mark, "error": "for SAFETY"}, 200, mark, "blocked"),
            ({"status": 200, "result": {"confirmed": True}}, 200, {"confirmed": True}, "confirmed"),
            (
                {"status": 500, "result": {"confirmation_required": True}},
                500,
                {"confirmation_required": True},
                "confirmed",
            ),
            ({"result": mark}, 200, mark, "pending"),
            ({"status": "200", "result": "text"}, 200, {"value": "text"}, "pending"),
            ({"status": True, "result": 5}, 200, {"value": 5}, "pending"),
            ({"status": 199, "result": mark}, 502, None, "error"),
            ({"status": 600, "result": mark}, 502, None, "error"),
        )
        payload, status, body, decision = audit.pick(said)
        if status == 204:
            payload, status = {**payload, "status": 202}, 202
        if body is None:
            text = "the phone answered with an impossible status"
            body = {"ok": False, "error": text, "code": "bad_phone_status"}
        return dict(payload), status, body, decision

    def lost(self, one: _Waiting) -> None:
        """Its phone has gone, or just before that its time."""
        late = self.audit.answer(one.caller, 5.0).ended > one.since + PATIENCE - 0.6 and one.caller.status == 504
        self.over(one, *((504, "phone_timeout") if late else (502, "phone_disconnected")))

    def over(self, one: _Waiting, status: int, code: str) -> None:
        """The relay itself answers."""
        audit = self.audit
        told = audit.right(audit.answer(one.caller, 5.0), status, code, f"a command to {one.phone.id}")
        self.waiting.remove(one)
        one.record["decision"] = "timeout" if status == 504 else "error"
        one.record["error"] = told["error"]

    def miss(self) -> None:
        """Half a minute is over, or nearly; or an answer comes when it is too late."""
        audit = self.audit
        if not self.waiting:
            return
        first = min(self.waiting, key=lambda one: one.since)
        if audit.chance(0.3):
            audit.rest_until(first.since + PATIENCE - 0.5)
            if first.caller.over:
                audit.wrong(f"a command got {first.caller.status} after {audit.now - first.since:.1f} s")
            return
        audit.wait(lambda: first.caller.over, PATIENCE + 1.0, "a command is not given up")
        audit.near(first.caller.ended - first.since, PATIENCE, "how long a phone is waited for", 0.6)
        self.settle()

    def settle(self) -> None:
        """Those whose time is over are known to be."""
        for one in [one for one in self.waiting if one.caller.over]:
            self.audit.near(one.caller.ended - one.since, PATIENCE, "how long a phone is waited for", 0.6)
            self.over(one, 504, "phone_timeout")

    def wait_out(self) -> None:
        for one in sorted(self.waiting, key=lambda one: one.since):
            self.audit.answer(one.caller, PATIENCE + 1.0)
        self.settle()

    def refuse(self) -> None:
        """What no phone could use reaches none, and leaves no record."""
        audit = self.audit
        for method, path, body in audit.rng.sample(BAD_CALLS, 2):
            caller = audit.ask(audit.pick(self.callers).token, method, path, body)
            if method == "GET" or path == "/ping":
                audit.right(caller, 405, "method_not_allowed", f"{method} {path}")
            else:
                audit.right(caller, 400, about=f"{method} {path} with {body}")
        if audit.chance(0.3):
            poor = pair(audit, wish=Wish(None, {"bridge": None}))
            audit.right(audit.ask(poor.token, "GET", "/ping"), 403, about="a session without the bridge")
            poor.seat.say("bridge", "bridge.status", {"mark": 1}, "b")
            told = poor.seat.take()
            audit.same(
                (told["type"], told["id"], told["payload"]["error"]), ("error", "b", "grant_required"), "no grant"
            )
            poor.seat.hang_up()

    def fill(self) -> None:
        """More commands than the activity holds, or nearly."""
        self.wait_out()
        most = len(self.records) + RING + self.audit.pick((-1, 0, 1))
        while len(self.records) < most:
            self.call()
            while self.waiting:
                self.answer()
        self.look(RING)

    # --- what is looked at ---

    def look(self, asked: int | None = None) -> None:
        """The activity, as far as it is asked for."""
        audit = self.audit
        asked = asked or audit.pick((None, None, 1, 3, RING, 0, "x", 600))
        while any(abs(audit.now - one.since - PATIENCE) < 1.0 for one in self.waiting):
            audit.rest(0.5)  # not to be where nobody can tell
        self.settle()
        body = audit.right(
            audit.ask_here("GET", "/bridge/activity" + ("" if asked is None else f"?limit={asked}")), 200
        )
        most = asked if isinstance(asked, int) and 1 <= asked <= RING else RING
        shown = body["activity"]
        ids = [record["request_id"] for record in reversed(self.records)] + self.before
        known = [record["request_id"] for record in shown]
        reference = [each for each in known if each not in ids]
        audit.same([each for each in known if each in ids], ids[: most - len(reference)], f"the newest {most} commands")
        mine = {record["request_id"]: record for record in self.records}
        for record in shown:
            due = mine.get(record["request_id"])
            if due is None:
                continue
            audit.near(record["sent_at"] / 1000.0, due["sent_at"], "when a command was sent")
            audit.same({**record, "sent_at": 0}, {**due, "sent_at": 0}, "the record of a command")
        info = audit.right(audit.ask_here("GET", "/relay/info"), 200)
        self.settle()
        if info["pending_commands"] != len(self.waiting):
            audit.rest(0.5)
            self.settle()
            info = audit.right(audit.ask_here("GET", "/relay/info"), 200)
            audit.same(info["pending_commands"], len(self.waiting), "how many commands wait")

    def look_at_devices(self) -> None:
        audit = self.audit
        body = audit.right(audit.ask_here("GET", "/bridge/devices"), 200)
        told = [record["device_id"] for record in body["devices"]]
        audit.same(
            sorted(told), sorted([*self.others, *(phone.id for phone in self.phones)]), "the phones that are there"
        )
        audit.same(body["count"], len(told), "how many phones there are")
        mine = [each for each in told if each not in self.others]
        by_age = sorted(self.phones, key=lambda phone: phone.reported if phone.status else -1.0, reverse=True)
        audit.same(mine, [phone.id for phone in by_age], "phones by their newest status")
        for phone in self.phones:
            self.check_status(phone, next(record for record in body["devices"] if record["device_id"] == phone.id))
        told_of = body["active_device_id"], body["most_recent_device_id"]
        audit.same(told_of, (self.active, self.recent), "the phones that are meant where none is named")

    def look_at_status(self) -> None:
        audit, selector = self.audit, self.selector()
        caller = audit.ask_here("GET", f"/bridge/status?device={quote(selector)}")
        phone = self.check_meant(caller, selector)
        if isinstance(phone, _Phone):
            self.check_status(phone, audit.right(caller, 200))

    def check_status(self, phone: _Phone, told: Mapping[str, Any]) -> None:
        audit, status = self.audit, phone.status or {}
        is_ = {**status, **{group: status.get(group, {}) for group in ("device", "bridge", "safety")}}
        is_ = {**redacted(is_), "device_id": phone.id, "device_name": phone.name, "phone_connected": True}
        is_["device"] = {"device_id": phone.id, "name": phone.name, **is_["device"]}
        is_ |= {"connected": True, "active": self.active == phone.id, "aliases": phone.aliases}
        is_ |= {"session_token_prefix": phone.paired.prefix, "device_form_factor": phone.form}
        is_["client_surface"] = phone.paired.shown["client_surface"]
        told = dict(told)
        age = told.pop("last_seen_seconds_ago")
        if phone.status is None:
            audit.same(age, None, "the age of no status")
        else:
            audit.near(age, audit.now - phone.reported - 0.5, "the age of a status", 1.1)
        audit.same(told, is_, f"{phone.id} as it is shown")


def _reduced(word: str) -> str:
    return re.sub("[^a-z0-9]+", "", word.lower())


def _is_reference(selector: str) -> bool:
    return _reduced(selector) in ("reference", "phone")


def _summary(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return text if len(text) <= SUMMARY else text[: SUMMARY - 3] + "..."


def bridge(audit: Audit) -> None:
    """Phones come and go, are chosen and driven."""
    audit.world.phones_say_what_they_will = True
    _Bridge(audit).steps()
    audit.world.phones_say_what_they_will = False


def notifications(audit: Audit) -> None:
    """The newest hundred, as they came, the newest first."""
    device, most = pair(audit), 100
    posted: list[object] = []
    before = audit.right(audit.ask_here("GET", "/notifications/recent?limit=100"), 200)["notifications"]
    for number in range(audit.pick((3, 20, 21, most - 1, most, most + 3))):
        note: dict[str, object] = {
            "package_name": "com.example",
            "title": f"{audit.word()}",
            "text": None,
            "key": "0|k",
        }
        note["posted_at"] = int(audit.wall * 1000)
        kind = audit.rng.randrange(12)
        room = 16 * 1024 - len(json.dumps({**note, "text": ""}, separators=(",", ":")))
        if kind == 0:
            device.seat.say("notifications", "notification.posted", audit.pick(([], "x", None, {})))
            continue
        if kind == 1:
            device.seat.say("notifications", audit.pick(("notification.removed", "other")), note)
            continue
        if kind in (2, 3):  # just small enough, or not
            note["text"] = "x" * (room + kind - 2)
        device.seat.say("notifications", "notification.posted", note)
        if kind != 3:
            posted.insert(0, note)
        if number % 10 == 0:
            audit.rest(0.2)
    audit.rest(1.0)
    there = [*posted, *before][:most]
    for asked, count in ((None, 20), (1, 1), (most, most), (most + 1, most), (3, 3)):
        query = "" if asked is None else f"?limit={asked}"
        shown = audit.pick(("", "Bearer none", f"Bearer {device.token}", "Basic eDp5"))  # on this host nobody looks
        headers = {"authorization": shown} if shown else {}
        told = audit.right(audit.ask_here("GET", f"/notifications/recent{query}", **headers), 200)
        audit.same(told["notifications"], there[:count], f"notifications{query}")
        audit.same((told["ok"], told["count"]), (True, len(there[:count])), "how many they are")
    for junk in ("0", "-1", "x", "1.5", ""):
        audit.right(audit.ask(device.token, "GET", f"/notifications/recent?limit={junk}"), 400, about=f"limit {junk!r}")
    if device.seat.heard:
        audit.wrong(f"a notification was answered: {device.seat.heard}")
    if audit.chance(0.3):
        audit.restart("relay", kill=audit.chance(0.5))
        told = audit.right(audit.ask_here("GET", "/notifications/recent"), 200)
        audit.same(told["notifications"], [], "notifications after a restart")
    device.seat.hang_up()


BRIDGES = (bridge, bridge, bridge, notifications)
