"""User of the reference phone: answers confirmations at its keyboard, in time, too late or not at all."""

from fuzz.simulation.actors.actor_context import ActorContext, StepHandler
from fuzz.simulation.invariants import Invariant, violated
from fuzz.steps import AskPhoneUser, Step
from runtimes.sim.connection import SimConnection
from svc_proto.commands import Notify
from svc_proto.phone.keyboard_control import KEYBOARD
from tests.support.sim_http import RequestClient

WORDS = ("y", "y", "n", "")  # answers; with the last one the user does nothing
SWITCHES = ("off", "accessibility off")  # that block all commands
TURNED = 0.5  # s from the switch to its effect
ARRIVED = 0.2  # s in which a command has arrived at its phone
ACTION_TIMEOUT = 10.0  # s within which an allowed command is executed


class PhoneUser:
    """Steps of an agent that has the reference phone send messages, and the answers of the phone's user.

    Meanwhile the phone may lose the relay, or its user may block all commands.
    """

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._word: dict[str, tuple[str, float]] = {}  # by text: answer, and delay in s
        self._open: dict[str, str] = {}  # open confirmations by id, and their text
        self._allowed: dict[str, float] = {}  # allowed texts, and when they were allowed
        self._keys: SimConnection | None = None
        self._off: float | None = None  # since when commands are blocked
        if self.world.asking:
            self.world.phone_news.append(self._on_notify)
        self.handlers: dict[type[Step], StepHandler] = {AskPhoneUser: self._send_command}

    def _send_command(self, step: AskPhoneUser) -> None:
        if not self.crowd.sessions:
            return
        text = f"note {self.crowd.next_number()}"
        self._word[text] = WORDS[step.answer % len(WORDS)], step.seconds
        body = {"to": "+15550100", "body": text, "device": "Reference"}

        def done(caller: RequestClient) -> None:
            if caller.status == 200 and text not in self._allowed:
                violated(Invariant.CONFIRMED, f"{text!r} was sent, and its question was not answered with yes")
            if caller.status == 200:
                self.world.count("allowed by hand")

        self.crowd.request_as_agent("POST", "/send_sms", body, self.crowd.pick_session(step.session), done)
        way, late = step.answer // 4 % 4, step.answer // 16 % 4
        if way < 2:  # the phone loses the relay, mostly with an open confirmation
            self.world.sim.after(ARRIVED + late * step.seconds / 10, lambda: self._lose_phone(hangs=way == 0))
        elif way == 3 and self._off is None:  # the user blocks all commands, and still answers yes
            self.world.sim.after(
                ARRIVED + late * step.seconds / 10, lambda: self._turn_off(SWITCHES[late % 2], step.seconds)
            )

    def _turn_off(self, switch: str, seconds: float) -> None:
        if self._off is None:
            self._off = self.crowd.now
            self._type(f"{switch}\n")
            self.world.sim.after(seconds + TURNED, lambda: self._turn_on(switch))

    def _turn_on(self, switch: str) -> None:
        self._off = None
        self._type(f"{switch[: -len('off')]}on\n")

    def _lose_phone(self, *, hangs: bool) -> None:
        world = self.world
        if world.phone_service.gate.confirmations():
            world.count("questions that lost the relay")
        world.lose_connections(world.phone.host, hangs=hangs)

    def _on_notify(self, news: Notify) -> None:
        match news.event:
            case "asked":
                self._asked(str(news.fields["confirmation"]), str(news.fields["text"]))
            case "offline":
                self._open.clear()  # decision 14: open confirmations end with the connection
            case "performed" if news.fields["path"] == "/send_sms" and news.fields["status"] == 200:
                self._performed()
            case _:
                pass

    def _asked(self, question: str, text: str) -> None:
        # The longest match, since one number may be the beginning of another.
        note = max((note for note in self._word if note in text), key=len, default="")
        word, pause = self._word.get(note, ("y", 1.0))  # a task of the agent that was approved
        self._open[question] = note
        if word:
            self.world.sim.after(pause, lambda: self._answer(question, word))

    def _answer(self, question: str, word: str) -> None:
        if word == "y" and question in self._open:
            self._allowed[self._open[question]] = self.crowd.now
        self._type(f"{word} {question}\n")

    def _performed(self) -> None:
        since = self.crowd.now - ACTION_TIMEOUT
        if self._off is not None and self.crowd.now > self._off + TURNED:
            violated(Invariant.CONFIRMED, "the phone sent a message, and its holder had turned that off")
        if not any(when >= since for when in self._allowed.values()):
            violated(Invariant.CONFIRMED, "the phone sent a message without an approval while it asked")

    def _type(self, line: str) -> None:
        phone, keys = self.world.phone, self._keys
        if keys is None:
            network, host = self.world.sim.network, phone.host
            keys = self._keys = SimConnection(network, 0, (host, KEYBOARD), (host, KEYBOARD))
            phone.accepted(keys.server)
        keys.client.send(line.encode())
