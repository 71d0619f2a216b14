"""`python -m fuzz.run --seed 7`: play simulated worlds, and make a script that breaks an invariant smaller."""

from __future__ import annotations

import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from attrs import define, field, frozen

from fuzz.chats import Chats
from fuzz.desks import Desks
from fuzz.invariants import Invariant, Violation
from fuzz.model import Session, violated
from fuzz.people import People
from fuzz.script import FAULTS, Script, draw, shrink
from fuzz.world import LIMITS, LOCAL, World
from runtimes.sim.check import ContractError
from runtimes.sim.world import LimitPassed

__all__ = ["Failure", "Report", "Total", "main", "play", "play_seed", "replay_command"]

HERE = Path(__file__).parent
LOOK_EVERY = 1.0  # s between two looks from above
CALM = 160.0  # s: a hung socket is found after 50 s, and a phone rests for up to 38 s before it tries again
PATIENCE = 60.0  # s for anything in the end
EMPTY = 100.0  # s after which no connection that nobody uses is left: `idle_timeout` and then some
RUNS_END = 7200.0  # s: a silent model is given up after 300 s, and turns of one session wait for each other
GIVEN = 16  # shown of the seeds that fail

EXAMPLES = """
\b
Examples:
  python -m fuzz.run --seeds 1000
  python -m fuzz.run --seed 7
  python -m fuzz.run --script fuzz/crashes/simulation-7.txt
"""


@frozen
class Report:
    """What a world went through."""

    seed: int
    seconds: float  # virtual
    events: int
    steps: int
    faults: int
    counts: dict[str, int]


@frozen
class Failure:
    """A script in which an invariant does not hold, or something worse happened."""

    script: Script
    invariant: Invariant
    detail: str


@define
class Total:
    """Of many worlds."""

    worlds: int = 0
    seconds: float = 0.0
    events: int = 0
    steps: int = 0
    faults: int = 0
    counts: dict[str, int] = field(factory=dict)

    def add(self, report: Report) -> None:
        """Count one more."""
        self.worlds += 1
        self.seconds += report.seconds
        self.events += report.events
        self.steps += report.steps
        self.faults += report.faults
        for name, count in report.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    def text(self, elapsed: float) -> str:
        """In words."""
        counts = ", ".join(f"{count} x {name}" for name, count in sorted(self.counts.items()))
        return (
            f"{self.worlds} worlds, {self.steps} steps, {self.faults} faults, {self.seconds / 3600:.1f} virtual hours, "
            f"{self.events} events in {elapsed:.0f} s: {self.events / max(elapsed, 0.001):,.0f} a second\n{counts}"
        )


def play(script: Script) -> Report | Failure:
    """Let a script happen from the beginning to the end, and say how it went. The same script, the same outcome."""
    game: _Game | None = None
    try:
        game = _Game(script)
        return game.run()
    except Violation as violation:
        return Failure(script, violation.invariant, violation.detail)
    except (ContractError, LimitPassed) as error:
        return Failure(script, Invariant.NO_BUG, f"{error}")
    except Exception:
        return Failure(script, Invariant.NO_BUG, traceback.format_exc(limit=-6))


class _Game:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.world = World(script)
        self.people = People(self.world)
        self.chats = Chats(self.world)
        self.desks = Desks(self.world, self.people)
        self.events = 0
        self._start = self.world.sim.now

    def run(self) -> Report:
        self.wait(lambda: self.world.all_up and self.world.relay.ready, 5.0, "the programs do not start")
        self.chats.create()
        self._start = self.world.sim.now
        for step in self.script.steps:
            self.pass_until(self._start + step.at)
            if not any(group.perform(step) for group in (self.people, self.chats, self.desks)):
                self.world.break_something(step)
            self.world.look()
        self.pass_until(self.world.sim.now + 5.0)
        self.recover()
        faults = sum(step.deed in FAULTS for step in self.script.steps)
        passed = self.world.sim.now - self._start
        return Report(
            self.script.seed, passed, self.world.sim.events, len(self.script.steps), faults, self.world.counts
        )

    def pass_until(self, when: float) -> None:
        sim = self.world.sim
        while sim.now < when:
            sim.run_for(min(LOOK_EVERY, when - sim.now))
            self.world.look()

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
        self.wait(lambda: world.all_up, 120.0, "the programs do not come back")
        self.pass_until(world.sim.now + CALM)
        self.let_runs_end()
        self.everybody_works()
        self.chats.compare()
        self.pass_until(world.sim.now + 5.0)
        self.everybody_leaves()

    def let_runs_end(self) -> None:
        """Turns whose model has fallen silent end one after another, each after 300 s."""
        until = self.world.sim.now + RUNS_END
        while self.world.live_runs:
            if self.world.sim.now > until:
                violated(Invariant.RECOVERY, f"{self.world.live_runs} runs have not ended after {RUNS_END:.0f} s")
            self.pass_until(self.world.sim.now + 20.0)

    def everybody_works(self) -> None:
        people, world = self.people, self.world
        code = people.register()
        self.wait(lambda: code.told is not None, PATIENCE, "a code cannot be registered")
        before = len(people.sessions)
        people.pair(world.devices[0], code)
        self.wait(lambda: len(people.sessions) > before, PATIENCE, "a new device cannot pair")
        fresh = people.sessions[-1]
        if not world.store_trouble:
            self.everybody_returns()
        if not world.store_trouble and not world.disk_trouble:
            call = people.command(fresh, 2, "Reference")
            self.wait(lambda: call.over, PATIENCE, "the phone does not answer")
            if call.status != 200:
                violated(Invariant.RECOVERY, f"the phone answers {call.status} {call.answer.body!r:.200}")
        self.a_chat_works()

    def everybody_returns(self) -> None:
        people, world = self.people, self.world
        highest = max(offset for _, offset in world.wall.steps) + world.sim.now
        for session in list(people.sessions):
            if not session.surely_lives(highest):
                continue
            self.returns(session)

    def returns(self, session: Session) -> None:
        """A device comes back with its token."""
        talker = self.people.reconnect(session)
        self.wait(lambda: talker.over or self.is_in(talker), PATIENCE, "a session does not return")
        if not self.is_in(talker):
            violated(Invariant.LIVE_TOKEN, f"{session.prefix} cannot return: {talker.status}")

    def is_in(self, talker: object) -> bool:
        return any(device.talker is talker for device in self.people.open)

    def a_chat_works(self) -> None:
        chats = self.chats
        before = len(chats.chats)
        chats.create()
        self.wait(lambda: len(chats.chats) > before, PATIENCE, "a chat cannot be made")
        call = chats.turn(chats.chats[-1], "plain")
        self.wait(lambda: call.over, PATIENCE, "a turn does not end")
        if chats.turns[-1].content is None:
            violated(Invariant.RECOVERY, f"a turn ended with {call.status} {chats.turns[-1].events[-3:]}")

    def everybody_leaves(self) -> None:
        world = self.world
        info: list[dict[str, object]] = []
        world.call(world.home, LOCAL, "GET", "/relay/info", done=lambda caller: info.append(caller.answer.json))
        self.wait(lambda: bool(info), PATIENCE, "the relay does not tell of itself")
        if info[0].get("pending_commands") != 0:
            violated(Invariant.RECOVERY, f"commands still wait: {info[0]}")
        for line in list(world.lines):
            line.hang_up()
        self.pass_until(world.sim.now + EMPTY)
        for process, most in ((world.relay, 2), (world.api, 0)):  # the reference phone, and the agent's connection
            if process.channel_count > most or process.operations.open_handles:
                left = f"{process.channel_count} channels, {process.operations.open_handles} files"
                violated(Invariant.RECOVERY, f"{process.name} keeps {left}")
        if world.home.children:
            violated(Invariant.RECOVERY, f"{len(world.home.children)} shells are left")
        world.look_back()
        for process in (world.phone, world.api, world.relay):
            world.expected[process] = None
            process.stop(10.0)
        self.stopped()
        world.look_back()

    def stopped(self) -> None:
        sim = self.world.sim
        sim.run_for(2 * LIMITS.close_timeout + 10.0)
        for process in (self.world.phone, self.world.api, self.world.relay):
            if process.exit_code != 0:
                violated(Invariant.RECOVERY, f"{process.name} stopped with {process.exit_code} {process.exit_reason}")


def replay_command(seed: int) -> str:
    """What to type to see it again."""
    return f"python -m fuzz.run --seed {seed}"


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", type=click.IntRange(min=1), default=300, show_default=True, help="How many worlds.")
@click.option("--first", type=int, default=0, show_default=True, help="The first seed.")
@click.option("--seed", type=int, default=None, help="One world.")
@click.option("--script", "path", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A saved script.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; one for each core by default.")
@click.option("--crashes", type=click.Path(path_type=Path), default=HERE / "crashes", help="Where failures are saved.")
@click.option("--tries", type=click.IntRange(min=0), default=200, show_default=True, help="To make a failure smaller.")
def main(
    seeds: int, first: int, seed: int | None, path: Path | None, jobs: int | None, crashes: Path, tries: int
) -> None:
    """Play worlds and check the invariants. Exit code 1 when one does not hold."""
    began = time.monotonic()
    scripts = [Script.from_json(path.read_text())] if path else None
    chosen = range(first, first + seeds) if seed is None else range(seed, seed + 1)
    total, failures = Total(), list[Failure]()
    for outcome in map(play, scripts) if scripts else _outcomes(chosen, jobs or multiprocessing.cpu_count()):
        if isinstance(outcome, Failure):
            failures.append(outcome)
            print(
                f"seed {outcome.script.seed}: {outcome.invariant.name}: {outcome.detail}", file=sys.stderr, flush=True
            )
        else:
            total.add(outcome)
    print(total.text(time.monotonic() - began))
    if failures:
        _explain(failures, tries, crashes)
        sys.exit(1)


def play_seed(seed: int) -> Report | Failure:
    """Play the world of a seed."""
    return play(draw(seed))


def _outcomes(seeds: Iterable[int], jobs: int) -> Iterable[Report | Failure]:
    """Play the worlds of some seeds, in their order, by several processes."""
    if jobs == 1:
        yield from map(play_seed, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(play_seed, seeds, chunksize=4)


def _explain(failures: list[Failure], tries: int, folder: Path) -> None:
    """Make the first one smaller, save it, and say how to see all of them again."""
    first = failures[0]
    small = shrink(first.script, lambda script: _same(play(script), first), tries=tries) if tries else first.script
    folder.mkdir(exist_ok=True)
    saved = folder / f"simulation-{first.script.seed}.txt"
    saved.write_text(small.to_json())
    print(f"\n{len(failures)} failures. The first with {len(small.steps)} of {len(first.script.steps)} steps:")
    for step in small.steps:
        print(f"  {step}")
    print(f"{first.invariant.name}: {first.detail}\n  guards: {first.invariant.value}")
    for failure in failures[:GIVEN]:
        print(f"replay: {replay_command(failure.script.seed)}")
    print(f"the smaller one: python -m fuzz.run --script {saved}")


def _same(outcome: Report | Failure, failure: Failure) -> bool:
    return isinstance(outcome, Failure) and outcome.invariant is failure.invariant


if __name__ == "__main__":
    main()
