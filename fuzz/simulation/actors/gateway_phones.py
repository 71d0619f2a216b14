"""Phones on the app's standard connection: they sign in to a dashboard, chat through its gateway, and reconnect."""

from base64 import b64decode
from collections.abc import Callable
from itertools import count

from attrs import define, field

from fuzz.simulation.actors.actor_context import StepHandler
from fuzz.simulation.actors.chat_clients import ChatClients
from fuzz.simulation.deployment import API, API_KEY, HOME, LIMITS, LOCAL
from fuzz.simulation.invariants import Invariant, violated
from fuzz.steps import ChatOnGateway, Step
from runtimes.sim.connection import SimConnection
from runtimes.sim.host import SimHost
from runtimes.sim.process import SimProcess
from svc_proto.basics.entropy import Entropy
from svc_proto.commands import Notify
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.engine.core import Engine
from svc_proto.phone.dashboard_phone import DashboardPhone, DashboardPhoneConfig
from svc_proto.phone.gateway_chat import ChatAttachment
from svc_proto.phone.keyboard_control import KEYBOARD, TextInput, UserInput

PORT = 9119
PASSWORD = "dashboard-word-31aa"
PHONES = 2
MANNERS = ("plain", "plain", "tool", "break", "notes")  # of the model's answers
NOTES = "#gold silver"  # what it notes; each note needs an approval
ATTACHED = "attached: "  # begins the text of a prompt with attachments
PICTURE = b64decode("iVBORw0KGgo=")
NO_EXCUSE = ("there is no question open", "no turn is under way")  # notes of a phone whose prompts are accepted
ANSWER_TIME = 1.5  # s until the user answers an approval
RESTART = 2.0  # s until a dashboard that was killed is started again
SETTLE_TIME = 120.0  # s within which a phone has reconnected, and its prompts are done
STOPPED = 15.0  # s


class _AttachingPhone(DashboardPhone):
    """Phone whose user attaches a picture and a text file to prompts that begin with `ATTACHED`."""

    def on_user_input(self, word: UserInput | None) -> None:
        if not isinstance(word, TextInput) or not word.text.startswith(ATTACHED):
            super().on_user_input(word)
            return
        name, text = word.text.removeprefix(ATTACHED).split(" ", 1)
        files = ChatAttachment("a.png", PICTURE), ChatAttachment(f"{name}.txt", _file_text(name).encode())
        if not self.chat.submit(text, files):
            self._notify("note", {"text": "too many prompts wait"})


@define(eq=False)
class _GatewayPhone:
    process: SimProcess
    service: DashboardPhone
    keys: SimConnection
    sent: dict[str, str] = field(factory=dict)  # by text: the name of its file, or empty
    is_excused: bool = False  # prompts of it may be missing: one was refused, or a turn was stopped


class GatewayPhones:
    """Steps of phones on the standard connection. The dashboard and the phones start with the first step."""

    def __init__(self, chats: ChatClients) -> None:
        self.chats = chats
        self.world = chats.world
        self._dashboard: SimProcess | None = None
        self._phones: list[_GatewayPhone] = []
        self._shares = False  # the phones use one chat
        self._addresses = count(1)
        self.handlers: dict[type[Step], StepHandler] = {ChatOnGateway: self._use}

    def _use(self, step: ChatOnGateway) -> None:
        if self._dashboard is None:
            self._shares = step.action % 3 == 0
            self._start()
        phone = self._phones[step.phone % PHONES]
        match step.action % 12:
            case 4 | 5:
                self._lose(phone, hangs=step.action % 12 == 5)
            case 6:
                self._excuse(phone)
                phone.keys.client.send(b"leave\n")
            case 7:
                self._kill_dashboard()
            case 8:
                phone.process.host.address = f"10.0.2.{next(self._addresses)}"
                self.world.count("phones with another address")
                self._lose(phone, hangs=False)
            case manner:
                self._chat(self._chatting(phone), MANNERS[step.action % len(MANNERS)], attaches=manner >= 10)

    def _chat(self, phone: _GatewayPhone, manner: str, *, attaches: bool) -> None:
        number = self.chats.number()
        text, name = f"{manner}: question {number} {NOTES}", f"file-{number}" if attaches else ""
        phone.sent[text] = name
        head = f"{ATTACHED}{name} " if attaches else ""
        phone.keys.client.send(f"chat {head}{text}\n".encode())

    def _chatting(self, phone: _GatewayPhone) -> _GatewayPhone:
        first = self._phones[0]
        if not self._shares or phone is first or phone.service.chat.session_id:
            return phone
        if not first.service.chat.session_id:
            return first
        phone.service.chat.session_id = first.service.chat.session_id
        self.world.count("phones that join a chat")
        self._lose(phone, hangs=False)
        return phone

    def _excuse(self, phone: _GatewayPhone) -> None:
        for each in self._phones if self._shares else [phone]:
            each.is_excused = True

    def settle(self) -> None:
        """Wait for unfinished prompts, check that each is stored once, and stop the phones and the dashboard.

        A prompt may be missing after a fault of the store, a refused prompt or a stopped turn.
        The processes must exit with status 0.
        """
        world = self.world
        self._wait(lambda: not any(phone.service.chat.unfinished for phone in self._phones))
        for phone in self._phones:
            rows = self.chats.rows(phone.service.chat.session_id)
            stored = [str(row.content) for row in rows if row.role == "user"]
            for text, name in phone.sent.items():
                world.count("prompts with attachments" if name else "prompts on the gateway")
                found = [row for row in stored if text in row]
                may_be_missing = phone.is_excused or world.store_trouble
                if len(found) > 1 or (not found and not may_be_missing):
                    violated(Invariant.STORED, f"{text!r} was sent on the gateway, and is stored {len(found)} times")
                if name and any(row.count(_file_text(name)) != 1 for row in found):
                    violated(Invariant.STORED, f"{text!r} is stored without its file, or with it twice: {found}")
        processes = [phone.process for phone in self._phones]
        processes += [] if self._dashboard is None else [self._dashboard]
        for process in processes:
            process.stop(STOPPED)
        world.sim.run_until(lambda: not any(process.alive for process in processes))
        for process in processes:
            if process.exit_code != 0:
                violated(Invariant.RECOVERY, f"{process.name} stopped with {process.exit_code} {process.exit_reason}")

    def _wait(self, so: Callable[[], bool]) -> None:
        until = self.world.sim.now + SETTLE_TIME
        while not so():
            if self.world.sim.now >= until:
                left = [(phone.service.chat.unfinished, phone.process.alive) for phone in self._phones]
                violated(Invariant.RECOVERY, f"phones on the gateway have not settled: {left}")
            self.world.sim.run_for(1.0)
            self.world.supervise()

    # --- programs ---

    def _start(self) -> None:
        self.world.secrets[PASSWORD] = "the dashboard's password"
        self._dashboard = self.world.home.start(self._make_dashboard, [PORT], name="dashboard")
        for number in range(PHONES):
            host = self.world.sim.host(f"app-{number}", f"10.0.1.{110 + number}")
            self._phones.append(self._start_phone(host))

    def _make_dashboard(self, entropy: Entropy) -> Engine:
        config = DashboardConfig(
            host="0.0.0.0",
            port=PORT,
            password=PASSWORD,
            api_url=f"http://{API.address}:{API.port}",
            api_key=API_KEY,
            relay_url=f"http://{LOCAL.address}:{LOCAL.port}",
        )
        return Engine(Dashboard(config, {"index.html": b"<!doctype html>"}, limits=LIMITS), entropy=entropy)

    def _start_phone(self, host: SimHost) -> _GatewayPhone:
        service = _AttachingPhone(
            DashboardPhoneConfig(url=f"http://{HOME}:{PORT}", password=PASSWORD),
            on_notify=lambda news: self._on_notify(phone, news),
        )
        process = host.start(lambda entropy: Engine(service, entropy=entropy))
        keys = SimConnection(self.world.sim.network, 0, (host, KEYBOARD), (host, KEYBOARD))
        process.accepted(keys.server)
        phone = _GatewayPhone(process, service, keys)
        return phone

    def _on_notify(self, phone: _GatewayPhone, news: Notify) -> None:
        if news.event == "question":
            self.world.count("approvals asked for on the gateway")
            word = b"y\n" if self.world.sim.rng.random() < 0.5 else b"n\n"
            self.world.sim.after(ANSWER_TIME, lambda: phone.keys.client.send(word))
        refused = news.event == "answered" and news.fields["status"] in ("refused", "interrupted")
        if refused or (news.event == "note" and news.fields["text"] not in NO_EXCUSE):
            self._excuse(phone)

    # --- losses ---

    def _lose(self, phone: _GatewayPhone, *, hangs: bool) -> None:
        self.world.lose_connections(phone.process.host, hangs=hangs, but=phone.keys)

    def _kill_dashboard(self) -> None:
        assert self._dashboard is not None
        if self._dashboard.alive:
            self._dashboard.kill()
            self.world.sim.after(RESTART, self._restart_dashboard)

    def _restart_dashboard(self) -> None:
        assert self._dashboard is not None
        self._dashboard = self._dashboard.restart()


def _file_text(name: str) -> str:
    return f"[the text of {name}]"
