"""Several relay nodes that share a Redis and a store, with phones and people at any of them.

    world = ClusterWorld(seed=7)
    code = world.code(node=0)
    phone = world.phone("P", node=1, code=code)
    call = world.command(node=2, token=phone.token)
    world.run(lambda: call.over)

Whatever happens is written down by the people, and judged by `look`: a code pairs once, a command has one outcome and
is performed once at most, and nobody acts with a session that was revoked a second ago, once the network is whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from attrs import define, field

from fuzz.carriers import Http1Carrier
from fuzz.lines import Target
from fuzz.peers import Caller, Pairs, Talker
from runtimes.sim.host import Host
from runtimes.sim.network import Network
from runtimes.sim.process import Process
from runtimes.sim.redis import redis_core
from runtimes.sim.s3 import S3Service
from runtimes.sim.world import World as Simulation
from svc_proto.basics.entropy import Entropy
from svc_proto.commands import Level
from svc_proto.config import RelayConfig
from svc_proto.engine.core import Engine
from svc_proto.relay.service import Relay
from svc_proto.settings import Bucket, RedisAddress

__all__ = ["ClusterWorld", "Held", "Pocket", "Violated"]

PORT = 8767
REDIS_PORT = 6379
REDIS = "10.0.9.1"
PASSWORD = "redis-password-4711"
UPLOADS_LIVE = 100  # s, in worlds that have a place for them
S3, S3_PORT = "10.0.0.250", 9000
BUCKET = Bucket(f"http://{S3}:{S3_PORT}/uploads/of/svc", "eu-north-1", "AKIDEXAMPLE", "s3-secret-4711", "s3-token-4711")
SOON = 1.0  # s after which a revocation holds everywhere, in a network that is whole
HEALED = 0.0  # s


class Violated(AssertionError):  # noqa: N818 - the name says what happened
    """Something came about that must not."""


@define(eq=False)
class Pocket:
    """A phone at a node: it does what it is told after a while, and writes it down."""

    world: ClusterWorld
    name: str
    node: int
    talker: Talker | None = None
    token: str = ""
    refused: str = ""  # why it was not let in
    closed: bool = False
    performed: list[str] = field(factory=list)  # request ids
    delay: float = 0.0  # s before it answers
    mute: bool = False

    @property
    def is_in(self) -> bool:
        """Whether a node has it."""
        return bool(self.token) and not self.closed and not self.refused

    def said(self, talker: Talker, envelope: dict[str, Any]) -> None:
        """What its node has told it."""
        payload = envelope["payload"]
        match envelope["channel"], envelope["type"]:
            case "system", "auth.ok":
                self.token = payload["session_token"]
                self.world.note_pairing(self)
                for other in self.world.pockets:
                    if other is not self and other.token == self.token:
                        other.leave()  # the same phone, which has one socket
            case "system", "auth.fail":
                self.refused = payload["reason"]
            case "bridge", "bridge.command":
                self.world.note_performed(self, payload["request_id"])
                self.performed.append(payload["request_id"])
                if not self.mute:
                    self.world.sim.after(self.delay, lambda: self.answer(talker, payload["request_id"]))
            case _:
                pass

    def answer(self, talker: Talker, request_id: str) -> None:
        """Say that it is done."""
        answer = {"request_id": request_id, "status": 200, "result": {"by": self.name, "id": request_id}}
        talker.say("bridge", "bridge.response", answer)

    def leave(self, *, reset: bool = True) -> None:
        """Go without a word."""
        if self.talker is not None:
            self.talker.hang_up(reset=reset)


@define(eq=False)
class Held:
    """What is known of a token."""

    revoked_at: float | None = None  # when the DELETE was answered


class ClusterWorld:
    """`relays` are the relays' cores now, by node; `alive` says which processes run."""

    def __init__(
        self, seed: int = 0, nodes: int = 3, *, trace: bool = False, uploads: Bucket | str | None = None
    ) -> None:
        """`uploads` are where all nodes have them: a bucket of this world's, or a folder that its hosts share."""
        self.rng = Random(f"cluster {seed}")
        shape = Random(f"cluster network {seed}")
        network = Network(jitter=shape.choice((1.0, 5.0)), chunking=shape.choice((0.1, 0.9)))
        self.sim = Simulation(seed, network=network, trace=trace)
        self.entropy: Entropy = self.rng.randbytes
        self.redis_host = self.sim.host("redis", REDIS)
        self.redis = self._start_redis()
        self.hosts = [self.sim.host(f"node-{n}", f"10.0.0.{n + 1}") for n in range(nodes)]
        for host in self.hosts[1:]:
            host.store = self.hosts[0].store
        self.uploads = uploads
        self.s3: S3Service | None = None
        if isinstance(uploads, str):
            for host in self.hosts:
                host.disk, host.spool = self.hosts[0].disk, uploads
                host.rooms = (uploads,)
            self.hosts[0].disk.folder(uploads)
        elif uploads is not None:
            self.s3_host = self.sim.host("s3", S3)
            self.s3 = S3Service(uploads)
            self.s3_process = self._start_s3(self.s3)
        self.crowd = self.sim.host("crowd", "10.0.8.1")
        self.relays: list[Relay] = []
        self.nodes: list[Process] = []
        for n, host in enumerate(self.hosts):
            self.relays.append(None)  # type: ignore[arg-type]  # the factory puts it there
            self.nodes.append(host.start(self._maker(n), [PORT], name=f"relay-{n}"))
        self.pockets: list[Pocket] = []
        self.pairings: dict[str, list[Pocket]] = {}  # by code
        self.codes_of: dict[Pocket, str] = {}
        self.held: dict[str, Held] = {}  # by token
        self.outcomes: dict[str, int] = {}  # answers by request id
        self.done: dict[str, int] = {}  # performances by request id
        self.troubled = self.sim.now  # when the network last was not whole
        self.parted = 0

    # --- programs ---

    def _start_redis(self) -> Process:
        return self.redis_host.start(lambda entropy: redis_core(entropy, password=PASSWORD), [REDIS_PORT])

    def _start_s3(self, service: S3Service) -> Process:
        return self.s3_host.start(lambda entropy: Engine(service, entropy=entropy), [S3_PORT])

    def _maker(self, n: int) -> Callable[[Entropy], Engine]:
        host = self.hosts[n]

        def make(entropy: Entropy) -> Engine:
            config = RelayConfig(
                port=PORT,
                home=host.state,
                config_path=f"{host.state}/config.yaml",
                terminal_tmux=False,
                cluster=RedisAddress(REDIS, REDIS_PORT, password=PASSWORD),
                node_url=f"http://{host.address}:{PORT}",
                media_store=self.uploads,
                media_max_size_mb=100 if self.uploads is None else 1,
                media_ttl_seconds=86_400 if self.uploads is None else UPLOADS_LIVE,
            )
            self.relays[n] = Relay(config)
            return Engine(self.relays[n], entropy=entropy)

        return make

    def start(self) -> None:
        """Until all nodes are there and know each other."""
        self.sim.run_until(lambda: all(process.ready for process in self.nodes))
        self.sim.run_until(lambda: all(self.knows(n) == len(self.nodes) - 1 for n in range(len(self.nodes))))

    def knows(self, n: int) -> int:
        """How many others a node knows."""
        node = getattr(self.relays[n].commons, "node", None)
        return 0 if node is None else len(node.members)

    def kill(self, n: int) -> None:
        """`kill -9`."""
        self.nodes[n].kill()

    def restart(self, n: int) -> None:
        """As a service manager does."""
        self.nodes[n] = self.nodes[n].restart()

    def stop(self, n: int) -> None:
        """SIGTERM."""
        self.nodes[n].stop()

    def kill_redis(self) -> None:
        """All that it held is gone."""
        self.redis.kill()
        self.troubled = self.sim.now

    def restart_redis(self) -> None:
        """It comes back empty."""
        self.redis = self.redis.restart()
        self.troubled = self.sim.now

    def part(self, n: int) -> None:
        """A node and Redis do not reach each other."""
        self.sim.network.partition(self.hosts[n], self.redis_host)
        self.parted += 1

    def heal(self) -> None:
        """They do again."""
        self.sim.network.heal()
        self.parted = 0
        self.troubled = self.sim.now

    @property
    def is_whole(self) -> bool:
        """Whether nothing has been broken for a while."""
        return self.redis.alive and not self.parted and self.sim.now - self.troubled > HEALED

    # --- people ---

    def target(self, n: int, *, local: bool = False) -> Target:
        """A node, as others find it or as programs on its host do."""
        address = "127.0.0.1" if local else self.hosts[n].address
        return Target(address, PORT, f"{address}:{PORT}")

    def call(
        self,
        n: int,
        method: str,
        path: str,
        *,
        token: str = "",
        body: object = None,
        fields: Pairs | None = None,
        done: Callable[[Caller], None] = lambda caller: None,
    ) -> Caller:
        """Ask a node something: with a token from elsewhere, without one as a program on its host."""
        local = not token
        host: Host = self.hosts[n] if local else self.crowd
        headers: Pairs = {**(fields or {}), **({} if local else {"authorization": f"Bearer {token}"})}
        target = self.target(n, local=local)
        data = b"" if body is None else json.dumps(body).encode()
        return Caller(Http1Carrier(host, target, self.entropy), target, (method, path, headers, data), on_done=done)

    def run(self, until: Callable[[], bool], limit: float = 60.0) -> None:
        """Let time pass until that is so."""
        self.sim.run_until(until, limit)

    def asked(
        self, n: int, method: str, path: str, *, token: str = "", body: object = None, fields: Pairs | None = None
    ) -> Caller:
        """The same, with its answer."""
        caller = self.call(n, method, path, token=token, body=body, fields=fields)
        self.run(lambda: caller.over)
        return caller

    def code(self, n: int) -> str:
        """A new pairing code, made at a node."""
        answer = self.asked(n, "POST", "/pairing").answer
        assert answer.status == 200, answer
        code = answer.json["code"]
        assert isinstance(code, str)
        return code

    def phone(self, name: str, n: int, *, code: str = "", token: str = "", surface: str = "android") -> Pocket:
        """A phone that signs in at a node."""
        pocket = Pocket(self, name, n)
        self.pockets.append(pocket)
        if code:
            self.codes_of[pocket] = code
        shown = {"pairing_code": code} if code else {"session_token": token}
        device = {"device_name": name, "device_id": f"device-{name}", "client_surface": surface}

        def opened(talker: Talker) -> None:
            talker.say("system", "auth", {**shown, **device})

        def ended(talker: Talker) -> None:
            pocket.closed = True

        target = self.target(n)
        carrier = Http1Carrier(self.crowd, target, self.entropy)
        pocket.talker = Talker(
            carrier,
            target,
            headers={},
            on_open=opened,
            on_message=pocket.said,
            on_end=ended,
        )
        return pocket

    def paired(self, name: str, n: int, *, at: int | None = None) -> Pocket:
        """A phone that is in, with a code of the same node or another."""
        pocket = self.phone(name, n, code=self.code(n if at is None else at))
        self.run(lambda: bool(pocket.token or pocket.refused))
        assert pocket.token, pocket.refused
        return pocket

    def command(self, n: int, token: str, *, device: str = "", done: Callable[[Caller], None] | None = None) -> Caller:
        """A bridge command, asked for at a node."""
        began = self.sim.now
        path = f"/ping?device={device}" if device else "/ping"

        def over(caller: Caller) -> None:
            self.note_outcome(caller, token, began)
            if done is not None:
                done(caller)

        return self.call(n, "GET", path, token=token, done=over)

    def revoke(self, n: int, token: str) -> Caller:
        """End a session at a node, by its operator."""

        def over(caller: Caller) -> None:
            if caller.status == 200:
                self.held.setdefault(token, Held()).revoked_at = self.sim.now

        return self.call(n, "DELETE", f"/sessions/{token}", done=over)

    # --- judging ---

    def note_pairing(self, pocket: Pocket) -> None:
        """A code pairs once."""
        code = self.codes_of.get(pocket)
        if code is not None:
            self.pairings.setdefault(code, []).append(pocket)
            if len(self.pairings[code]) > 1:
                raise Violated(f"the code {code} has paired {len(self.pairings[code])} phones")
        self._judge_token(pocket.token, self.sim.now, "signed in")

    def note_performed(self, pocket: Pocket, request_id: str) -> None:
        """A command is performed once at most, and by nobody whose session is over."""
        self.done[request_id] = self.done.get(request_id, 0) + 1
        if self.done[request_id] > 1:
            raise Violated(f"the command {request_id} was performed {self.done[request_id]} times")
        self._judge_token(pocket.token, self.sim.now, "was given a command")

    def note_outcome(self, caller: Caller, token: str, began: float) -> None:
        """A command has one outcome, which is that of its own, and is not let through for a session that is over."""
        if caller.status == 200:
            request_id = caller.answer.json["id"]
            self.outcomes[request_id] = self.outcomes.get(request_id, 0) + 1
            if self.outcomes[request_id] > 1 or self.done.get(request_id) != 1:
                raise Violated(f"the command {request_id} has {self.outcomes[request_id]} outcomes")
        if caller.status not in (0, 401):
            self._judge_token(token, began, f"asked and was told {caller.status}")

    def _judge_token(self, token: str, when: float, what: str) -> None:
        held = self.held.get(token)
        if held is None or held.revoked_at is None or not self.is_whole:
            return
        since = when - max(held.revoked_at, self.troubled + HEALED)
        if since > SOON:
            raise Violated(f"{token[:8]} {what} {since:.1f} s after it was revoked")

    def look(self) -> None:
        """What logs must not say."""
        for host in (*self.hosts, self.redis_host):
            for process in host.processes:
                for line in process.logs:
                    if line.event == "bug" or line.level >= Level.ERROR:
                        raise Violated(f"{process.name}: {line.event} {line.fields}")
                    if PASSWORD in f"{line.event} {line.fields}":
                        raise Violated(f"{process.name} tells the password of Redis: {line.event}")
