"""Run of a script in a simulated deployment, from start to end."""

import traceback
from collections import Counter
from collections.abc import Callable

from attrs import field, frozen

from fuzz.simulation.actors.actor_context import END_TIMEOUT, LATE, RECHECK, ActorContext, StepHandler
from fuzz.simulation.actors.approval_users import ApprovalUsers
from fuzz.simulation.actors.attackers import Attackers
from fuzz.simulation.actors.chat_clients import ChatClients
from fuzz.simulation.actors.chat_forkers import ChatForkers
from fuzz.simulation.actors.completion_clients import CompletionClients
from fuzz.simulation.actors.device_control import DeviceControlActors
from fuzz.simulation.actors.gateway_phones import GatewayPhones
from fuzz.simulation.actors.mcp_pingers import IDLE, McpPingers
from fuzz.simulation.actors.media_users import MediaUsers
from fuzz.simulation.actors.pairing_devices import PairingDevices
from fuzz.simulation.actors.phone_user import PhoneUser
from fuzz.simulation.actors.run_watchers import RunWatchers
from fuzz.simulation.actors.session_lifecycles import SessionLifecycles
from fuzz.simulation.actors.session_owners import SessionOwners
from fuzz.simulation.actors.status_reporters import StatusReporters
from fuzz.simulation.actors.terminal_users import TerminalUsers
from fuzz.simulation.actors.tui_users import TuiUsers
from fuzz.simulation.deployment import LIMITS, Deployment
from fuzz.simulation.faults import FaultInjector
from fuzz.simulation.invariants import Invariant, Violation, violated
from fuzz.simulation.leak_check import LeakCheck
from fuzz.simulation.models.reference_model import SessionModel
from fuzz.simulation.narration import describe_step, narrate, place_of
from fuzz.simulation.script import Script
from fuzz.simulation.script_generator import generate_script
from fuzz.simulation.transition_coverage import Rows, drain_counts
from fuzz.steps import Fault, Step
from runtimes.sim.contract import ContractError
from runtimes.sim.process import SimProcess
from runtimes.sim.simulation import SimulationLimitError

LAST_STEPS, LAST_EVENTS = 15, 30  # of the script and of each program, in the report of a failure
INVOLVED = 60.0  # s in which a program was active
CHECK_INTERVAL = 1.0  # s between two checks
SETTLE_TIME = 160.0  # s: a hung socket is found after 50 s, and a phone waits up to 38 s before it reconnects
WAIT_TIMEOUT = 60.0  # s for each check after the script
QUIET_TIME = 10  # one script of so many waits for the end of a session
LATE_END = 5_000.0  # s that this session lasts, longer than the relay schedules ahead
GONE = 45.0  # s after which no socket or request of the phone is left
EMPTY = 100.0  # s after which no idle connection is left: `idle_timeout` with a margin
RUNS_END = 7200.0  # s: a silent model call ends after 300 s, and turns of one session wait for each other


@frozen
class ScenarioReport:
    """Statistics of a successful script."""

    seed: int
    seconds: float  # virtual
    events: int
    steps: int
    faults: dict[str, int]  # by kind
    counts: dict[str, int]
    digest: str  # of every fact and command of every program
    rows: Rows = field(factory=dict)  # table rows that were used, in a process that counts them
    story: str = ""  # the whole narration, if requested


@frozen
class ScenarioFailure:
    """Script that violates an invariant, or ends with an exception."""

    script: Script
    invariant: Invariant
    detail: str
    at: float = 0.0  # virtual s since the script began
    place: str = ""  # the last step, and the function in the simulation
    story: str = ""  # the last steps and the last facts and commands of each program, in words

    def __str__(self) -> str:
        return f"{self.invariant.name}: {self.detail}\n  guards: {self.invariant.value}\n  {self.place}"


def run_script(script: Script, *, trace: bool = False) -> ScenarioReport | ScenarioFailure:
    """Run a script from start to end, and return its outcome. Equal scripts have equal outcomes.

    With `trace`, the report has the whole narration.
    """
    drain_counts()  # counts of a failed script
    game: _ScenarioRunner | None = None
    try:
        game = _ScenarioRunner(script, trace=trace)
        return game.run()
    except Violation as violation:
        invariant, detail, place = violation.invariant, violation.detail, place_of(violation)
    except (ContractError, SimulationLimitError) as error:
        invariant, detail, place = Invariant.NO_BUG, f"{error}", place_of(error)
    except Exception as error:
        invariant, detail, place = Invariant.NO_BUG, traceback.format_exc(limit=-6), place_of(error)
    if game is None:
        return ScenarioFailure(script, invariant, detail, place=place)
    return ScenarioFailure(script, invariant, detail, game.elapsed, f"{game.position()}, in {place}", game.narrate())


def run_seed(seed: int) -> ScenarioReport | ScenarioFailure:
    """Run the script of a seed, and return its outcome."""
    return run_script(generate_script(seed))


class _ScenarioRunner:
    def __init__(self, script: Script, *, trace: bool) -> None:
        self.script = script
        self.world = Deployment(script, trace=trace)
        self._told: list[tuple[float, str]] = []  # the steps so far, and their times
        self._trace = trace
        self.crowd = ActorContext(self.world)
        self.pairing = PairingDevices(self.crowd)
        self.control = DeviceControlActors(self.crowd)
        self.chats = ChatClients(self.world)
        self.gateway_phones = GatewayPhones(self.chats)
        owners = SessionOwners(self.crowd)
        media = MediaUsers(self.crowd)
        self.reports = StatusReporters(self.crowd, self.control, media)
        self.agents = McpPingers(self.crowd, self.control)
        terminal_users = {**TerminalUsers(self.crowd).handlers, **TuiUsers(self.crowd).handlers}
        self.lives = SessionLifecycles(self.crowd, self.pairing, owners, self.control, terminal_users)
        self.handlers: dict[type[Step], StepHandler] = {
            **FaultInjector(self.world).handlers,
            **self.pairing.handlers,
            **self.control.handlers,
            **self.chats.handlers,
            **RunWatchers(self.chats).handlers,
            **CompletionClients(self.chats).handlers,
            **ApprovalUsers(self.chats).handlers,
            **ChatForkers(self.chats).handlers,
            **self.gateway_phones.handlers,
            **self.agents.handlers,
            **owners.handlers,
            **media.handlers,
            **self.reports.handlers,
            **Attackers(self.crowd, self.pairing).handlers,
            **terminal_users,
            **self.lives.handlers,
            **PhoneUser(self.crowd).handlers,
        }
        self._start = self.world.sim.now

    def run(self) -> ScenarioReport:
        self.wait_until(lambda: self.world.are_programs_up and self.world.relay.ready, 5.0, "the programs do not start")
        rest = LeakCheck(self.world)
        self.chats.create()
        self._start = self.world.sim.now
        for number, step in enumerate(self.script.steps, start=1):
            self.pass_until(self._start + step.at)
            self._told.append((self.world.sim.now, f"{number}. {describe_step(step)}"))
            self.handlers[type(step)](step)
            self.world.check_invariants()
        self.pass_until(self.world.sim.now + 5.0)
        self.recover()
        self.disconnect_all(rest)
        sim, steps = self.world.sim, self.script.steps
        return ScenarioReport(
            self.script.seed,
            seconds=self.elapsed,
            events=sim.events,
            steps=len(steps),
            faults=dict(Counter(step.name for step in steps if isinstance(step, Fault))),
            counts=self.world.counts,
            digest=sim.trace_digest(),
            rows=drain_counts(),
            story=self.narrate() if self._trace else "",
        )

    @property
    def elapsed(self) -> float:
        return self.world.sim.now - self._start

    def position(self) -> str:
        steps = f"step {len(self._told)} of {len(self.script.steps)}"
        if not self._told:
            return f"at {self.elapsed:.3f} s, before step 1"
        when, text = self._told[-1]
        return f"at {self.elapsed:.3f} s, {self.world.sim.now - when:.3f} s after {steps} ({text})"

    def narrate(self) -> str:
        trace, told = self.world.sim.trace, self._told
        if trace.records is not None:
            return narrate(trace.records, told, self.world.secrets, self._start)
        last, since = trace.last(LAST_EVENTS), self.world.sim.now - INVOLVED
        involved = dict.fromkeys(record.process for record in last if record.when >= since)
        events = [record for record in last if record.process in involved]
        return narrate(events, told[-LAST_STEPS:], self.world.secrets, self._start)

    def pass_until(self, when: float) -> None:
        sim = self.world.sim
        while sim.now < when:
            sim.run_for(min(CHECK_INTERVAL, when - sim.now))
            self.check_invariants()

    def check_invariants(self) -> None:
        self.world.check_invariants()
        self.crowd.check_invariants()
        self.control.check_invariants()
        self.chats.check_invariants()
        self.agents.check_invariants()

    def wait_until(self, so: Callable[[], bool], limit: float, why: str) -> None:
        sim = self.world.sim
        until = sim.now + limit
        while not so():
            if sim.now >= until:
                violated(Invariant.RECOVERY, f"{why}, {limit:.0f} s after it should")
            sim.run_for(0.1)
            self.world.supervise()

    # --- after the script ----------------------------------------------------------------------------------------

    def recover(self) -> None:
        """End all faults; check that each live session and a new device connect, and that phone and chats work.

        The phone is not checked after a fault of the store or the disk.
        """
        world = self.world
        world.heal_all()
        self.wait_until(lambda: world.are_programs_up, 120.0, "the programs do not come back")
        self.pass_until(world.sim.now + SETTLE_TIME)
        self.wait_for_runs()
        self.gateway_phones.settle()
        self.check_everything_works()
        self.reports.check_all()
        self.pass_until(world.sim.now + 2 * LATE)
        self.chats.compare()
        for seconds in self.lives.ages:
            self.expire_by_clock_change(seconds)
        self.pass_until(world.sim.now + 5.0)

    def wait_for_runs(self) -> None:
        until = self.world.sim.now + RUNS_END
        while self.world.live_runs:
            if self.world.sim.now > until:
                violated(Invariant.RECOVERY, f"{self.world.live_runs} runs have not ended after {RUNS_END:.0f} s")
            self.pass_until(self.world.sim.now + 20.0)

    def check_everything_works(self) -> None:
        pairing, crowd, world = self.pairing, self.crowd, self.world
        code = pairing.register()
        self.wait_until(lambda: code.told is not None, WAIT_TIMEOUT, "a code cannot be registered")
        before = len(crowd.sessions)
        pairing.pair(world.devices[0], code)
        self.wait_until(lambda: len(crowd.sessions) > before, WAIT_TIMEOUT, "a new device cannot pair")
        fresh = crowd.sessions[-1]
        for session in list(crowd.sessions):
            if crowd.must_be_alive(session):
                self.check_device_returns(session)
        if not world.store_trouble and not world.disk_trouble:
            call = self.control.command(fresh, 2, "Reference")
            self.wait_until(lambda: call.is_closed, WAIT_TIMEOUT, "the phone does not answer")
            if call.status != 200:
                violated(Invariant.RECOVERY, f"the phone answers {call.status} {call.answer.body!r:.200}")
        self.check_chat_works()
        if self.agents.talked:
            self.check_listeners_stay()

    def check_listeners_stay(self) -> None:
        """Check that an agent that only listens for longer than `IDLE` is not disconnected.

        Do nothing without a session that surely has the bridge grant.
        """
        able = [one for one in self.crowd.sessions if self.agents.is_able(one)]
        if not able:
            return
        session, client = able[-1], self.agents.client(able[-1])
        before = len(client.talks)
        client.open(self.world.relay, lambda talk: self.agents.listen(session, talk))
        self.wait_until(lambda: len(client.talks) > before, WAIT_TIMEOUT, "no session of MCP can be had")
        listener = client.talks[-1].listener
        self.pass_until(self.world.sim.now + IDLE + 60.0)
        if self.agents.is_able(session) and (listener is None or listener.is_closed):
            violated(Invariant.RECOVERY, f"who listens by MCP with {session.prefix} was sent away")

    def expire_by_clock_change(self, seconds: float) -> None:
        """Let the session of an open socket expire by a clock step, which the relay detects within an hour."""
        code = self.pairing.register(ttl=seconds / 2)
        self.wait_until(lambda: code.told is not None, WAIT_TIMEOUT, "a code cannot be registered")
        talker = self.pairing.pair(self.world.devices[0], code)
        self.wait_until(lambda: self.is_authenticated(talker), WAIT_TIMEOUT, "a new device cannot pair")
        self.world.set_clock(seconds)
        self.world.sim.run_for(RECHECK)
        self.pass_until(self.world.sim.now + END_TIMEOUT + 5.0)

    def check_device_returns(self, session: SessionModel) -> None:
        talker = self.pairing.reconnect(session)
        self.wait_until(
            lambda: talker.is_closed or self.is_authenticated(talker), WAIT_TIMEOUT, "a session does not return"
        )
        if not self.is_authenticated(talker):
            violated(Invariant.LIVE_TOKEN, f"{session.prefix} cannot return: {talker.status}")

    def is_authenticated(self, talker: object) -> bool:
        return any(device.talker is talker for device in self.crowd.open)

    def check_chat_works(self) -> None:
        chats = self.chats
        before = len(chats.chats)
        chats.create()
        self.wait_until(lambda: len(chats.chats) > before, WAIT_TIMEOUT, "a chat cannot be made")
        call = chats.turn(chats.chats[-1], "plain")
        self.wait_until(lambda: call.is_closed, WAIT_TIMEOUT, "a turn does not end")
        if chats.turns[-1].content is None:
            violated(Invariant.RECOVERY, f"a turn ended with {call.status} {chats.turns[-1].events[-3:]}")

    def disconnect_all(self, rest: LeakCheck) -> None:
        world = self.world
        info: list[dict[str, object]] = []
        self.crowd.request_as_operator("GET", "/relay/info", None, lambda caller: info.append(caller.answer.json))
        self.wait_until(lambda: bool(info), WAIT_TIMEOUT, "the relay does not tell of itself")
        if info[0].get("pending_commands") != 0:
            violated(Invariant.RECOVERY, f"commands still wait: {info[0]}")
        code = self.pairing.register(ttl=LATE_END) if self.script.seed % QUIET_TIME == 0 else None
        self.pass_until(world.sim.now + 1.0)
        talker = None if code is None else self.pairing.pair(world.devices[0], code)
        self.pass_until(world.sim.now + 1.0)
        world.close_connections(but=talker)
        self.pass_until(world.sim.now + EMPTY)
        if code is not None:
            self.pass_until(world.sim.now + LATE_END)
            world.close_connections()
        if self.agents.has_clients:
            self.pass_until(world.sim.now + IDLE)
        # The reference phone, and the agent's connection.
        for process, most in ((world.relay, 2), (world.api, 0)):
            if process.channel_count > most or process.operations.open_handles:
                left = f"{process.channel_count} channels, {process.operations.open_handles} files"
                violated(Invariant.RECOVERY, f"{process.name} keeps {left}")
        if world.home.children:
            violated(Invariant.RECOVERY, f"{len(world.home.children)} shells are left")
        world.check_history()
        world.close_connections()  # clients that connected after the others had disconnected
        self._stop(world.phone)
        self.pass_until(world.sim.now + GONE)
        rest.check()
        self._stop(world.api, world.relay)
        self.stopped()
        world.check_history()

    def _stop(self, *processes: SimProcess) -> None:
        for process in processes:
            self.world.expected[process] = None
            process.stop(10.0)

    def stopped(self) -> None:
        sim = self.world.sim
        sim.run_for(2 * LIMITS.close_timeout + 10.0)
        for process in (self.world.phone, self.world.api, self.world.relay):
            if process.exit_code != 0:
                violated(Invariant.RECOVERY, f"{process.name} stopped with {process.exit_code} {process.exit_reason}")
