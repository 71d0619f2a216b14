"""Measurement methods: interleaved rounds, medians, ratios of adjacent measurements, progress on stderr."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from attrs import frozen

__all__ = ["FULL", "QUICK", "BenchError", "Progress", "Scale", "duel", "paired_ratio", "percentile", "race", "rotated"]

QUIET_FOR = 1.0  # s without progress messages
PAUSE = 2.0  # s between two progress messages

Cycles = Callable[[int], None]


class BenchError(Exception):
    """A contestant failed, or a benchmark cannot run here: one line for the person that runs the benchmark."""


@frozen(kw_only=True)
class Scale:
    """Amount of work. `seconds` is the time each contestant is under load, over all `load_rounds`."""

    cycles: int  # per contestant and round, in memory
    rounds: int  # in memory
    seconds: float
    load_rounds: int
    connections: int
    repeats: int  # of each start
    phones: tuple[int, ...]  # idle ones, ascending
    terminal_bytes: int  # written by a program in a terminal, in each round
    file_bytes: int  # of the fetched file
    deltas: int  # of each stream of the API
    streams: tuple[int, ...]  # concurrent
    background: int  # streams that run while others begin
    held: int  # open, silent streams
    sessions: int  # of MCP, idle
    chats: int  # sessions in the list
    worlds: int  # simulated worlds
    listeners: int  # concurrent listeners to speech
    sentences: int  # of each voice, of 40
    most_requests: int = 1_000_000  # per contestant and round, regardless of time


FULL = Scale(
    cycles=2000,
    rounds=15,
    seconds=6.0,
    load_rounds=3,
    connections=32,
    repeats=7,
    phones=(1000, 5000),
    terminal_bytes=50_000_000,
    file_bytes=100_000_000,
    deltas=1000,
    streams=(1, 50, 200),
    background=50,
    held=1000,
    sessions=500,
    chats=10_000,
    worlds=100,
    listeners=50,
    sentences=40,
)
QUICK = Scale(
    cycles=500,
    rounds=5,
    seconds=1.0,
    load_rounds=2,
    connections=32,
    repeats=3,
    phones=(200,),
    terminal_bytes=5_000_000,
    file_bytes=20_000_000,
    deltas=200,
    streams=(1, 50),
    background=20,
    held=100,
    sessions=100,
    chats=1000,
    worlds=20,
    listeners=50,
    sentences=4,
)


class Progress:
    """Reporter of the current step on standard error: not in the first second of a run, then at most every 2 s."""

    def __init__(self, *, silent: bool = False) -> None:
        self._began = time.monotonic()
        self._next = QUIET_FOR
        self._silent = silent

    def __call__(self, text: str) -> None:
        elapsed = time.monotonic() - self._began
        if not self._silent and elapsed > self._next:
            self._next = elapsed + PAUSE
            print(f"[{elapsed:4.0f} s] {text}", file=sys.stderr, flush=True)


def race(
    contestants: Mapping[str, Cycles],
    *,
    cycles: int,
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Return the seconds per cycle of each contestant, one figure a round; contestants alternate in every round.

    The default clock counts this process's own CPU time, which reduces disturbances by other programs.
    """
    for run in contestants.values():
        run(max(1, cycles // 10))
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds):
        for name in rotated(list(contestants), turn):
            begun = clock()
            contestants[name](cycles)
            samples[name].append((clock() - begun) / cycles)
    return samples


def duel(
    one: Cycles, other: Cycles, *, rounds: int, burst: int = 20, clock: Callable[[], float] = time.process_time
) -> float:
    """Return the cost of `one` relative to `other`: the median over many adjacent short bursts.

    The first of each pair alternates, and garbage collection is disabled.
    """
    ratios: list[float] = []
    for run in (one, other):
        run(burst)
    gc.disable()
    try:
        for turn in range(rounds):
            first, second = (one, other) if turn % 2 else (other, one)
            begun = clock()
            first(burst)
            between = clock()
            second(burst)
            ended = clock()
            mine, theirs = between - begun, ended - between
            if not turn % 2:
                mine, theirs = theirs, mine
            if theirs > 0:
                ratios.append(mine / theirs)
    finally:
        gc.enable()
    return median(ratios)


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """Return the names rotated by `turn` places, so that with increasing turns each name is first in its turn."""
    shift = turn % len(names) if names else 0
    return [*names[shift:], *names[:shift]]


def paired_ratio(samples: Sequence[float], baseline: Sequence[float]) -> float:
    """Return the median of the ratios of samples of the same round; rounds whose baseline is 0 are skipped."""
    return median(mine / theirs for mine, theirs in zip(samples, baseline, strict=True) if theirs > 0)


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values, at least one; `share` from 0 to 1."""
    return values[min(len(values) - 1, int(len(values) * share))]
