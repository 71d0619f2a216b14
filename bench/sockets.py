"""Benchmark of servers over loopback: `/health` and the bridge, every loop beside bare aiohttp and uvicorn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from bench.contestants import (
    BRIDGES,
    NULL,
    PEERS,
    RELAYS,
    Contestant,
    Server,
    available,
    missing,
    placement,
    running,
    wait_healthy,
)
from bench.load import Phone, drive, new_code
from bench.measure import Progress, Scale, rotated
from bench.report import Table
from bench.rounds import REQUESTS, TURNS, TimedRounds, notes_on, take_timed_round, timed_rows
from bench.wire import request

__all__ = ["IN_FLIGHT", "sockets_section"]

IN_FLIGHT = (1, 16, 64)  # commands on the bridge


def sockets_section(
    scale: Scale,
    progress: Progress,
    *,
    relays: tuple[Contestant, ...] = RELAYS,
    peers: tuple[Contestant, ...] = (NULL, *PEERS),
    bridges: tuple[Contestant, ...] = BRIDGES,
) -> list[Table]:
    """Return both tables. The ratios refer to the first relay."""
    ours, theirs, others = available(relays), available(peers), available(bridges)
    with ExitStack() as stack:
        servers = []
        for one in [*ours, *theirs, *others]:
            progress(f"sockets: starting {one.name}")
            servers.append(stack.enter_context(running(one)))
        for server in servers:
            wait_healthy(server.address)
        notes = [placement(), *missing(relays), *missing(peers)]
        direct, bridging = servers[: len(ours) + len(theirs)], servers[: len(ours)] + servers[len(ours) + len(theirs) :]
        tables = _bridge(scale, progress, bridging, missing(bridges), stack)
        return [_health(scale, progress, direct, notes), *tables]


def _health(scale: Scale, progress: Progress, servers: Sequence[Server], notes: Sequence[str]) -> Table:
    asked = request("GET", "/health")
    by_name = {server.contestant.name: server for server in servers}
    runs = {name: TimedRounds() for name in by_name}
    for server in servers:  # one round to warm up
        drive(server.address, asked, callers=scale.connections, seconds=0.1, most=scale.most_requests)
    for turn in range(scale.load_rounds):
        for name in rotated(list(by_name), turn):
            progress(f"sockets: /health, round {turn + 1} of {scale.load_rounds}, {name}")
            _round(runs[name], by_name[name], asked, scale, scale.load_rounds, scale.connections)
    title = f"GET /health over loopback, {scale.connections} kept connections"
    return Table("health", title, REQUESTS, timed_rows(runs), [*notes_on(runs, "requests"), *notes])


def _bridge(
    scale: Scale, progress: Progress, servers: Sequence[Server], notes: Sequence[str], stack: ExitStack
) -> list[Table]:
    phones = {}
    for server in servers:
        phone = phones[server.contestant.name] = Phone(server.address, "bench-phone", new_code(server.address))
        stack.callback(phone.close)
    tables = []
    for in_flight in IN_FLIGHT:
        by_name = {server.contestant.name: server for server in servers}
        runs = {name: TimedRounds() for name in by_name}
        turns = scale.load_rounds * TURNS
        for turn in range(turns):
            for name in rotated(list(by_name), turn):
                progress(f"sockets: bridge, {in_flight} in flight, turn {turn + 1} of {turns}, {name}")
                phone = phones[name]
                asked = request("POST", "/tap", token=phone.token, body=b'{"x":120,"y":640}')
                _round(runs[name], by_name[name], asked, scale, turns, in_flight, phone)
        title = f"Bridge round trip over loopback (caller, relay, phone and back), {in_flight} in flight"
        tables.append(
            Table(f"bridge_{in_flight}", title, REQUESTS, timed_rows(runs), [*notes_on(runs, "requests"), *notes])
        )
    return tables


def _round(
    runs: TimedRounds, server: Server, asked: bytes, scale: Scale, turns: int, callers: int, phone: Phone | None = None
) -> None:
    seconds = scale.seconds / turns
    run = partial(drive, server.address, asked, callers=callers, seconds=seconds, most=scale.most_requests, phone=phone)
    take_timed_round(runs, server, run)
