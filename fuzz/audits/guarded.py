"""A phone's gates, one after another: its build, its switches, what is blocked, what asks first, and its idle clock."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from clients.phone.handset import SimulatedHandset
from fuzz.audit import Audit
from fuzz.audits.paired import pair, register
from fuzz.untold import Untold
from fuzz.world import HOME, RELAY_PORT
from runtimes.sim.connection import Connection
from svc_proto.basics.moment import Moment
from svc_proto.boundary import Core
from svc_proto.commands import Tell
from svc_proto.device.person import KEYBOARD
from svc_proto.device.phone import Phone, PhoneConfig
from svc_proto.device.safety.blocklist import DEFAULT_BLOCKLIST
from svc_proto.device.safety.settings import SafetySettings
from svc_proto.engine.core import Engine
from tests.support.sim_http import RequestClient as Caller

__all__ = ["GUARDED"]

BANK, MAIL, MESSAGES, OWN = "com.chase.sig.android", "com.example.mail", "com.example.messages", "com.example.safe"
EDGE = 2.0  # s before or behind the end of the idle interval
SOON = 1.0  # s in which a word at the phone has come to something
REPORT = 31.0  # s until a phone has told of itself


@frozen
class _Route:
    """What is asked of the phone, and which gates it has to pass."""

    method: str
    path: str
    body: Any = None
    free: bool = False  # of all gates
    masterless: bool = False
    target: str = ""  # package
    said: str = ""  # text in which verbs count
    action: str = ""  # which is asked about each time
    captures: bool = False  # the screen, which its holder has to have allowed
    store: bool = False  # a store build does it


FREE = (
    _Route("GET", "/ping", free=True, store=True),
    _Route("POST", "/setup", {}, free=True, store=True),
)
MASTERLESS = (_Route("GET", "/current_app", masterless=True), _Route("POST", "/return_to_svc", {}, masterless=True))
PLAIN = (
    _Route("GET", "/events", store=True),
    *(_Route("GET", path) for path in ("/screen", "/screen_hash", "/apps", "/get_apps", "/location", "/clipboard")),
    *(
        _Route("POST", path, body)
        for path, body in (
            ("/find_nodes", {"text": "Inbox"}),
            ("/diff_screen", {"previous_hash": "x"}),
            ("/events/stream", {"enabled": True}),
            ("/search_contacts", {"query": "Ada"}),
            ("/wait", {"ms": 10}),
            ("/swipe", {"start_x": 1, "start_y": 1, "end_x": 2, "end_y": 2}),
            ("/drag", {"start_x": 1, "start_y": 1, "end_x": 2, "end_y": 2}),
            ("/scroll", {"direction": "up"}),
            ("/tap", {"x": 1, "y": 1}),
            ("/long_press", {"x": 1, "y": 1}),
            ("/clipboard", {"text": "send it"}),
            ("/media", {"action": "play"}),
        )
    ),
)
TARGETS = (
    _Route("POST", "/open_app", {"package": BANK}, target=BANK),
    _Route("POST", "/open_app", {"package": MAIL}, target=MAIL),
    _Route("POST", "/open_app", {"package": MESSAGES}, target=MESSAGES),
    _Route("POST", "/send_intent", {"action": "VIEW", "package": BANK}, target=BANK),
    _Route("POST", "/broadcast", {"action": "PING", "package": BANK}, target=BANK),
    _Route("POST", "/send_intent", {"action": "VIEW", "component": f"{BANK}/.Main"}, target=BANK),
    _Route("POST", "/share_media", {"text": "a word", "package": BANK}, target=BANK, action="share_media"),
)
CAPTURES = (_Route("GET", "/screenshot", captures=True),)
SAID = (
    *("Send", "SEND!", "pay-now", "Re: send it", "please DELETE", "Resend", "sender", "PayPal", "send_now", "posting"),
    *("hello", "withdraw all", "to purchase", "confirm?", "buy and SEND", "a wave", "Wave, or pay"),
    "posting to sender",
)
VERBS = (
    *(_Route("POST", "/type", {"text": text}, said=text) for text in SAID),
    *(_Route("POST", "/tap_text", {"text": text}, said=text) for text in SAID),
)
USUAL = ("send", "pay", "delete", "transfer", "confirm", "submit", "post", "publish", "buy", "purchase", "charge")
LAST = "withdraw"
OTHERS = ("wave", "posting", "sender")  # that its holder may put beside them
APPS = (BANK, MAIL, MESSAGES, OWN)
ASKED = (
    _Route("POST", "/send_sms", {"to": "+15550100", "body": "hello"}, action="send_sms"),
    _Route("POST", "/call", {"number": "+15550100"}, action="call"),
    _Route("POST", "/send_mms", {"to": "+15550100", "text": "hello"}, action="send_mms"),
    _Route("POST", "/share_media", {"text": "hello", "package": MAIL}, target=MAIL, action="share_media"),
)
GROUPS = (FREE, MASTERLESS, PLAIN, PLAIN, TARGETS, VERBS, VERBS, ASKED, ASKED, CAPTURES, CAPTURES)
NO_CAPTURE = "screen capture has not been allowed on the phone"
NOT_LOGGED = ("ping", "setup", "current_app", "screen_hash", "events", "events/stream")  # wire bridge 5.8


@define(eq=False)
class _State:
    """What the phone has to think."""

    armed: bool
    accessible: bool = True
    overlay: bool = True
    captures: bool = True  # until the toggle goes off, or it is taken back
    idle_at: float = 0.0  # when it turns itself off
    blocked: list[str] = field(factory=lambda: [*DEFAULT_BLOCKLIST])
    verbs: list[str] = field(factory=lambda: [*USUAL, LAST])

    def verbs_in(self, text: str) -> list[str]:
        """Those that stand in it as words, in the order of the list."""
        words = re.findall(r"\w+", text.lower())
        return [verb for verb in self.verbs if verb in words]


class _Guarded:
    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.asker = pair(audit, leaves=True)
        self.device = audit.word()
        self.store = audit.chance(0.12)
        self.minutes, self.patience = audit.pick((5, 30, 120)), audit.pick((10.0, 25.0))
        blocked = audit.pick((DEFAULT_BLOCKLIST, DEFAULT_BLOCKLIST, (MAIL, f" {OWN} ", "", BANK.upper()), ()))
        self.settings = SafetySettings(
            armed=audit.chance(0.7),
            idle_minutes=self.minutes,
            confirmation_timeout=self.patience,
            blocklist=blocked,
        )
        self.trusted: set[str] = set()
        self.open: list[tuple[str, str]] = []  # questions, by name and text
        self.verb: object = None  # of the last
        build = "googlePlay" if self.store else "sideload"
        self.handset = SimulatedHandset(name=f"Guarded {self.device}", build=build)
        config = PhoneConfig(
            remote=f"ws://{HOME}:{RELAY_PORT}",
            code=register(audit),
            device_name=f"Guarded {self.device}",
            device_id=self.device,
        )
        news: list[Callable[[Tell], None]] = [self.hear]

        def make(entropy: Any) -> Core:
            self.phone = Phone(config, self.handset, self.settings)
            return Untold(Engine(self.phone, entropy=entropy), news)

        self.host = audit.host()
        self.process = self.host.start(make)
        audit.wait(lambda: self.phone.state.name == "ONLINE", 60.0, "a phone does not come")
        self.token = self.phone.token or ""
        audit.world.secrets[self.token] = "a phone's token"
        self.state = _State(self.settings.armed and not self.store, idle_at=audit.now + 60.0 * self.minutes)
        self.state.blocked = [each.strip() for each in blocked if each]
        keys = Connection(audit.world.sim.network, 0, (self.host, KEYBOARD), (self.host, KEYBOARD))
        self.process.accepted(keys.server)
        self.keys = keys.client

    def hear(self, news: Tell) -> None:
        if news.event == "asked":
            self.open.append((str(news.fields["confirmation"]), str(news.fields["text"])))
            self.verb = news.fields["verb"]

    def type(self, line: str) -> None:
        """Its holder says something at it."""
        self.keys.send(f"{line}\n".encode())
        self.audit.rest(SOON)

    def steps(self) -> None:
        audit = self.audit
        for _ in range(audit.rng.randint(22, 36)):
            self.pass_time()
            kind = audit.rng.randrange(12)
            if kind == 0:
                self.turn("", audit.chance(0.6))
            elif kind == 1:
                self.turn("accessibility", audit.chance(0.7))
            elif kind == 2:
                self.turn(audit.pick(("overlay", "capture")), audit.chance(0.5))
            elif kind == 3:
                audit.pick((self.notify, lambda: self.show(audit.pick((BANK, MAIL, MESSAGES, OWN)))))()
            elif kind in (6, 7):
                for _ in range(audit.rng.randint(1, 3)):
                    (self.edit_apps if kind == 6 else self.edit_verbs)()
                view = self.phone.gate.view(Moment(audit.now, self.host.wall()))
                shown = ([*view.blocklist], [*view.verbs])
                audit.same(shown, (self.state.blocked, self.state.verbs), "the lists that its holder sees")
            elif kind == 4:
                self.idle()
            elif kind == 5:
                self.look()
            else:
                if audit.chance(0.5):
                    self.make_ready()
                self.call(audit.pick(audit.pick(GROUPS)))
        self.process.stop(5.0)
        audit.wait(lambda: not self.process.alive, 30.0, "a phone does not stop")
        audit.right(audit.ask_here("DELETE", f"/sessions/{self.token[:8]}"), 200)

    def make_ready(self) -> None:
        """Its holder turns on what an agent needs, and leaves the bank."""
        state = self.state
        if self.store:
            return
        for switch, on in (("accessibility", state.accessible), ("overlay", state.overlay), ("", state.armed)):
            if not on:
                self.turn(switch, True)
        if not state.captures and self.audit.chance(0.6):
            self.turn("capture", True)
        if self.handset.foreground in state.blocked:
            self.show(next((app for app in APPS if app not in state.blocked), "com.example.other"))

    def pass_time(self) -> None:
        """It may have turned itself off."""
        if self.audit.now >= self.state.idle_at and self.state.armed:
            self.state.armed = self.state.captures = False

    def turn(self, switch: str, on: bool) -> None:
        self.type(f"{switch} {'on' if on else 'off'}".strip())
        state = self.state
        if self.store:
            return
        if switch == "accessibility":
            state.accessible = on
        elif switch == "overlay":
            state.overlay = on
        elif switch == "capture":
            state.captures = on
        elif not on or (state.accessible and not state.armed):
            state.captures = state.captures and (on or not state.armed)  # a consent ends with what it was given for
            state.armed = on
            state.idle_at = self.audit.now + 60.0 * self.minutes

    def notify(self) -> None:
        """A notification comes to the phone, which passes it on."""
        audit, title, text = self.audit, self.audit.word(), self.audit.word()
        self.type(f"notify {title}: {text}")
        told = audit.right(audit.ask_here("GET", "/notifications/recent?limit=1"), 200)["notifications"][0]
        audit.same((told["title"], told["text"]), (title, text), "a notification of a phone")
        audit.near(told["posted_at"] / 1000.0, self.host.wall(), "when it came, in thousandths of a second", 3.0)

    def show(self, package: str) -> None:
        """Its holder opens an app."""
        now = Moment(self.audit.now, self.host.wall())
        self.handset.device.wake(now)
        self.handset.device.launch(package, now)

    def edit_apps(self) -> None:
        """Its holder blocks an app, allows one, or thinks better of all of it."""
        audit, listed, state, app = self.audit, self.phone.gate.blocklist, self.state, self.audit.pick(APPS)
        match audit.rng.randrange(5):
            case 0:
                listed.reset()
                state.blocked = [*DEFAULT_BLOCKLIST]
            case 1 | 2:
                name = audit.pick((app, f" {app}\t", "  "))
                audit.same(listed.add(name), bool(name.strip()), f"whether {name!r} is blocked now")
                state.blocked += [app] if name.strip() and app not in state.blocked else []
            case _:
                name = audit.pick((app, app, app.upper()))
                audit.same(listed.remove(name), name in state.blocked, f"whether {name} was blocked")
                state.blocked = [each for each in state.blocked if each != name]

    def edit_verbs(self) -> None:
        """The same of the verbs, which are in the order of their letters then."""
        audit, listed, state, verb = self.audit, self.phone.gate.verbs, self.state, self.audit.pick((*USUAL, *OTHERS))
        name = audit.pick((verb, verb.upper(), f" {verb} "))
        match audit.rng.randrange(5):
            case 0:
                listed.reset()
                state.verbs = [*USUAL, LAST]
            case 1 | 2:
                name = audit.pick((name, audit.pick(OTHERS), " "))
                word = name.strip().lower()
                fresh = bool(word) and word not in state.verbs
                audit.same(listed.add(name), fresh, f"whether {name!r} is a verb now")
                state.verbs = sorted([*state.verbs, word]) if fresh else state.verbs
            case _:
                audit.same(listed.remove(name), verb in state.verbs, f"whether {name!r} was a verb")
                if verb in state.verbs:
                    state.verbs = sorted(each for each in state.verbs if each != verb)

    def idle(self) -> None:
        audit, state = self.audit, self.state
        if not state.armed or self.minutes > 30:
            return
        behind = audit.chance(0.5)
        audit.rest_until(state.idle_at + (EDGE if behind else -EDGE))
        self.pass_time()
        self.call(audit.pick(PLAIN))

    def look(self) -> None:
        """What it tells of itself."""
        audit, state = self.audit, self.state
        audit.rest(REPORT)
        self.pass_time()
        if abs(audit.now - state.idle_at) < REPORT + EDGE:
            return
        told = audit.right(audit.ask_here("GET", f"/bridge/status?device={self.device}"), 200)
        bridge, safety = told["bridge"], told["safety"]
        on = state.armed and state.accessible
        granted = (state.accessible, state.overlay, state.captures)
        is_ = (not self.store, on, *(each and not self.store for each in granted))
        names = ["device_control_supported", "master_enabled", "accessibility_granted", "overlay_granted"]
        names += ["screen_capture_granted"]
        audit.same(tuple(bridge[name] for name in names), is_, f"what a phone tells of {state}")
        audit.same(safety["auto_disable_minutes"], 0 if self.store else self.minutes, "its idle interval")
        counts = (0, 0) if self.store else (len(state.blocked), len(state.verbs))
        told = (safety["blocklist_count"], safety["destructive_verbs_count"])
        audit.same(told, counts, "how many apps and verbs a phone asks about")
        audit.same(safety["auto_disable_at_ms"] is not None, state.armed, f"whether its idle clock runs, {state}")
        if state.armed:
            due = (state.idle_at - audit.now + self.host.wall()) * 1000.0
            audit.near(safety["auto_disable_at_ms"] / 1000.0, due / 1000.0, "when it will turn itself off", 2.5)

    # --- what is asked of it ---

    def refusal(self, route: _Route) -> tuple[int, str] | None:
        """Why it is not done, before anybody is asked."""
        state, front = self.state, self.handset.foreground
        if self.store:
            return None if route.store else (403, "device_control_sideload_only")
        if route.free:
            return None
        if not state.armed and not route.masterless:
            return 403, "bridge_disabled"
        if not state.accessible:
            return 503, "service_unavailable"
        if route.captures and not state.captures:
            return 500, NO_CAPTURE
        for package in (front, route.target):
            if package in state.blocked:
                return 403, f"blocked package {package}"
        return None

    def call(self, route: _Route) -> None:
        audit = self.audit
        self.open.clear()
        if self.state.armed:  # each command starts the clock anew
            self.state.idle_at = audit.now + 60.0 * self.minutes
        due = self.refusal(route)
        whats = [route.action] if route.action else self.state.verbs_in(route.said)
        what = next((each for each in whats if each not in self.trusted), "")
        asks = due is None and bool(what) and not self.store
        path = route.path + (f"?device={self.device}" if route.method == "GET" else "")
        body = None if route.body is None else {**route.body, "device": self.device}
        caller = audit.begin_as(self.asker.token, route.method, path, body)
        if asks and self.state.overlay:
            audit.wait(lambda: bool(self.open) or caller.over, 5.0, f"{route} asks nobody")
        else:
            audit.answer(caller)
        if bool(self.open) != (asks and self.state.overlay):
            audit.wrong(f"{route} asked {self.open}, {self.state}, {self.trusted}, {caller.answer.body!r:.200}")
        if due is not None:
            self.check_refused(caller, *due)
        elif asks and not self.state.overlay:
            self.check_refused(caller, 403, "user_denied")
        elif asks:
            self.answer(caller, route, what)
        else:
            self.check_done(caller, route)
        if caller.status:  # else the relay has gone, and knows of nothing
            self.check_record(caller, route)
            self.check_log(caller, route)

    def answer(self, caller: Caller, route: _Route, what: str) -> None:
        """Its holder says yes, no, always, nothing at all, or turns it off."""
        audit = self.audit
        (name, text), since = self.open[0], audit.now
        said = next(iter(value for key, value in route.body.items() if key in ("text", "body", "number")))
        if said not in text:
            audit.wrong(f"a question about {said!r} says {text!r}")
        audit.same(self.verb, None if route.action else what, f"the verb in {said!r}, {self.state.verbs}")
        way = audit.pick(("y", "y", "a", "a", "n", "", "off", "bank", "blind", "lost"))
        blocked = [app for app in APPS if app in self.state.blocked]
        way = "y" if way == "bank" and not blocked else way
        if way == "":
            audit.answer(caller, self.patience + 5.0)
            audit.near(caller.ended - since, self.patience, "how long its holder is waited for", 1.0)
            self.check_refused(caller, 403, "user_denied")
            return
        audit.rest(audit.pick((0.0, self.patience - 4.0)))
        if caller.over:
            audit.wrong(f"{route} got {caller.status}, and nobody has answered")
        if way == "lost":  # the question dies with its connection: whatever is said to it then does nothing
            audit.restart("relay", kill=True)
            audit.wait(lambda: self.phone.state.name == "ONLINE", 60.0, "a phone does not come back")
            before = self.handset.foreground
            self.type(f"y {name}")
            left = (self.phone.gate.confirmations(), self.handset.foreground)
            audit.same(left, ([], before), "a question whose connection was lost")
            return
        if way == "off":
            self.turn("", False)
            audit.answer(caller, 5.0)
            self.check_refused(caller, 403, "bridge_disabled")
            return
        if way == "bank":
            self.show(audit.pick(blocked))
        elif way == "blind":
            self.turn("accessibility", False)
        audit.rest(2.0)  # a word right behind another question counts for none
        self.type(f"{way if len(way) == 1 else 'y'} {name}")
        audit.answer(caller, 20.0)
        if len(way) > 1 and (refused := self.refusal(route)) is not None:  # what was allowed passes all gates again
            self.check_refused(caller, *refused)
            return
        if way == "n":
            told = self.check_refused(caller, 403, "user_denied")
            audit.same((told["final"], told["reason"]), (True, "confirmation_denied_or_timeout"), "a no")
            return
        if way == "a":
            self.trusted.add(what)
        self.check_done(caller, route)
        if caller.status == 200:
            audit.same(caller.answer.json.get("confirmed"), True, "what was confirmed")

    def check_refused(self, caller: Caller, status: int, why: str) -> dict[str, Any]:
        told = self.audit.right(caller, status, about=f"{caller.path}, {self.state}, {self.handset.foreground}")
        self.audit.same(told.get("error_code") or told["error"], why, f"why {caller.path} is refused, {self.state}")
        refused: dict[str, Any] = told
        return refused

    def check_done(self, caller: Caller, route: _Route) -> None:
        """It went through all gates."""
        audit = self.audit
        if caller.status not in (200, 400, 404):
            audit.wrong(f"{route} got {caller.status} {caller.answer.body!r:.300}, {self.state}")
        if route in (*FREE, *MASTERLESS, *ASKED) and caller.status != 200:
            audit.wrong(f"{route} got {caller.status} {caller.answer.body!r:.300}")
        if route.captures:
            audit.same(caller.status, 200, f"a picture of the screen: {caller.answer.body!r:.200}")
            scheme, _, token = caller.answer.json["media"].rpartition("/")
            audit.same(scheme, "MEDIA:svc-relay:/", "what names a picture of the screen")
            picture = audit.right(audit.ask(self.asker.token, "GET", f"/media/{token}"), 200)
            told = (picture, caller.answer.json.keys() - {"confirmed"})
            audit.same(told, ({}, {"media"}), "what is told of a picture")
            shown = audit.ask(self.asker.token, "GET", f"/media/{token}").answer
            kind, named = (shown.headers.get(name) or b"" for name in (b"content-type", b"content-disposition"))
            audit.same(
                (shown.body[:4], kind, named[-5:]), (b"\x89PNG", b"image/png", b'.png"'), "a picture of the screen"
            )
        if route.path == "/open_app":
            audit.same((caller.status, self.handset.foreground), (200, route.target), "the app in front")

    def check_record(self, caller: Caller, route: _Route) -> None:
        """The relay's word for it."""
        audit = self.audit
        shown = audit.right(audit.ask_here("GET", "/bridge/activity?limit=5"), 200)["activity"]
        record = next(each for each in shown if each["device_id"] == self.device)
        confirmed = caller.answer.json.get("confirmed") is True
        due = "confirmed" if confirmed else {200: "executed", 403: "blocked"}.get(caller.status, "error")
        is_ = (route.path, caller.status, due)
        audit.same((record["path"], record["response_status"], record["decision"]), is_, "the record of a command")

    def check_log(self, caller: Caller, route: _Route) -> None:
        """The phone's own word for it: each command but those that say nothing, the newest first."""
        entries = self.phone.gate.log.entries()
        name = route.path[1:].replace("return_to_svc", "return_to_hermes")
        if name in NOT_LOGGED:
            return
        due = {200: "Success", 403: "Blocked"}.get(caller.status, "Failed")
        told = (entries[0].method, entries[0].status.value)
        self.audit.same(told, (name[:24], due), f"what a phone keeps of {route}, {caller.status}")


def guarded(audit: Audit) -> None:
    """A phone is asked for this and that, while its holder turns it on and off, and answers its questions."""
    audit.world.phones_say_what_they_will = True
    _Guarded(audit).steps()
    audit.world.phones_say_what_they_will = False


GUARDED = (guarded,)
