"""Benchmark of servers over loopback: `/health` on kept and new connections, and the bridge, beside bare servers."""

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

IN_FLIGHT = (1, 32, 64)  # commands on the bridge
FRESH_CALLERS = 8
FRESH = {"close": "close", "keep_alive": "keep-alive"}  # value of `Connection` by the end of a table's name


def sockets_section(
    scale: Scale,
    progress: Progress,
    *,
    relays: tuple[Contestant, ...] = RELAYS,
    peers: tuple[Contestant, ...] = (NULL, *PEERS),
    bridges: tuple[Contestant, ...] = BRIDGES,
) -> list[Table]:
    """Measure `/health` of relays and peers, and bridge round trips of relays and bridges; return the tables.

    The ratios refer to the first relay.
    """
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
        fresh = [_health(scale, progress, direct, notes, fresh=one) for one in FRESH]
        return [_health(scale, progress, direct, notes), *fresh, *tables]


def _health(
    scale: Scale, progress: Progress, servers: Sequence[Server], notes: Sequence[str], fresh: str | None = None
) -> Table:
    """Return the table of `/health`; `fresh`, a key of `FRESH`, uses a new connection for each request."""
    asked = request(
        "GET", "/health", fields={"Accept": "*/*", **({} if fresh is None else {"Connection": FRESH[fresh]})}
    )
    callers = scale.connections if fresh is None else FRESH_CALLERS
    by_name = {server.contestant.name: server for server in servers}
    runs = {name: TimedRounds() for name in by_name}
    for server in servers:  # one round to warm up
        drive(server.address, asked, callers=callers, seconds=0.1, most=scale.most_requests, fresh=bool(fresh))
    turns = scale.load_rounds * TURNS
    for turn in range(turns):
        for name in rotated(list(by_name), turn):
            progress(f"sockets: /health, turn {turn + 1} of {turns}, {name}")
            _round(runs[name], by_name[name], asked, scale, turns, callers, fresh=bool(fresh))
    what = (
        "kept connections"
        if fresh is None
        else f"callers, a new connection for each request, Connection: {FRESH[fresh]}"
    )
    title = f"GET /health over loopback, {callers} {what}"
    return Table(
        "health" if fresh is None else f"health_{fresh}",
        title,
        REQUESTS,
        timed_rows(runs),
        [*notes_on(runs, "requests"), *notes],
    )


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
    runs: TimedRounds,
    server: Server,
    asked: bytes,
    scale: Scale,
    turns: int,
    callers: int,
    phone: Phone | None = None,
    *,
    fresh: bool = False,
) -> None:
    seconds, most = scale.seconds / turns, scale.most_requests
    run = partial(drive, server.address, asked, callers=callers, seconds=seconds, most=most, phone=phone, fresh=fresh)
    take_timed_round(runs, server, run)
