"""Several relay nodes that share a Redis and a store, with phones and clients at any of them.

    world = ClusterDeployment(seed=7)
    world.start()
    phone = world.pair_phone("P", 1)
    call = world.send_command(2, phone.token)
    world.run(lambda: call.is_closed)

`fuzz.cluster.invariants` checks the events. Nodes may lose Redis, the store and each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from operator import attrgetter
from random import Random
from typing import Any

from attrs import fields

from fuzz.cluster.actors import ClusterPhone, GuessingClient
from fuzz.cluster.invariants import ClusterInvariants, TokenModel
from runtimes.failures import HostError
from runtimes.sim.cost import HandleCost
from runtimes.sim.host import SimHost
from runtimes.sim.network import SimNetwork
from runtimes.sim.process import SimProcess
from runtimes.sim.redis_server import RedisService
from runtimes.sim.s3_server import S3Service
from runtimes.sim.sentinel_server import sentinel_core
from runtimes.sim.simulation import START_WALL
from runtimes.sim.simulation import Simulation as Simulation
from runtimes.sim.store import STORE_TIME, SimStore
from svc_proto.basics.entropy import Entropy
from svc_proto.commands import StoreRequest
from svc_proto.engine.core import Engine
from svc_proto.facts import FailureKind
from svc_proto.machines.paired_session import PairedSession
from svc_proto.relay.cluster.phone_moves import MOVE_TIMEOUT
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.settings import RedisAddress, S3Bucket
from svc_proto.store_requests import CountSessions, LoadSessionChanges, LoadSessionRevision, LoadSessions, SaveSession
from tests.support.sim_http import HttpClientConnection, Pairs, RequestClient, ServerAddress, WebSocketClient

PORT = 8767
REDIS_PORT = 6379
REDIS = "10.0.9.1"
PASSWORD = "redis-password-4711"
UPLOADS_LIVE = 100  # s, in deployments with a media store
S3, S3_PORT = "10.0.0.250", 9000
BUCKET = S3Bucket(
    f"http://{S3}:{S3_PORT}/uploads/of/svc", "eu-north-1", "AKIDEXAMPLE", "s3-secret-4711", "s3-token-4711"
)
STORE = "10.0.9.2"
REPLICA = "10.0.9.3"
MASTER = "svc"
SENTINEL_PORT = 26379
_MEMBERS = [each.name for each in fields(PairedSession)]
_members = attrgetter(*_MEMBERS)
GIVE_UP = 2.0  # s until a request to an unreachable store fails


def _copy_session(session: PairedSession) -> PairedSession:
    copied = object.__new__(PairedSession)
    for name, value in zip(_MEMBERS, _members(session), strict=True):
        setattr(copied, name, value)
    return copied


class NodeStore(SimStore):
    """Store of one node: the shared store, unless the node is partitioned from it."""

    def __init__(self, world: ClusterDeployment, host: SimHost) -> None:
        super().__init__()
        self.sessions, self.changes = world.store.sessions, world.store.changes
        self._world, self._host = world, host

    def apply(self, request: StoreRequest[Any]) -> object:
        """Execute a request, or raise HostError if the node is partitioned from the store.

        Sessions are read as they were up to half the request's duration ago.
        """
        world, now = self._world, self._world.sim.now
        if world.sim.network.parted(self._host, world.store_host):
            raise HostError(FailureKind.UNREACHABLE, "the store does not answer")
        if isinstance(request, LoadSessions | CountSessions | LoadSessionChanges | LoadSessionRevision):
            left = now - world.rng.random() * self.seconds / 2  # no request takes less time, so no record is older
            before = next((store for since, store in reversed(world.stored) if since <= left), SimStore())
            return before.apply(request)
        answer = super().apply(request)
        world.stored.append((now, world.store.snapshot()))
        return answer


class ClusterDeployment:
    """Simulated cluster. `relays` are the current relays by node; `nodes` are their processes."""

    def __init__(
        self,
        seed: int = 0,
        nodes: int = 3,
        *,
        sentinels: bool = False,
        uploads: S3Bucket | str | None = None,
        far: bool = False,
    ) -> None:
        """Start Redis and the nodes, without waiting for them.

        `uploads` is the media store of all nodes: a bucket, or a shared folder. With `far`, each node has its own link
        to Redis, slower than the link to clients.
        """
        self.rng = Random(f"cluster {seed}")
        shape = Random(f"cluster network {seed}")
        network = SimNetwork(jitter=shape.choice((1.0, 5.0)), chunking=shape.choice((0.1, 0.9)))
        self.sim = Simulation(seed, network=network)
        self.entropy: Entropy = self.rng.randbytes
        self.redis_host = self.sim.host("redis", REDIS)
        self.redis_services: dict[SimHost, RedisService] = {}
        self.redis = self._start_redis(self.redis_host)
        self.replica: SimProcess | None = None
        self.where = RedisAddress(REDIS, REDIS_PORT, password=PASSWORD)
        self.masters = {MASTER: (REDIS, REDIS_PORT)}
        if sentinels:
            self._start_sentinels()
        self.store_host = self.sim.host("store", STORE)
        self.store = self.store_host.store
        self.stored: list[tuple[float, SimStore]] = []  # contents of the store, and from when
        self.hosts = [self.sim.host(f"node-{n}", f"10.0.0.{n + 1}") for n in range(nodes)]
        self.uploads = uploads
        self.s3: S3Service | None = None
        if isinstance(uploads, str):
            for host in self.hosts:
                host.disk, host.spool = self.hosts[0].disk, uploads
                host.rooms = (uploads,)
            self.hosts[0].disk.folder(uploads)
        elif uploads is not None:
            self.s3_host = self.sim.host("s3", S3)
            service = self.s3 = S3Service(uploads)
            self.s3_process = self.s3_host.start(lambda entropy: Engine(service, entropy=entropy), [S3_PORT])
        for host in self.hosts:
            host.cost = HandleCost.draw(seed, host.name)
            host.store = NodeStore(self, host)
            for redis in self.redis_services if far else ():
                latency = shape.uniform(0.005, 0.02)
                network.link(host, redis, latency=latency, jitter=latency)
        self.crowd = self.sim.host("crowd", "10.0.8.1")
        self.relays: list[Relay] = []
        self.nodes: list[SimProcess] = []
        for n, host in enumerate(self.hosts):
            self.relays.append(None)  # type: ignore[arg-type]  # the factory sets it
            self.nodes.append(host.start(self._core_factory(n), [PORT], name=f"relay-{n}"))
        self.leaving: list[SimProcess] = []
        self.phones: list[ClusterPhone] = []
        self.invariants = ClusterInvariants(self)
        self.troubled = self.sim.now  # when the network last had a fault
        self.parted = 0
        self.apart_since: dict[int, float] = {}  # by node, when it was partitioned from Redis
        self.shuffled = self.sim.now  # when a node last started or stopped, with its counts
        self.slow_until = 0.0  # when no request waits for the store any more
        self.moved_until = 0.0  # when no command waits for a phone of a stopping node any more
        self.lost_store = [0.0] * nodes  # until when the records of each node may be unstored
        self.unknown_hosts = [self.sim.host(f"stranger-{n}", f"10.0.7.{n + 1}") for n in range(2)]

    # --- programs ---

    def _start_redis(self, host: SimHost) -> SimProcess:
        def make(entropy: Entropy) -> Engine:
            again = host in self.redis_services
            service = self.redis_services[host] = RedisService(PASSWORD)
            if again and self.replica is not None:
                service.role = "replica"  # the other server is or becomes the master
            return Engine(service, entropy=entropy)

        return host.start(make, [REDIS_PORT])

    def _start_sentinels(self) -> None:
        host = self.sim.host("replica", REPLICA)
        self.replica = self._start_redis(host)
        self.redis_services[host].role = "replica"
        addresses = [f"10.0.9.{n}" for n in (11, 12, 13)]
        for address in addresses:
            sentinel = self.sim.host(f"sentinel-{address}", address)
            sentinel.start(lambda entropy: sentinel_core(entropy, self.masters, password=PASSWORD), [SENTINEL_PORT])
        places = tuple((address, SENTINEL_PORT) for address in addresses)
        self.where = RedisAddress(password=PASSWORD, sentinels=places, master=MASTER, sentinel_password=PASSWORD)

    def _core_factory(self, n: int) -> Callable[[Entropy], Engine]:
        host = self.hosts[n]

        def make(entropy: Entropy) -> Engine:
            config = RelayConfig(
                port=PORT,
                home=host.state,
                config_path=f"{host.state}/config.yaml",
                terminal_tmux=False,
                cluster=self.where,
                node_url=f"http://{host.address}:{PORT}",
                media_store=self.uploads,
                media_max_size_mb=100 if self.uploads is None else 1,
                media_ttl_seconds=86_400 if self.uploads is None else UPLOADS_LIVE,
            )
            self.relays[n] = Relay(config)
            return Engine(self.relays[n], entropy=entropy)

        return make

    def start(self) -> None:
        """Run until all nodes are ready and have discovered each other."""
        self.sim.run_until(lambda: all(process.ready for process in self.nodes))
        self.sim.run_until(
            lambda: all(self.count_known_nodes(n) == len(self.nodes) - 1 for n in range(len(self.nodes)))
        )

    def count_known_nodes(self, n: int) -> int:
        """Return how many other nodes a node has discovered."""
        node = getattr(self.relays[n].coordinator, "node", None)
        return 0 if node is None else len(node.members)

    def kill(self, n: int) -> None:
        """Kill a node, like `kill -9`."""
        self.nodes[n].kill()

    def restart(self, n: int) -> None:
        """Start a node again, as a service manager does."""
        self.shuffled = self.sim.now
        self.nodes[n] = self.nodes[n].restart()

    def stop(self, n: int) -> None:
        """Stop a node, like SIGTERM."""
        self.leaving.append(self.nodes[n])
        self.moved_until = self.sim.now + MOVE_TIMEOUT
        self.nodes[n].stop()

    @property
    def stable_nodes(self) -> list[SimProcess]:
        """Return the nodes that are alive and ready, and have not been stopped."""
        return [node for node in self.nodes if node.alive and node.ready and node not in self.leaving]

    def kill_redis(self) -> None:
        """Kill Redis; its data are lost."""
        self.redis.kill()
        self.troubled = self.sim.now

    def fail_over(self) -> None:
        """Promote the replica; the old master, if alive, keeps its connections but refuses writes.

        A dead replica is not promoted; if the master is dead too, this is tried again after 1 s.
        """
        assert self.replica is not None
        old, new = self.redis, self.replica
        if not new.alive:  # two failovers overlap: Sentinels promote no dead server
            if not old.alive:
                self.sim.after(1.0, self.fail_over)
            return
        here, there = self.redis_services[old.host], self.redis_services[new.host]
        there.keys = dict(here.keys)
        here.role, there.role = "replica", "master"
        self.masters[MASTER] = (new.host.address, REDIS_PORT)
        self.redis, self.replica, self.redis_host = new, old, new.host
        self.troubled = self.sim.now

    def restart_replica(self) -> None:
        """Restart the replica if there is one and it is dead."""
        if self.replica is not None and not self.replica.alive:
            self.replica = self.replica.restart()

    def restart_redis(self) -> None:
        """Restart Redis without data."""
        self.redis = self.redis.restart()
        self.troubled = self.sim.now

    def partition_from_redis(self, n: int) -> None:
        """Partition a node from each Redis server."""
        for host in self.redis_services:
            self.sim.network.partition(self.hosts[n], host)
        self.apart_since.setdefault(n, self.sim.now)
        self.parted += 1

    def partition_from_store(self, *nodes: int) -> None:
        """Partition nodes from the store; their requests to it fail after `GIVE_UP` seconds."""
        for n in nodes:
            self.sim.network.partition(self.hosts[n], self.store_host)
            self.hosts[n].store.seconds = GIVE_UP
            self.lost_store[n] = inf
        self.slow_until = inf
        self.parted += 1

    def slow_store(self, seconds: float, nodes: Sequence[int] = ()) -> None:
        """Let each request of some or all nodes to the store take `seconds`."""
        for n in nodes or range(len(self.hosts)):
            self.hosts[n].store.seconds = seconds
        self.slow_until = inf
        self.parted += 1

    def partition_nodes(self, n: int, other: int) -> None:
        """Partition two nodes; their messages still pass through Redis."""
        self.sim.network.partition(self.hosts[n], self.hosts[other])

    def heal(self) -> None:
        """End all partitions, and all delays of the store."""
        self.sim.network.heal()
        slowest = max(host.store.seconds for host in self.hosts)
        if self.slow_until == inf:
            self.slow_until = self.sim.now + slowest
        self.lost_store = [self.sim.now + slowest if until == inf else until for until in self.lost_store]
        for host in self.hosts:
            host.store.seconds = STORE_TIME
        self.parted = 0
        self.apart_since.clear()
        self.troubled = self.sim.now

    @property
    def is_fault_free(self) -> bool:
        """Report whether Redis runs, no node is partitioned from Redis or the store, and no store is slow.

        At the moment at which a fault ends, this is still False. Partitions between two nodes do not count.
        """
        return self.redis.alive and not self.parted and self.sim.now > self.troubled

    # --- clients ---

    def target(self, n: int, *, local: bool = False) -> ServerAddress:
        """Return the address of a node, for other hosts or for programs on its host."""
        address = "127.0.0.1" if local else self.hosts[n].address
        return ServerAddress(address, PORT, f"{address}:{PORT}")

    def request(
        self,
        n: int,
        method: str,
        path: str,
        *,
        token: str = "",
        body: object = None,
        fields: Pairs | None = None,
        done: Callable[[RequestClient], None] = lambda caller: None,
    ) -> RequestClient:
        """Send a request to a node: with a token from another host, without one from its own host."""
        local = not token
        host: SimHost = self.hosts[n] if local else self.crowd
        headers: Pairs = {**(fields or {}), **({} if local else {"authorization": f"Bearer {token}"})}
        target = self.target(n, local=local)
        return RequestClient(
            HttpClientConnection(host, target, self.entropy), target, (method, path, headers, body), on_done=done
        )

    def run(self, until: Callable[[], bool], limit: float = 60.0) -> None:
        """Run the simulation until a condition holds. Raise `SimulationLimitError` after `limit` simulated seconds."""
        self.sim.run_until(until, limit)

    def request_and_wait(
        self, n: int, method: str, path: str, *, token: str = "", body: object = None, fields: Pairs | None = None
    ) -> RequestClient:
        """Send a request to a node, wait for its response, and return the request."""
        caller = self.request(n, method, path, token=token, body=body, fields=fields)
        self.run(lambda: caller.is_closed)
        return caller

    def create_pairing_code(self, n: int) -> str:
        """Create a pairing code at a node, and return it."""
        answer = self.request_and_wait(n, "POST", "/pairing").answer
        assert answer.status == 200, answer
        code = answer.json["code"]
        assert isinstance(code, str)
        return code

    def new_phone(
        self, name: str, n: int, *, code: str = "", token: str = "", surface: str = "android", quiet: bool = False
    ) -> ClusterPhone:
        """Connect a phone to a node, and sign in with `code`, or with `token` if `code` is empty.

        Unless the phone is `quiet`, it closes its earlier sockets when it is accepted.
        """
        phone = ClusterPhone(self, name, n, code, quiet=quiet, began=self.sim.now)
        self.phones.append(phone)
        shown = {"pairing_code": code} if code else {"session_token": token}
        device = {"device_name": name, "device_id": phone.device, "client_surface": surface}

        def opened(talker: WebSocketClient) -> None:
            talker.send_envelope("system", "auth", {**shown, **device})

        def ended(talker: WebSocketClient) -> None:
            phone.closed, phone.closed_at = True, self.sim.now

        phone.talker = self.open_websocket(self.crowd, n, opened, phone.on_message, ended)
        return phone

    def open_websocket(
        self,
        host: SimHost,
        n: int,
        opened: Callable[[WebSocketClient], None],
        said: Callable[[WebSocketClient, dict[str, Any]], None],
        ended: Callable[[WebSocketClient], None],
    ) -> WebSocketClient:
        """Open a WebSocket from `host` to a node."""
        target = self.target(n)
        carrier = HttpClientConnection(host, target, self.entropy)
        return WebSocketClient(carrier, target, headers={}, on_open=opened, on_message=said, on_end=ended)

    def add_sessions(self, count: int, *, are_changes: bool = True) -> None:
        """Add `count` old paired sessions to the store and to each node.

        With `are_changes`, each node reads them all again when it next reads changes.
        """
        records: list[dict[str, object]] = [
            {
                "token_hash": f"{number:064x}",
                "token_prefix": f"{number:08x}",
                "created_at": START_WALL,
                "expires_at": "never",
                "grants": {"chat": "never", "bridge": "never"},
                "given": {"ttl_seconds": 0.0, "grants": {"chat": 0.0, "bridge": 0.0}},
            }
            for number in range(count)
        ]
        for record in records:
            if are_changes:
                self.store.apply(SaveSession(str(record["token_hash"]), record))
            else:
                self.store.sessions[str(record["token_hash"])] = record
        self.stored.append((self.sim.now, self.store.snapshot()))
        sessions = [PairedSession.from_record(record) for record in records]
        for relay in self.relays:
            for session in sessions:
                relay.sessions._file(_copy_session(session))

    def try_wrong_code(self, n: int, source: SimHost) -> GuessingClient:
        """Try a wrong pairing code at a node, from the host `source`; the returned client records the result."""
        guess = GuessingClient()

        def opened(talker: WebSocketClient) -> None:
            talker.send_envelope(
                "system", "auth", {"pairing_code": "WRONG2", "device_name": "x", "client_surface": "desktop"}
            )

        def said(talker: WebSocketClient, envelope: dict[str, Any]) -> None:
            guess.refused = "invalid" in str(envelope["payload"].get("reason"))
            if guess.refused:
                self.invariants.note_guess(source.address)

        def ended(talker: WebSocketClient) -> None:
            guess.over = True

        self.open_websocket(source, n, opened, said, ended)
        return guess

    def pair_phone(self, name: str, n: int, *, at: int | None = None) -> ClusterPhone:
        """Pair a phone at node `n`, with a code of node `at`, or of the same node."""
        phone = self.new_phone(name, n, code=self.create_pairing_code(n if at is None else at))
        self.run(lambda: bool(phone.token or phone.refused))
        assert phone.token, phone.refused
        return phone

    def send_command(
        self, n: int, token: str, *, device: str = "", done: Callable[[RequestClient], None] | None = None
    ) -> RequestClient:
        """Send a bridge command to a node, and check its outcome; `done` is called afterwards."""
        command = self.invariants.note_command_sent(n, token, device)

        def over(caller: RequestClient) -> None:
            self.invariants.note_outcome(caller, command)
            if done is not None:
                done(caller)

        path, body = f"/tap?device={device}" if device else "/tap", {"x": command.number, "y": 0}
        return self.request(n, "POST", path, token=token, body=body, done=over)

    def revoke(self, n: int, token: str) -> RequestClient:
        """Request the revocation of a session at a node, as its operator, and record the result."""
        held = self.invariants.held.setdefault(token, TokenModel())
        held.asked = True

        def over(caller: RequestClient) -> None:
            if caller.status == 200:
                held.revoked_at = self.sim.now
            if caller.status == 500 and caller.answer.json["code"] == "store_failed":
                held.cut = True
                if self.redis.alive and n not in self.apart_since:
                    held.cut_at, held.cut_by = self.sim.now, self.nodes[n]

        return self.request(n, "DELETE", f"/sessions/{token}", done=over)

    def revoke_bridge_grant(self, n: int, token: str) -> RequestClient:
        """Request the revocation of a session's bridge grant at a node, and record the result."""
        held = self.invariants.held.setdefault(token, TokenModel())
        held.bereft = True

        def over(caller: RequestClient) -> None:
            if caller.status == 200 and held.withheld_at is None:
                held.withheld_at = self.sim.now

        return self.request(n, "PATCH", f"/sessions/{token}", body={"grants": {"bridge": False}}, done=over)

    def try_drive(self, n: int, token: str) -> None:
        """Send a request that needs the bridge grant; the response is checked when it arrives."""
        began = self.sim.now

        def over(caller: RequestClient) -> None:
            self.invariants.note_probe(token, caller.status, began)

        self.request(n, "GET", "/ping?device=unknown", token=token, done=over)

    def has_bridge_grant(self, phone: ClusterPhone) -> bool:
        """Report whether no client has tried to revoke the bridge grant of a phone."""
        return not self.invariants.held[phone.token].bereft

    def check_invariants(self) -> None:
        """Check the logs and the expiry of Redis keys, as `ClusterInvariants.check_logs_and_redis` does."""
        self.invariants.check_logs_and_redis()
