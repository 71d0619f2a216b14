"""Benchmark of a cluster with many phones in simulated time: pairing, commands from any node, revocation.

All nodes, their Redis, the store and the phones share this process and its processor time.
"""

from __future__ import annotations

import resource
import time
from functools import partial
from itertools import cycle, islice
from random import Random
from typing import Any

from attrs import define, field

from bench.measure import BenchError, Progress
from bench.report import Column, Row, Table
from fuzz.cluster.deployment import ClusterDeployment
from fuzz.cluster.invariants import SOON
from tests.support.sim_http import RequestClient, WebSocketClient

__all__ = ["CROWDS", "crowd_table"]

CROWDS = ((1_000, 4), (10_000, 4))  # phones, and nodes

AT_ONCE = 64  # phones that pair concurrently
COMMANDS = 500
REVOKED = 50  # or all but one
COLUMNS = (
    Column("pair_ms", "a phone pairs, ms of processor", 2),
    Column("mib", "memory of a node, MiB", 0),
    Column("p50_ms", "a command, simulated ms (median)", 1),
    Column("p99_ms", "(99 of 100)", 1),
    Column("cut_ms", "the last socket after a revocation, simulated ms", 1),
)
NOTES = (
    "Simulated: nodes, Redis, store and phones in one process, whose processor time and memory they share.",
    f"{COMMANDS} commands to phones at random, from nodes at random; {REVOKED} sessions are revoked at other nodes.",
)


@define(eq=False)
class _Phone:
    """Simulated phone that answers each command at once."""

    number: int
    node: int
    talker: WebSocketClient | None = None
    token: str = ""
    refused: str = ""
    over: bool = False

    def said(self, talker: WebSocketClient, envelope: dict[str, Any]) -> None:
        payload = envelope["payload"]
        match envelope["type"]:
            case "auth.ok":
                self.token = payload["session_token"]
            case "auth.fail":
                self.refused = payload["reason"]
            case "bridge.command":
                answer = {"request_id": payload["request_id"], "status": 200, "result": {}}
                talker.send_envelope("bridge", "bridge.response", answer)
            case _:
                pass


@define(eq=False)
class _Crowd:
    world: ClusterDeployment
    rng: Random = field(factory=lambda: Random("crowd"))
    phones: list[_Phone] = field(factory=list)

    def pair(self, count: int) -> float:
        """Pair `count` phones in batches; return processor seconds for each phone.

        Raises `BenchError` if one is refused.
        """
        begun, numbers, places = time.process_time(), iter(range(count)), cycle(range(len(self.world.nodes)))
        while batch := [self._begin(number, next(places)) for number in islice(numbers, AT_ONCE)]:
            self.world.run(partial(_judged, batch))
            refused = next((each.refused for each in batch if each.refused), "")
            if refused:
                raise BenchError(f"phone {len(self.phones):,} is not let in: {refused}")
        return (time.process_time() - begun) / count

    def _begin(self, number: int, node: int) -> _Phone:
        world, phone = self.world, _Phone(number, node)
        self.phones.append(phone)
        name = f"{number:06}"

        def coded(caller: RequestClient) -> None:
            if caller.status != 200:
                phone.refused = f"no code: {caller.status}"
                return
            device = {"device_name": name, "device_id": f"device-{name}", "client_surface": "android"}
            payload = {"pairing_code": caller.answer.json["code"], **device}

            def opened(talker: WebSocketClient) -> None:
                talker.send_envelope("system", "auth", payload)

            def ended(talker: WebSocketClient) -> None:
                phone.over = True

            phone.talker = world.open_websocket(world.crowd, node, opened, phone.said, ended)

        world.request(node, "POST", "/pairing", done=coded)
        return phone

    def drive(self) -> list[float]:
        """Send commands to random phones through random nodes; return their simulated milliseconds, sorted.

        Raises `BenchError` if a command is not answered with 200.
        """
        took: list[float] = []
        for _ in range(COMMANDS):
            phone, node, begun = self.rng.choice(self.phones), self.rng.randrange(len(self.world.nodes)), self.now
            path = f"/ping?device=device-{phone.number:06}"
            caller = self.world.request_and_wait(node, "GET", path, token=self.rng.choice(self.phones).token)
            if caller.status != 200:
                raise BenchError(f"a command for phone {phone.number:,} is answered {caller.status}")
            took.append((self.now - begun) * 1e3)
        return sorted(took)

    def revoke(self) -> float:
        """Revoke some phones; return the longest time from an answer to the closing of the socket, in simulated ms.

        Raises `BenchError` if a revocation fails, or a socket stays open for longer than `SOON` seconds.
        """
        worst = 0.0
        for phone in self.rng.sample(self.phones, min(REVOKED, len(self.phones) - 1)):
            node = (phone.node + 1) % len(self.world.nodes)
            if self.world.request_and_wait(node, "DELETE", f"/sessions/{phone.token}").status != 200:
                raise BenchError(f"phone {phone.number:,} could not be revoked")
            begun = self.now
            self.world.run(partial(getattr, phone, "over"))
            worst = max(worst, self.now - begun)
            self.phones.remove(phone)
        if worst > SOON:
            raise BenchError(f"a revoked phone kept its socket for {worst:.1f} s")
        return worst * 1e3

    @property
    def now(self) -> float:
        return self.world.sim.now


def _judged(batch: list[_Phone]) -> bool:
    """Report whether each phone of a batch was either paired or refused."""
    return all(each.token or each.refused for each in batch)


def crowd_table(progress: Progress, *, sizes: tuple[tuple[int, int], ...] = CROWDS) -> Table:
    """Return the table of a simulated cluster, with a row for each number of phones and nodes."""
    rows = []
    for phones, nodes in sizes:
        progress(f"nodes: {phones:,} simulated phones at {nodes} nodes")
        rows.append(Row(f"{phones:,} phones at {nodes} nodes", _measure(phones, nodes)))
    return Table("crowd", "Many phones at several nodes, simulated", COLUMNS, rows, NOTES)


def _measure(phones: int, nodes: int) -> dict[str, float]:
    world = ClusterDeployment(nodes=nodes)
    for host in world.hosts:
        host.store = world.store_host.store  # the history grows with the square of the phones
    world.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    crowd = _Crowd(world)
    pair = crowd.pair(phones)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    world.sim.run_for(2.0)
    took = crowd.drive()
    return {"pair_ms": pair * 1e3, "mib": grown / 1024 / nodes, "p50_ms": took[len(took) // 2],
            "p99_ms": took[len(took) * 99 // 100], "cut_ms": crowd.revoke()}  # fmt: skip
