"""Simulated deployment: a host with relay and API, a phone, a model, hosts of clients, and injected faults."""

from collections.abc import Callable
from random import Random
from typing import Any

from attrs import evolve

from clients.phone.emulator import EmulatedPhone
from fuzz.simulation.event_tap import EventTap
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.local_secret_rules import asks_for_secret, secret_of
from fuzz.simulation.models.grant_model import OPEN, GrantPolicy, WallClockModel
from fuzz.simulation.models.media_model import MediaModel
from fuzz.simulation.models.reference_model import AddressBlockModel, check_grants
from fuzz.simulation.resource_accounting import ResourceAccounting
from fuzz.simulation.script import Script
from fuzz.simulation.servers.model_server import MODEL_PORT, SimModelServer
from fuzz.steps import AskPhoneUser
from runtimes.sim.connection import SimConnection, SimEnd
from runtimes.sim.cost import HandleCost
from runtimes.sim.faults import Faults
from runtimes.sim.host import SimHost
from runtimes.sim.network import SimNetwork
from runtimes.sim.process import LogLine, SimProcess
from runtimes.sim.simulation import START_WALL
from runtimes.sim.simulation import Simulation as Simulation
from svc_proto.api.chat.store_requests import AddMessages
from svc_proto.api.config import ApiConfig
from svc_proto.api.runs.subscriber import MAX_BACKLOG_BYTES, MAX_BACKLOG_EVENTS, MAX_UNREAD, SubscriberState
from svc_proto.api.service import Api
from svc_proto.basics.entropy import Entropy
from svc_proto.boundary import Core
from svc_proto.commands import Level, Notify, StoreRequest
from svc_proto.engine.core import Engine
from svc_proto.engine.http2_channel import Http2Channel
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from svc_proto.phone.service import Phone, PhoneConfig
from svc_proto.relay.local_access import RETRY_INTERVAL
from svc_proto.relay.service import Relay
from svc_proto.relay_config import LocalTrustPolicy, RelayConfig, SessionPolicy
from svc_proto.store_requests import DeleteSession, SaveSession
from svc_proto.wire.http2_settings import STREAM_WINDOW
from svc_proto.wire.limits import Limits
from tests.support import sim_http

RELAY_PORT = 8767
API_PORT = 8642
HOME = "10.0.0.1"
LOCAL = sim_http.ServerAddress("127.0.0.1", RELAY_PORT, f"127.0.0.1:{RELAY_PORT}")
REMOTE = sim_http.ServerAddress(HOME, RELAY_PORT, f"relay.example:{RELAY_PORT}")
API = sim_http.ServerAddress("127.0.0.1", API_PORT, f"127.0.0.1:{API_PORT}")
API_KEY = "api-key-5fd1c0de"
MODEL_KEY = "model-key-77aa31"
GATEWAY = "/usr/bin/gateway"
PHONE_CODE = "PHONE1"
KIB = 1024
SMALL_LIMITS = {
    "unauthenticated_connections": 64,
    "unauthenticated_budget": 1024 * KIB,
    "unauthenticated_share": 256 * KIB,
}
# Small limits are reached sooner.
LIMITS = Limits(max_unsent=256 * KIB, max_message=64 * KIB, high_water=16 * KIB, low_water=4 * KIB, **SMALL_LIMITS)
ONE_WRITE = 128 * 1024  # bytes that one slice of a core may add when a channel was just under its limit
STATUSES = (
    200, 201, 202, 204, 206, 303, 304,
    400, 401, 403, 404, 405, 406, 408, 409, 412, 413, 415, 416, 422, 429, 431,
    500, 501, 502, 503, 504,
)  # fmt: skip
TRUSTING = SafetySettings(armed=True, answers=ConfirmationPolicy.ALLOW, idle_minutes=120)
POLICIES = (*[OPEN] * 6, GrantPolicy(max_ttl=5 * 86_400.0), GrantPolicy(reduce_only=True))
UNSTORED = ("session not stored", "session not erased")  # log events of a relay whose store fails
ASKING = evolve(TRUSTING, answers=ConfirmationPolicy.ASK)
MODERN = 0.5  # share of hosts that use HTTP/2
ERASE_TIMEOUT = 20.0  # s from the end of a session to that of its record
LOOKED_AT = 5.0  # s in which a due timer has run
SECRET_STORED_AFTER = 2 * RETRY_INTERVAL + 10.0  # s; one attempt may have begun during the fault, and take its time
SETTLE_AFTER_FAULT = 20.0  # s after a fault within which its effects may last
UNTIL_DROPPED = 55.0  # s after which a relay has closed a socket that hangs, with a margin
TIMES_TO_LIVE = (86_400, 15, 40)  # s, of media
CAPS = (500, 2, 4)  # of media
MAX_MEDIA = 1024**2  # bytes of one
DEVICES = 4
ATTACKERS = 2


class Deployment:
    """Simulated deployment and its expected state. `sim` is the simulation, `rng` the random source of the actors.

    With `trace` the simulation keeps all facts and commands of its programs.
    """

    def __init__(self, script: Script, *, trace: bool = False) -> None:
        self.script = script
        self.rng = Random(f"people {script.seed}")
        shape = Random(f"network {script.seed}")
        network = SimNetwork(
            jitter=shape.choice((1.0, 20.0)), chunking=shape.choice((0.1, 0.9)), window=shape.choice((8_192, 65_536))
        )
        cost = HandleCost.draw(script.seed, "home")
        self.sim = Simulation(script.seed, network=network, cost=cost, trace=trace)
        self.sim.faults = Faults(late_read=shape.choice((0.0, 0.5)))  # counts as no fault
        self.home = self.sim.host("home", HOME, spool="/home/user/.svc/spool")
        self.home.spools["api"] = "/home/user/.svc/attachments"
        self.home.disk.folder(self.home.spools["api"])
        self.agent = self.sim.host("agent", "10.0.0.4")
        self.devices = [self.sim.host(f"device-{n}", f"10.0.1.{n + 1}") for n in range(DEVICES)]
        self.attackers = [self.sim.host(f"attacker-{n}", f"10.0.3.{n + 1}") for n in range(ATTACKERS)]
        self.upstream = SimModelServer(self.sim.host("model", "10.0.0.3"))
        self.entropy: Entropy = self.rng.randbytes
        self.wall = WallClockModel([(self.sim.now, START_WALL - self.sim.now)])
        self.addresses = AddressBlockModel()
        self.policy = Random(f"policy {script.seed}").choice(POLICIES)
        self.secretive = asks_for_secret(script)
        self.secrets: dict[str, str] = {API_KEY: "the API's key", MODEL_KEY: "the model's key"}
        self.lines: dict[sim_http.SimClient, None] = {}
        self.left = False  # all clients have disconnected, and none connects any more
        self._shared: list[sim_http.HttpClientConnection] = []
        self.counts: dict[str, int] = {}
        self.shaken = -1.0  # when the network last had a fault that is detected with a delay
        self.faulted = -1.0  # until when something was broken, of any kind
        self.parted: dict[str, float] = {}  # by address, end of its partition from the home, at the latest
        self.hurt: dict[SimConnection, None] = {}  # that hung, or whose client did not read
        self.noisy = -1.0  # until when segments were lost
        self.outages = 0  # of the relay and the API, so far
        self.store_trouble = False
        self.store_refused = False  # for sessions, at times
        self.unstored: dict[str, None] = {}  # prefixes of sessions that the store refused
        self.on_relay_gone: list[Callable[[], None]] = []
        self.disk_trouble = False
        self.disk_faulty_until = -1.0  # operations of the disk fail until then, at the latest
        self.relay_began_in_trouble = False  # its secret may not be stored yet
        self.expected: dict[SimProcess, None] = {}  # that were stopped or killed
        self._read: dict[SimProcess, int] = {}  # number of log records that were checked
        self._checked: dict[str, dict[str, object]] = {}  # stored records that were checked, by token hash
        self._unread: dict[SimEnd, tuple[int, float]] = {}  # number of bytes sent, and since when
        self._seen = -1  # events of the simulation at the last check
        self._down: dict[str, float] = {}  # by name, when a program stopped
        self._rest: dict[str, float] = {}  # when a program is started again
        kept = Random(f"shelf {script.seed}")
        self.media_model = MediaModel(kept.choice(TIMES_TO_LIVE), kept.choice(CAPS))
        self.relay = self._start_relay()
        self._registered = (self.relay, 0, self.sim.now)  # log records searched for registrations, and when
        self.api = self._start_api()
        # Does the phone ask its user?
        self.asking = any(isinstance(step, AskPhoneUser) for step in script.steps)
        # Seconds until the next clients disconnect, and whether by a reset.
        self.impatient: list[tuple[float, bool]] = []
        self._books = ResourceAccounting()
        self.phone_news: list[Callable[[Notify], None]] = []  # callbacks for the phone's events
        self.phone = self._start_phone()

    # --- programs ------------------------------------------------------------------------------------------------

    def _start_relay(self) -> SimProcess:
        config = RelayConfig(
            port=RELAY_PORT,
            home=self.home.state,
            config_path=f"{self.home.state}/config.yaml",
            pairing_code=PHONE_CODE,
            local_trust=LocalTrustPolicy.SECRET if self.secretive else None,
            terminal_tmux=False,
            webapi_url=f"http://{API.address}:{API.port}",
            api_key=API_KEY,
            tui_command=(GATEWAY,),
            max_session_ttl=self.policy.max_ttl,
            session_policy=SessionPolicy.REDUCE_ONLY if self.policy.reduce_only else SessionPolicy.OPEN,
            media_max_size_mb=MAX_MEDIA // 1024**2,
            media_ttl_seconds=int(self.media_model.ttl),
            media_lru_cap=self.media_model.cap,
        )
        self.home.rooms = config.voice.folders

        def make(entropy: Entropy) -> Engine:
            self.relay_service = Relay(config, limits=LIMITS)
            return Engine(self.relay_service, entropy=entropy)

        return self.home.start(make, [RELAY_PORT], name="relay")

    def _start_api(self) -> SimProcess:
        config = ApiConfig(
            port=API_PORT,
            home=self.home.state,
            config_path=f"{self.home.state}/config.yaml",
            key=API_KEY,
            model_base_url=f"http://10.0.0.3:{MODEL_PORT}/v1",
            model="sim",
            model_api_key=MODEL_KEY,
            relay_url=f"http://127.0.0.1:{RELAY_PORT}",
            max_concurrent_runs=4,
        )

        def make(entropy: Entropy) -> Engine:
            self.api_service = Api(config, limits=LIMITS)
            return Engine(self.api_service, entropy=entropy)

        return self.home.start(make, [API_PORT], name="api")

    def _start_phone(self) -> SimProcess:
        host = self.sim.host("phone", "10.0.1.100")
        config = PhoneConfig(
            remote=f"ws://{HOME}:{RELAY_PORT}", code=PHONE_CODE, device_name="Reference", device_id="reference"
        )

        def make(entropy: Entropy) -> Core:
            self.phone_service = Phone(config, EmulatedPhone(name="Reference"), ASKING if self.asking else TRUSTING)
            return EventTap(Engine(self.phone_service, entropy=entropy), self.phone_news)

        return host.start(make)

    @property
    def programs(self) -> tuple[SimProcess, ...]:
        """Return all processes that ever ran on the relay's host, and the phone."""
        return (*self.home.processes, self.phone)

    def supervise(self) -> None:
        """Restart the relay and the API when they have ended, after their pause, like a service manager.

        An end that was not ordered is a violation, unless the store had failed.
        """
        for name in ("relay", "api"):
            process: SimProcess = getattr(self, name)
            if process.alive:
                if process.ready and name in self._down:
                    self._on_program_started(name)
                continue
            if name not in self._down:
                self._on_program_ended(name, 0.0)
            if process not in self.expected and not self.store_trouble:
                violated(Invariant.NO_BUG, f"{process.name} exited {process.exit_code}: {process.exit_reason}")
            if self.sim.now >= self._rest[name]:
                setattr(self, name, process.restart())

    @property
    def is_relay_up(self) -> bool:
        """Report whether the relay runs and is not about to stop; after a restart, only once it has become ready."""
        return self.relay.alive and "relay" not in self._down

    @property
    def are_programs_up(self) -> bool:
        """Report whether the relay and the API accept connections."""
        return all(process.alive and process.ready for process in (self.relay, self.api)) and not self._down

    def _on_program_started(self, name: str) -> None:
        began = self._down.pop(name)
        if name == "relay":
            self.addresses.cleared.remove((began, float("inf")))
            self.addresses.forget(began, self.sim.now)
            self.media_model.outages[-1] = (began, self.sim.now)
            self.relay_began_in_trouble = max(self.disk_faulty_until, self.noisy) >= began

    def may_lack_secret(self, when: float) -> bool:
        """Report whether the relay may refuse the operator at `when`, since it could not store its secret yet.

        A relay that has started on a faulty disk stores its secret soon after the disk works again.
        """
        return self.relay_began_in_trouble and when < max(self.disk_faulty_until, self.noisy) + SECRET_STORED_AFTER

    def note_disk_fault(self, seconds: float) -> None:
        """Record a fault of the home's disk that lasts `seconds` at most."""
        self.disk_faulty_until = max(self.disk_faulty_until, self.sim.now + seconds)

    def _on_program_ended(self, name: str, rest: float) -> None:
        self.outages += 1
        self._down[name] = self.sim.now
        self._rest[name] = self.sim.now + rest
        if name == "relay":
            self.addresses.forget(self.sim.now, float("inf"))
            self.media_model.outages.append((self.sim.now, float("inf")))
            for gone in self.on_relay_gone:
                gone()

    # --- calls ---------------------------------------------------------------------------------------------------

    def request(
        self,
        host: SimHost,
        target: sim_http.ServerAddress,
        method: str,
        path: str,
        *,
        headers: sim_http.Pairs | None = None,
        body: object = None,
        done: Callable[[sim_http.RequestClient], None],
        piece: Callable[[bytes], None] | None = None,
    ) -> sim_http.RequestClient:
        """Send a request and check the response; `done` is called when it has arrived or the request has failed."""

        def over(caller: sim_http.RequestClient) -> None:
            self.lines.pop(caller, None)
            self._check_response(caller)
            done(caller)

        carrier = self.connection_for(host, target)
        caller = sim_http.RequestClient(
            carrier, target, (method, path, headers or {}, body), on_done=over, on_piece=piece
        )
        if not caller.is_closed:
            self.lines[caller] = None
        self.maybe_abandon_later(caller)
        return caller

    def local_headers(self) -> dict[str, str]:
        """Return the authentication headers that the operator's programs send to the relay on their own host.

        Empty while there is no local secret.
        """
        shown = secret_of(self.home)
        if shown is None:
            return {}
        self.secrets[shown[1]] = "the local secret"
        return dict([shown])

    def connection_for(
        self, host: SimHost, target: sim_http.ServerAddress, *, deflate: bool = False, fresh: bool = False
    ) -> sim_http.HttpClientConnection:
        """Return a client connection: HTTP/2, shared or new (always new if `fresh`), or a new one over HTTP/1.1.

        The seed decides which hosts use HTTP/2.
        """
        if Random(f"versions {self.script.seed} {host.name}").random() >= MODERN:
            return sim_http.HttpClientConnection(host, target, self.entropy, deflate=deflate)
        self._shared = [shared for shared in self._shared if not shared.is_closed]
        for shared in self._shared if not fresh else ():
            if shared.host is host and shared.target == target and shared.has_free_stream:
                return shared
        carrier = sim_http.HttpClientConnection(host, target, self.entropy, http2=True)
        self._shared.append(carrier)
        return carrier

    def maybe_abandon_later(self, party: sim_http.StreamClient) -> None:
        """Schedule an early disconnect of a request or WebSocket, if the script ordered one for the next of them."""
        if self.impatient:
            seconds, reset = self.impatient.pop()
            self.count("who left in the middle")
            self.sim.after(seconds, lambda: party.disconnect(reset=reset))

    def add_client(self, line: sim_http.SimClient) -> None:
        """Register a client, so that `close_connections`, `heal_all` and faults of clients apply to it."""
        self.lines[line] = None

    def close_connections(self, *, but: sim_http.WebSocketClient | None = None) -> None:
        """Disconnect all registered clients and shared connections, except `but` and its connection."""
        self.left = True
        stays = () if but is None else (but, but.carrier)
        for line in [*self.lines, *self._shared]:
            if line not in stays:
                line.disconnect()

    def count(self, what: str) -> None:
        """Add one to the count of an event; the report shows the counts."""
        self.counts[what] = self.counts.get(what, 0) + 1

    def check_no_secrets(self, text: str, where: str) -> None:
        """Raise `Violation` if a text contains a secret of the deployment."""
        for secret, what in self.secrets.items():
            if secret in text:
                violated(Invariant.NO_SECRET, f"{what} is in {where}")

    def _check_response(self, caller: sim_http.RequestClient) -> None:
        where = f"{caller.method} {caller.path.partition('?')[0]}"
        if caller.broken:
            violated(Invariant.STATUS, f"{where}: {caller.broken}")
        if caller.status == 0:
            self.count("no answer")
            return
        self.count(f"{caller.status}")
        if caller.status not in STATUSES:
            violated(Invariant.STATUS, f"{where}: {caller.status}")
        if caller.status == 408 and self.shaken < caller.began and self.is_unaffected(caller):
            violated(Invariant.STATUS, f"{where}: 408, and all of it was sent {caller.ended - caller.began:.1f} s ago")
        told = self.store_refused and b'"code":"store_failed"' in caller.answer.body
        if caller.status == 500 and not self.store_trouble and not self.disk_trouble and not told:
            violated(Invariant.NO_BUG, f"{where}: 500 {caller.answer.body!r:.200}")
        self.check_no_secrets(caller.answer.body.decode("latin-1"), f"the answer to {where}")

    # --- faults ---------------------------------------------------------------------------------------------------

    def set_clock(self, seconds: float) -> None:
        """Change the wall clock of the relay's host by `seconds`, and record the step."""
        self.home.step_wall(seconds)
        self.wall.steps.append((self.sim.now, self.home.wall() - self.sim.now))

    def blackhole(self, connection: SimConnection, seconds: float) -> None:
        """Hold back all data of a connection for `seconds`."""
        connection.hang()
        self.hurt[connection] = None
        self.note_network_fault(seconds)
        self.sim.after(seconds, connection.heal)

    def lose_connections(self, host: SimHost, *, hangs: bool, but: SimConnection | None = None) -> None:
        """Cut the connections that a host has opened, except `but`; or let them hang until they are dropped."""
        for connection in self.sim.network.connections:
            if connection.client.host is host and connection is not but:
                if hangs:
                    self.blackhole(connection, UNTIL_DROPPED)
                else:
                    connection.cut()

    def fail_session_writes(self, seconds: float) -> None:
        """Let the store refuse changes of sessions for `seconds`."""
        self.store_refused = True
        self._fail_writes((SaveSession, DeleteSession), seconds)

    def fail_row_writes(self, seconds: float) -> None:
        """Let the store refuse rows of chats for `seconds`."""
        self.store_trouble = True
        self._fail_writes((AddMessages,), seconds)

    def _fail_writes(self, kinds: tuple[type[StoreRequest[Any]], ...], seconds: float) -> None:
        store = self.home.store
        store.refused = (*store.refused, *kinds)

        def relent() -> None:
            store.refused = tuple(kind for kind in store.refused if kind not in kinds)

        self.sim.after(seconds, relent)

    def pause_reading_for(self, line: sim_http.SimClient, seconds: float) -> None:
        """Stop a client from reading for `seconds`."""
        line.set_slow_reading(True)
        if (connection := _carrier(line).connection) is not None:
            self.hurt[connection] = None
        self.note_network_fault(seconds)
        self.sim.after(seconds, lambda: line.set_slow_reading(False))

    def stop_program(self, name: str, rest: float, *, kill: bool) -> None:
        """Stop or kill the relay or the API, if it runs; it is restarted after `rest` seconds."""
        process: SimProcess = getattr(self, name)
        if not process.alive:
            return
        self.faulted = max(self.faulted, self.sim.now + rest + SETTLE_AFTER_FAULT)
        self.expected[process] = None
        if name not in self._down:
            self._on_program_ended(name, rest)
        if kill:
            process.kill()
        else:
            process.stop(5.0)

    def note_network_fault(self, seconds: float) -> None:
        """Record a network fault that lasts `seconds`."""
        self.shaken = max(self.shaken, self.sim.now + seconds) if seconds < 1e9 or self.shaken < 1e9 else self.shaken

    def heal_all(self) -> None:
        """End all faults; some seconds later the deployment counts as fault-free."""
        self.sim.heal_all()
        self.impatient.clear()
        self.home.disk.capacity = None
        self.upstream.trouble = None
        self.upstream.doomed.clear()
        for line in [*self.lines, *self._shared]:
            line.set_slow_reading(False)
        self.home.store.refused = ()
        self.shaken = self.sim.now
        self.noisy = min(self.noisy, self.sim.now)
        self.disk_faulty_until = min(self.disk_faulty_until, self.sim.now)
        self.faulted = self.sim.now + SETTLE_AFTER_FAULT

    def is_unaffected(self, party: sim_http.SimClient) -> bool:
        """Report whether a client was connected, and no fault has held up, lost or delayed its traffic."""
        line = _carrier(party)
        return (
            line.connection is not None
            and line.connection not in self.hurt
            and self.noisy < line.began
            and self.parted.get(line.host.address, -1.0) < line.began
        )

    def is_fault_free_since(self, when: float) -> bool:
        """Report whether no fault, nor the effects of one, occurred after `when`."""
        return self.faulted < when and self.shaken < when

    @property
    def live_runs(self) -> int:
        """Return the number of live runs of the API."""
        return sum(run.ended is None for run in self.api_service.runs._runs.values())

    def note_registrations(self) -> None:
        """Record the registrations of pairing codes in the relay's log: each of them clears the rate limiter."""
        log = self.relay.logs
        if self._registered[0] is not self.relay:
            self._registered = (self.relay, 0, self.sim.now)
        _, seen, since = self._registered
        if seen < len(log) and any(line.event == "pairing code registered" for line in log[seen:]):
            self.addresses.forget(since, self.sim.now)
        self._registered = (self.relay, len(log), self.sim.now)

    # --- checks --------------------------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Restart programs that have ended, and check the invariants of the whole deployment.

        Without an event of the simulation since the last check, nothing is checked.
        """
        self.supervise()
        self.note_registrations()
        if self._seen == self.sim.events:
            return  # no event since the last check
        self._seen = self.sim.events
        self._check_store()
        self._check_logs()
        self._check_buffers()
        self._books.check(self)

    def check_history(self) -> None:
        """Check all logs again, with every secret that is known at the end."""
        if self.phone_service.token:
            self.secrets[self.phone_service.token] = "the reference phone's token"
        self._read.clear()
        self._check_logs()

    def _check_store(self) -> None:
        wall = self.home.wall()
        trouble = self.store_trouble or self.store_refused or self.outages or len(self.wall.steps) > 1
        for record in () if trouble else self.home.store.sessions.values():
            if isinstance(expires_at := record["expires_at"], float) and expires_at + ERASE_TIMEOUT < wall:
                violated(Invariant.DEAD_TOKEN, f"{record['token_prefix']} is stored {wall - expires_at:.0f} s too long")
        for token_hash, record in self.home.store.sessions.items():
            if self._checked.get(token_hash) is record:
                continue  # a record is replaced, and never changed
            self._checked[token_hash] = record
            grants = record["grants"]
            assert isinstance(grants, dict)
            plain = {channel: None if expiry == "never" else expiry for channel, expiry in grants.items()}
            expires_at = None if record["expires_at"] == "never" else record["expires_at"]
            check_grants(plain, expires_at, f"the stored {record['token_prefix']}")

    def _check_logs(self) -> None:
        for process in self.programs:
            seen, there = self._read.get(process, 0), len(process.logs)
            if seen < there:
                self._read[process] = there
                for line in process.logs[seen:]:
                    self._check_log_line(process, line)

    def is_stored(self, prefix: str) -> bool:
        """Report whether the log has no record that the store refused the session of this prefix."""
        self._check_logs()
        return prefix not in self.unstored

    def _check_log_line(self, process: SimProcess, line: LogLine) -> None:
        if line.event == "bug":
            violated(Invariant.NO_BUG, f"{process.name}: {line.fields}")
        trouble = self.store_trouble or self.disk_trouble
        if line.event in UNSTORED:
            self.unstored[str(line.fields["session"])] = None
            trouble = trouble or self.store_refused
        if line.level >= Level.ERROR and not trouble:
            violated(Invariant.NO_BUG, f"{process.name}: {line.event} {line.fields}")
        self.check_no_secrets(f"{line.event} {line.fields}", f"a log record of {process.name}: {line.event}")

    def _check_buffers(self) -> None:
        for connection in self.sim.network.connections:
            for end in (connection.client, connection.server):
                if end.unsent and (end.host is self.home or end.local.port == MODEL_PORT):
                    self._check_unsent(end)
        for end in [end for end in self._unread if end.gone or not end.unsent]:
            del self._unread[end]
        for process in (self.relay, self.api):
            assert isinstance(process.core, Engine)
            for channel in process.core._channels.values() if process.alive else ():
                if isinstance(channel, Http2Channel):
                    self._check_streams(process, channel)
        for run in self.api_service.runs._runs.values() if self.api.alive and self.api.ready else ():
            reader = run.subscriber
            if reader is None or reader.state is not SubscriberState.READING:
                continue
            waits = reader._pieces[:-1]  # the last event holds the whole text again
            if sum(map(len, waits)) > 2 * MAX_BACKLOG_BYTES or len(waits) > 2 * MAX_BACKLOG_EVENTS:
                violated(Invariant.BOUNDED, f"{len(waits)} events, {reader._size} characters wait for a reader")

    def _check_unsent(self, end: SimEnd) -> None:
        ours, model = end.host is self.home, end.peer.port == MODEL_PORT
        if not ours and end.connection.blocked:
            return
        most = LIMITS.max_unsent + (MAX_UNREAD if end.local.port == API_PORT else ONE_WRITE)
        if ours and not model and end.unsent > most:  # a request to a model holds a whole chat
            violated(Invariant.BOUNDED, f"{end.unsent} bytes wait at {end.connection}")
        moved = end.left + (end.other.left if ours else 0)  # a WebSocket's peer that sends is alive
        known, since = self._unread.get(end, (-1, 0.0))
        if moved != known:
            self._unread[end] = moved, self.sim.now
            return
        limit = LIMITS.file_timeout + LOOKED_AT if ours else LIMITS.write_timeout + SETTLE_AFTER_FAULT
        if (waited := self.sim.now - since) > limit:  # the bytes may be those of a file
            violated(Invariant.BOUNDED, f"{end.unsent} bytes wait for {waited:.0f} s at {end.connection}, none leaves")

    def _check_streams(self, process: SimProcess, channel: Http2Channel) -> None:
        for stream in channel.conn._streams.values():
            if stream.queued > LIMITS.max_unsent + (MAX_UNREAD if process is self.api else ONE_WRITE):
                violated(Invariant.BOUNDED, f"{stream.queued} bytes wait on a stream of {process.name}")
            if stream.window_debt > STREAM_WINDOW:
                violated(Invariant.BOUNDED, f"{stream.window_debt} bytes of a body were let in by {process.name}")


def _carrier(party: sim_http.SimClient) -> sim_http.TcpClient:
    return party if isinstance(party, sim_http.TcpClient) else party.carrier
