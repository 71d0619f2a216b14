"""Benchmarks of the API over loopback: streams of a model's answer, first deltas, lists, memory, and the gateway."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from attrs import define, field

from bench.api_servers import BARE, LOOPS, api_contestant, is_api, model_server, starlette_peers
from bench.chats import lists_table
from bench.contestants import (
    Contestant,
    Server,
    available,
    missing,
    placement,
    room_for,
    running,
    wait_healthy,
)
from bench.gateway import gateway_table
from bench.measure import Progress, Scale, percentile, rotated
from bench.report import Column, Row, Table
from bench.rounds import Rounds, notes_on, take_round
from bench.script import Script
from bench.streams import Readers, Told, make_sessions

__all__ = ["api_section"]

PACE = 0.025  # s between two deltas of a paced stream
PACED_FOR = 2.0  # s that a paced stream lasts, at least
SILENT = 3600.0  # s: an open stream with one delta and nothing more during the measurement
SETTLE = 0.5  # s in which a server finishes earlier work
PROBES = 100  # sequential streams in each round whose first delta is timed

STREAMS = (
    Column("per_second", "deltas/s, median", 0),
    Column("best_per_second", "best", 0),
    Column("ratio", "ratio", 2),
    Column("cpu_us", "server CPU µs/delta", 1),
    Column("waited_percent", "kept waiting %", 0),
)
TURNS = (
    Column("per_second", "turns/s, median", 0),
    Column("best_per_second", "best", 0),
    Column("ratio", "ratio", 2),
    Column("cpu_us", "server CPU µs/turn", 0),
    Column("waited_percent", "kept waiting %", 0),
)
PACED = (
    Column("cpu_us", "server CPU µs/delta", 1),
    Column("cpu_ratio", "ratio", 2),
    Column("p50_ms", "delay p50 ms", 2),
    Column("p99_ms", "delay p99 ms", 2),
    Column("waited_percent", "kept waiting %", 0),
)
FIRST = (
    Column("idle_p50_ms", "idle p50 ms", 2),
    Column("idle_p99_ms", "idle p99 ms", 2),
    Column("busy_p50_ms", "among others p50 ms", 2),
    Column("busy_p99_ms", "among others p99 ms", 2),
    Column("waited_percent", "kept waiting %", 0),
)
HELD = (
    Column("one_mib", "one stream, MiB"),
    Column("stream_kb", "each more, kB", 1),
    Column("run_kb", "each run without reader, kB", 1),
)


@define
class _Runs(Rounds):
    """Rounds of one contestant, with the delay of each delta in seconds where it is measured."""

    delays: list[float] = field(factory=list)


def api_section(scale: Scale, progress: Progress, *, loops: tuple[str, ...] = LOOPS, peers: bool = True) -> list[Table]:
    """Measure the API on each loop beside bare servers, and return all tables. The ratios refer to the first loop.

    Lists of sessions and the gateway are measured on asyncio alone.
    """
    with ExitStack() as stack:
        most = stack.enter_context(room_for(2 * max(scale.held, *scale.streams)))
        model = stack.enter_context(running(model_server(), beside_load=True))
        wanted = (*(api_contestant(loop, model) for loop in loops), *(starlette_peers(model) if peers else ()))
        notes = [placement(), *missing(wanted)]
        world = _World(scale, progress, available(wanted), model, stack)
        tables = [world.streams(count, notes) for count in scale.streams]
        tables += [world.turns(notes), world.paced(notes), world.first_deltas(notes)]
        held = _held(scale, progress, available(wanted), model, most)
        gateway = gateway_table(scale, progress, model)
    return [*tables, lists_table(scale, progress), held, gateway]


class _World:
    """Running servers of all contestants, and the benchmarks that load one after another."""

    def __init__(
        self, scale: Scale, progress: Progress, contestants: Sequence[Contestant], model: Server, stack: ExitStack
    ) -> None:
        self._scale = scale
        self._progress = progress
        self._readers = Readers(model)
        self._servers: dict[str, Server] = {}
        for one in contestants:
            progress(f"api: starting {one.name}")
            server = self._servers[one.name] = stack.enter_context(running(one))
            wait_healthy(server.address)
            self._readers.read(server.address, _sessions(server, 2), Script(20, 0.0))

    def streams(self, count: int, notes: Sequence[str]) -> Table:
        """Return the table of deltas that are sent without a pause, to `count` readers at once."""
        scale, runs = self._scale, {name: _Runs() for name in self._servers}
        script = Script(scale.deltas, 0.0)
        for turn in range(scale.load_rounds):
            for name in rotated(list(runs), turn):
                self._progress(f"api: {count} streams, round {turn + 1} of {scale.load_rounds}, {name}")
                server = self._servers[name]
                sessions = _sessions(server, count)
                take_round(runs[name], server, partial(self._read, server, sessions, script))
        rows = [Row(name, {**done.figures(_first(runs)), "cpu_us": _per(done)}) for name, done in runs.items()]
        title = f"{scale.deltas:,} deltas to each of {count} streams, as fast as they go, the beginning included"
        return Table(f"api_streams_{count}", title, STREAMS, rows, [*notes_on(runs, "deltas"), *notes])

    def turns(self, notes: Sequence[str]) -> Table:
        """Return the table of turns of one delta each."""
        scale, runs = self._scale, {name: _Runs() for name in self._servers}
        for turn in range(scale.load_rounds):
            for name in rotated(list(runs), turn):
                self._progress(f"api: short turns, round {turn + 1} of {scale.load_rounds}, {name}")
                server = self._servers[name]
                for _ in range(max(1, scale.deltas // 100)):
                    sessions = _sessions(server, scale.background)
                    take_round(runs[name], server, partial(self._read, server, sessions, Script(1, 0.0)))
        rows = [Row(name, {**done.figures(_first(runs)), "cpu_us": _per(done)}) for name, done in runs.items()]
        title = f"Turns of one delta, {scale.background} at once"
        return Table("api_turns", title, TURNS, rows, [*notes_on(runs, "turns"), *notes])

    def paced(self, notes: Sequence[str]) -> Table:
        """Return the table of deltas that arrive one by one, like those of a model."""
        scale, runs = self._scale, {name: _Runs() for name in self._servers}
        script = Script(int(max(PACED_FOR, scale.seconds / scale.load_rounds) / PACE), PACE)
        shares: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(scale.load_rounds):
            for name in rotated(list(runs), turn):
                self._progress(f"api: paced streams, round {turn + 1} of {scale.load_rounds}, {name}")
                server, done = self._servers[name], runs[name]
                sessions, before = _sessions(server, scale.background), done.cpu
                take_round(done, server, partial(self._read, server, sessions, script, done.delays))
                shares[name].append(done.cpu - before)
        baseline, rows = next(iter(shares.values())), []
        for name, done in runs.items():
            delays = sorted(done.delays)
            ratios = sorted(mine / theirs for mine, theirs in zip(shares[name], baseline, strict=True) if theirs)
            values = {
                "cpu_us": _per(done),
                "cpu_ratio": percentile(ratios, 0.5) if ratios else 0.0,
                "p50_ms": percentile(delays, 0.5) * 1e3,
                "p99_ms": percentile(delays, 0.99) * 1e3,
                "waited_percent": done.figures(done)["waited_percent"],
            }
            rows.append(Row(name, values))
        title = f"{scale.background} streams of a delta every {PACE * 1e3:g} ms, each written by itself"
        said = "delay: from the write of the model's server to the reader; ratio: of CPU time, within each round"
        return Table("api_paced", title, PACED, rows, [said, *notes_on(runs, "deltas")[1:], *notes])

    def first_deltas(self, notes: Sequence[str]) -> Table:
        """Return the table of the first delta's latency, without the part of the model's server."""
        scale, runs = self._scale, {name: _Runs() for name in self._servers}
        idle: dict[str, list[float]] = {name: [] for name in runs}
        busy: dict[str, list[float]] = {name: [] for name in runs}
        script = Script(int(max(PACED_FOR, scale.seconds / scale.load_rounds) / PACE / 2), 2 * PACE)
        for turn in range(scale.load_rounds):
            for name in rotated(list(runs), turn):
                self._progress(f"api: first deltas, round {turn + 1} of {scale.load_rounds}, {name}")
                server = self._servers[name]
                for others, found in ((0, idle[name]), (scale.background, busy[name])):
                    background, probes = _sessions(server, others), _sessions(server, PROBES)
                    take_round(runs[name], server, partial(self._probe, server, background, script, probes, found))
        rows = []
        for name, done in runs.items():
            values = {"waited_percent": done.figures(done)["waited_percent"]}
            for key, found in (("idle", sorted(idle[name])), ("busy", sorted(busy[name]))):
                if found:
                    values |= {f"{key}_p{n}_ms": percentile(found, n / 100) * 1e3 for n in (50, 99)}
            rows.append(Row(name, values))
        said = (
            "from the request to the first delta, without the time that the model's server had it; among others: while "
            f"{scale.background} streams get a delta every {2 * PACE * 1e3:g} ms"
        )
        return Table("api_first", "First delta", FIRST, rows, [said, *notes_on(runs, "streams")[1:], *notes])

    def _read(self, server: Server, sessions: Sequence[str], script: Script, delays: list[float] | None = None) -> Told:
        told, readers = self._readers.read(server.address, sessions, script)
        if delays is not None:
            for reader in readers:
                delays += reader.delays
        return told

    def _probe(
        self, server: Server, background: Sequence[str], script: Script, probes: Sequence[str], found: list[float]
    ) -> Told:
        begun = time.perf_counter()
        firsts = self._readers.probe(server.address, background, script, probes)
        found += firsts
        return Told(len(firsts), time.perf_counter() - begun)


def _held(scale: Scale, progress: Progress, contestants: Sequence[Contestant], model: Server, most: int) -> Table:
    """Return the table of resident memory for each open silent stream; for the API, also for a run without a reader.

    `BARE`, which does not call the model, is left out.
    """
    count = min(scale.held, most // 2)
    rows = []
    for one in contestants:
        if one.name == BARE:
            continue
        values: dict[str, float] = {}
        for key in ("stream", "run") if is_api(one) else ("stream",):
            progress(f"api: {count:,} silent streams, {one.name}")
            values |= _grow(one, model, count, key)
        rows.append(Row(one.name, values))
    notes = [
        f"growth of resident memory over {count:,} streams, in 1,000 bytes each; buffers of the kernel are not in it",
        "a stream is the reader's connection, the run, and the connection to the model's server",
        "without reader: the reader hung up after its first delta, and the run goes on",
    ]
    return Table("api_memory", "Resident memory with silent streams", HELD, rows, notes)


def _grow(one: Contestant, model: Server, count: int, key: str) -> dict[str, float]:
    readers = Readers(model)
    with running(one) as server, ExitStack() as stack:
        wait_healthy(server.address)
        _hold(readers, server, _sessions(server, 1), stack, hang_up=False)
        sessions = _sessions(server, count)
        time.sleep(SETTLE)
        begun = server.resident()
        _hold(readers, server, sessions, stack, hang_up=key == "run")
        time.sleep(SETTLE)
        grown = (server.resident() - begun) / count / 1000
        return {"one_mib": begun / 2**20, f"{key}_kb": max(grown, 0.0)}


def _hold(readers: Readers, server: Server, sessions: Sequence[str], stack: ExitStack, *, hang_up: bool) -> None:
    for session in sessions:
        (reader,) = stack.enter_context(readers.opened(server.address, [session], Script(2, SILENT)))
        reader.wait_for_first()
        if hang_up:
            reader.close()


def _sessions(server: Server, count: int) -> list[str]:
    return make_sessions(server.address, count, bare=not is_api(server.contestant))


def _per(done: Rounds) -> float:
    return done.cpu / done.amount * 1e6


def _first(runs: Mapping[str, _Runs]) -> Rounds:
    return next(iter(runs.values()))
