"""A phone between a relay and a person, whatever they do and whenever: no gesture gets past a gate, none is made twice,
none after a denial, and every command on a connection that lasts gets exactly one answer."""

from __future__ import annotations

from attrs import define, field, frozen
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from svc_proto.basics.moment import Moment
from svc_proto.device.handset import HandsetCommand, Later, Performed, Reply
from svc_proto.device.safety.blocklist import DEFAULT_BLOCKLIST
from svc_proto.device.safety.settings import SafetySettings
from svc_proto.facts import FailureKind
from tests.device.rig import TOKEN, Rig
from tests.device.safety.recorder import ScriptedHandset

BANK, MAIL = DEFAULT_BLOCKLIST[0], "com.example.mail"
IDLE = 300.0  # s
PATIENCE = 25.0  # s
FREE = ("/ping", "/setup")
MASTERLESS = ("/current_app", "/return_to_hermes")
CASES: list[tuple[str, dict[str, object]]] = [
    *((path, {}) for path in (*FREE, *MASTERLESS, "/screen", "/wait", "/press_key")),
    ("/tap", {"nodeId": "send"}),
    ("/tap", {"nodeId": "next"}),
    ("/tap_text", {"text": "Pay now"}),
    ("/open_app", {"package": BANK}),
    ("/open_app", {"package": MAIL}),
    ("/call", {"number": "112"}),
    ("/send_sms", {"to": "1", "body": "Hello"}),
]
ASKING: dict[str, str] = {"send": "send", "Pay now": "pay"}  # the argument and its verb
TRUSTED_ROUTES = ("/call", "/send_sms")


@frozen
class Asked:
    """A question that is open."""

    request_id: str
    topic: str  # the verb, or the route
    deadline: float
    foreground: str


class Watched(ScriptedHandset):
    """Tells the model of each performance at the moment it happens."""

    def __init__(self, model: Life) -> None:
        super().__init__()
        self.model = model
        self.texts = {"send": "Send", "next": "Next"}
        self.answers = {"/wait": Later(2.0, Reply(200, {}))}

    def perform(self, command: HandsetCommand, now: Moment) -> Performed:
        self.model.witness(command, now)
        return super().perform(command, now)


@define(eq=False)
class Connection:
    """What was asked and answered on one connection."""

    commands: list[str] = field(factory=list)
    answers: list[str] = field(factory=list)


class Life(RuleBasedStateMachine):
    """The model: what is on, what is open, and what may be performed."""

    def __init__(self) -> None:
        super().__init__()
        self.handset = Watched(self)
        self.rig = Rig(token=TOKEN, safety=SafetySettings(armed=True, idle_minutes=5), handset=self.handset)
        self.armed = True
        self.last_command = self.now
        self.trusted: list[str] = []
        self.open: dict[str, Asked] = {}
        self.names: list[str] = []  # of all questions there were
        self.allowing = ""  # the request that the person is saying yes to right now
        self.dead: list[str] = []  # requests that must not be performed any more
        self.done: list[str] = []
        self.crimes: list[str] = []
        self.sent: list[tuple[str, str, dict[str, object]]] = []
        self.connection = Connection()

    @property
    def now(self) -> float:
        return self.rig.book.now.mono

    # --- the model --------------------------------------------------------------------------------------------------

    def witness(self, command: HandsetCommand, now: Moment) -> None:
        path, topic = command.path, self.topic(command.path, command.body)
        wrong = {
            "twice": command.request_id in self.done,
            "after a denial": command.request_id in self.dead,
            "off": not self.is_armed(now.mono) and path not in (*FREE, *MASTERLESS),
            "inaccessible": not self.handset.consents.accessibility and path not in FREE,
            "blocked": self.handset.foreground == BANK and path not in FREE,
            "target": command.body.get("package") == BANK,
            "unasked": bool(topic) and topic not in self.trusted and self.allowing != command.request_id,
        }
        self.crimes += [f"{command}: {name}" for name, so in wrong.items() if so]
        self.done.append(command.request_id)

    def topic(self, path: str, body: object) -> str:
        if path in TRUSTED_ROUTES:
            return path
        words = body.values() if isinstance(body, dict) else ()
        return next((ASKING[str(word)] for word in words if str(word) in ASKING), "")

    def is_armed(self, now: float) -> bool:
        return self.armed and now < self.last_command + IDLE

    def lapse(self) -> None:
        """What time and the switches have ended by now."""
        if self.armed and not self.is_armed(self.now):
            self.armed = False
        for name, asked in list(self.open.items()):
            if not self.armed or self.now >= asked.deadline or not self.handset.consents.overlay:
                self.dead.append(self.open.pop(name).request_id)

    def hear(self) -> None:
        """What the phone said and told by now."""
        for said in self.rig.said():
            if said.type == "bridge.response":
                self.connection.answers.append(said.payload["request_id"])
        for tell in self.rig.told():
            if tell.event == "asked":
                name = str(tell.fields["confirmation"])
                request_id, path, body = self.sent[-1]
                assert self.handset.consents.overlay
                self.open[name] = Asked(
                    request_id, self.topic(path, body), self.now + PATIENCE, self.handset.foreground
                )
                self.names.append(name)

    # --- what happens -----------------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self.rig.online()
        self.rig.sit()
        self.rig.told()

    @rule(case=st.sampled_from(CASES), again=st.booleans())
    def command(self, case: tuple[str, dict[str, object]], again: bool) -> None:
        path, body = case
        request_id = f"r{len(self.sent)}"
        self.lapse()
        self.last_command = self.now
        self.sent.append((request_id, path, body))
        self.connection.commands.append(request_id)
        self.rig.command(path, request_id, body=body)
        self.hear()
        if again:
            self.rig.command(path, request_id, body=body)
            self.hear()

    @rule(data=st.data(), allow=st.booleans(), remember=st.booleans())
    def decide(self, data: st.DataObject, allow: bool, remember: bool) -> None:
        if not self.names:
            return
        self.lapse()
        name = data.draw(st.sampled_from(sorted(set(self.names[-3:]) | set(self.open))))
        asked = self.open.pop(name, None)
        if asked is not None and allow:
            self.allowing = asked.request_id
            if remember:
                self.trusted.append(asked.topic)
            moved = asked.topic not in TRUSTED_ROUTES and asked.foreground != self.handset.foreground
            if moved:
                self.dead.append(asked.request_id)
        elif asked is not None:
            self.dead.append(asked.request_id)
        self.rig.type(f"{('a' if remember else 'y') if allow else 'n'} {name}")
        self.hear()
        self.allowing = ""
        if asked is not None:
            self.dead.append(asked.request_id)  # the question is settled: nothing is performed for it later

    @rule(
        case=st.sampled_from([case for case in CASES if case[1]]),
        meanwhile=st.sampled_from(["nothing", "time", "off", "blocked", "other", "accessibility", "overlay", "lost"]),
        data=st.data(),
        allow=st.booleans(),
    )
    def a_question_and_its_end(
        self, case: tuple[str, dict[str, object]], meanwhile: str, data: st.DataObject, allow: bool
    ) -> None:
        """The whole way of one question, with something happening while the person reads."""
        for name in ("accessibility", "overlay"):
            self.permission(name, True, True)
        self.look_at(MAIL)
        self.master(True)
        self.command(case, False)
        match meanwhile:
            case "time":
                self.pass_time(data.draw(st.sampled_from([24.0, 25.0])))
            case "off":
                self.master(False)
                self.master(True)
            case "blocked":
                self.look_at(BANK)
            case "other":
                self.look_at("com.example.other")
            case "accessibility" | "overlay":
                setattr(self.handset.consents, meanwhile, False)
            case "lost":
                self.lose_the_connection(0)
        self.decide(data, allow, False)
        self.pass_time(data.draw(st.sampled_from([0.5, 26.0])))

    @rule(seconds=st.sampled_from([0.5, 10.0, 24.0, 25.0, 26.0, 60.0, 299.0, 300.0]))
    def pass_time(self, seconds: float) -> None:
        while seconds > 0:
            piece = min(seconds, 20.0)
            self.rig.book.after(piece)
            self.lapse()
            self.hear()
            self.rig.delivered()
            seconds -= piece

    @rule(on=st.booleans())
    def master(self, on: bool) -> None:
        self.lapse()
        if on and not self.armed and self.handset.consents.accessibility:
            self.armed, self.last_command = True, self.now
        elif not on:
            self.armed = False
            self.lapse()
        self.rig.type("on" if on else "off")
        self.hear()

    @rule(name=st.sampled_from(["accessibility", "overlay"]), granted=st.booleans(), told=st.booleans())
    def permission(self, name: str, granted: bool, told: bool) -> None:
        if told:
            self.lapse()
            setattr(self.handset.consents, name, granted)
            self.lapse()
            self.rig.type(f"{name} {'on' if granted else 'off'}")
            self.hear()
        elif not granted:  # the system takes it, and the phone is not told
            setattr(self.handset.consents, name, granted)
            self.lapse()
            self.rig.delivered()
            self.rig.type("?")
            self.hear()

    @rule(package=st.sampled_from([MAIL, BANK, "com.example.other"]))
    def look_at(self, package: str) -> None:
        self.handset.foreground = package

    @rule(fails=st.integers(0, 2))
    def lose_the_connection(self, fails: int) -> None:
        self.dead += [asked.request_id for asked in self.open.values()]
        self.open.clear()
        self.rig.vanish()
        self.connection = Connection()
        for _ in range(fails):
            self.rig.book.fail(self.rig.next_connect(), FailureKind.UNREACHABLE).take()
        self.rig.online(connect=self.rig.next_connect())
        self.lapse()
        self.rig.told()

    @rule()
    def everything_is_answered(self) -> None:
        self.pass_time(30.0)
        assert sorted(self.connection.answers) == sorted(self.connection.commands)

    # --- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def no_gesture_got_past_a_gate(self) -> None:
        assert self.crimes == []

    @invariant()
    def no_answer_came_twice(self) -> None:
        answers = self.connection.answers
        assert len(answers) == len(set(answers))
        assert set(answers) <= set(self.connection.commands)

    @invariant()
    def the_phone_agrees(self) -> None:
        gate = self.rig.phone.gate
        assert {each.confirmation_id for each in gate.confirmations()} >= set(self.open)
        assert gate.armed or not self.is_armed(self.now)

    @invariant()
    def nothing_went_wrong_inside(self) -> None:
        assert not [log for log in self.rig.book.logs if log.event == "bug"]


Life.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestLife = Life.TestCase
