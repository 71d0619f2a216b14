"""`python -m fuzz.cluster.run --seeds 100`: a cluster with random actions and faults for about 40 s.

Clients pair, send commands, transfer files, reconnect, are revoked and guess codes. Nodes, Redis, the store and clocks
fail. `fuzz.cluster.invariants` checks the events. At the end, without faults, the nodes must agree.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from random import Random

import click

from fuzz.cluster.actors import ClusterPhone
from fuzz.cluster.convergence_check import asker, check_convergence
from fuzz.cluster.deployment import BUCKET, GIVE_UP, ClusterDeployment
from fuzz.cluster.invariants import SOON, ClusterViolation
from fuzz.cluster.media_model import ClusterMediaModel
from runtimes.sim.process import SimProcess
from tests.support.sim_http import RequestClient

SECONDS = 40.0  # s of a run
STEPS = 160
CALM = 8.0  # s after which all nodes have found each other again: a lease with a margin
GRACE = 5.5  # s after which a stopped node has exited
AWAY = (2.6, 4.0)  # s after which a partitioned node has lost its connection, and perhaps its lease
ROUGH, FAIR = 9.0, 7.0  # s with all faults, then s without new faults
LATE = 40.0  # s within which a command has an outcome
PLACES = (None, BUCKET, "/shared/uploads", BUCKET)  # media stores, by seed


class _ClusterScenario:
    def __init__(self, seed: int, nodes: int, *, sentinels: bool) -> None:
        self.rng = Random(f"storm {seed}")
        self.world = ClusterDeployment(seed, nodes, sentinels=sentinels, uploads=PLACES[seed % 4], far=seed % 3 == 2)
        self.counts: dict[str, int] = {}
        self._names = 0
        self._waiting: dict[RequestClient, float] = {}
        self._rolling: list[list[int]] = []  # nodes that remain to be stopped, by rolling restart
        self._files = ClusterMediaModel(self.world, self.rng, self._waits, self._on_response)
        self._actions: list[tuple[Callable[[], None], int]] = [
            (self.pair, 14), (self.drive, 60), (self.reconnect, 14), (self.disconnect, 6), (self.revoke, 8),
            (self.revoke_bridge_grant, 3), (self.select, 3), (self.check_history, 3), (self.check_device_list, 10),
            (self.upload, 6), (self.fetch, 10), (self.break_bucket, 2), (self.kill, 2), (self.stop, 2),
            (self.start_killed_node, 8), (self.partition_from_redis, 3), (self.heal, 5), (self.miss_messages, 2),
            (self.reuse_code_on_two_nodes, 2), (self.revoke_during_slow_load, 4), (self.revoke_on_isolated_node, 3),
            (self.delay_change_message, 2), (self.move_phone_after_clock_change, 3), (self.fail_redis, 2),
            (self.set_clock, 2), (self.set_clock_drift, 2), (self.partition_from_store, 2), (self.slow_store, 1),
            (self.partition_nodes, 2), (self.rolling_restart, 1), (self.try_wrong_code, 6),
        ]  # fmt: skip
        with_faults = {
            self.partition_from_redis, self.miss_messages, self.reuse_code_on_two_nodes, self.revoke_during_slow_load,
            self.revoke_on_isolated_node, self.delay_change_message, self.fail_redis, self.partition_from_store,
            self.slow_store,
        }  # fmt: skip
        self._fair = [(action, weight) for action, weight in self._actions if action not in with_faults]

    def run(self) -> dict[str, int]:
        world, rng = self.world, self.rng
        began, fair = world.sim.now, False
        for _ in range(STEPS):
            world.sim.run_for(rng.expovariate(STEPS / SECONDS))
            before, fair = fair, (world.sim.now - began) % (ROUGH + FAIR) > ROUGH
            if fair and not before:
                self.heal()
            actions, weights = zip(*(self._fair if fair else self._actions), strict=True)
            (action,) = rng.choices(actions, weights)
            self.counts[action.__name__] = self.counts.get(action.__name__, 0) + 1
            action()
            world.check_invariants()
            self._files.refresh()
        self.end()
        return self.counts

    # --- actions ---

    @property
    def running_nodes(self) -> list[int]:
        return [n for n, process in enumerate(self.world.nodes) if process.alive and process.ready]

    def _node(self) -> int | None:
        return self.rng.choice(self.running_nodes) if self.running_nodes else None

    def _pick_phone(self, *, inside: bool) -> ClusterPhone | None:
        found = [phone for phone in self.world.phones if phone.token and phone.is_authenticated is inside]
        return self.rng.choice(found) if found else None

    def _somewhere(self, do: Callable[[int, ClusterPhone], object], inside: float = 1.0) -> None:
        """Call `do` with a random node and a random phone; do nothing if there is none.

        With probability `inside` it is a connected phone, else one that is not connected.
        """
        node, phone = self._node(), self._pick_phone(inside=inside == 1.0 or self.rng.random() < inside)
        if node is not None and phone is not None:
            do(node, phone)

    def pair(self) -> None:
        node, world, rng = self._node(), self.world, self.rng
        if node is None:
            return

        def made(caller: RequestClient) -> None:
            if caller.status != 200:
                return
            for _ in range(rng.choice((1, 1, 2, 3))):
                if (where := self._node()) is not None:
                    self._names += 1
                    phone = world.new_phone(f"P{self._names}", where, code=caller.answer.json["code"])
                    phone.delay = rng.choice((0.0, 0.01, 0.5, 3.0))
                    phone.arrived = partial(self._at_once, phone)

        world.request(node, "POST", "/pairing", done=made)

    def _at_once(self, phone: ClusterPhone) -> None:
        for node in self.running_nodes:
            self._drive(node, phone, phone.device)

    def _drive(self, node: int, asks: ClusterPhone, device: str) -> None:
        self._waits(
            self.world.send_command(node, asks.token, device=device, done=partial(self._on_response, what="told"))
        )

    def drive(self) -> None:
        node, asks, device = self._node(), self._pick_phone(inside=True), self._pick_phone(inside=True)
        if node is None or asks is None or device is None:
            return
        named = self.rng.random() < 0.7
        self._drive(node, asks, device.device if named else "")

    def _waits(self, caller: RequestClient) -> None:
        if not caller.is_closed:
            self._waiting[caller] = self.world.sim.now

    def _on_response(self, caller: RequestClient, what: str) -> None:
        self._waiting.pop(caller, None)
        code = caller.answer.json.get("code", "") if caller.status >= 400 else ""
        key = f"{what} {caller.status} {code}".strip()
        self.counts[key] = self.counts.get(key, 0) + 1

    def reconnect(self) -> None:
        self._somewhere(self._reconnect, inside=0.3)

    def _reconnect(self, node: int, phone: ClusterPhone) -> None:
        again = self.world.new_phone(phone.name, node, token=phone.token, quiet=self.rng.random() < 0.3)
        again.delay = phone.delay

    def disconnect(self) -> None:
        if (phone := self._pick_phone(inside=True)) is not None:
            phone.disconnect(reset=self.rng.random() < 0.5)

    def revoke(self) -> None:
        self._somewhere(lambda node, phone: self.world.revoke(node, phone.token), inside=0.8)

    def revoke_bridge_grant(self) -> None:
        self._somewhere(lambda node, phone: self.world.revoke_bridge_grant(node, phone.token), inside=0.8)

    def select(self) -> None:
        self._somewhere(self._select)

    def _select(self, node: int, phone: ClusterPhone) -> None:
        self.world.request(node, "POST", "/bridge/select-active", body={"device": phone.device})

    def check_history(self) -> None:
        if (node := self._node()) is not None:
            self.world.request(node, "GET", "/bridge/activity")

    def check_device_list(self) -> None:
        world, node, began = self.world, self._node(), self.world.sim.now

        def listed(caller: RequestClient) -> None:
            if caller.status == 200:
                devices = [device["device_id"] for device in caller.answer.json["devices"]]
                world.invariants.note_view(node or 0, devices, began)

        if node is not None:
            world.request(node, "GET", "/bridge/devices", done=listed)

    def upload(self) -> None:
        self._somewhere(self._files.upload)

    def fetch(self) -> None:
        self._somewhere(self._files.fetch)

    def break_bucket(self) -> None:
        self._files.break_bucket()

    def kill(self) -> None:
        if len(self.running_nodes) > 1:
            world, phone = self.world, self._pick_phone(inside=True)
            world.kill(
                self.rng.choice(self.running_nodes)
                if phone is None or phone.node not in self.running_nodes
                else phone.node
            )
            for _ in range(3):
                world.sim.after(1.2 * SOON, self.check_device_list)

    def stop(self) -> None:
        if len(self.running_nodes) > 1:
            self.world.stop(self.rng.choice(self.running_nodes))

    def start_killed_node(self) -> None:
        for n, process in enumerate(self.world.nodes):
            if not process.alive:
                self.world.restart(n)
                return

    def partition_from_redis(self) -> None:
        self.world.partition_from_redis(self.rng.randrange(len(self.world.nodes)))

    def miss_messages(self) -> None:
        """Partition a node from Redis; some time later, if possible, make a change at another node, and heal."""
        world, up = self.world, self.running_nodes
        if len(up) > 1:
            away, at = self.rng.sample(up, 2)
            world.partition_from_redis(away)
            world.sim.after(self.rng.uniform(*AWAY), partial(self._happen, at, away))

    def _happen(self, node: int, away: int) -> None:
        world, phone = self.world, self._pick_phone(inside=True)
        there = [each for each in world.phones if each.is_authenticated and each.node == away]
        if there and world.nodes[node].alive and self.rng.random() < 0.5:
            world.new_phone(there[0].name, node, token=there[0].token, quiet=True)
            world.sim.after(0.2, world.heal)
        elif phone is not None and world.nodes[node].alive and self.rng.random() < 0.3:
            self._select(node, phone)
            world.sim.after(0.5, world.heal)
        elif phone is not None and world.nodes[node].alive:
            world.revoke_bridge_grant(node, phone.token)
            world.sim.after(0.5, world.heal)
            world.sim.after(0.5 + 1.1 * SOON, partial(world.try_drive, away, phone.token))

    def reuse_code_on_two_nodes(self) -> None:
        """Use one pairing code at two nodes, of which one has lost Redis."""
        world, up = self.world, self.running_nodes
        if len(up) > 1:
            here, there = self.rng.sample(up, 2)

            def made(caller: RequestClient) -> None:
                if caller.status == 200:
                    code = caller.answer.json["code"]
                    world.partition_from_redis(here)
                    world.sim.after(self.rng.uniform(*AWAY), partial(self._show_code, [here, there], code))

            world.request(here, "POST", "/pairing", done=made)

    def _show_code(self, nodes: list[int], code: str) -> None:
        for node in nodes:
            if self.world.nodes[node].alive:
                self._names += 1
                self.world.new_phone(f"P{self._names}", node, code=code)

    def revoke_during_slow_load(self) -> None:
        """Revoke a session or its bridge grant while a node, which was away, loads all sessions slowly.

        Or revoke it at a node without the store, while another node is away. Then probe the session at the node that
        was away.
        """
        world, up, phone = self.world, self.running_nodes, self._pick_phone(inside=True)
        if len(up) < 2 or phone is None:
            return
        away, at = self.rng.sample(up, 2)
        world.partition_from_redis(away)
        gone = self.rng.uniform(*AWAY)
        world.sim.after(gone, world.heal)
        if self.rng.random() < 0.6:
            take = self.rng.choice((world.revoke, world.revoke_bridge_grant))
            world.sim.after(gone, partial(world.slow_store, 4.0, [away]))
            world.sim.after(gone + self.rng.uniform(2.2, 4.6), lambda: take(at, phone.token))
        else:
            world.partition_from_store(at)
            world.sim.after(gone - GIVE_UP - 0.3, partial(self._revoke, at, phone))
        world.sim.after(gone + 6.0, world.heal)
        for more in (1.1, 2.5, 4.0):
            world.sim.after(gone + 6.0 + more * SOON, partial(self._probe, away, phone))

    def revoke_on_isolated_node(self) -> None:
        """Revoke a session or its bridge grant at a node that has lost Redis, or at another node; then restart nodes.

        In the first case that node is restarted, in the second all but the node that has lost Redis. At
        the end probe the session at a node that must have learned of it.
        """
        world, up, phone = self.world, self.running_nodes, self._pick_phone(inside=True)
        if len(up) < 2 or phone is None:
            return
        here, there = self.rng.sample(up, 2)
        alone = self.rng.random() < 0.6
        world.partition_from_redis(here)
        gone = self.rng.uniform(*AWAY)
        take = self.rng.choice((world.revoke, world.revoke_bridge_grant))
        world.sim.after(gone, lambda: take(here if alone else there, phone.token))
        for n in (here,) if alone else [n for n in range(len(world.nodes)) if n != here]:
            world.sim.after(gone + 0.3, partial(self._restart, n))
        world.sim.after(gone + 0.4, world.heal)
        world.sim.after(gone + 0.5 + 1.1 * SOON, partial(self._probe, there if alone else here, phone))

    def delay_change_message(self) -> None:
        """Delay a node's receipt of a change of a session until it has made another change itself."""
        world, up, phone = self.world, self.running_nodes, self._pick_phone(inside=True)
        if len(up) < 2 or phone is None or world.parted or world.sim.now < world.slow_until:
            return  # of two changes by isolated nodes one is lost
        here, there = self.rng.sample(up, 2)
        world.partition_from_redis(here)
        world.request(there, "PATCH", f"/sessions/{phone.token}", body={"ttl_seconds": 86_400})
        world.sim.after(0.3, lambda: world.revoke_bridge_grant(here, phone.token))
        world.sim.after(1.2, world.heal)
        world.sim.after(1.2 + 1.1 * SOON, partial(self._probe, here, phone))

    def _restart(self, n: int) -> None:
        process = self.world.nodes[n]
        process.kill()
        self.world.sim.after(3.0, lambda: self.world.restart(n) if self.world.nodes[n] is process else None)

    def _revoke(self, node: int, phone: ClusterPhone) -> None:
        if self.world.nodes[node].alive:
            self.world.revoke(node, phone.token)

    def _probe(self, node: int, phone: ClusterPhone) -> None:
        if self.world.nodes[node].alive:
            self.world.try_drive(node, phone.token)

    def move_phone_after_clock_change(self) -> None:
        """Set the clock of a phone's node, then move the phone to another node, and drive it from all."""
        world, up, phone = self.world, self.running_nodes, self._pick_phone(inside=True)
        if phone is None or not world.nodes[phone.node].alive or len(up) < 2:
            return
        world.hosts[phone.node].step_wall(self.rng.uniform(-20.0, 20.0))
        world.sim.after(0.5, partial(self._move, phone, self.rng.choice([n for n in up if n != phone.node])))

    def _move(self, phone: ClusterPhone, node: int) -> None:
        world = self.world
        if phone.is_authenticated and world.nodes[node].alive:
            again = world.new_phone(phone.name, node, token=phone.token, quiet=self.rng.random() < 0.7)
            again.arrived = lambda: world.sim.after(1.1 * SOON, partial(self._at_once, again))

    def heal(self) -> None:
        self.world.heal()
        self._files.repair_bucket()

    def fail_redis(self) -> None:
        world, rng = self.world, self.rng
        if world.replica is not None:
            if world.redis.alive and world.replica.alive:
                if rng.random() < 0.7:
                    world.kill_redis()
                world.sim.after(rng.uniform(0.5, 3.0), world.fail_over)
                world.sim.after(rng.uniform(3.0, 6.0), world.restart_replica)
        elif world.redis.alive:
            world.kill_redis()
            world.sim.after(rng.uniform(0.0, 4.0), self._redis_back)

    def _redis_back(self) -> None:
        if not self.world.redis.alive and self.world.replica is None:
            self.world.restart_redis()

    def set_clock(self) -> None:
        self.rng.choice(self.world.hosts).step_wall(self.rng.uniform(-20.0, 20.0))

    def set_clock_drift(self) -> None:
        self.rng.choice(self.world.hosts).run_clock(self.rng.uniform(0.99, 1.01))

    def partition_from_store(self) -> None:
        n = self.rng.randrange(len(self.world.nodes))
        self.world.partition_from_store(*(range(len(self.world.nodes)) if self.rng.random() < 0.3 else (n,)))

    def slow_store(self) -> None:
        self.world.slow_store(self.rng.choice((0.2, 1.0, 5.0)))

    def partition_nodes(self) -> None:
        self.world.partition_nodes(*self.rng.sample(range(len(self.world.nodes)), 2))

    def rolling_restart(self) -> None:
        world, left = self.world, list(range(len(self.world.nodes)))
        self._rolling.append(left)

        def again(n: int, process: SimProcess) -> None:
            if not process.alive and world.nodes[n] is process:
                world.restart(n)

        def go_on() -> None:
            if left and all(process.ready or not process.alive for process in world.nodes):
                n = left.pop()
                world.stop(n)
                world.sim.after(GRACE, partial(again, n, world.nodes[n]))
            if left:
                world.sim.after(GRACE, go_on)

        go_on()

    def try_wrong_code(self) -> None:
        if (node := self._node()) is not None:
            self.world.try_wrong_code(node, self.rng.choice(self.world.unknown_hosts))

    # --- the end ---

    def end(self) -> None:
        world, sim = self.world, self.world.sim
        self.heal()
        for left in self._rolling:
            left.clear()
        self._redis_back()
        sim.run_for(LATE)
        if self._waiting:
            raise ClusterViolation(f"{len(self._waiting)} calls have no outcome after {LATE} s")
        for n, process in enumerate(world.nodes):
            if not process.alive:
                world.restart(n)
        self.heal()  # scheduled actions may have added faults
        sim.run_for(CALM)
        self._files.refresh()
        check_convergence(world, self.rng)
        if (asks := asker(world, world.phones)) is not None:
            self._files.check(asks)
            self._files.check_end(asks)
        world.check_invariants()


def run_seed(seed: int, nodes: int = 3, *, sentinels: bool = False, sessions: int = 0) -> dict[str, int]:
    """Run one seed; return counts of actions and responses. Raise `ClusterViolation` if an invariant fails."""
    scenario = _ClusterScenario(seed, nodes, sentinels=sentinels)
    scenario.world.start()
    if sessions:
        scenario.world.add_sessions(sessions, are_changes=seed % 4 == 3)
    return scenario.run()


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--first", type=int, default=0, show_default=True)
@click.option("--nodes", type=click.IntRange(min=2), default=3, show_default=True)
@click.option("--most-nodes", type=click.IntRange(min=2), help="Each run has from --nodes to this many nodes.")
@click.option("--sessions", type=click.IntRange(min=0), default=0, help="Number of stored sessions of other devices.")
@click.option("--sentinels", is_flag=True, help="Run two Redis servers with Sentinels.")
def main(seeds: int, first: int, nodes: int, most_nodes: int | None, sessions: int, *, sentinels: bool) -> None:
    """Run clusters with faults, one after another; exit code 1 when an invariant fails."""
    began, total, failed = time.monotonic(), dict[str, int](), 0
    for seed in range(first, first + seeds):
        try:
            number = nodes if most_nodes is None else Random(f"nodes {seed}").randint(nodes, most_nodes)
            counts = run_seed(seed, number, sentinels=sentinels, sessions=sessions)
        except AssertionError as error:
            failed += 1
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:500]}", file=sys.stderr, flush=True)
            continue
        for name, count in counts.items():
            total[name] = total.get(name, 0) + count
    print(f"{seeds} storms, {failed} failed, {time.monotonic() - began:.0f} s")
    print(", ".join(f"{count:,} x {name}" for name, count in sorted(total.items())))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
