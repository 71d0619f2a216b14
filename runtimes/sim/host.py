"""A simulated machine: an address, a wall clock, programs, and a disk and store that outlive processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from runtimes.failures import HostError
from runtimes.files.env_file import parse_env_file, set_env_line
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

TICK = 1e-6  # s, more than any rounding error
FIRST_EPHEMERAL = 49152  # RFC 6335 section 6

CoreFactory = Callable[[Entropy], Core]


@frozen
class SimPort:
    """A listening port of a process. With `tls`, peers must use TLS; `alpn` is selected then, if offered."""

    number: int
    tls: bool = False
    alpn: str | None = None


class SimHost:
    """A simulated machine, made by `Simulation.host`.

    `state` is the folder of `ReadConfig` and the other state operations, `spool` that of uploads.
    """

    def __init__(self, world: Simulation, name: str, address: str, *, state: str, spool: str) -> None:
        self.world = world
        self.name = name
        self.address = address
        self.cost = world.cost  # cost of each call of a core's `handle`
        self.state = state
        self.spool = spool
        self.spools: dict[str, str] = {}  # of programs with a folder of their own, by name
        self.rooms: tuple[str, ...] = ()  # other folders that the state operations may name by absolute path
        self.clock_offset = 0.0  # s that the wall clock is ahead of the simulation's
        self._rate: float | None = None  # rate of the monotonic clock; None: exact
        self._set_at = self._set_to = 0.0  # when the rate was set, by the simulation's clock and by this host's
        self.disk = SimDisk(self.wall)
        self.disk.folder(state)
        self.disk.folder(spool)
        self.store = SimStore()
        self.certificate: str | None = "sha256/simulated"  # pin that `ReloadTls` returns; None: no usable certificate
        self.compute: dict[str, Callable[..., object]] = {
            "dotenv.load": parse_env_file,
            "dotenv.set": set_env_line,
            "yaml.load": load_yaml,
            "yaml.edit": edit_yaml,
            "network_addresses": lambda: [{"interface": "eth0", "address": address, "default": True}],
            "which": self.which,
            "executable": lambda path: path in self.programs,
            "list_folders": self.disk.folders,
            "real_paths": lambda *paths: tuple(map(self.disk.real, paths)),
            "memory.give_back": lambda: None,
            "qr.rows": qr_rows,
            # without metrics of the process that runs the simulation
            "metrics.text": partial(metrics_text, of_process=False),
            "s3.sign": lambda *request: sign_s3_request_at(*request, wall=self.wall()),
            "voice.engines": dict,  # none, until a test installs some
        }
        self.programs: dict[str, ProgramFactory] = {}  # programs for `Spawn`, by absolute path
        self.children: list[SimChild] = []  # running children, oldest first
        self._pids = 1000
        self.processes: list[SimProcess] = []  # all processes ever started, oldest first
        self._ports = FIRST_EPHEMERAL - 1

    def __repr__(self) -> str:
        return f"<host {self.name} {self.address}>"

    def start(
        self, factory: CoreFactory, listen: Iterable[int | SimPort] = (), *, name: str | None = None
    ) -> SimProcess:
        """Start a process: build its core and give it `Started`. It listens after `Ready`."""
        ports = tuple(SimPort(port) if isinstance(port, int) else port for port in listen)
        number = len(self.processes) + 1
        process = SimProcess(self, factory, ports, f"{name or self.name}#{number}")
        self.processes.append(process)
        process.begin()
        return process

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back; the monotonic clock is unaffected."""
        self.clock_offset += seconds

    def run_clock(self, rate: float) -> None:
        """Run the monotonic clock at this rate from now on: 0.99 is 1 % slow."""
        self._set_to, self._set_at, self._rate = self.mono(), self.world.now, rate

    def mono(self) -> float:
        """Return the monotonic seconds of this host."""
        now = self.world.now
        return now if self._rate is None else self._set_to + (now - self._set_at) * self._rate

    def when(self, mono: float) -> float:
        """Return the simulation's time for a monotonic time of this host; with a changed rate slightly later."""
        return mono if self._rate is None else self._set_at + (mono - self._set_to) / self._rate + TICK

    def wall(self) -> float:
        """Return the epoch seconds of this host."""
        return self.world.wall() + self.clock_offset

    def moment(self) -> Moment:
        """Return the present moment on this host's clocks."""
        return Moment(self.mono(), self.world.wall() + self.clock_offset)

    def which(self, name: str) -> str | None:
        """Return the path of the first program with this name, or a path itself if it is a program; else None."""
        if "/" in name:
            return name if name in self.programs else None
        return next((path for path in self.programs if path.rpartition("/")[2] == name), None)

    def pid(self) -> int:
        """Return a new process id for a child."""
        self._pids += 1
        return self._pids

    def ephemeral_port(self) -> int:
        """Return a port for an outgoing connection; each call returns the next one."""
        self._ports = self._ports + 1 if self._ports < 65535 else FIRST_EPHEMERAL
        return self._ports

    def work(self, name: str, args: tuple[Any, ...]) -> object:
        """Perform named work. Raises `HostError` if no work has that name."""
        function = self.compute.get(name)
        if function is None:
            raise HostError(FailureKind.UNSUPPORTED, f"no work of the name {name}")
        return function(*args)
