"""Benchmark of HTTP/2 over loopback with h2load: `/health` of the relay on several loops, and of a bare hypercorn."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.contestants import RELAYS, Contestant, Server, available, missing, pinned, placement, running, wait_healthy
from bench.load import PATIENCE, Load
from bench.measure import BenchError, Progress, Scale, rotated
from bench.report import Table
from bench.rounds import REQUESTS, TimedRounds, notes_on, take_timed_round, timed_rows

__all__ = ["HYPERCORNS", "find_h2load", "http2_section"]

PATH = "/health"
SHAPES = ((1, 32), (32, 1))  # connections, and concurrent requests on each
WARM_UP = 64  # requests
SHORTEST = 0.5  # s of a round: a busy machine may answer none in less
DONE = re.compile(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded")


def _hypercorn(loop: str, *needs: str) -> Contestant:
    return Contestant(f"bare hypercorn, {loop}", ("bench.peers_hypercorn", loop), ("hypercorn", *needs))


HYPERCORNS = (_hypercorn("asyncio"), _hypercorn("uvloop", "uvloop"))


def find_h2load() -> str | None:
    """Return the path of h2load, or None."""
    return shutil.which("h2load")


def http2_section(
    scale: Scale,
    progress: Progress,
    *,
    relays: tuple[Contestant, ...] = RELAYS,
    peers: tuple[Contestant, ...] = HYPERCORNS,
    h2load: str | None = None,
) -> list[Table]:
    """Return a table for each of `SHAPES`, or one empty table without h2load. The ratios refer to the first relay.

    `h2load` is its path; None searches for it.
    """
    h2load = find_h2load() if h2load is None else h2load
    if not h2load:
        title = "GET /health over HTTP/2"
        return [Table("http2", title, REQUESTS, [], ["left out, not installed: h2load (of nghttp2)"])]
    with ExitStack() as stack:
        servers = []
        for one in [*available(relays), *available(peers)]:
            progress(f"http2: starting {one.name}")
            servers.append(stack.enter_context(running(one)))
        for server in servers:
            wait_healthy(server.address)
        notes = [placement(), *missing(relays), *missing(peers)]
        return [_table(scale, progress, h2load, servers, shape, notes) for shape in SHAPES]


def _table(
    scale: Scale,
    progress: Progress,
    h2load: str,
    servers: Sequence[Server],
    shape: tuple[int, int],
    notes: Sequence[str],
) -> Table:
    by_name = {server.contestant.name: server for server in servers}
    runs = {name: TimedRounds() for name in by_name}
    for server in servers:  # one round to warm up
        _load(h2load, server, shape, 0.0)
    connections, streams = shape
    seconds = max(SHORTEST, scale.seconds / scale.load_rounds)
    for turn in range(scale.load_rounds):
        for name in rotated(list(by_name), turn):
            progress(f"http2: {connections} x {streams}, round {turn + 1} of {scale.load_rounds}, {name}")
            server = by_name[name]
            take_timed_round(runs[name], server, partial(_load, h2load, server, shape, seconds))
    title = f"GET /health over HTTP/2 and loopback, connections: {connections}, requests at once on each: {streams}"
    return Table(
        f"http2_{connections}x{streams}", title, REQUESTS, timed_rows(runs), [*notes_on(runs, "requests"), *notes]
    )


def _load(h2load: str, server: Server, shape: tuple[int, int], seconds: float) -> Load:
    """Load a server for `seconds` (0: `WARM_UP` requests).

    Raises `BenchError` if h2load fails or does not end, or gets an answer other than 2xx.
    """
    connections, streams = shape
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder, pinned():  # h2load inherits the CPU
        log = Path(folder, "requests.tsv")
        host, port = server.address
        amount = f"-D{round(seconds * 1e3)}ms" if seconds else f"-n{WARM_UP}"
        argv = [h2load, "-t1", f"-c{connections}", f"-m{streams}", amount]
        argv += [f"--log-file={log}", f"http://{host}:{port}{PATH}"]
        before = _children_cpu()
        try:
            done = subprocess.run(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds + PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"h2load and {server.contestant.name} are stuck") from error
        own_cpu = _children_cpu() - before
        latencies = _latencies(log)
    found = DONE.search(done.stdout)
    if done.returncode or found is None or found[1] != found[2] or not latencies:
        lines = done.stdout.strip().splitlines()
        said = next((line for line in lines if line.startswith("requests: ")), lines[-1] if lines else "nothing")
        raise BenchError(f"{server.contestant.name} under h2load: {said}")
    return Load(latencies, seconds, own_cpu)


def _latencies(log: Path) -> list[float]:
    """Return the seconds of each request with a status of 2xx, from lines `start status duration` in µs."""
    lines = [line.split("\t") for line in log.read_text(encoding="ascii").splitlines()] if log.exists() else []
    return [int(taken) / 1e6 for _, status, taken in lines if status.startswith("2")]


def _children_cpu() -> float:
    """Return the CPU seconds of ended children of this process."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
