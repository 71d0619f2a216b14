"""Agents that call Device Control, and phones that answer late, twice or not at all, or answer another's command."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from urllib.parse import quote

from fuzz.simulation.actors.actor_context import LATE, ActorContext, SignedInDevice, StepHandler
from fuzz.simulation.actors.phone_presence import PhonePresence
from fuzz.simulation.deployment import REMOTE
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.reference_model import COMMAND_TIME, CommandModel, SessionModel
from fuzz.steps import AnswerForeignCommand, SendCommand, Step
from svc_proto.phone.service import PhoneState
from tests.support.sim_http import RequestClient

REPORT_TIMEOUT = 40.0  # s between reports of the reference phone, which reports every 30 s
LEAVES = 5  # one of so many callers disconnects early
MADE_BY_RELAY = {502: "error", 504: "timeout"}  # statuses of the relay itself, and its decision, wire bridge 2.2


class DeviceControlActors:
    """Steps of agents that send commands, and of phones that answer or do not answer them."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.phones = PhonePresence(crowd)
        self._commands: dict[str, CommandModel] = {}
        self._waiting: dict[CommandModel, RequestClient] = {}
        self._phone_of: dict[CommandModel, SignedInDevice] = {}  # of commands that have reached a phone
        self._known: dict[str, str] = {}  # request ids: the mark of their command
        self.choices: list[float] = []  # when the operator has selected another phone
        self._active: tuple[SignedInDevice, float] | None = None  # the selected phone, and when that was confirmed
        self._online_since = crowd.now  # of the reference phone
        self.late: list[float] = []  # s after which phones answer the next foreign commands
        self.others: list[
            Callable[[SignedInDevice, dict[str, Any]], bool]
        ] = []  # handlers of commands that other actors sent
        self._strays: list[int] = []  # sockets that will answer a command of another
        crowd.listeners.append(self._on_device_message)
        self.handlers: dict[type[Step], StepHandler] = {SendCommand: self._command, AnswerForeignCommand: self._stray}

    def _command(self, step: SendCommand) -> None:
        if not self.crowd.sessions:
            return
        session = self.crowd.pick_session(step.session)
        selectors = ["", *(device.session.device for device in self.crowd.open), "Reference"]
        caller = self.command(session, step.route, selectors[step.route % len(selectors)])
        if step.route % LEAVES == 0:  # the caller does not wait
            self.world.sim.after(step.patience / 20, lambda: caller.disconnect(reset=step.route % 2 == 1))

    def command(self, session: SessionModel, kind: int, selector: str, *, unheeded: bool = False) -> RequestClient:
        """Call a Device Control route with a session's token; `unheeded`: the simulated phone leaves it unanswered."""
        world = self.world
        mark = f"mark-{self.crowd.next_number()}"
        command = CommandModel(mark, session, self.crowd.now, selector, unheeded=unheeded, patched=session.patched)
        command.reference = world.phone_service.state is PhoneState.ONLINE
        command.secret = f"hush-{mark}-hush"
        self._commands[mark] = command
        world.secrets[command.secret] = "a password among params"
        chosen = {"device": selector} if selector else {}
        body: dict[str, str] | None = None
        if kind % 3 == 0:
            body = {"text": mark, "mark": mark, "password": command.secret, **chosen}
            method, path = "POST", "/type"
        else:
            query = f"&device={quote(selector)}" if selector else ""
            method, path = "GET", f"/{('ping', 'screen')[kind % 2]}?mark={mark}{query}"
        headers, done = {"authorization": f"Bearer {session.token}"}, partial(self._commanded, command)
        caller = world.request(world.agent, REMOTE, method, path, headers=headers, body=body, done=done)
        if not caller.is_closed:
            self._waiting[command] = caller
        return caller

    def select(self, device: SignedInDevice) -> None:
        """Select the phone of a device as the active one, as the operator."""
        self._active = None
        self.choices.append(self.crowd.now)

        def done(caller: RequestClient) -> None:
            if caller.status == 200 and self._active is None:
                self._active = device, self.crowd.now

        self.crowd.request_as_operator("POST", "/bridge/select-active", {"device": device.session.device}, done)

    @property
    def all_commands(self) -> Iterable[CommandModel]:
        """Return all commands ever sent."""
        return self._commands.values()

    def by_request(self, request_id: str) -> CommandModel | None:
        """Return the command that was sent to a phone with this request id, or None."""
        return self._commands.get(self._known.get(request_id, ""))

    def check_invariants(self) -> None:
        """Check the confirmations and reports of the reference phone, and the calls that wait for an answer."""
        phone = self.world.phone_service
        if phone.state is not PhoneState.ONLINE and phone.gate.confirmations():
            violated(Invariant.CONFIRMED, f"the user of a phone that is {phone.state.value} is asked")
        self._look_at_reference()
        for command, caller in self._waiting.items():
            self._check_settled(command, caller)
            self._check_lost(command, caller)

    def _look_at_reference(self) -> None:
        world, now = self.world, self.crowd.now
        if world.phone_service.state is not PhoneState.ONLINE or not world.is_relay_up:
            self._online_since = now
        online = min(now, max(self._online_since, world.shaken, world.faulted))
        known = world.relay_service.phones._phones.get("reference")
        silent = now - max(online, known.reported_at or 0.0) if known is not None else 0.0
        if silent > REPORT_TIMEOUT:
            violated(Invariant.REPORTED, f"the reference phone has reported nothing for {silent:.0f} s")

    def _check_settled(self, command: CommandModel, caller: RequestClient) -> None:
        late = self.crowd.seconds_past_end(command.caller, LATE, command.sent)
        if late and self.world.is_relay_up and self.world.is_unaffected(caller):
            so = f"got {caller.status}" if caller.is_closed else "still waits"
            violated(Invariant.RESOLVED, f"{command.mark} {so} {late:.0f} s after the end of its session")

    def _check_lost(self, command: CommandModel, caller: RequestClient) -> None:
        world, phone = self.world, self._phone_of.get(command)
        if phone is None or phone.left is None or self.crowd.now <= phone.left + LATE:
            return
        sound = world.is_unaffected(phone.talker) and world.is_unaffected(caller)
        if sound and world.is_relay_up and world.is_fault_free_since(command.sent):
            late = self.crowd.now - phone.left
            violated(Invariant.RESOLVED, f"{command.mark} waits for {phone.name}, which left {late:.0f} s ago")

    def _commanded(self, command: CommandModel, caller: RequestClient) -> None:
        self._waiting.pop(command, None)
        self._phone_of.pop(command, None)
        session, status = command.caller, caller.status
        dead = session.is_dead(self.world.wall, command.sent, self.crowd.now)
        if status == 0:
            return
        if status not in (401, 429, 503) and dead:
            violated(Invariant.DEAD_TOKEN, f"{session.prefix} was answered {status} after its end")
        if status == 401:
            self.crowd.on_token_refused(session, command.sent)
        elif status not in (429, 503):
            self._check_settled(command, caller)
        answer = caller.answer.json
        if status in MADE_BY_RELAY:
            command.outcome = self.crowd.now, MADE_BY_RELAY[status]
        if status != 200:
            self.phones.refused(command, status, str(answer.get("code")) if isinstance(answer, dict) else "")
            return
        if not isinstance(answer, dict) or "echo" not in answer:
            return  # a response of the reference phone, which returns no marks
        who = str(answer.get("by"))
        if answer["echo"] != command.mark or who not in command.answered:
            violated(Invariant.OWN_ANSWER, f"{command.mark} was answered {answer!r:.200}")
        command.outcome = self.crowd.now, "executed"
        if command.answered[who] > command.reached[who] + COMMAND_TIME:
            late = command.answered[who] - command.reached[who]
            violated(Invariant.IN_TIME, f"{command.mark} was answered by the phone after {late:.1f} s, and accepted")

    def _on_device_message(self, device: SignedInDevice, message: dict[str, Any]) -> None:
        if message.get("type") != "bridge.command":
            return
        payload = message["payload"]
        members = {**(payload.get("params") or {}), **(payload.get("body") or {})}
        command = self._commands.get(str(members.get("mark")))
        request_id = str(payload["request_id"])
        wall, now = self.world.wall, self.crowd.now
        device.sent[request_id] = "" if command is None else command.mark
        if command is None:
            self._heard_of_others(device, payload)
            return
        self.world.count("reached a phone")
        if self._known.setdefault(request_id, command.mark) != command.mark:
            violated(Invariant.ONE_ANSWER, f"{command.mark} has the request id of {self._known[request_id]}")
        command.request_id = request_id
        if command.reached:
            violated(Invariant.ONE_ANSWER, f"{command.mark} was sent to {[*command.reached, device.name]}")
        command.reached[device.name] = now
        self._phone_of[command] = device
        if not command.selector and self._active is not None:
            meant, since = self._active
            if since < command.sent and meant is not device and self.phones.is_connected(meant, since):
                violated(Invariant.REACHED, f"{command.mark} reached {device.name}, and {meant.name} was selected")
        if command.caller.lacks("bridge", wall, command.sent, now):
            violated(Invariant.LIVE_GRANT, f"{command.mark} of {command.caller.prefix}, which holds no bridge grant")
        if device.session.lacks("bridge", wall, command.sent, now):
            violated(Invariant.LIVE_GRANT, f"{command.mark} reached {device.name}, which holds no bridge grant")
        if device.session.revoked is not None and device.session.revoked < command.sent:
            violated(Invariant.SOCKETS_ENDED, f"{command.mark} reached {device.name}, whose session was revoked")
        if self.crowd.seconds_past_end(command.caller, LATE) and self.world.is_unaffected(device.talker):
            violated(Invariant.LIVE_GRANT, f"{command.mark} reached {device.name} after the end of its session")
        self._behave(device, request_id, command)

    def _heard_of_others(self, device: SignedInDevice, payload: dict[str, Any]) -> None:
        request_id = str(payload["request_id"])
        if any(knows(device, payload) for knows in self.others):
            return
        if self.late:
            self.world.sim.after(self.late.pop(), lambda: device.send_result(request_id, ""))
        else:
            device.send_result(request_id, "")

    def _behave(self, device: SignedInDevice, request_id: str, command: CommandModel) -> None:
        rng = self.world.rng
        mood = rng.random()
        if self._strays:
            self._answer_for(device, self._strays.pop(), request_id, command.mark)
        if mood < 0.05 or command.unheeded:
            return  # no answer
        delay = 30.0 + rng.random() * 3.0 if mood < 0.15 else rng.random() ** 3

        def answer() -> None:
            command.answered.setdefault(device.name, self.crowd.now)
            device.send_result(request_id, command.mark)
            if mood > 0.9:  # a second answer
                device.send_result(request_id, f"again {command.mark}")

        self.world.sim.after(delay, answer)

    def _stray(self, step: AnswerForeignCommand) -> None:
        self._strays.append(step.socket)
        others = [device for device in self.crowd.open if device.sent]
        if others:
            victim = others[step.victim % len(others)]
            request_id = list(victim.sent)[-1]
            self._answer_for(victim, step.socket, request_id, victim.sent[request_id])

    def _answer_for(self, victim: SignedInDevice, who: int, request_id: str, mark: str) -> None:
        device = self.crowd.open[who % len(self.crowd.open)]
        if device is not victim:
            device.send_result(request_id, mark, stray=True)
