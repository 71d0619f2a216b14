"""`python -m fuzz.simulation.run --seeds 10000`: run simulations, and report how to reproduce a failure, minimized."""

import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

import click
from attrs import define, field

from fuzz.corpus_paths import CRASHES
from fuzz.reference_parsers import disable_fast_paths
from fuzz.simulation.narration import describe_step
from fuzz.simulation.scenario_runner import ScenarioFailure, ScenarioReport, run_script
from fuzz.simulation.script import Script
from fuzz.simulation.script_generator import generate_gateway_script, generate_script
from fuzz.simulation.shrink import smaller
from fuzz.simulation.transition_coverage import format_report, start_counting

GIVEN = 16  # failing seeds that are shown
PROGRESS_INTERVAL = 10.0  # s between two lines of progress
BATCH_SIZE = 4  # scripts for one process at a time

EXAMPLES = """
\b
Examples:
  python -m fuzz.simulation.run --seeds 1000
  python -m fuzz.simulation.run --seeds 1000 --rows
  python -m fuzz.simulation.run --seeds 1000 --reference
  python -m fuzz.simulation.run --seeds 1000 --gateway
  python -m fuzz.simulation.run --seed 7 --trace
  python -m fuzz.simulation.run --script fuzz/crashes/simulation-7.txt
"""


@define
class RunSummary:
    """Sums of the reports of many simulations; those that failed have none."""

    worlds: int = 0
    seconds: float = 0.0
    events: int = 0
    steps: int = 0
    faults: dict[str, int] = field(factory=dict)
    counts: dict[str, int] = field(factory=dict)
    rows: dict[str, int] = field(factory=dict)
    digest: str = ""  # of all digests, in order

    def add(self, report: ScenarioReport) -> None:
        """Add the report of one simulation."""
        self.worlds += 1
        self.seconds += report.seconds
        self.events += report.events
        self.steps += report.steps
        self.digest = sha256(f"{self.digest}{report.digest}".encode()).hexdigest()
        for mine, theirs in ((self.faults, report.faults), (self.counts, report.counts), (self.rows, report.rows)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count

    def text(self, elapsed: float, failures: int = 0) -> str:
        """Return the statistics as text."""
        rows = (
            ("worlds", f"{self.worlds:,}, and {failures:,} that failed"),
            ("steps", f"{self.steps:,}"),
            ("faults", f"{sum(self.faults.values()):,}: {_counted(self.faults)}"),
            ("virtual time", f"{self.seconds / 3600:,.1f} hours"),
            ("events", f"{self.events:,}"),
            ("wall time", f"{elapsed:,.0f} s, {self.events / max(elapsed, 0.001):,.0f} events a second"),
            ("digest", f"{self.digest[:16]}, of every fact and command"),
            ("seen", _counted(self.counts)),
        )
        return "\n".join(f"{name:<13} {value}" for name, value in rows)


def replay_command(script: Script, *, gateway: bool = False) -> str:
    """Return the command that repeats the script of a seed."""
    return f"python -m fuzz.simulation.run --seed {script.seed}{' --gateway' if gateway else ''}"


@contextmanager
def outcomes(
    seeds: Iterable[int], jobs: int, *, rows: bool = False, reference: bool = False, gateway: bool = False
) -> Iterator[Iterator[ScenarioReport | ScenarioFailure]]:
    """Run the simulations of some seeds in `jobs` processes, and yield an iterator of the outcomes in order.

    With `rows` each process counts the used rows of transition tables. With `reference` no process uses fast paths
    (`fuzz.reference_parsers`). With `gateway` the scripts are those of `generate_gateway_script`.
    """
    playing = partial(_play_seed, gateway)
    if jobs == 1:
        _prepare(rows, reference)
        yield map(playing, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, _prepare, (rows, reference)) as pool:
        yield pool.imap(playing, seeds, chunksize=BATCH_SIZE)


def _play_seed(gateway: bool, seed: int) -> ScenarioReport | ScenarioFailure:
    return run_script(_script(gateway, seed))


def _script(gateway: bool, seed: int) -> Script:
    return (generate_gateway_script if gateway else generate_script)(seed)


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seeds", type=click.IntRange(min=1), default=300, show_default=True, help="Number of worlds.")
@click.option("--first", type=int, default=0, show_default=True, help="The first seed.")
@click.option("--seed", type=int, default=None, help="Run the world of this seed alone.")
@click.option("--script", "path", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Run this script.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes; one for each core by default.")
@click.option("--crashes", type=click.Path(path_type=Path), default=CRASHES, help="Folder for failing scripts.")
@click.option(
    "--tries", type=click.IntRange(min=0), default=200, show_default=True, help="Attempts to shorten a failing script."
)
@click.option("--rows", is_flag=True, help="List the transitions of the state tables that no world made.")
@click.option("--reference", is_flag=True, help="Use no fast paths; the digest must be equal.")
@click.option("--gateway", is_flag=True, help="Shorter worlds, each with phones on the app's standard connection.")
@click.option("--trace", is_flag=True, help="Print all events of one world.")
def main(
    seeds: int,
    first: int,
    seed: int | None,
    path: Path | None,
    jobs: int | None,
    crashes: Path,
    tries: int,
    rows: bool,
    reference: bool,
    gateway: bool,
    trace: bool,
) -> None:
    """Run simulations and check the invariants. Exit code 1 when one does not hold."""
    began = time.monotonic()
    if path is not None or seed is not None:
        _prepare(rows, reference)
        script = _script(gateway, seed or 0) if path is None else Script.from_json(path.read_text())
        outcome = run_script(script, trace=trace)
        if trace:
            print(outcome.story)
        total, failures = _watch(iter([outcome]), 1)
    else:
        processes = min(jobs or multiprocessing.cpu_count(), seeds)
        options = {"rows": rows, "reference": reference, "gateway": gateway}
        with outcomes(range(first, first + seeds), processes, **options) as coming:
            total, failures = _watch(coming, seeds)
    print(total.text(time.monotonic() - began, len(failures)))
    if rows:
        print(format_report(total.rows))
    if failures:
        _explain(failures, tries, crashes, gateway=gateway)
        sys.exit(1)


def _prepare(rows: bool, reference: bool) -> None:
    if reference:
        disable_fast_paths()
    if rows:
        start_counting()


def _watch(
    coming: Iterator[ScenarioReport | ScenarioFailure], expected: int
) -> tuple[RunSummary, list[ScenarioFailure]]:
    total, failures = RunSummary(), list[ScenarioFailure]()
    began = told = time.monotonic()
    for done, outcome in enumerate(coming, start=1):
        if isinstance(outcome, ScenarioFailure):
            failures.append(outcome)
            _print_summary(f"seed {outcome.script.seed}: {outcome.invariant.name}: {outcome.detail.splitlines()[-1]}")
        else:
            total.add(outcome)
        now = time.monotonic()
        if now - told >= PROGRESS_INTERVAL and done < expected:
            told = now
            left = (now - began) / done * (expected - done)
            _print_summary(f"{done:,} of {expected:,} worlds, {len(failures)} failed, about {left:,.0f} s left")
    return total, failures


def _print_summary(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _explain(failures: list[ScenarioFailure], tries: int, folder: Path, *, gateway: bool) -> None:
    """Minimize the first failure, save it and print its end, and the commands that repeat the first failures."""
    first = failures[0]
    small = smaller(first, tries)
    folder.mkdir(parents=True, exist_ok=True)
    saved = folder / f"simulation-{first.script.seed}.txt"
    saved.write_text(small.script.to_json())
    steps = small.script.steps
    print(f"\n{len(failures)} failures. The first with {len(steps)} of {len(first.script.steps)} steps, and its end:")
    print(small.story)
    print("\nIts steps:")
    for number, step in enumerate(steps, start=1):
        print(f"{step.at:10.3f} s  {number}. {describe_step(step)}")
    print(small)
    for failure in failures[:GIVEN]:
        print(f"replay: {replay_command(failure.script, gateway=gateway)}")
    print(f"the smaller one: python -m fuzz.simulation.run --script {saved}")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} x {name}" for name, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    main()
