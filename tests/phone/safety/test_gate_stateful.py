"""Random commands, decisions, settings and times: the model finds no bypassed gate and no repeated gesture."""

from attrs import field, frozen
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from svc_proto.basics.moment import Moment
from svc_proto.phone.backend import CommandReply, CommandResponse, PhoneCommand
from svc_proto.phone.safety.confirmation import AwaitingConfirmation
from svc_proto.phone.safety.gate import SafetyGate
from tests.phone.safety.scripted_backend import BANK, ScriptedBackend, later

MAIL = "com.example.mail"
NODES = {"w0:1": "Send", "w0:2": "Cancel"}
VERBS = {"Send": "send", "Send all": "send", "pay now": "pay"}  # texts with a destructive verb
CASES: list[tuple[str, dict[str, object]]] = [
    ("/ping", {}),
    ("/current_app", {}),
    ("/screen", {}),
    ("/screenshot", {}),
    ("/swipe", {"direction": "up"}),
    ("/tap", {"x": 1, "y": 2}),
    ("/nothing", {"x": 1}),
    ("/tap", {"nodeId": "w0:1"}),
    ("/long_press", {"node_id": "w0:2"}),
    ("/tap_text", {"text": "Send"}),
    ("/type", {"text": "pay now"}),
    ("/type", {"text": "hello"}),
    ("/open_app", {"package": BANK}),
    ("/open_app", {"package": MAIL}),
    ("/call", {"number": "+1"}),
    ("/send_sms", {"to": "+1", "body": "send"}),
    ("/share_media", {"text": "x", "package": BANK}),
]
ASKABLE = ("/tap", "/tap_text", "/type", "/call", "/send_sms")
LOSSES = "nothing accessibility master foreground app text keyguard uncovered connection forget overlay"
ALWAYS_ASK = ("/call", "/send_sms", "/share_media")
READING = ("/current_app", "/screen", "/screenshot")


@frozen
class Performance:
    """A command that the backend has performed, and the model's objection to it, if any."""

    command: PhoneCommand
    forbidden: str = field(default="")


class Gates(RuleBasedStateMachine):
    """The safety gate, compared with a model that checks each performed command at the time of its execution."""

    def __init__(self) -> None:
        super().__init__()
        self.backend = Watched(self)
        self.gate = SafetyGate(self.backend, idle_minutes=5, wake=self.backend.wake)
        self.time = 0.0
        self.armed = self.accessible = self.consent = self.overlay = self.unattended = False
        self.last_command = 0.0
        self.waiting: dict[str, tuple[PhoneCommand, float]] = {}  # by confirmation id, with its deadline
        self.seen: dict[str, tuple[str, str]] = {}  # by request id: the app and the text the user was shown
        self.trusted: list[str] = []  # verbs, and routes that always need a confirmation
        self.allowed: str | None = None  # the request that the user is allowing
        self.over: list[str] = []  # ids of confirmations that have ended
        self.dead: list[str] = []  # requests that were answered or abandoned
        self.performances: list[Performance] = []
        self.count = 0

    # --- the model ------------------------------------------------------------------------------------------------

    @property
    def now(self) -> Moment:
        return later(self.time)

    def why_not(self, command: PhoneCommand) -> str:
        """Return why a command must not be performed now; empty if it may."""
        if command.request_id in self.dead:
            return "answered already"
        if command.path == "/ping":
            return ""
        verdicts = {
            "accessibility": not self.accessible,
            "master": not self.armed and command.path != "/current_app",
            "foreground": self.backend.foreground == BANK,
            "target": command.body.get("package") == BANK,
            "route": command.path == "/nothing",
            "consent": command.path == "/screenshot" and not self.consent,
            "uncovered": self.unattended and self.backend.behind == BANK and command.path not in READING,
            "keyguard": self.unattended and not self.backend.usable and command.path not in READING,
            "screen": self.has_changed(command),
            "user": self.needs_user(command) and self.allowed != command.request_id,
        }
        return ", ".join(name for name, holds in verdicts.items() if holds)

    def needs_user(self, command: PhoneCommand) -> bool:
        if command.path in ALWAYS_ASK:
            return command.path not in self.trusted
        verb = self.verb(command)
        return verb is not None and verb not in self.trusted

    def has_changed(self, command: PhoneCommand) -> bool:
        """Report whether the app or the text has changed since a confirmation of this touch was shown to the user."""
        if command.path in ALWAYS_ASK or command.request_id not in self.seen:
            return False
        return self.seen[command.request_id] != (self.backend.foreground, self.text(command))

    def text(self, command: PhoneCommand) -> str:
        node = command.body.get("nodeId") or command.body.get("node_id")
        return self.backend.texts[str(node)] if node else str(command.body.get("text"))

    def verb(self, command: PhoneCommand) -> str | None:
        return None if command.path == "/type" else VERBS.get(self.text(command))

    def pass_time(self, seconds: float) -> None:
        self.time += seconds
        for key, (command, deadline) in list(self.waiting.items()):
            if self.time >= deadline:
                self.forget(key, command)
        if self.armed and self.time - self.last_command >= 5 * 60:
            self.disarm()

    def disarm(self) -> None:
        self.armed = self.consent = False
        for key, (command, _) in list(self.waiting.items()):
            self.forget(key, command)

    def forget(self, key: str, command: PhoneCommand) -> None:
        del self.waiting[key]
        self.over.append(key)
        self.dead.append(command.request_id)

    # --- rules ------------------------------------------------------------------------------------------------------

    @initialize()
    def granted(self) -> None:
        self.everything_is_granted()

    @rule(loses=st.sampled_from(["nothing", "consent", "master", "idle", "process", "busy"]))
    def picture(self, loses: str) -> None:
        """Take a screenshot, perhaps after the capture consent has ended."""
        self.everything_is_granted()
        match loses:
            case "consent":
                self.capture_consent(False)
            case "master":
                self.master(False)
            case "idle":
                self.pass_time(300.0)
            case "process":
                self.process_dies()
            case "busy":  # a command keeps the toggle on, so the consent stays
                self.pass_time(299.0)
                self.command(("/ping", {}))
                self.pass_time(299.0)
        self.master(True)
        self.command(("/screenshot", {}))

    @rule(data=st.data(), seconds=st.sampled_from([0.0, 0.0, 24.0, 25.0]), loses=st.sampled_from(LOSSES.split()))
    def ask_and_decide(self, data: st.DataObject, seconds: float, loses: str) -> None:
        """Send a command that needs a confirmation, let an event happen, and decide a confirmation that still waits."""
        self.everything_is_granted()
        self.command(data.draw(st.sampled_from([case for case in CASES if case[0] in ASKABLE])))
        self.pass_time(seconds)
        match loses:
            case "accessibility":
                self.accessibility(False)
            case "master":
                self.master(False)
            case "foreground" | "app":
                self.other_app(BANK if loses == "foreground" else "com.example.other")
            case "text":
                self.other_text(data.draw(st.sampled_from(["Send all", "Cancel"])))
            case "keyguard":
                self.unattended_access(True, False)
            case "uncovered":
                self.unattended_access(True, True)
                self.lock_in_front_of(BANK)
            case "connection":
                self.connection_lost()
            case "forget" if self.waiting:
                self.forget_one(data)
            case "overlay":
                self.overlay_permission(False)
        if self.waiting:
            self.decide(data, data.draw(st.booleans()), data.draw(st.booleans()))
        elif self.over:
            assert self.gate.decide(self.over[-1], allow=True, now=self.now) is None
        self.other_app(MAIL)
        self.other_text("Send")
        self.unattended_access(False, True)
        self.lock_in_front_of(None)

    def command(self, case: tuple[str, dict[str, object]]) -> None:
        self.count += 1
        asked = PhoneCommand("POST", case[0], case[1], f"r{self.count}")
        self.last_command = self.time
        expected = self.why_not(asked)
        before = len(self.performances)
        outcome = self.gate.execute(asked, self.now)
        if isinstance(outcome, AwaitingConfirmation):
            assert expected == "user"
            assert self.overlay
            self.waiting[outcome.confirmation_id] = (asked, self.time + 25.0)
            self.seen[asked.request_id] = self.backend.foreground, self.text(asked)
            assert len(self.performances) == before
            return
        assert len(self.performances) - before == (not expected)
        self.dead.append(asked.request_id)

    @rule(case=st.sampled_from(CASES))
    def any_command(self, case: tuple[str, dict[str, object]]) -> None:
        self.command(case)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), allow=st.booleans(), remember=st.booleans())
    def decide_one(self, data: st.DataObject, allow: bool, remember: bool) -> None:
        self.decide(data, allow, remember)

    def decide(self, data: st.DataObject, allow: bool, remember: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.waiting)))
        asked = self.waiting[key][0]
        before = len(self.performances)
        if allow:
            self.allowed = asked.request_id
            if remember:
                # The trust applies to later commands; this request is allowed either way.
                self.trusted.append(asked.path if asked.path in ALWAYS_ASK else VERBS[self.asked_text(key)])
            expected = self.why_not(asked)
        else:
            expected = "denied"
        answer = self.gate.decide(key, allow=allow, remember=remember, now=self.now)
        self.allowed = None
        assert len(self.performances) - before == (not expected)
        assert answer is not None
        assert answer[0] == asked.request_id
        self.forget(key, asked)
        assert self.gate.decide(key, allow=True, now=self.now) is None

    def asked_text(self, key: str) -> str:
        (text,) = [each.question.text for each in self.gate.confirmations() if each.confirmation_id == key]
        return text

    @rule(data=st.data())
    def decide_about_nothing(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from([*self.over, "c0", ""]))
        assert self.gate.decide(key, allow=True, now=self.now) is None

    @rule(case=st.sampled_from([("/tap", {"x": 1, "y": 2}), ("/swipe", {"direction": "up"}), ("/screen", {})]))
    def touch_behind_a_lock(self, case: tuple[str, dict[str, object]]) -> None:
        """Send a command through a swipe lock with a blocked app behind it."""
        self.everything_is_granted()
        self.other_app(MAIL)
        self.unattended_access(True, True)
        self.lock_in_front_of(BANK)
        self.command(case)
        self.lock_in_front_of(None)
        self.other_app(MAIL)

    @rule(seconds=st.sampled_from([0.0, 1.0, 10.0, 24.0, 25.0, 299.0, 300.0]))
    def advance(self, seconds: float) -> None:
        self.pass_time(seconds)
        for request_id, performed in self.gate.advance(self.now):
            assert isinstance(performed, CommandReply)
            assert performed.status == 403
            assert request_id in self.dead

    @rule(seconds=st.sampled_from([25.0, 300.0]))
    def time_passes_unseen(self, seconds: float) -> None:
        self.pass_time(seconds)

    @rule(on=st.booleans())
    def master(self, on: bool) -> None:
        if not on:
            if self.armed:
                self.disarm()
        elif self.accessible and not self.armed:
            self.armed, self.last_command = True, self.time
        assert self.gate.set_master(on, self.now) is (on and self.armed)

    @rule(granted=st.booleans())
    def accessibility(self, granted: bool) -> None:
        self.accessible = granted
        self.gate.set_accessibility(granted)

    @rule()
    def everything_is_granted(self) -> None:
        self.accessibility(True)
        self.master(True)
        self.overlay = self.consent = True
        self.gate.set_overlay_permission(True, self.now)
        self.gate.set_capture_consent(True)

    @rule(granted=st.booleans())
    def overlay_permission(self, granted: bool) -> None:
        self.overlay = granted
        self.gate.set_overlay_permission(granted, self.now)
        if not granted:
            for key, (command, _) in list(self.waiting.items()):
                self.forget(key, command)

    @rule(granted=st.booleans())
    def capture_consent(self, granted: bool) -> None:
        self.gate.advance(self.now)  # expired states end before the user's change
        self.consent = granted
        self.gate.set_capture_consent(granted)

    @rule(enabled=st.booleans(), usable=st.booleans())
    def unattended_access(self, enabled: bool, usable: bool) -> None:
        self.unattended, self.backend.usable = enabled, usable
        self.gate.set_unattended(enabled)

    @rule(package=st.sampled_from([MAIL, BANK]))
    def other_app(self, package: str) -> None:
        self.backend.foreground = package

    @rule(text=st.sampled_from(["Send", "Send all", "Cancel"]))
    def other_text(self, text: str) -> None:
        self.backend.texts["w0:1"] = text

    @rule()
    def trust_is_reset(self) -> None:
        self.trusted.clear()
        self.gate.trust.reset()

    @rule(package=st.sampled_from([None, BANK]))
    def lock_in_front_of(self, package: str | None) -> None:
        self.backend.behind = package

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def forget_one(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.waiting)))
        asked = self.waiting[key][0]
        self.gate.advance(self.now)
        assert self.gate.forget(asked.request_id)
        self.forget(key, asked)

    @rule()
    def process_dies(self) -> None:
        self.disarm()
        self.gate.process_died()
        assert not self.gate.is_armed
        assert self.gate.advance(self.now) == []

    @rule()
    def connection_lost(self) -> None:
        for key, (command, _) in list(self.waiting.items()):
            self.forget(key, command)
        self.gate.connection_lost()
        assert self.gate.advance(self.now) == []

    # --- invariants -------------------------------------------------------------------------------------------------

    @invariant()
    def nothing_forbidden_was_performed(self) -> None:
        assert [each for each in self.performances if each.forbidden] == []

    @invariant()
    def nothing_was_performed_twice(self) -> None:
        done = [each.command.request_id for each in self.performances]
        assert len(done) == len(set(done))


class Watched(ScriptedBackend):
    """Backend that records each performed command, with the objection of the model, before it answers."""

    def __init__(self, model: Gates) -> None:
        super().__init__(foreground=MAIL, texts=dict(NODES))
        self.model = model

    def execute(self, command: PhoneCommand, now: Moment) -> CommandResponse:
        self.model.performances.append(Performance(command, self.model.why_not(command)))
        return super().execute(command, now)


Gates.TestCase.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestGates = Gates.TestCase
