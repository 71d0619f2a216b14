"""Real environment: sockets on 127.0.0.1 or ::1; servers run in threads or as processes, phones in threads."""

from __future__ import annotations

import logging
import os
import re
import select
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runtimes.host.host import Program, Services
from runtimes.host.logs import LogMessage
from runtimes.net.listener import bind
from runtimes.store.store_factory import open_store
from runtimes.tls.contexts import client_context, server_context
from svc_proto.commands import Notify
from svc_proto.engine.core import Engine
from svc_proto.phone.service import PhoneConfig
from svc_proto.relay_config import RelayConfig
from tests.loops.clients import PATIENCE, ByteConnection
from tests.loops.environment import (
    LOOPBACK,
    REMOTE,
    Environment,
    MakePhone,
    MakeService,
    PhoneHandle,
    ProgramHandle,
    ProgramLogLine,
    RelayHandle,
    ServiceLaunch,
)
from tests.support.background_program import BackgroundProgram
from tests.support.forkserver import Popen, python
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]  # of the repository
SOURCES = {REMOTE: ("127.0.0.2", 0)}  # The kernel selects the other ports: a chosen one could be the target.
ANNOUNCEMENT = re.compile(rb"^(?:relay|api): http://.*:(\d+) ")
CHUNK = 1 << 16


class LiveConnection(ByteConnection):
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
                    data = sock.recv(CHUNK)  # the relay stops reading until the test reads
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

    def pause(self) -> None:
        pass  # without `recv` nothing is read


class LogCollector(logging.Handler):
    """Handler that collects the log records of one program."""

    def __init__(self, changed: threading.Condition) -> None:
        super().__init__()
        self.lines: list[ProgramLogLine] = []
        self._changed = changed

    def emit(self, record: logging.LogRecord) -> None:
        message = record.msg
        event, fields = (message.event, message.fields) if isinstance(message, LogMessage) else (str(message), {})
        with self._changed:
            self.lines.append(ProgramLogLine(record.levelno, event, fields))
            self._changed.notify_all()


class ThreadProgram(ProgramHandle):
    """A program on a loop in a thread of this process."""

    def __init__(self, world: LiveEnvironment, name: str) -> None:
        self._world = world
        self._name = name

    def begin(self, make: Callable[[logging.Logger], Program]) -> None:
        self._journal = LogCollector(self._world.changed)
        logger = logging.Logger(self._name, logging.INFO)
        logger.addHandler(self._journal)
        program = make(logger)
        self._store = program.services.store
        self._beside = BackgroundProgram(program, self._world.name)

    @property
    def logs(self) -> list[ProgramLogLine]:
        return self._journal.lines

    def begin_stop(self, grace: float = 5.0) -> None:
        self._beside.handle.stop(grace)

    def exit_code(self, timeout: float = PATIENCE) -> int:
        code = self._beside.exit_code(timeout)
        if self._store is not None:
            self._store.close()  # closed where it was opened
        return code


class LiveRelay(ThreadProgram, RelayHandle):
    """A server on a loop in a thread of this process."""

    def __init__(self, world: LiveEnvironment, service: ServiceLaunch) -> None:
        super().__init__(world, service.name)
        self._service = service
        self._tls = world.tls() if service.tls else None
        self.port = free_port()
        self.restart()

    def restart(self) -> None:
        service, folder = self._service, self._world.folder
        ready = threading.Event()
        listener = bind("::1" if service.ipv6 else "127.0.0.1", self.port, tls=self._tls)
        self.port = listener.address.port
        store = open_store(folder / "svc.db" if service.durable else "memory:")

        def make(logger: logging.Logger) -> Program:
            services = Services(
                state=folder,
                extra_state_folders=tuple(map(Path, service.rooms)),
                spool=folder / "spool",
                store=store,
                logger=logger,
                client_tls=self._world.client_tls,
            )
            core = Engine(service.make(self.port, str(folder)), entropy=os.urandom)
            return Program(core=core, listeners=[listener], services=services, on_ready=ready.set)

        self.begin(make)
        if not ready.wait(PATIENCE):
            raise TimeoutError(f"the {service.name} is not ready")

    def kill(self) -> None:
        raise NotImplementedError("start it with killable=True")


class ChildRelay(RelayHandle):
    """A relay, or another server, as a process of its own: the program that users start."""

    def __init__(self, loop: str, home: Path, module: str, env: Mapping[str, str]) -> None:
        self._loop = loop
        self._home = home
        self._module = module
        self._env = env
        self.port = free_port()
        self.restart()

    @property
    def logs(self) -> list[ProgramLogLine]:
        return []  # the process keeps its own

    def restart(self) -> None:
        self._process = Popen(
            python(self._module, "--host", "127.0.0.1", "--port", str(self.port), "--runtime", self._loop),
            cwd=ROOT,
            env={**os.environ, "SVC_HOME": str(self._home), **self._env},
            stderr=subprocess.PIPE,
        )
        self.port = self._announced_port()

    def _announced_port(self) -> int:
        """Wait until the program announces its port on standard error. Raise AssertionError if it ends before."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = ANNOUNCEMENT.match(line)
            if found is not None:
                return int(found[1])
        raise AssertionError(f"the relay did not start: exit code {self._process.wait()}")

    def begin_stop(self, grace: float = 5.0) -> None:
        if grace:
            self._process.terminate()
        else:
            self._process.kill()

    def exit_code(self, timeout: float = PATIENCE) -> int:
        code = self._process.wait(timeout)
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code

    def kill(self) -> None:
        self._process.kill()
        self.exit_code()


class LivePhone(ThreadProgram, PhoneHandle):
    """A phone on a loop in a thread of this process."""

    def __init__(self, world: LiveEnvironment, config: PhoneConfig, make_phone: MakePhone) -> None:
        super().__init__(world, config.device_name)
        self.news = []

        def tell(news: Notify) -> None:
            with world.changed:
                self.news.append(news)
                world.changed.notify_all()

        def make(logger: logging.Logger) -> Program:
            core = Engine(make_phone(config), entropy=os.urandom)
            return Program(core=core, services=Services(logger=logger, client_tls=world.client_tls), on_notify=tell)

        self.begin(make)


class LiveEnvironment(Environment):
    """Environment on this host. `name` is a runtime or an import name of a loop, as `runtimes.run` takes it.

    `certificate` creates certificate and key.
    """

    virtual_time = False
    peer_host = "127.0.0.1"

    def __init__(self, name: str, folder: Path, certificate: Callable[[], tuple[Path, Path]]) -> None:
        super().__init__()
        self.name = name
        self.entropy = os.urandom
        self.changed = threading.Condition()
        self.client_tls: ssl.SSLContext | None = None
        self.folder = folder
        self.home = str(folder)
        self._certificate = certificate
        self._wires: list[LiveConnection] = []

    def launch(self, service: ServiceLaunch) -> RelayHandle:
        return self._started(LiveRelay(self, service))

    def relay_config(self, port: int, home: str, *, host: str = "127.0.0.1", **config: Any) -> RelayConfig:
        return super().relay_config(port, home, host=host, node_url=f"http://{host}:{port}", **config)

    def start_program(self, module: str, env: Mapping[str, str], make: MakeService, *, port: int) -> RelayHandle:
        return self._started(ChildRelay(self.name, self.folder, module, env))

    def _started(self, relay: RelayHandle) -> RelayHandle:
        self._relays.append(relay)
        return relay

    def write_home(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def contents(self, path: str) -> bytes:
        file = Path(path)
        if not file.exists():
            return b""
        assert file.stat().st_mode & 0o777 == 0o600
        return file.read_bytes()

    def connect(self, peer: str = LOOPBACK, *, tls: bool = False, port: int | None = None) -> ByteConnection:
        target = ("::1" if peer == "::1" else "127.0.0.1", port or self.relay.port)
        sock = socket.create_connection(target, timeout=PATIENCE, source_address=SOURCES.get(peer))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            assert self.client_tls is not None
            # the context may be shared with an earlier program, which changed it
            self.client_tls.set_alpn_protocols(["http/1.1"])
            sock = self.client_tls.wrap_socket(sock, server_hostname="127.0.0.1")
        wire = LiveConnection(sock)
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
        super().close()

    def tls(self) -> ssl.SSLContext:
        """Return the TLS context of a server of this environment; test clients trust its certificate."""
        cert, key = (Path(shutil.copy(made, self.folder)) for made in self._certificate())
        self.client_tls = client_context(cert)
        return server_context(cert, key)
