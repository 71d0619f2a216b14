"""Speed of the simulator: whole simulations with faults, in one process and in as many as there are cores."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable

from bench.measure import BenchError, Progress, Scale
from bench.report import Column, Row, Table
from fuzz.simulation.run import outcomes
from fuzz.simulation.scenario_runner import ScenarioFailure, ScenarioReport, run_seed

__all__ = ["simulation_section"]

COLUMNS = (
    Column("events_per_second", "events/s", 0),
    Column("virtual_per_second", "virtual s in a second", 0),
    Column("worlds_per_second", "worlds/s"),
    Column("cpu_us_per_event", "CPU µs each"),
)
NOTES = (
    "An event is one thing that happens: bytes that arrive, an answer, a timer. Worlds are those of seeds 0 and on.",
    "CPU time is of this process alone; time includes the start of the others.",
)


def simulation_section(scale: Scale, progress: Progress) -> list[Table]:
    """Measure the same simulations in this process and, with several cores, in a process for each; return one table.

    Raises `BenchError` if the results differ.
    """
    seeds = range(scale.worlds)
    run_seed(0)  # initializes caches
    begun, cpu = time.perf_counter(), time.process_time()
    alone = _watched(map(run_seed, seeds), progress)
    row = _row("one process", alone, time.perf_counter() - begun)
    cpu_us = (time.process_time() - cpu) / sum(report.events for report in alone) * 1e6
    rows = [Row(row.name, {**row.values, "cpu_us_per_event": cpu_us})]
    cores = multiprocessing.cpu_count()
    if cores > 1:
        begun = time.perf_counter()
        with outcomes(seeds, cores) as coming:
            together = _watched(coming, progress)
        if together != alone:
            raise BenchError("worlds went another way in other processes")
        rows.append(_row(f"{cores} processes", together, time.perf_counter() - begun))
    return [Table("simulation", f"{len(seeds)} simulated worlds", COLUMNS, rows, NOTES)]


def _watched(coming: Iterable[ScenarioReport | ScenarioFailure], progress: Progress) -> list[ScenarioReport]:
    reports: list[ScenarioReport] = []
    for outcome in coming:
        if isinstance(outcome, ScenarioFailure):
            raise BenchError(f"seed {outcome.script.seed} fails: {outcome.invariant.name}")
        reports.append(outcome)
        progress(f"simulation: {len(reports)} worlds")
    return reports


def _row(name: str, reports: list[ScenarioReport], elapsed: float) -> Row:
    values = {
        "events_per_second": sum(report.events for report in reports) / elapsed,
        "virtual_per_second": sum(report.seconds for report in reports) / elapsed,
        "worlds_per_second": len(reports) / elapsed,
    }
    return Row(name, values)
