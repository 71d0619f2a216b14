"""The real world: the relay and each phone on a loop in a thread, blocking sockets in the hands of the test."""

from __future__ import annotations

import logging
import os
import re
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runtimes.host import Program, Services
from runtimes.listen import bind
from runtimes.logs import LogMessage
from runtimes.run import run
from runtimes.store import open_store
from runtimes.tls import client_context, server_context
from runtimes.waker import Handle
from svc_proto.commands import Tell
from svc_proto.config import RelayConfig
from svc_proto.device.phone import PhoneConfig
from svc_proto.engine.core import Engine
from svc_proto.relay.service import Relay
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from tests.forkserver import Popen, python
from tests.loops.wires import PATIENCE, Wire
from tests.loops.world import LOOPBACK, REMOTE, LogLine, MakePhone, MakeService, PhoneHandle, RelayHandle, World
from tests.ports import free_port
from tests.runtimes.certificates import make_certificate

__all__ = ["LiveWire", "LiveWorld"]

ROOT = Path(__file__).parents[2]  # of the repository
SOURCES = {REMOTE: ("127.0.0.2", 0)}  # the others are left to the kernel: a port that is asked for may be the target
ANNOUNCEMENT = re.compile(rb"^(relay|api): http://.*:(\d+) ")
CHUNK = 1 << 16


class LiveWire(Wire):
    """A blocking socket."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock = sock

    def send(self, data: bytes) -> None:
        sock, view = self._sock, memoryview(data)
        sock.settimeout(PATIENCE)
        if isinstance(sock, ssl.SSLSocket):
            sock.sendall(data)
            return
        while view:
            readable, writable, _ = select.select([] if self.eof else [sock], [sock], [], PATIENCE)
            try:
                if writable:
                    view = view[sock.send(view) :]
                elif readable:
                    data = sock.recv(CHUNK)  # the relay waits for us to read before it reads on
                    self._buffer += data
                    self.eof = not data
                else:
                    raise TimeoutError("the relay takes no more")
            except ConnectionError:
                return

    def _more(self, timeout: float) -> bytes:
        self._sock.settimeout(timeout)
        try:
            return self._sock.recv(CHUNK)
        except ssl.SSLEOFError:
            raise ConnectionResetError("no close_notify") from None

    def close_write(self) -> None:
        self._sock.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()

    def close(self) -> None:
        self._sock.close()

    def certificate(self) -> bytes | None:
        """What the relay has shown, in DER."""
        return self._sock.getpeercert(binary_form=True) if isinstance(self._sock, ssl.SSLSocket) else None

    def pause(self) -> None:
        pass  # who does not call `recv` does not read


class Journal(logging.Handler):
    """Collects the records of one program."""

    def __init__(self, changed: threading.Condition) -> None:
        super().__init__()
        self.lines: list[LogLine] = []
        self._changed = changed

    def emit(self, record: logging.LogRecord) -> None:
        message = record.msg
        event, fields = (message.event, message.fields) if isinstance(message, LogMessage) else (str(message), {})
        with self._changed:
            self.lines.append(LogLine(record.levelno, event, fields))
            self._changed.notify_all()


class Running:
    """A program on a loop in a thread."""

    def __init__(self, world: LiveWorld, name: str, make: Callable[[logging.Logger], Program]) -> None:
        self.journal = Journal(world.changed)
        logger = logging.Logger(name, logging.INFO)
        logger.addHandler(self.journal)
        self.handle = Handle()
        self._code: int | None = None
        self._thread = threading.Thread(target=self._run, args=(world, make(logger)), name=name, daemon=True)
        self._thread.start()

    def _run(self, world: LiveWorld, program: Program) -> None:
        try:
            code = run(program, world.name, handle=self.handle, signals=False)
        finally:
            if program.services.store is not None:
                program.services.store.close()  # who opens a store closes it
        with world.changed:
            self._code = code
            world.changed.notify_all()

    def exit_code(self, timeout: float) -> int:
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"{self._thread.name} runs on")
        assert self._code is not None, f"{self._thread.name} ended by an exception"
        return self._code

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()


class LiveRelay(RelayHandle):
    """A relay in a thread."""

    def __init__(self, world: LiveWorld, start: Callable[[LiveRelay, int, threading.Event], Running]) -> None:
        self._world = world
        self._start = start
        self.port = free_port()
        self.restart()

    def restart(self) -> None:
        ready = threading.Event()
        self.running = self._start(self, self.port, ready)
        self.logs = self.running.journal.lines
        if not ready.wait(PATIENCE):
            raise TimeoutError("the relay is not ready")

    def begin_stop(self, grace: float = 5.0) -> None:
        self.running.handle.stop(grace)

    def reload(self) -> None:
        self.running.handle.reload()

    def exit_code(self, timeout: float = PATIENCE) -> int:
        return self.running.exit_code(timeout)

    def kill(self) -> None:
        raise NotImplementedError("start it with killable=True")


class ChildRelay(RelayHandle):
    """A relay, or another server, as a process of its own: the program that people start."""

    def __init__(
        self, loop: str, home: Path, module: str = "servers.relay", env: Mapping[str, str] | None = None
    ) -> None:
        self._loop = loop
        self._home = home
        self._module = module
        self._env = dict(env or {})
        self.logs = []
        self.port = free_port()
        self.restart()

    @property
    def options(self) -> list[str]:
        return ["--host", "127.0.0.1", "--port", str(self.port), "--runtime", self._loop]

    def restart(self) -> None:
        self._process = Popen(
            python(self._module, *self.options),
            cwd=ROOT,
            env={**os.environ, "SVC_HOME": str(self._home), **self._env},
            stderr=subprocess.PIPE,
        )
        self.listens()

    def listens(self) -> None:
        """It says where."""
        _, self.port = self.announced()

    def announced(self) -> tuple[bytes, int]:
        """The next server that says where it listens, and its port."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = ANNOUNCEMENT.match(line)
            if found is not None:
                return found[1], int(found[2])
        raise AssertionError(f"the relay did not start: exit code {self._process.wait()}")

    def begin_stop(self, grace: float = 5.0) -> None:
        self._process.terminate()

    def reload(self) -> None:
        self._process.send_signal(signal.SIGHUP)

    def exit_code(self, timeout: float = PATIENCE) -> int:
        code = self._process.wait(timeout)
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code

    def kill(self) -> None:
        self._process.kill()
        self.exit_code()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None


class ChildServers(ChildRelay):
    """Relay and API as the one process that people start."""

    def __init__(self, loop: str, home: Path, key: str) -> None:
        super().__init__(loop, home, "servers", {"API_SERVER_KEY": key})

    @property
    def options(self) -> list[str]:
        return [*super().options, "--api-port", str(self.api_port), "--no-dashboard", "--no-qr"]

    def listens(self) -> None:
        ports = dict((self.announced(), self.announced()))
        self.port, self.api_port = ports[b"relay"], ports[b"api"]


class LivePhone(PhoneHandle):
    """A phone in a thread."""

    def __init__(self, world: LiveWorld, config: PhoneConfig, make_phone: MakePhone) -> None:
        self.news = []

        def tell(news: Tell) -> None:
            with world.changed:
                self.news.append(news)
                world.changed.notify_all()

        def make(logger: logging.Logger) -> Program:
            core = Engine(make_phone(config), entropy=os.urandom)
            return Program(core=core, services=Services(logger=logger, client_tls=world.client_tls), on_tell=tell)

        self.running = Running(world, config.device_name, make)
        self.logs = self.running.journal.lines

    def stop(self) -> int:
        self.running.handle.stop(5.0)
        return self.exit_code()

    def exit_code(self, timeout: float = PATIENCE) -> int:
        return self.running.exit_code(timeout)


class LiveWorld(World):
    """Everything on 127.0.0.1. `name` is a runtime of `runtimes.run`; `certificate` gives the relay's, with its key."""

    virtual_time = False
    peer_host = "127.0.0.1"

    def __init__(self, name: str, folder: Path, certificate: Callable[[], tuple[Path, Path]]) -> None:
        super().__init__()
        self.name = name
        self.entropy = os.urandom
        self.changed = threading.Condition()
        self.client_tls: ssl.SSLContext | None = None
        self.alpn = ["http/1.1"]  # what `connect` offers
        self._folder = folder
        self._certificate = certificate
        self._wires: list[LiveWire] = []
        self._relays: list[LiveRelay | ChildRelay] = []
        self._phones: list[LivePhone] = []

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
        if killable:
            child = self.relay = ChildRelay(self.name, self._folder)
            self._relays.append(child)
            return child
        context = self._tls() if tls else None
        host = "::1" if ipv6 else "127.0.0.1"

        def start(relay: LiveRelay, port: int, ready: threading.Event) -> Running:
            listener = bind(host, port, tls=context)
            relay.port = listener.address.port
            store = open_store(self._folder / "svc.db" if durable else "memory:")

            def make(logger: logging.Logger) -> Program:
                settings = RelayConfig(
                    host=host,
                    port=relay.port,
                    home=str(self._folder),
                    config_path=str(self._folder / "config.yaml"),
                    node_url=f"http://{host}:{relay.port}",
                    **config,
                )
                rooms = tuple(Path(folder) for folder in settings.voice.folders)
                services = Services(
                    state=self._folder, rooms=rooms, spool=self._folder / "spool", store=store, logger=logger
                )
                core = Engine(Relay(settings, limits=limits), entropy=os.urandom)
                return Program(core=core, listeners=[listener], services=services, on_ready=ready.set)

            return Running(self, "relay", make)

        started = LiveRelay(self, start)
        self._relays.append(started)
        self.relay = started
        return started

    def start_service(
        self, name: str, make: MakeService, *, port: int, durable: bool = False, apart: bool = False
    ) -> RelayHandle:
        def start(server: LiveRelay, port: int, ready: threading.Event) -> Running:
            listener = bind("127.0.0.1", port)
            server.port = listener.address.port
            store = open_store(self._folder / "svc.db" if durable else "memory:")

            def program(logger: logging.Logger) -> Program:
                services = Services(state=self._folder, store=store, logger=logger, client_tls=self.client_tls)
                core = Engine(make(server.port, str(self._folder)), entropy=os.urandom)
                return Program(core=core, listeners=[listener], services=services, on_ready=ready.set)

            return Running(self, name, program)

        started = LiveRelay(self, start)
        self._relays.append(started)
        return started

    def start_program(self, module: str, env: Mapping[str, str], make: MakeService, *, port: int) -> RelayHandle:
        child = ChildRelay(self.name, self._folder, module, env)
        self._relays.append(child)
        return child

    def start_servers(self, *, key: str) -> RelayHandle:
        child = self.relay = ChildServers(self.name, self._folder, key)
        self._relays.append(child)
        return child

    def renew_certificate(self, *, usable: bool = True) -> None:
        assert self.client_tls is not None
        key = (self._folder / "key.pem").read_bytes()
        cert, _ = make_certificate(self._folder)
        self.client_tls.load_verify_locations(cert)
        if not usable:
            (self._folder / "key.pem").write_bytes(key)

    def write_config(self, text: str) -> None:
        (self._folder / "config.yaml").write_text(text)

    def connect(self, peer: str = LOOPBACK, *, tls: bool = False, port: int | None = None) -> Wire:
        target = ("::1" if peer == "::1" else "127.0.0.1", port or self.relay.port)
        sock = socket.create_connection(target, timeout=PATIENCE, source_address=SOURCES.get(peer))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            assert self.client_tls is not None
            self.client_tls.set_alpn_protocols(self.alpn)  # whatever a program that has the same wanted last
            sock = self.client_tls.wrap_socket(sock, server_hostname="127.0.0.1")
        wire = LiveWire(sock)
        self._wires.append(wire)
        return wire

    def start_phone(self, config: PhoneConfig, make_phone: MakePhone) -> PhoneHandle:
        phone = LivePhone(self, config, make_phone)
        self._phones.append(phone)
        return phone

    def phone_url(self, *, tls: bool = False) -> str:
        return f"{'wss' if tls else 'ws'}://127.0.0.1:{self.relay.port}"

    def wait_until(self, so: Callable[[], bool], timeout: float = PATIENCE) -> None:
        with self.changed:
            if not self.changed.wait_for(so, timeout):
                raise TimeoutError(f"still not so after {timeout} s")

    def pause(self) -> None:
        with self.changed:
            self.changed.wait(0.01)

    def clock(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        for wire in self._wires:
            wire.close()
        programs = [phone.running for phone in self._phones]
        for relay in self._relays:
            if isinstance(relay, LiveRelay):
                programs.append(relay.running)
            elif relay.alive:
                relay.kill()
        for running in programs:
            running.handle.stop(0.0)
        for running in programs:
            running.exit_code(PATIENCE)
        for phone in self._phones:
            self.refuse_errors("phone", phone.logs)
        for relay in self._relays:
            self.refuse_errors("relay", relay.logs)

    def _tls(self) -> ssl.SSLContext:
        cert, key = (Path(shutil.copy(made, self._folder)) for made in self._certificate())
        self.client_tls = client_context(cert)
        return server_context(cert, key)
