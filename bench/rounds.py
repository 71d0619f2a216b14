"""Rounds of a server under load: work done, CPU time, and notes on disturbances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Protocol

from attrs import define, field, frozen

from bench.contestants import Server
from bench.load import Load
from bench.measure import paired_ratio, percentile
from bench.report import Column, Row

__all__ = [
    "BYTES",
    "MESSAGES",
    "REQUESTS",
    "TURNS",
    "Rounds",
    "Stretch",
    "TimedRounds",
    "Work",
    "byte_rows",
    "notes_on",
    "take_round",
    "take_timed_round",
    "timed_rows",
]

DISTURBED = 0.05  # share of the time that a server waited for its CPU; above it only its CPU time is reliable
TURNS = 5  # turns of each within a round where differences are small, so that neighbours vary
BUSY = 0.9  # share of one core above which the load generator is the limit


class Work(Protocol):
    """Result of one round: amount of work (such as requests or bytes), seconds, and the load's own CPU time."""

    @property
    def amount(self) -> float:
        """Return the amount of work, such as a number of requests, deltas or bytes."""
        ...

    @property
    def elapsed(self) -> float:
        """Return the duration of the round in seconds."""
        ...

    @property
    def own_cpu(self) -> float:
        """Return the CPU seconds of the load generator; near `elapsed`, the generator itself was the limit."""
        ...


@frozen
class Stretch:
    """Result of one round that received bytes: number of bytes, seconds, and the CPU seconds of the load itself."""

    amount: float
    elapsed: float
    own_cpu: float


@define
class Rounds:
    """Rates in each round, and sums over all rounds, of one contestant."""

    rates: list[float] = field(factory=list)
    amount: float = 0.0
    cpu: float = 0.0
    waited: float = 0.0
    elapsed: float = 0.0
    busiest: float = 0.0

    def add(self, work: Work, *, cpu: float, waited: float) -> None:
        """Add one round, with the server's CPU seconds and its seconds of waiting for its CPU."""
        self.rates.append(work.amount / work.elapsed)
        self.amount += work.amount
        self.cpu += cpu
        self.waited += waited
        self.elapsed += work.elapsed
        self.busiest = max(self.busiest, work.own_cpu / work.elapsed)

    def figures(self, baseline: Rounds) -> dict[str, float]:
        """Return median and best rate, the ratio to the baseline within each round, and the percentage of waiting."""
        return {
            "per_second": median(self.rates),
            "best_per_second": max(self.rates),
            "ratio": paired_ratio(self.rates, baseline.rates),
            "waited_percent": self.waited / self.elapsed * 100,
        }


@define
class TimedRounds(Rounds):
    """Rounds of one contestant, with the latency of each request or message in seconds."""

    latencies: list[float] = field(factory=list)


def take_round(rounds: Rounds, server: Server, run: Callable[[], Work]) -> Work:
    """Run one round of load on a server, and add its result to the contestant's rounds."""
    cpu, waited, others = server.cpu(), server.waited(), server.others()
    work = run()
    waited, others = server.waited() - waited, server.others() - others
    rounds.add(work, cpu=server.cpu() - cpu, waited=min(waited, max(others, 0.0)))
    return work


def take_timed_round(rounds: TimedRounds, server: Server, run: Callable[[], Load]) -> None:
    """Run one round of load on a server, and add its result and latencies to the contestant's rounds."""

    def timed() -> Load:
        load = run()
        rounds.latencies += load.latencies
        return load

    take_round(rounds, server, timed)


TIMED = (
    Column("best_per_second", "best", 0),
    Column("ratio", "ratio", 2),
    Column("p50_ms", "p50 ms", 2),
    Column("p99_ms", "p99 ms", 2),
    Column("cpu_us", "server CPU µs", 1),
    Column("waited_percent", "kept waiting %", 0),
)
REQUESTS = (Column("per_second", "req/s, median", 0), *TIMED)
MESSAGES = (Column("per_second", "messages/s, median", 0), *TIMED)


def timed_rows(runs: Mapping[str, TimedRounds]) -> list[Row]:
    """Return rows for the columns `REQUESTS` or `MESSAGES`; the ratios refer to the first contestant."""
    baseline = next(iter(runs.values()))
    rows = []
    for name, done in runs.items():
        latencies = sorted(done.latencies)
        values = {
            **done.figures(baseline),
            "p50_ms": percentile(latencies, 0.5) * 1e3,
            "p99_ms": percentile(latencies, 0.99) * 1e3,
            "cpu_us": done.cpu / len(latencies) * 1e6,
        }
        rows.append(Row(name, values))
    return rows


BYTES = (
    Column("mb_per_second", "MB/s, median", 1),
    Column("best_mb_per_second", "best", 1),
    Column("ratio", "ratio", 2),
    Column("cpu_ms_per_mb", "server CPU ms/MB", 3),
    Column("waited_percent", "kept waiting %", 0),
)


def byte_rows(runs: Mapping[str, Rounds]) -> list[Row]:
    """Return rows for the columns `BYTES`; the ratios refer to the first contestant. MB: 1,000,000 bytes."""
    baseline = next(iter(runs.values()))
    rows = []
    for name, done in runs.items():
        figures = done.figures(baseline)
        values = {
            "mb_per_second": figures["per_second"] / 1e6,
            "best_mb_per_second": figures["best_per_second"] / 1e6,
            "ratio": figures["ratio"],
            "cpu_ms_per_mb": done.cpu * 1e3 / (done.amount / 1e6),
            "waited_percent": figures["waited_percent"],
        }
        rows.append(Row(name, values))
    return rows


def notes_on(runs: Mapping[str, Rounds], what: str, *, undisturbed: float = DISTURBED) -> list[str]:
    """Return notes on the ratios (of `what` per second), on servers that the load limited, and on disturbed servers.

    A server is disturbed if it waited for its CPU for more than `undisturbed` of the time.
    """
    notes = [f"ratio: {what} per second against {next(iter(runs))!r}, the median of the ratios within each round"]
    limited = [name for name, done in runs.items() if done.busiest > BUSY]
    if limited:
        notes.append(f"the load generator was busy over {BUSY:.0%} of a core, so it limits: {'; '.join(limited)}")
    disturbed = [name for name, done in runs.items() if done.waited > undisturbed * done.elapsed]
    if disturbed:
        notes.append(
            f"DISTURBED: other programs held the CPU for over {undisturbed:.0%} of the time; rates, ratios and "
            f"latencies are not to be relied on, only the CPU time: {'; '.join(disturbed)}"
        )
    return notes
