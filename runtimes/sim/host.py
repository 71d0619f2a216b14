"""A simulated machine: an address, a wall clock, a disk and a store that outlive processes, work that can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from runtimes.failures import HostError
from runtimes.host.compute import edit_yaml, load_yaml, qr_rows
from runtimes.host.metrics_text import metrics_text
from runtimes.sim.child import ProgramFactory, SimChild
from runtimes.sim.disk import SimDisk
from runtimes.sim.process import SimProcess
from runtimes.sim.s3_server import sign_s3_request_at
from runtimes.sim.store import SimStore
from svc_proto.basics.entropy import Entropy
from svc_proto.basics.moment import Moment
from svc_proto.boundary import Core
from svc_proto.facts import FailureKind

if TYPE_CHECKING:
    from runtimes.sim.simulation import Simulation

__all__ = ["CoreFactory", "SimHost", "SimPort"]

COMPUTE_TIME = 0.005  # s of blocking work, unless a test says otherwise
TICK = 1e-6  # s, more than what is lost by rounding
FIRST_EPHEMERAL = 49152  # RFC 6335 section 6

CoreFactory = Callable[[Entropy], Core]


@frozen
class SimPort:
    """Where a process listens. With `tls`, peers have to ask for TLS; `alpn` is what is chosen then, if offered."""

    number: int
    tls: bool = False
    alpn: str | None = None


class SimHost:
    """Made by `Simulation.host`. `state` is the folder of `ReadConfig` and its kin, `spool` that of uploads."""

    def __init__(self, world: Simulation, name: str, address: str, *, state: str, spool: str) -> None:
        self.world = world
        self.name = name
        self.address = address
        self.cost = world.cost  # of its programs' calls of `handle`
        self.state = state
        self.spool = spool
        self.rooms: tuple[str, ...] = ()  # other folders that the operations on `state` may name, absolutely
        self.clock_offset = 0.0  # s that the wall clock is ahead of the world's
        self._rate: float | None = None  # of the monotonic clock; None: it is right
        self._set_at = self._set_to = 0.0  # when that was said, by the world's clock and by this one
        self.disk = SimDisk(self.wall)
        self.disk.folder(state)
        self.disk.folder(spool)
        self.store = SimStore()
        self.certificate: str | None = "sha256/simulated"  # what `ReloadTls` finds: a pin; None: nothing usable
        self.compute: dict[str, Callable[..., object]] = {
            "yaml.load": load_yaml,
            "yaml.edit": edit_yaml,
            "lan_address": lambda: address,
            "which": self.which,
            "executable": lambda path: path in self.programs,
            "list_folders": self.disk.folders,
            "real_paths": lambda *paths: tuple(map(self.disk.real, paths)),
            "memory.give_back": lambda: None,
            "qr.rows": qr_rows,
            "metrics.text": partial(metrics_text, of_process=False),  # of the host that plays a world nothing is told
            "s3.sign": lambda *request: sign_s3_request_at(*request, wall=self.wall()),
            "voice.engines": dict,  # none, until a test installs some
        }
        self.compute_time: dict[str, float] = {}  # s, by name; the others take `COMPUTE_TIME`
        self.programs: dict[str, ProgramFactory] = {}  # what `Spawn` can start, by absolute path
        self.children: list[SimChild] = []  # that run, oldest first
        self._pids = 1000
        self.processes: list[SimProcess] = []  # all that were ever started, oldest first
        self._ports = FIRST_EPHEMERAL - 1

    def __repr__(self) -> str:
        return f"<host {self.name} {self.address}>"

    def start(
        self, factory: CoreFactory, listen: Iterable[int | SimPort] = (), *, name: str | None = None
    ) -> SimProcess:
        """Start a process: make its core and give it `Started`. It listens from `Ready` on."""
        ports = tuple(SimPort(port) if isinstance(port, int) else port for port in listen)
        number = len(self.processes) + 1
        process = SimProcess(self, factory, ports, f"{name or self.name}#{number}")
        self.processes.append(process)
        process.begin()
        return process

    def step_wall(self, seconds: float) -> None:
        """Somebody sets the clock; the monotonic one goes on as it was."""
        self.clock_offset += seconds

    def run_clock(self, rate: float) -> None:
        """From now on the monotonic clock runs so fast: 0.99 is 1 % slow."""
        self._set_to, self._set_at, self._rate = self.mono(), self.world.now, rate

    def mono(self) -> float:
        """Monotonic seconds on this host."""
        now = self.world.now
        return now if self._rate is None else self._set_to + (now - self._set_at) * self._rate

    def when(self, mono: float) -> float:
        """When that will be, by the world's clock; a little after, lest it be before."""
        return mono if self._rate is None else self._set_at + (mono - self._set_to) / self._rate + TICK

    def wall(self) -> float:
        """Epoch seconds on this host."""
        return self.world.wall() + self.clock_offset

    def moment(self) -> Moment:
        """Now, on this host's clocks."""
        return Moment(self.mono(), self.world.wall() + self.clock_offset)

    def which(self, name: str) -> str | None:
        """The path of the first program of that name; a path is taken as it is."""
        if "/" in name:
            return name if name in self.programs else None
        return next((path for path in self.programs if path.rpartition("/")[2] == name), None)

    def pid(self) -> int:
        """The number of the next child."""
        self._pids += 1
        return self._pids

    def ephemeral_port(self) -> int:
        """The port of the next outgoing connection."""
        self._ports = self._ports + 1 if self._ports < 65535 else FIRST_EPHEMERAL
        return self._ports

    def work_time(self, name: str) -> float:
        """Virtual seconds that named work takes, give or take a half."""
        return self.compute_time.get(name, COMPUTE_TIME)

    def work(self, name: str, args: tuple[Any, ...]) -> object:
        """Do named work; what fails is a `HostError`."""
        function = self.compute.get(name)
        if function is None:
            raise HostError(FailureKind.UNSUPPORTED, f"no work of the name {name}")
        return function(*args)
