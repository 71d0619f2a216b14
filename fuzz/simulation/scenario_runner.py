"""One world from its beginning to its end: a script happens, everything heals, everybody works again and leaves."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable

from attrs import field, frozen

from fuzz.simulation.actors.actor_context import ENDED_WITHIN, LATE, RECHECK, Crowd, Deeds
from fuzz.simulation.actors.approval_users import Notes
from fuzz.simulation.actors.attackers import Strangers
from fuzz.simulation.actors.chat_clients import Chats
from fuzz.simulation.actors.chat_forkers import Branches
from fuzz.simulation.actors.completion_clients import Askers
from fuzz.simulation.actors.device_control import Control
from fuzz.simulation.actors.mcp_actors import Mcp
from fuzz.simulation.actors.mcp_pingers import IDLE, Agents
from fuzz.simulation.actors.media_users import Media
from fuzz.simulation.actors.pairing_devices import Pairing
from fuzz.simulation.actors.phone_user import Holder
from fuzz.simulation.actors.run_watchers import Watchers
from fuzz.simulation.actors.session_lifecycles import Lives
from fuzz.simulation.actors.session_owners import Owners
from fuzz.simulation.actors.status_reporters import Reports
from fuzz.simulation.actors.terminal_users import Desks
from fuzz.simulation.actors.tui_users import Gateways
from fuzz.simulation.actors.voice_session_client import AGENT, FAMILIES, VoiceLine
from fuzz.simulation.actors.voice_users import Voices
from fuzz.simulation.checks.all_checks import rooms_of
from fuzz.simulation.checks.check_context import Audit
from fuzz.simulation.deployment import LIMITS, World
from fuzz.simulation.faults import Trouble
from fuzz.simulation.invariants import Invariant, Violation
from fuzz.simulation.leak_check import Rest
from fuzz.simulation.models.reference_model import Session, violated
from fuzz.simulation.narration import place_of, sentence, story
from fuzz.simulation.script import Script
from fuzz.simulation.script_generator import draw
from fuzz.simulation.transition_coverage import Rows, taken
from fuzz.steps import Fault, PostNotification, Step
from runtimes.sim.contract import ContractError
from runtimes.sim.process import SimProcess
from runtimes.sim.simulation import SimulationLimitError

LAST_STEPS, LAST_EVENTS = 15, 30  # that a failure tells of, and of each program
INVOLVED = 60.0  # s in which a program has had something to do
LOOK_EVERY = 1.0  # s between two looks from above
CALM = 160.0  # s: a hung socket is found after 50 s, and a phone rests for up to 38 s before it tries again
PATIENCE = 60.0  # s for anything in the end
QUIET = 10  # in one world of so many nothing happens in the end until a session is over
LATE_END = 5_000.0  # s that it lasts, longer than the relay looks ahead
GONE = 45.0  # s after which nothing of the phone is left: its socket and what was asked of it
EMPTY = 100.0  # s after which no connection that nobody uses is left: `idle_timeout` and then some
VOICES_END = 500.0  # s: one that was lost has 30 s, one that nobody came to 120 s, one with a run 360 s
RUNS_END = 7200.0  # s: a silent model is given up after 300 s, and turns of one session wait for each other


@frozen
class Report:
    """What a world went through."""

    seed: int
    seconds: float  # virtual
    events: int
    steps: int
    faults: dict[str, int]  # by kind
    counts: dict[str, int]
    digest: str  # of every fact and command of every program
    rows: Rows = field(factory=dict)  # of tables that were walked, in a process that counts them
    story: str = ""  # all of it in words, if it was asked for


@frozen
class Failure:
    """A script in which an invariant does not hold, or something worse happened."""

    script: Script
    invariant: Invariant
    detail: str
    at: float = 0.0  # virtual s since the script began
    place: str = ""  # which step was the last, and what the world was about
    story: str = ""  # the last steps in words, and what each program was told and ordered at last

    def __str__(self) -> str:
        return f"{self.invariant.name}: {self.detail}\n  guards: {self.invariant.value}\n  {self.place}"


def play(script: Script, *, trace: bool = False) -> Report | Failure:
    """Let a script happen from the beginning to the end, and say how it went. The same script, the same outcome.

    With `trace` the story is that of the whole world.
    """
    taken()  # what a world that failed has left
    game: _Game | None = None
    try:
        game = _Game(script, trace=trace)
        return game.run()
    except Violation as violation:
        invariant, detail, place = violation.invariant, violation.detail, place_of(violation)
    except (ContractError, SimulationLimitError) as error:
        invariant, detail, place = Invariant.NO_BUG, f"{error}", place_of(error)
    except Exception as error:
        invariant, detail, place = Invariant.NO_BUG, traceback.format_exc(limit=-6), place_of(error)
    if game is None:
        return Failure(script, invariant, detail, place=place)
    return Failure(script, invariant, detail, game.elapsed, f"{game.place()}, in {place}", game.story())


def play_seed(seed: int) -> Report | Failure:
    """Play the world of a seed."""
    return play(draw(seed))


class _Game:
    def __init__(self, script: Script, *, trace: bool) -> None:
        self.script = script
        self.world = World(script, trace=trace)
        self._told: list[tuple[float, str]] = []  # the steps so far, and when
        self._trace = trace
        self.crowd = Crowd(self.world)
        self.pairing = Pairing(self.crowd)
        self.control = Control(self.crowd)
        self.chats = Chats(self.world)
        self.voices = Voices(self.crowd)
        owners = Owners(self.crowd)
        media = Media(self.crowd)
        self.reports = Reports(self.crowd, self.control, media)
        self.agents = Agents(self.crowd, self.control)
        self.mcp = Mcp(self.crowd, self.control, owners, self.chats, self.reports.deeds[PostNotification])
        desks = {**Desks(self.crowd).deeds, **Gateways(self.crowd).deeds}
        self.lives = Lives(self.crowd, self.pairing, owners, self.control, desks, self.voices.lines)
        self.deeds: dict[type[Step], Deeds] = {
            **Trouble(self.world).deeds,
            **self.pairing.deeds,
            **self.control.deeds,
            **self.chats.deeds,
            **Watchers(self.chats).deeds,
            **Askers(self.chats).deeds,
            **Notes(self.chats).deeds,
            **Branches(self.chats).deeds,
            **self.agents.deeds,
            **self.mcp.deeds,
            **self.voices.deeds,
            **owners.deeds,
            **media.deeds,
            **self.reports.deeds,
            **Strangers(self.crowd, self.pairing).deeds,
            **desks,
            **self.lives.deeds,
            **Holder(self.crowd).deeds,
        }
        self._start = self.world.sim.now

    def run(self) -> Report:
        self.wait(lambda: self.world.all_up and self.world.relay.ready, 5.0, "the programs do not start")
        rest = Rest(self.world)
        self.chats.create()
        self._start = self.world.sim.now
        for number, step in enumerate(self.script.steps, start=1):
            self.pass_until(self._start + step.at)
            self._told.append((self.world.sim.now, f"{number}. {sentence(step)}"))
            self.deeds[type(step)](step)
            self.world.look()
        self.pass_until(self.world.sim.now + 5.0)
        self.recover()
        self.everybody_leaves(rest)
        sim, steps = self.world.sim, self.script.steps
        return Report(
            self.script.seed,
            seconds=self.elapsed,
            events=sim.events,
            steps=len(steps),
            faults=dict(Counter(step.name for step in steps if isinstance(step, Fault))),
            counts=self.world.counts,
            digest=sim.trace_digest(),
            rows=taken(),
            story=self.story() if self._trace else "",
        )

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the script began."""
        return self.world.sim.now - self._start

    def place(self) -> str:
        """When it is, and which step was the last."""
        steps = f"step {len(self._told)} of {len(self.script.steps)}"
        if not self._told:
            return f"at {self.elapsed:.3f} s, before step 1"
        when, text = self._told[-1]
        return f"at {self.elapsed:.3f} s, {self.world.sim.now - when:.3f} s after {steps} ({text})"

    def story(self) -> str:
        """What happened, in words: all of it if that was to be kept, else the end of it."""
        trace, told = self.world.sim.trace, self._told
        if trace.records is not None:
            return story(trace.records, told, self.world.secrets, self._start)
        last, since = trace.last(LAST_EVENTS), self.world.sim.now - INVOLVED
        involved = dict.fromkeys(record.process for record in last if record.when >= since)
        events = [record for record in last if record.process in involved]
        return story(events, told[-LAST_STEPS:], self.world.secrets, self._start)

    def pass_until(self, when: float) -> None:
        sim = self.world.sim
        while sim.now < when:
            sim.run_for(min(LOOK_EVERY, when - sim.now))
            self.look()

    def look(self) -> None:
        """What can be seen from above, at any moment."""
        self.world.look()
        self.crowd.look()
        self.control.look()
        self.chats.look()
        self.voices.look()
        self.agents.look()

    def wait(self, so: Callable[[], bool], limit: float, why: str) -> None:
        sim = self.world.sim
        until = sim.now + limit
        while not so():
            if sim.now >= until:
                violated(Invariant.RECOVERY, f"{why}, {limit:.0f} s after it should")
            sim.run_for(0.1)
            self.world.supervise()

    # --- in the end ----------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """All faults are over: everybody connects and works, then everybody leaves and nothing is left."""
        world = self.world
        world.calm()
        self.mcp.close()
        self.wait(lambda: world.all_up, 120.0, "the programs do not come back")
        self.pass_until(world.sim.now + CALM)
        self.let_runs_end()
        self.voices.check_ended()
        self.everybody_works()
        self.reports.look_at_all()
        self.pass_until(world.sim.now + 2 * LATE)
        self.chats.compare()
        for seconds in self.lives.ages:
            self.grow_old(seconds)
        self.pass_until(world.sim.now + 5.0)

    def let_runs_end(self) -> None:
        """Turns whose model has fallen silent end one after another, each after 300 s."""
        until = self.world.sim.now + RUNS_END
        while self.world.live_runs:
            if self.world.sim.now > until:
                violated(Invariant.RECOVERY, f"{self.world.live_runs} runs have not ended after {RUNS_END:.0f} s")
            self.pass_until(self.world.sim.now + 20.0)

    def everybody_works(self) -> None:
        pairing, crowd, world = self.pairing, self.crowd, self.world
        code = pairing.register()
        self.wait(lambda: code.told is not None, PATIENCE, "a code cannot be registered")
        before = len(crowd.sessions)
        pairing.pair(world.devices[0], code)
        self.wait(lambda: len(crowd.sessions) > before, PATIENCE, "a new device cannot pair")
        fresh = crowd.sessions[-1]
        self.everybody_returns()
        if not world.store_trouble and not world.disk_trouble:
            call = self.control.command(fresh, 2, "Reference")
            self.wait(lambda: call.over, PATIENCE, "the phone does not answer")
            if call.status != 200:
                violated(Invariant.RECOVERY, f"the phone answers {call.status} {call.answer.body!r:.200}")
        self.a_chat_works()
        if self.voices.lines:
            for family in FAMILIES:
                self.voice_works(fresh, family, "stub")
            self.voice_works(fresh, AGENT, "openai_realtime")
        if self.agents.talked:
            self.who_listens_stays()

    def who_listens_stays(self) -> None:
        """An agent that does nothing but listen keeps its session of MCP."""
        able = [one for one in self.crowd.sessions if self.agents.is_able(one)]
        if not able:
            return
        session, client = able[-1], self.agents.client(able[-1])
        before = len(client.talks)
        client.open(self.world.relay, lambda talk: self.agents.listen(session, talk))
        self.wait(lambda: len(client.talks) > before, PATIENCE, "no session of MCP can be had")
        listener = client.talks[-1].listener
        self.pass_until(self.world.sim.now + IDLE + 60.0)
        if self.agents.is_able(session) and (listener is None or listener.over):
            violated(Invariant.RECOVERY, f"who listens by MCP with {session.prefix} was sent away")

    def voice_works(self, session: Session, family: str, provider: str) -> None:
        """A device has a text read to it, or talks with the agent."""
        lines: list[VoiceLine] = []
        self.voices.begin(session, family, provider, lines.append)
        self.wait(lambda: bool(lines), PATIENCE, f"no session of {family} can be had")
        ears = lines[0].ears
        self.wait(lambda: ears.responses > 0, PATIENCE, f"{ears.name} is silent")
        if ears.errors:
            violated(Invariant.RECOVERY, f"{ears.name} ended with an error")

    def grow_old(self, seconds: float) -> None:
        """The clock is set when a socket is open whose session ends by that, which is noticed within an hour."""
        code = self.pairing.register(ttl=seconds / 2)
        self.wait(lambda: code.told is not None, PATIENCE, "a code cannot be registered")
        talker = self.pairing.pair(self.world.devices[0], code)
        self.wait(lambda: self.is_in(talker), PATIENCE, "a new device cannot pair")
        self.world.set_clock(seconds)
        self.world.sim.run_for(RECHECK)
        self.pass_until(self.world.sim.now + ENDED_WITHIN + 5.0)

    def everybody_returns(self) -> None:
        for session in list(self.crowd.sessions):
            if self.crowd.surely_lives(session):
                self.returns(session)

    def returns(self, session: Session) -> None:
        """A device comes back with its token."""
        talker = self.pairing.reconnect(session)
        self.wait(lambda: talker.over or self.is_in(talker), PATIENCE, "a session does not return")
        if not self.is_in(talker):
            violated(Invariant.LIVE_TOKEN, f"{session.prefix} cannot return: {talker.status}")

    def is_in(self, talker: object) -> bool:
        return any(device.talker is talker for device in self.crowd.open)

    def a_chat_works(self) -> None:
        chats = self.chats
        before = len(chats.chats)
        chats.create()
        self.wait(lambda: len(chats.chats) > before, PATIENCE, "a chat cannot be made")
        call = chats.turn(chats.chats[-1], "plain")
        self.wait(lambda: call.over, PATIENCE, "a turn does not end")
        if chats.turns[-1].content is None:
            violated(Invariant.RECOVERY, f"a turn ended with {call.status} {chats.turns[-1].events[-3:]}")

    def everybody_leaves(self, rest: Rest) -> None:
        world = self.world
        info: list[dict[str, object]] = []
        self.crowd.local("GET", "/relay/info", None, lambda caller: info.append(caller.answer.json))
        self.wait(lambda: bool(info), PATIENCE, "the relay does not tell of itself")
        if info[0].get("pending_commands") != 0:
            violated(Invariant.RECOVERY, f"commands still wait: {info[0]}")
        code = self.pairing.register(ttl=LATE_END) if self.script.seed % QUIET == 0 else None
        self.pass_until(world.sim.now + 1.0)
        talker = None if code is None else self.pairing.pair(world.devices[0], code)
        self.pass_until(world.sim.now + 1.0)
        world.hang_up(but=talker)
        self.pass_until(world.sim.now + EMPTY)
        if code is not None:
            self.pass_until(world.sim.now + LATE_END)
            world.hang_up()
        self.voices_end()
        self.voices.check_logs()
        if self.agents.talked or self.mcp.talked:
            self.pass_until(world.sim.now + IDLE)
        self.go_through()
        for process, most in ((world.relay, 2), (world.api, 0)):  # the reference phone, and the agent's connection
            if process.channel_count > most or process.operations.open_handles:
                left = f"{process.channel_count} channels, {process.operations.open_handles} files"
                violated(Invariant.RECOVERY, f"{process.name} keeps {left}")
        if world.home.children:
            violated(Invariant.RECOVERY, f"{len(world.home.children)} shells are left")
        world.look_back()
        world.hang_up()  # who came after all others had left
        self._stop(world.phone)
        self.pass_until(world.sim.now + GONE)
        rest.check()
        self._stop(world.api, world.relay)
        self.stopped()
        world.look_back()

    def go_through(self) -> None:
        """The house is empty: somebody goes through some of its rooms."""
        world = self.world
        world.left = False
        for kind in rooms_of(self.script):
            kind(Audit(self.crowd, kind.__name__, self.pass_until, world.supervise))
            world.count(f"audits: {kind.__name__}")
        world.hang_up()
        self.pass_until(world.sim.now + EMPTY)
        self.voices_end()

    def _stop(self, *processes: SimProcess) -> None:
        for process in processes:
            self.world.expected[process] = None
            process.stop(10.0)

    def voices_end(self) -> None:
        """Nobody comes back, so every voice session is over after its time, and whatever worked for it is gone."""
        until = self.world.sim.now + VOICES_END
        while self.world.voice_sessions:
            if self.world.sim.now > until:
                violated(Invariant.VOICE_OVER, f"{self.world.voice_sessions} sessions are left that nobody uses")
            self.pass_until(self.world.sim.now + 5.0)

    def stopped(self) -> None:
        sim = self.world.sim
        sim.run_for(2 * LIMITS.close_timeout + 10.0)
        for process in (self.world.phone, self.world.api, self.world.relay):
            if process.exit_code != 0:
                violated(Invariant.RECOVERY, f"{process.name} stopped with {process.exit_code} {process.exit_reason}")
