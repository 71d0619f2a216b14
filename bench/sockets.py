"""What a server does over loopback: `/health` and the bridge, every loop beside bare aiohttp and uvicorn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from attrs import define, field

from bench.contestants import PEERS, RELAYS, Contestant, Server, available, missing, placement, running, wait_healthy
from bench.load import Load, Phone, drive, new_code
from bench.measure import Progress, Scale, percentile, rotated
from bench.report import Column, Row, Table
from bench.rounds import Rounds, notes_on, take_round
from bench.wire import request

__all__ = ["IN_FLIGHT", "sockets_section"]

IN_FLIGHT = (1, 16, 64)  # commands on the bridge

COLUMNS = (
    Column("per_second", "req/s, median", 0),
    Column("best_per_second", "best", 0),
    Column("ratio", "ratio", 2),
    Column("p50_ms", "p50 ms", 2),
    Column("p99_ms", "p99 ms", 2),
    Column("cpu_us", "server CPU µs", 1),
    Column("waited_percent", "kept waiting %", 0),
)


@define
class _Runs(Rounds):
    """The rounds of one contestant, with every latency."""

    latencies: list[float] = field(factory=list)


def sockets_section(
    scale: Scale,
    progress: Progress,
    *,
    relays: tuple[Contestant, ...] = RELAYS,
    peers: tuple[Contestant, ...] = PEERS,
) -> list[Table]:
    """Both tables. The first relay is what the ratios refer to."""
    ours, theirs = available(relays), available(peers)
    with ExitStack() as stack:
        servers = []
        for one in [*ours, *theirs]:
            progress(f"sockets: starting {one.name}")
            servers.append(stack.enter_context(running(one)))
        for server in servers:
            wait_healthy(server.address)
        notes = [placement(), *missing(relays), *missing(peers)]
        return [_health(scale, progress, servers, notes), *_bridge(scale, progress, servers[: len(ours)], stack)]


def _health(scale: Scale, progress: Progress, servers: Sequence[Server], notes: Sequence[str]) -> Table:
    asked = request("GET", "/health")
    by_name = {server.contestant.name: server for server in servers}
    runs = {name: _Runs() for name in by_name}
    for server in servers:  # once around to warm up
        drive(server.address, asked, callers=scale.connections, seconds=0.1, most=scale.most_requests)
    for turn in range(scale.load_rounds):
        for name in rotated(list(by_name), turn):
            progress(f"sockets: /health, round {turn + 1} of {scale.load_rounds}, {name}")
            _round(runs[name], by_name[name], asked, scale, callers=scale.connections)
    title = f"GET /health over loopback, {scale.connections} kept connections"
    return Table("health", title, COLUMNS, _rows(runs), [*notes_on(runs, "requests"), *notes])


def _bridge(scale: Scale, progress: Progress, servers: Sequence[Server], stack: ExitStack) -> list[Table]:
    phones = {}
    for server in servers:
        phone = phones[server.contestant.name] = Phone(server.address, "bench-phone", new_code(server.address))
        stack.callback(phone.close)
    tables = []
    for in_flight in IN_FLIGHT:
        runs = {server.contestant.name: _Runs() for server in servers}
        for turn in range(scale.load_rounds):
            for server in servers:
                name = server.contestant.name
                progress(f"sockets: bridge, {in_flight} in flight, round {turn + 1} of {scale.load_rounds}, {name}")
                asked = request("POST", "/tap", token=phones[name].token, body=b'{"x":120,"y":640}')
                _round(runs[name], server, asked, scale, callers=in_flight, phone=phones[name])
        title = f"Bridge round trip over loopback (caller, relay, phone and back), {in_flight} in flight"
        tables.append(Table(f"bridge_{in_flight}", title, COLUMNS, _rows(runs), notes_on(runs, "requests")))
    return tables


def _round(
    runs: _Runs, server: Server, asked: bytes, scale: Scale, *, callers: int, phone: Phone | None = None
) -> None:
    def run() -> Load:
        load = drive(
            server.address,
            asked,
            callers=callers,
            seconds=scale.seconds / scale.load_rounds,
            most=scale.most_requests,
            phone=phone,
        )
        runs.latencies += load.latencies
        return load

    take_round(runs, server, run)


def _rows(runs: Mapping[str, _Runs]) -> list[Row]:
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
