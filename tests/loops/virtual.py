"""The simulated world behind the same interface: every wait runs the simulation, an hour takes no time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from runtimes.sim.host import Host, Port
from runtimes.sim.process import Process
from runtimes.sim.wire import ConnectFailed
from runtimes.sim.wire import Wire as SimWire
from runtimes.sim.world import LimitPassed
from runtimes.sim.world import World as Simulation
from svc_proto.api.service import Api
from svc_proto.basics.entropy import Entropy
from svc_proto.basics.moment import Moment
from svc_proto.boundary import Core
from svc_proto.commands import Command, Tell
from svc_proto.config import RelayConfig
from svc_proto.device.phone import PhoneConfig
from svc_proto.engine.core import Engine
from svc_proto.facts import Fact
from svc_proto.machines.device_keys import DeviceKeys
from svc_proto.relay.service import Relay
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.loops.wires import PATIENCE, Wire
from tests.loops.world import API_PORT, LOOPBACK, LogLine, MakePhone, MakeService, PhoneHandle, RelayHandle, World

__all__ = ["PORT", "STRIDE", "AllKeys", "NotStarted", "Together", "VirtualRelay", "VirtualWorld"]

PORT = 8767
ADDRESS = "10.0.0.1"  # of the relay
STRIDE = 10  # from a server's port to those of its processes, where it has several
AllKeys = dict[int, DeviceKeys]  # what relay and API in one process share, by the number of the process


class VirtualWire(Wire):
    """A connection of the simulated network."""

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
        except LimitPassed as passed:
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


class Overhearing:
    """A core whose news are heard by a test."""

    def __init__(self, core: Core, heard: list[Tell]) -> None:
        self._core = core
        self._heard = heard

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        rest: list[Command] = []
        for command in self._core.handle(fact, now):
            if isinstance(command, Tell):
                self._heard.append(command)
            else:
                rest.append(command)
        return rest

    def next_deadline(self) -> float | None:
        return self._core.next_deadline()


class NotStarted(Exception):  # noqa: N818 - the name says what happened
    """The relay exited before it was ready, as it may when its store fails; whoever keeps it running tries again."""


class VirtualRelay(RelayHandle):
    """A simulated process."""

    def __init__(self, world: VirtualWorld, process: Process, port: int = PORT) -> None:
        self._world = world
        self.port = port
        self.process = process
        self._await_ready()

    @property
    def logs(self) -> list[LogLine]:  # type: ignore[override]  # computed here, kept elsewhere
        return _lines(self.process)

    def restart(self) -> None:
        self.process = self.process.restart()
        self._await_ready()

    def begin_stop(self, grace: float = 5.0) -> None:
        self.process.stop(grace)

    def reload(self) -> None:
        self.process.reload()

    def exit_code(self, timeout: float = PATIENCE) -> int:
        return self._world.exit_code(self.process, timeout)

    def kill(self) -> None:
        self.process.kill()

    def _await_ready(self) -> None:
        self._world.wait_until(lambda: self.process.ready or not self.process.alive, 120.0)
        if not self.process.alive:
            raise NotStarted(self.process.exit_reason)


class Together(RelayHandle):
    """Simulated processes that come and go together, as one server."""

    def __init__(self, parts: Sequence[RelayHandle], port: int) -> None:
        self.parts = parts  # in this order: the first makes what the others find
        self.port = port

    @property
    def logs(self) -> list[LogLine]:  # type: ignore[override]  # computed here, kept elsewhere
        return [line for part in self.parts for line in part.logs]

    def restart(self) -> None:
        for part in self.parts:
            part.restart()

    def begin_stop(self, grace: float = 5.0) -> None:
        for part in self.parts:
            part.begin_stop(grace)

    def reload(self) -> None:
        for part in self.parts:
            part.reload()

    def exit_code(self, timeout: float = PATIENCE) -> int:
        return max(part.exit_code(timeout) for part in self.parts)

    def kill(self) -> None:
        for part in self.parts:
            part.kill()


class VirtualServers(Together):
    """A relay and an API that share what one process would."""

    def __init__(self, relay: RelayHandle, api: RelayHandle) -> None:
        super().__init__((relay, api), relay.port)
        self.api_port = api.port


class VirtualPhone(PhoneHandle):
    """A simulated phone on a host of its own."""

    def __init__(self, world: VirtualWorld, host: Host, config: PhoneConfig, make_phone: MakePhone) -> None:
        self._world = world
        self.news = []

        def make(entropy: Entropy) -> Core:
            return Overhearing(Engine(make_phone(config), entropy=entropy), self.news)

        self.process = host.start(make)

    @property
    def logs(self) -> list[LogLine]:  # type: ignore[override]  # computed here, kept elsewhere
        return _lines(self.process)

    def stop(self) -> int:
        self.process.stop(5.0)
        return self.exit_code()

    def exit_code(self, timeout: float = PATIENCE) -> int:
        return self._world.exit_code(self.process, timeout)


class VirtualWorld(World):
    """`simulation` is the world below: its clock, its faults, its network."""

    name = "sim"
    virtual_time = True
    peer_host = "10.0.0.3"

    def __init__(self, seed: int = 0, *, simulation: Simulation | None = None) -> None:
        super().__init__()
        self.simulation = simulation or Simulation(seed)
        self.entropy = Random(f"test {seed}").randbytes
        self.relay_host = self.simulation.host("relay", ADDRESS)
        self._far = self.simulation.host("far", "10.0.0.2")
        self._peer_host = self.simulation.host("peers", self.peer_host)
        self._relays: list[VirtualRelay] = []
        self._phones: list[VirtualPhone] = []

    def start_relay(
        self,
        *,
        limits: Limits = DEFAULT_LIMITS,
        tls: bool = False,
        ipv6: bool = False,
        durable: bool = False,
        killable: bool = False,
        **config: Any,
    ) -> RelayHandle:
        settings, kept = self.relay_config(config), durable or killable
        started = self.relay = self.launch(settings, limits, tls=tls, durable=kept, keys={})
        return started

    def relay_config(self, config: dict[str, Any]) -> RelayConfig:
        """The configuration of a relay at the relay's host."""
        home = self.relay_host.state
        return RelayConfig(port=PORT, home=home, config_path=f"{home}/config.yaml", **config)

    def launch(self, config: RelayConfig, limits: Limits, *, tls: bool, durable: bool, keys: AllKeys) -> RelayHandle:
        """Have it run; `keys` get those of its processes."""
        return self.run(config, limits, PORT, tls=tls, durable=durable, keys=keys)

    def run(
        self, config: RelayConfig, limits: Limits, *ports: int, tls: bool, durable: bool, keys: AllKeys
    ) -> VirtualRelay:
        """A relay as a process of the relay's host; the first of its ports has TLS, if `tls`."""
        host = self.relay_host
        host.rooms = config.voice.folders

        def make(entropy: Entropy) -> Core:
            if not durable:
                host.store.sessions.clear()
            known = keys[(ports[0] - PORT) % STRIDE] = DeviceKeys()
            return Engine(Relay(config, limits=limits, keys=known), entropy=entropy)

        doors = [Port(ports[0], tls=tls, alpn="h2" if tls else None), *map(Port, ports[1:])]
        started = VirtualRelay(self, host.start(make, doors), ports[0])
        self._relays.append(started)
        return started

    def start_service(
        self, name: str, make: MakeService, *, port: int, durable: bool = False, apart: bool = False
    ) -> RelayHandle:
        return self.run_service(name, make, port=port, apart=apart)

    def run_service(self, name: str, make: MakeService, *, port: int, apart: bool = False) -> VirtualRelay:
        """A service as a process of the relay's host, or of its peers'."""
        host = self._peer_host if apart else self.relay_host

        def core(entropy: Entropy) -> Core:
            return Engine(make(port, host.state), entropy=entropy)

        started = VirtualRelay(self, host.start(core, [port], name=name), port)
        self._relays.append(started)
        return started

    def start_program(self, module: str, env: Mapping[str, str], make: MakeService, *, port: int) -> RelayHandle:
        return self.start_service(module, make, port=port)

    def start_servers(self, *, key: str) -> RelayHandle:
        keys: AllKeys = {}

        def api(port: int, home: str) -> Api:
            return Api(self.api_config(port, home, key=key), keys=keys[(port - API_PORT) % STRIDE])

        settings = self.relay_config({"api_key": key})
        relay = self.launch(settings, DEFAULT_LIMITS, tls=False, durable=True, keys=keys)
        started = self.relay = VirtualServers(relay, self.start_service("api", api, port=API_PORT))
        return started

    def renew_certificate(self, *, usable: bool = True) -> None:
        self.relay_host.certificate = "sha256/renewed" if usable else None

    def write_config(self, text: str) -> None:
        self.relay_host.disk.put(f"{self.relay_host.state}/config.yaml", text.encode())

    def connect(self, peer: str = LOOPBACK, *, tls: bool = False, port: int | None = None) -> Wire:
        source, target = (self.relay_host, "127.0.0.1") if peer == LOOPBACK else (self._far, ADDRESS)
        try:
            return VirtualWire(self.simulation, self.simulation.connect(source, target, port or PORT, tls=tls))
        except ConnectFailed as failed:
            raise ConnectionRefusedError(str(failed)) from None

    def start_phone(self, config: PhoneConfig, make_phone: MakePhone) -> PhoneHandle:
        number = len(self._phones) + 1
        host = self.simulation.host(f"phone-{number}", f"10.0.1.{number}")
        phone = VirtualPhone(self, host, config, make_phone)
        self._phones.append(phone)
        return phone

    def phone_url(self, *, tls: bool = False) -> str:
        return f"{'wss' if tls else 'ws'}://{ADDRESS}:{PORT}"

    def wait_until(self, so: Callable[[], bool], timeout: float = PATIENCE) -> None:
        try:
            self.simulation.run_until(so, timeout)
        except LimitPassed as passed:
            raise TimeoutError(str(passed)) from None

    def pause(self) -> None:
        self.pass_time(0.05)

    def clock(self) -> float:
        return self.simulation.now

    def pass_time(self, seconds: float) -> None:
        """Let time go by."""
        self.simulation.run_for(seconds)

    def exit_code(self, process: Process, timeout: float) -> int:
        """Wait for the end of a process."""
        self.wait_until(lambda: not process.alive, timeout)
        assert process.exit_code is not None
        return process.exit_code

    def close(self) -> None:
        for process in (*(phone.process for phone in self._phones), *(relay.process for relay in self._relays)):
            process.stop(0.0)
            self.exit_code(process, PATIENCE)
        for phone in self._phones:
            self.refuse_errors("phone", phone.logs)
        for relay in self._relays:
            self.refuse_errors("relay", relay.logs)


def _lines(process: Process) -> list[LogLine]:
    return [LogLine(line.level, line.event, line.fields) for line in process.logs]
