"""Simulated environment with the interface of the real one: every wait runs the simulation, without real time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from runtimes.sim.host import SimHost, SimPort
from runtimes.sim.process import SimProcess
from runtimes.sim.raw_peer import ConnectFailed
from runtimes.sim.raw_peer import RawPeer as SimWire
from runtimes.sim.simulation import Simulation as Simulation
from runtimes.sim.simulation import SimulationLimitError
from svc_proto.basics.entropy import Entropy
from svc_proto.basics.moment import Moment
from svc_proto.boundary import Core
from svc_proto.commands import Command, Notify
from svc_proto.engine.core import Engine
from svc_proto.facts import Fact
from svc_proto.phone.service import PhoneConfig
from tests.loops.clients import PATIENCE, ByteConnection
from tests.loops.environment import (
    LOOPBACK,
    RELAY_PORT,
    Environment,
    MakePhone,
    MakeService,
    PhoneHandle,
    ProgramHandle,
    ProgramLogLine,
    RelayHandle,
    ServiceLaunch,
)

ADDRESS = "10.0.0.1"  # of the relay
STRIDE = 10  # from a server's port to those of its processes, where there are several


class SimulatedConnection(ByteConnection):
    """Test client's end of a connection in the simulated network."""

    def __init__(self, simulation: Simulation, wire: SimWire) -> None:
        super().__init__()
        self._simulation = simulation
        self._wire = wire
        self._paused = False

    def send(self, data: bytes) -> None:
        self._wire.send(data)

    def _more(self, timeout: float) -> bytes:
        wire = self._wire
        if self._paused:
            self._paused = False
            wire.resume()
        arrived: list[bytes] = []

        def something() -> bool:
            data = wire.receive()
            if data:
                arrived.append(data)
            return bool(data) or wire.eof or wire.closed

        try:
            self._simulation.run_until(something, timeout)
        except SimulationLimitError as passed:
            raise TimeoutError(str(passed)) from None
        if not arrived and not wire.eof:
            raise ConnectionResetError(wire.why)
        return b"".join(arrived)

    def close_write(self) -> None:
        self._wire.close_write()

    def abort(self) -> None:
        self._wire.abort()

    def close(self) -> None:
        self._wire.close_write()

    def pause(self) -> None:
        self._paused = True
        self._wire.pause()


class NotificationTap:
    """Wrapper of a core that collects the core's notifications in `heard`."""

    def __init__(self, core: Core, heard: list[Notify]) -> None:
        self._core = core
        self._heard = heard

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        rest: list[Command] = []
        for command in self._core.handle(fact, now):
            if isinstance(command, Notify):
                self._heard.append(command)
            else:
                rest.append(command)
        return rest

    def next_deadline(self) -> float | None:
        return self._core.next_deadline()


class NotStarted(Exception):  # noqa: N818 - the name describes the event
    """A simulated server exited before it was ready, for example when its store failed."""


class Simulated(ProgramHandle):
    """Handle of a simulated process."""

    def __init__(self, world: SimulatedEnvironment, process: SimProcess) -> None:
        self._world = world
        self.process = process

    @property
    def logs(self) -> list[ProgramLogLine]:
        return [ProgramLogLine(line.level, line.event, line.fields) for line in self.process.logs]

    def begin_stop(self, grace: float = 5.0) -> None:
        self.process.stop(grace)

    def exit_code(self, timeout: float = PATIENCE) -> int:
        self._world.wait_until(lambda: not self.process.alive, timeout)
        assert self.process.exit_code is not None
        return self.process.exit_code


class VirtualRelay(Simulated, RelayHandle):
    """A server (relay, API or other) that runs as one simulated process."""

    def __init__(self, world: SimulatedEnvironment, process: SimProcess, port: int) -> None:
        super().__init__(world, process)
        self.port = port
        self._await_ready()

    def restart(self) -> None:
        self.process = self.process.restart()
        self._await_ready()

    def kill(self) -> None:
        self.process.kill()

    def _await_ready(self) -> None:
        self._world.wait_until(lambda: self.process.ready or not self.process.alive, 120.0)
        if not self.process.alive:
            raise NotStarted(self.process.exit_reason)


class ServerGroup(RelayHandle):
    """Simulated servers that start and stop together, as one server."""

    def __init__(self, parts: Sequence[RelayHandle], port: int) -> None:
        self.parts = parts  # in this order: the first creates the state that the others read
        self.port = port

    @property
    def logs(self) -> list[ProgramLogLine]:
        return [line for part in self.parts for line in part.logs]

    def restart(self) -> None:
        for part in self.parts:
            part.restart()

    def begin_stop(self, grace: float = 5.0) -> None:
        for part in self.parts:
            part.begin_stop(grace)

    def exit_code(self, timeout: float = PATIENCE) -> int:
        return max(part.exit_code(timeout) for part in self.parts)

    def kill(self) -> None:
        for part in self.parts:
            part.kill()


class VirtualPhone(Simulated, PhoneHandle):
    """A simulated phone on a host of its own."""

    def __init__(self, world: SimulatedEnvironment, host: SimHost, config: PhoneConfig, make_phone: MakePhone) -> None:
        self.news = []

        def make(entropy: Entropy) -> Core:
            return NotificationTap(Engine(make_phone(config), entropy=entropy), self.news)

        super().__init__(world, host.start(make))


class SimulatedEnvironment(Environment):
    """The simulated environment; `simulation` has the clock, the faults and the network."""

    name = "sim"
    virtual_time = True
    peer_host = "10.0.0.3"

    def __init__(self, seed: int = 0, *, simulation: Simulation | None = None) -> None:
        super().__init__()
        self.simulation = simulation or Simulation(seed)
        self.entropy = Random(f"test {seed}").randbytes
        self.relay_host = self.simulation.host("relay", ADDRESS)
        self.home = self.relay_host.state
        self._far = self.simulation.host("far", "10.0.0.2")
        self._peer_host = self.simulation.host("peers", self.peer_host)

    def launch(self, service: ServiceLaunch) -> RelayHandle:
        return self.run(service, service.port)

    def run(self, service: ServiceLaunch, port: int, *others: int) -> VirtualRelay:
        """Start a service as one simulated process that listens at `port`, and at `others` without TLS."""
        host = self._peer_host if service.apart else self.relay_host
        host.rooms = service.rooms or host.rooms
        listeners = [SimPort(port, tls=service.tls, alpn="h2" if service.tls else None), *map(SimPort, others)]

        def make(entropy: Entropy) -> Core:
            if service.name == "relay" and not service.durable:
                host.store.sessions.clear()
            return Engine(service.make(port, host.state), entropy=entropy)

        started = VirtualRelay(self, host.start(make, listeners, name=service.name), port)
        self._relays.append(started)
        return started

    def start_program(self, module: str, env: Mapping[str, str], make: MakeService, *, port: int) -> RelayHandle:
        return self.launch(ServiceLaunch(module, make, port, durable=True))

    def write_home(self, name: str, text: str) -> None:
        self.relay_host.disk.put(f"{self.home}/{name}", text.encode())

    def contents(self, path: str) -> bytes:
        disk = self.relay_host.disk
        return disk.get(path) if disk.exists(path) else b""

    def connect(self, peer: str = LOOPBACK, *, tls: bool = False, port: int | None = None) -> ByteConnection:
        source, target = (self.relay_host, "127.0.0.1") if peer == LOOPBACK else (self._far, ADDRESS)
        try:
            return SimulatedConnection(
                self.simulation, self.simulation.connect(source, target, port or RELAY_PORT, tls=tls)
            )
        except ConnectFailed as failed:
            raise ConnectionRefusedError(str(failed)) from None

    def start_phone(self, config: PhoneConfig, make_phone: MakePhone) -> PhoneHandle:
        number = len(self._phones) + 1
        host = self.simulation.host(f"phone-{number}", f"10.0.1.{number}")
        phone = VirtualPhone(self, host, config, make_phone)
        self._phones.append(phone)
        return phone

    def phone_url(self, *, tls: bool = False) -> str:
        return f"{'wss' if tls else 'ws'}://{ADDRESS}:{RELAY_PORT}"

    def wait_until(self, so: Callable[[], bool], timeout: float = PATIENCE) -> None:
        try:
            self.simulation.run_until(so, timeout)
        except SimulationLimitError as passed:
            raise TimeoutError(str(passed)) from None

    def pause(self) -> None:
        self.pass_time(0.05)

    def clock(self) -> float:
        return self.simulation.now

    def pass_time(self, seconds: float) -> None:
        self.simulation.run_for(seconds)
