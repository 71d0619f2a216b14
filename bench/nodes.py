"""Benchmark of a cluster of relays: bridge round trips at the phone's own node and at another, and two more tables."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from attrs import evolve, frozen

from bench.contestants import RELAYS, START_WITHIN, Contestant, Server, child, placement, running, wait_healthy
from bench.load import Phone, drive, new_code
from bench.measure import BenchError, Progress, Scale, rotated
from bench.nodes_crowd import CROWDS, crowd_table
from bench.nodes_hearing import PHONES, hearing_table
from bench.report import Table
from bench.rounds import REQUESTS, TimedRounds, notes_on, take_timed_round, timed_rows
from bench.wire import request

__all__ = ["find_redis", "nodes_section"]

IN_FLIGHT = (1, 32)
GROUPS = (2, 4, 8)  # nodes of a service
ALONE = evolve(RELAYS[0], name="relay, alone")


@frozen
class _Asked(Server):
    """Server under load, whose CPU time and waiting include those of its helper processes."""

    others_at_work: tuple[Server, ...] = ()

    def cpu(self) -> float:
        return super().cpu() + sum(one.cpu() for one in self.others_at_work)

    def waited(self) -> float:
        return super().waited() + sum(one.waited() for one in self.others_at_work)


def find_redis() -> str | None:
    """Return the path of Redis or Valkey, or None."""
    return shutil.which("redis-server") or shutil.which("valkey-server")


def nodes_section(
    scale: Scale,
    progress: Progress,
    *,
    groups: tuple[int, ...] = GROUPS,
    phones: tuple[int, ...] = PHONES,
    crowds: tuple[tuple[int, int], ...] = CROWDS,
) -> list[Table]:
    """Return tables for each number of commands in flight, for presence messages, and for a simulated crowd.

    The ratios of the first refer to a relay outside a cluster. Raises `BenchError` without Redis or Valkey.
    """
    redis = find_redis()
    if redis is None:
        raise BenchError("neither Redis nor Valkey is installed")
    with ExitStack() as stack:
        asked: dict[str, tuple[Server, Phone]] = {}
        alone = stack.enter_context(running(ALONE))
        wait_healthy(alone.address)
        asked[ALONE.name] = alone, _phone(stack, alone)
        for count in groups:
            progress(f"nodes: starting {count} nodes")
            first, *rest, last = stack.enter_context(_group(redis, count))
            phone = _phone(stack, last)
            asked[f"{count} nodes, at the phone's own"] = last, phone
            asked[f"{count} nodes, at another"] = (
                _Asked(first.contestant, first.pid, first.address, (last, *rest)),
                phone,
            )
            _wait_reached(first, phone)
        tables = [_table(scale, progress, asked, in_flight) for in_flight in IN_FLIGHT]
    return [*tables, hearing_table(progress, phones=phones), crowd_table(progress, sizes=crowds)]


def _table(scale: Scale, progress: Progress, asked: dict[str, tuple[Server, Phone]], in_flight: int) -> Table:
    runs = {name: TimedRounds() for name in asked}
    seconds = scale.seconds / scale.load_rounds
    for turn in range(scale.load_rounds):
        for name in rotated(list(asked), turn):
            server, phone = asked[name]
            progress(f"nodes: {in_flight} in flight, round {turn + 1} of {scale.load_rounds}, {name}")
            text = request("POST", "/tap", token=phone.token, body=b'{"x":120,"y":640}')
            run = partial(
                drive, server.address, text, callers=in_flight, seconds=seconds, most=scale.most_requests, phone=phone
            )
            take_timed_round(runs[name], server, run)
    title = f"Bridge round trip where relays are nodes of one service, {in_flight} in flight"
    notes = [*notes_on(runs, "requests"), "server CPU: all nodes of the service and its Redis", placement()]
    return Table(f"nodes_{in_flight}", title, REQUESTS, timed_rows(runs), notes)


@contextmanager
def _group(redis: str, count: int) -> Iterator[list[Server]]:
    """Start a Redis and `count` nodes, and yield the nodes; the CPU time of the last includes that of Redis."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-")))
        password = secrets.token_urlsafe(16)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        file = folder / "redis.conf"
        file.write_text(
            f'port {port}\nbind 127.0.0.1\nsave ""\nappendonly no\ndir "{folder}"\nrequirepass {password}\n'
        )
        process = stack.enter_context(child([redis, str(file)], stdout=subprocess.DEVNULL))
        _wait_open(("127.0.0.1", port))
        variables = (
            ("SVC_CLUSTER_URL", f"redis://:{password}@127.0.0.1:{port}/0"),
            ("RELAY_SESSIONS_FILE", str(folder / "svc.db")),
        )
        node = Contestant(f"one of {count} nodes", RELAYS[0].arguments, RELAYS[0].needs, variables)
        nodes = [stack.enter_context(running(node)) for _ in range(count)]
        for one in nodes:
            wait_healthy(one.address)
        bus = Server(Contestant("redis", ()), process.pid, ("127.0.0.1", port))
        last = nodes[-1]
        yield [*nodes[:-1], _Asked(last.contestant, last.pid, last.address, (bus,))]


def _phone(stack: ExitStack, server: Server) -> Phone:
    phone = Phone(server.address, "bench-phone", new_code(server.address))
    stack.callback(phone.close)
    return phone


def _wait_reached(server: Server, phone: Phone) -> None:
    """Wait until a node lists a phone of another node. Raises `BenchError` after `START_WITHIN` seconds."""
    text, end = request("GET", "/bridge/devices", token=phone.token), time.monotonic() + START_WITHIN
    while time.monotonic() < end:
        with socket.create_connection(server.address, timeout=START_WITHIN) as sock:
            sock.sendall(text)
            if b"bench-phone" in sock.recv(65_536):
                return
    raise BenchError("a phone is not known at another node")


def _wait_open(address: tuple[str, int]) -> None:
    end = time.monotonic() + START_WITHIN
    while time.monotonic() < end:
        try:
            socket.create_connection(address, timeout=START_WITHIN).close()
        except OSError:
            continue
        return
    raise BenchError("Redis did not start")
