"""The one who holds the reference phone: the phone asks, they answer at its keyboard, in time or too late."""

from __future__ import annotations

from fuzz.simulation.actors.actor_context import ActorContext, Deeds
from fuzz.simulation.deployment import UNTIL_DROPPED
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.reference_model import violated
from fuzz.steps import AskPhoneUser, Step
from runtimes.sim.connection import SimConnection
from svc_proto.commands import Notify
from svc_proto.phone.keyboard_control import KEYBOARD
from tests.support.sim_http import RequestClient

WORDS = ("y", "y", "n", "")  # that they say; the last one says nothing
SWITCHES = ("off", "accessibility off")  # of what keeps an agent from doing anything
TURNED = 0.5  # s from the switch to what comes of it
ARRIVED = 0.2  # s in which a command has come to its phone
ACTION_TIMEOUT = 10.0  # s within which the phone has done what it was allowed


class PhoneUser:
    """The steps of whoever has the phone send a message, and the answers of who holds it."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._word: dict[str, tuple[str, float]] = {}  # by text: what will be said, and after so many s
        self._open: dict[str, str] = {}  # questions by their name, and the text in them
        self._allowed: dict[str, float] = {}  # texts, and when they were
        self._keys: SimConnection | None = None
        self._off: float | None = None  # since when nothing may be done
        if self.world.asking:
            self.world.phone_news.append(self._on_notify)
        self.deeds: dict[type[Step], Deeds] = {AskPhoneUser: self._send_command}

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
        if way < 2:  # the phone loses the relay, while it asks for the most part
            self.world.sim.after(ARRIVED + late * step.seconds / 10, lambda: self._lose_phone(hangs=way == 0))
        elif way == 3 and self._off is None:  # its holder has enough of it, and says yes all the same
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
        for connection in world.sim.network.connections:
            if connection.client.host is world.phone.host:
                if hangs:
                    world.blackhole(connection, UNTIL_DROPPED)
                else:
                    connection.cut()

    def _on_notify(self, news: Notify) -> None:
        match news.event:
            case "asked":
                self._asked(str(news.fields["confirmation"]), str(news.fields["text"]))
            case "offline":
                self._open.clear()  # decision 14: what waits for the user dies with the connection
            case "performed" if news.fields["path"] == "/send_sms" and news.fields["status"] == 200:
                self._performed()
            case _:
                pass

    def _asked(self, question: str, text: str) -> None:
        note = max((note for note in self._word if note in text), key=len, default="")  # and not a part of its number
        word, pause = self._word.get(note, ("y", 1.0))  # of a task of the agent's that somebody has allowed
        self._open[question] = note
        if word:
            self.world.sim.after(pause, lambda: self._answer(question, word))

    def _answer(self, question: str, word: str) -> None:
        if word == "y" and question in self._open:
            self._allowed[self._open[question]] = self.crowd.now
        self._type(f"{word} {question}\n")

    def _performed(self) -> None:
        """Somebody must have allowed it a moment ago, while it was asked."""
        since = self.crowd.now - ACTION_TIMEOUT
        if self._off is not None and self.crowd.now > self._off + TURNED:
            violated(Invariant.CONFIRMED, "the phone sent a message, and its holder had turned that off")
        if not any(when >= since for when in self._allowed.values()):
            violated(Invariant.CONFIRMED, "the phone sent a message, and nobody has allowed it while it asked")

    def _type(self, line: str) -> None:
        phone, keys = self.world.phone, self._keys
        if keys is None:
            network, host = self.world.sim.network, phone.host
            keys = self._keys = SimConnection(network, 0, (host, KEYBOARD), (host, KEYBOARD))
            phone.accepted(keys.server)
        keys.client.send(line.encode())
