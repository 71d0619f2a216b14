"""An agent in the simulated world, with a scripted model and, where a test needs them, a relay and a phone.

    world = AgentHarness(model=[plain("Hello")])
    outcome = world.answer("Hi")          # one turn, to its end
    assert world.host.text == "Hello"

A plan is a flow in the agent's process. Time passes only while the world runs.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from clients.phone.emulator import EmulatedPhone
from runtimes.sim.host import SimHost
from runtimes.sim.process import SimProcess
from runtimes.sim.simulation import Simulation
from svc_proto.agent import interface
from svc_proto.agent.agent_factory import AgentConfig, AgentParts, build_agent
from svc_proto.commands import Level, Notify
from svc_proto.engine.core import Engine, Service
from svc_proto.engine.flow import Flow, sleep
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from svc_proto.phone.service import Phone, PhoneConfig
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from tests.loops.simulated_environment import NotificationTap
from tests.support.playbook import FlowService
from tests.support.servers.model_server import MODEL_PORT, Scripted, ScriptedModel

T = TypeVar("T")
KEY = "secret-of-the-test"  # nothing but the configuration shows that it is a key
ROUTE = interface.ModelEndpoint(base_url=f"http://model:{MODEL_PORT}/v1", model="small", api_key=KEY)
HOME = "/home/user/.svc"
TRUSTING = SafetySettings(armed=True, answers=ConfirmationPolicy.ALLOW)


class RecordingAgentHost:
    """`AgentHost` that records events, stored rows and approval requests.

    The texts in `choices` answer approval requests in order; when none is left, the answer is `deny`.
    """

    engine: Engine  # of the current turn

    def __init__(self) -> None:
        self.events: list[interface.TurnEvent] = []
        self.rows: list[object] = []
        self.pictures: tuple[interface.StoredPicture, ...] = ()
        self.extras: list[Mapping[str, object]] = []  # of the stored calls
        self.asked: list[interface.ApprovalRequested] = []
        self.choices: list[str] = []
        self.can_request_approval = True
        self.behind = False  # until `wait_drained` is called
        self.always_behind = False
        self.drains = 0
        self.at: list[float] = []

    @property
    def reader_behind(self) -> bool:
        return self.behind or self.always_behind

    def emit(self, event: interface.TurnEvent) -> None:
        self.events.append(event)
        self.at.append(self.engine.now.mono)

    def wait_drained(self) -> Flow[None]:
        self.drains += 1
        yield from sleep(self.engine, 1.0)
        self.behind = False

    def store_calls(
        self,
        text: str,
        reasoning: str,
        calls: tuple[interface.ToolCall, ...],
        extra: Mapping[str, object] = interface.NO_EXTRA,
    ) -> Flow[None]:
        yield from sleep(self.engine, 0.01)
        self.rows.append((text, reasoning, [(call.id, call.name, dict(call.args)) for call in calls]))
        self.extras.append(extra)

    def store_result(
        self, call: interface.ToolCall, output: str, pictures: tuple[interface.StoredPicture, ...] = ()
    ) -> Flow[None]:
        yield from sleep(self.engine, 0.01)
        self.pictures += pictures
        self.rows.append((call.id, output))

    def request_approval(self, asked: interface.ApprovalRequested) -> Flow[str]:
        self.asked.append(asked)
        self.emit(asked)
        yield from sleep(self.engine, 0.01)
        choice = self.choices.pop(0) if self.choices else "deny"
        self.emit(interface.ApprovalResolved(call=asked.call, choice=choice))
        return choice

    # --- records ---

    @property
    def text(self) -> str:
        text = ""
        for event in self.events:
            if isinstance(event, interface.TextDelta):
                text += event.text
            elif isinstance(event, interface.TextRetracted):
                text = text[: -event.length]
        return text

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, interface.ReasoningDelta))

    @property
    def finished(self) -> list[interface.ToolCallFinished]:
        return [event for event in self.events if isinstance(event, interface.ToolCallFinished)]

    @property
    def usage(self) -> list[tuple[int, int]]:
        answered = [event for event in self.events if isinstance(event, interface.ModelCallFinished)]
        return [(event.input_tokens, event.output_tokens) for event in answered]

    @property
    def event_names(self) -> list[str]:
        """Return the names of the events; text deltas in a row count as one, and so do reasoning deltas."""
        short: list[str] = []
        for event in self.events:
            word = _short(event)
            if not short or short[-1] != word or word not in ("text", "reasoning"):
                short.append(word)
        return short


def _short(event: interface.TurnEvent) -> str:
    match event:
        case interface.TextDelta():
            return "text"
        case interface.TextRetracted():
            return "retracted"
        case interface.ReasoningDelta():
            return "reasoning"
        case interface.ModelCallStarted():
            return "asked"
        case interface.ModelCallFinished():
            return "answered"
        case interface.ToolCallPending(call=call):
            return f"pending {call.name}"
        case interface.ToolCallStarted(call=call):
            return f"started {call.name}"
        case interface.ToolCallFinished(call=call, error=error):
            return f"{'failed' if error else 'finished'} {call.name}"
        case interface.MemoryChanged(change=change):
            return f"noted {change.target}"
        case interface.ApprovalRequested(call=call):
            return f"asks {call.name}"
        case interface.ApprovalResolved(choice=choice):
            return f"given {choice}"


class AgentHarness:
    """Harness of an agent; its disk outlives its processes."""

    def __init__(
        self,
        *,
        model: Iterable[Scripted] = (),
        pages: Mapping[str, object] | None = None,
        relay: bool = False,
        phone: bool = False,
        backend: EmulatedPhone | None = None,
        **config: Any,
    ) -> None:
        self.sim = Simulation(trace=False)
        self.agent_host: SimHost = self.sim.host("agent", "10.0.0.1")
        self.disk = self.agent_host.disk
        self.config = AgentConfig(**{"home": HOME, "pace": 0.0, **config})
        self.model = ScriptedModel(model, pages or {})
        self.host = RecordingAgentHost()
        self.processes: list[SimProcess] = []
        self.news: list[Notify] = []  # of the phone
        self.serve(self.model, MODEL_PORT, self.sim.host("model", "10.0.0.2"))
        if relay or phone:
            self.start_relay()
        if phone:
            self.start_phone(backend or EmulatedPhone())

    # --- set-up ---

    def start_relay(self, **config: Any) -> None:
        settings = RelayConfig(port=8767, home=HOME, config_path="/config.yaml", **config)
        self.relay = Relay(settings)
        self.serve(self.relay, 8767)

    def start_phone(self, backend: EmulatedPhone, safety: SafetySettings = TRUSTING, *, verbs: bool = True) -> None:
        """Connect a phone to the relay; without `verbs`, its list of destructive verbs is empty."""
        self.backend = backend
        host = self.sim.host("phone", "10.0.1.1")
        code = "Q7M2ZK"
        self.run(lambda parts, engine: _register(engine, code))
        phone = Phone(PhoneConfig(remote="ws://10.0.0.1:8767", code=code), backend, safety)
        for verb in () if verbs else phone.gate.verbs.verbs:
            phone.gate.verbs.remove(verb)
        host.start(lambda entropy: NotificationTap(Engine(phone, entropy=entropy), self.news))
        self.sim.run_for(5.0)

    def serve(self, service: Service, port: int, host: SimHost | None = None) -> SimProcess:
        """Start a server, on the agent's own host by default."""
        process = (host or self.agent_host).start(lambda entropy: Engine(service, entropy=entropy), [port])
        self.processes.append(process)
        self.sim.run_until(lambda: process.ready)
        return process

    # --- plans ---

    def run(self, plan: Callable[[AgentParts, Engine], Flow[T]], *, limit: float = 3_600.0) -> T:
        """Run a plan in a process of its own until it ends; return its result, or raise its error.

        If it has a result, require that no file is open, and that its log records have neither the model's key nor a
        bug outside of the tests.
        """

        def begin(engine: Engine) -> Flow[T]:
            self.host.engine = engine
            return plan(build_agent(engine, self.config), engine)

        house = FlowService(begin)
        process = self.agent_host.start(lambda entropy: Engine(house, entropy=entropy, log_level=Level.DEBUG))
        self.processes.append(process)
        self.sim.run_until(lambda: bool(house.results or house.errors or not process.alive), limit)
        open_files = process.operations.open_handles
        process.stop(0.0)
        self.sim.run_until(lambda: not process.alive)
        for error in house.errors:
            raise error
        (result,) = house.results
        assert KEY not in repr([line.fields for line in process.logs])
        assert open_files == 0
        bugs = [line.fields for line in process.logs if line.event == "bug"]
        assert all("/tests/" in str(bug["at"]) for bug in bugs), bugs  # only errors that a test raised
        return result  # type: ignore[no-any-return]  # the result of the flow

    def answer(
        self, prompt: interface.Content, *, model: interface.ModelEndpoint | None = ROUTE, **turn: Any
    ) -> interface.TurnOutcome:
        """Run one turn to its end; its events go to `host`."""

        return self.run(lambda parts, engine: self.turn(parts, prompt, model=model, **turn))

    def turn(self, parts: AgentParts, prompt: interface.Content, **turn: Any) -> Flow[interface.TurnOutcome]:
        """Return a flow that runs one turn of the agent, for use inside a plan."""
        return parts.agent.run(
            interface.Turn(**{"session_id": "s", "run_id": "r", "prompt": prompt, "model": ROUTE, **turn}), self.host
        )

    def command(self, line: interface.Content, **turn: Any) -> interface.TurnOutcome:
        """Run a turn with the built-in agent."""
        return self.answer(line, model=None, **turn)

    @property
    def logs(self) -> list[tuple[str, Mapping[str, object]]]:
        """Return the log records of the process that was started last, usually that of a plan."""
        return [(line.event, line.fields) for line in self.processes[-1].logs]


def _register(engine: Engine, code: str) -> Flow[None]:
    from svc_proto.engine.http_client import HttpResult, fetch

    body = b'{"code": "%s"}' % code.encode()
    answer = yield from fetch(engine, "POST", "http://127.0.0.1:8767/pairing/register", body=body)
    assert isinstance(answer, HttpResult)
    assert answer.status == 200
