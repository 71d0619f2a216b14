"""Waiting times of a user: imports, `--help`, `svc pair`, and the first answer of a fresh server."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from statistics import median

from attrs import evolve

from bench.api_servers import api_contestant
from bench.contestants import PEERS, RELAYS, ROOT, Contestant, available, missing, running, wait_healthy
from bench.measure import BenchError, Progress, Scale, rotated
from bench.report import Column, Row, Table

__all__ = ["starts_section"]

OTHERS = (
    evolve(RELAYS[0], name="relay, asyncio, store in a file", variables=(("RELAY_SESSIONS_FILE", "svc.db"),)),
    api_contestant("asyncio"),
)
COLUMNS = (Column("median_ms", "median ms", 0), Column("best_ms", "best ms", 0))
COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("-c", "pass"),
    "import svc_proto.relay.service": ("-c", "import svc_proto.relay.service"),
    "import svc_proto.api.service": ("-c", "import svc_proto.api.service"),
    "python -m servers.relay --help": ("-m", "servers.relay", "--help"),
    "svc --help": ("-m", "clients.commands.svc", "--help"),
}


def starts_section(
    scale: Scale,
    progress: Progress,
    *,
    relays: tuple[Contestant, ...] = RELAYS,
    others: tuple[Contestant, ...] = OTHERS,
    peers: tuple[Contestant, ...] = PEERS,
) -> list[Table]:
    """Return the table of milliseconds from the start of a process to its end, or to the first answered `/health`.

    A row for `svc pair` is included if a relay is available.
    """
    timed: dict[str, Callable[[], float]] = {name: _command(arguments) for name, arguments in COMMANDS.items()}
    for one in available(relays)[:1]:
        timed[f"svc pair: {one.name}"] = _pairing(one)
    for one in [*available(relays), *others, *available(peers)]:
        timed[f"first /health: {one.name}"] = _first_answer(one)
    samples: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(scale.repeats + 1):
        for name in rotated(list(timed), turn):
            progress(f"starts: round {turn} of {scale.repeats}, {name}")
            samples[name].append(timed[name]())
    rows = []
    for name, seconds in samples.items():
        warm = seconds[1:]  # the first run compiles and fills the file cache
        rows.append(Row(name, {"median_ms": median(warm) * 1e3, "best_ms": min(warm) * 1e3}))
    notes = ["bytecode and file cache are warm", *missing(relays), *missing(peers)]
    return [Table("starts", "Imports and starts", COLUMNS, rows, notes)]


def _pairing(contestant: Contestant) -> Callable[[], float]:
    """Return a function that starts a relay, runs `svc pair` with it, and returns the seconds of `svc pair`."""

    def run() -> float:
        with running(contestant) as server, tempfile.TemporaryDirectory(prefix="svc-bench-") as home:
            wait_healthy(server.address)
            more = {"SVC_HOME": f"{home}/svc", "RELAY_PORT": str(server.address[1])}
            return _command(("-m", "clients.commands.svc", "pair", "--no-qr"), more)()

    return run


def _command(arguments: tuple[str, ...], more: Mapping[str, str] = {}) -> Callable[[], float]:
    def run() -> float:
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **more},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        elapsed = time.perf_counter() - begun
        if done.returncode:
            raise BenchError(f"{' '.join(arguments)} failed: {done.stderr.strip()[-300:]}")
        return elapsed

    return run


def _first_answer(contestant: Contestant) -> Callable[[], float]:
    def run() -> float:
        begun = time.perf_counter()
        with running(contestant) as server:
            wait_healthy(server.address)
            return time.perf_counter() - begun

    return run
