"""A scripted core on a real loop in a background thread, and blocking sockets as its peers.

The first connection is the control connection: `order` sends a byte on it, and the core returns the commands.
"""

import queue
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from runtimes.host.host import Program, Services
from runtimes.loops.waker import HostHandle
from runtimes.net.listener import Listener, bind
from runtimes.tls.contexts import server_context
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit, Operation, Ready
from svc_proto.facts import Accepted, ChannelId, Closed, Done, Fact, Failed, OperationId, Received, Started, Stopping
from tests.support.background_program import BackgroundProgram

TIMEOUT = 30.0  # s for anything that a test waits for; only a busy machine takes long
CONTROL = ChannelId(2)
_NUMBERS = count(1000)
F = TypeVar("F")
React = Callable[[Fact], list[Command]]
Files = tuple[Path, Path]  # a certificate and its key


class ScriptCore:
    """A core that records facts and answers them with `react`; a byte on `CONTROL` fetches commands of the test.

    By itself it returns `Ready` at `Started` and `Exit` at `Stopping`. Bytes received on `CONTROL` are not recorded.
    """

    def __init__(self, react: React | None = None) -> None:
        self.react = react or (lambda fact: [])
        self.facts: queue.SimpleQueue[Fact] = queue.SimpleQueue()
        self.orders: deque[list[Command]] = deque()
        self.deadline: float | None = None
        self.ticks: queue.SimpleQueue[float] = queue.SimpleQueue()

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        if fact is None:
            assert self.deadline is None or now.mono >= self.deadline
            self.deadline = None
            self.ticks.put(now.mono)
            return []
        if isinstance(fact, Received) and fact.ch == CONTROL:
            return [command for _ in fact.data for command in self.orders.popleft()]
        self.facts.put(fact)
        commands = self.react(fact)
        if isinstance(fact, Started):
            commands = [Ready(), *commands]
        if isinstance(fact, Stopping):
            commands = [*commands, Exit(0, "stopped")]
        return commands

    def next_deadline(self) -> float | None:
        return self.deadline


class RunningCore:
    """A scripted core that runs in a thread, with blocking clients and its facts."""

    def __init__(self, core: ScriptCore, listener: Listener, extra: Listener | None, handle: HostHandle) -> None:
        self.core = core
        self.listener = listener
        self.extra = extra
        self.handle = handle
        self.seen: list[Fact] = []
        self.control = self.connect()
        self.expect(Accepted)

    def connect(self, listener: Listener | None = None) -> socket.socket:
        address = (listener or self.listener).address
        sock = socket.create_connection((address.host, address.port), timeout=TIMEOUT)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def accept(self) -> tuple[socket.socket, ChannelId]:
        """Open a connection to the core; return it with its channel id."""
        sock = self.connect()
        return sock, self.expect(Accepted).ch

    def order(self, *commands: Command) -> None:
        self.core.orders.append(list(commands))
        self.control.sendall(b"!")

    def run_operation(self, operation: Operation[Any]) -> Done | Failed:
        self.order(operation)
        return self.answer(operation.op)

    def answer(self, op: int) -> Done | Failed:
        while True:
            fact = self.fact()
            if isinstance(fact, Done | Failed) and fact.op == op:
                return fact

    def done(self, operation: Operation[Any]) -> Any:
        answer = self.run_operation(operation)
        assert isinstance(answer, Done), answer
        return answer.result

    def fact(self) -> Fact:
        fact = self.core.facts.get(timeout=TIMEOUT)
        self.seen.append(fact)
        return fact

    def expect(self, kind: type[F]) -> F:
        """Return the next fact of that type; facts before it are skipped, but stay in `seen`."""
        while True:
            fact = self.fact()
            if isinstance(fact, kind):
                return fact

    def closed(self, ch: ChannelId) -> Closed:
        while True:
            fact = self.expect(Closed)
            if fact.ch == ch:
                return fact


@contextmanager
def running(
    runtime: str,
    react: React | None = None,
    *,
    services: Services | None = None,
    tls: ssl.SSLContext | None = None,
    listener: Listener | None = None,
    more: Sequence[Listener] = (),
) -> Iterator[RunningCore]:
    """Run a scripted core; yield it, and check at the end that its exit code is 0.

    With `tls`, `RunningCore.extra` is a second listener that uses TLS. `more` has further listeners of the program.
    """
    core = ScriptCore(react)
    plain = listener or bind("127.0.0.1", 0)
    extra = bind("127.0.0.1", 0, tls=tls) if tls is not None else None
    listeners = [plain, *([] if extra is None else [extra]), *more]
    program = Program(core=core, listeners=listeners, services=services or Services(store=None))
    beside = BackgroundProgram(program, runtime)
    live = RunningCore(core, plain, extra, beside.handle)
    try:
        yield live
    finally:
        live.handle.stop(0.0)
        code = beside.exit_code(TIMEOUT)
        live.control.close()
    assert code == 0


@contextmanager
def connected(
    runtime: str, react: React | None = None, *, certificate: Files | None = None, services: Services | None = None
) -> Iterator[tuple[RunningCore, socket.socket, ChannelId]]:
    """Run a scripted core with one connected peer, over TLS if there is a certificate; close the peer at the end."""
    tls = None if certificate is None else server_context(*certificate)
    with (
        running(runtime, react, tls=tls, services=services) as live,
        live.connect() if certificate is None else tls_client(live, certificate) as sock,
    ):
        yield live, sock, live.expect(Accepted).ch


def tls_client(live: RunningCore, certificate: Files, *, version: ssl.TLSVersion | None = None) -> ssl.SSLSocket:
    """Connect to the listener of a core that uses TLS."""
    context = ssl.create_default_context(cafile=str(certificate[0]))
    if version is not None:
        context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    assert live.extra is not None
    return context.wrap_socket(live.connect(live.extra), server_hostname="localhost")


def new_op() -> OperationId:
    """Return a number that no operation has."""
    return OperationId(next(_NUMBERS))


def close(sock: socket.socket) -> None:
    """Close a socket, after close_notify where it uses TLS."""
    (sock.unwrap() if isinstance(sock, ssl.SSLSocket) else sock).close()


def reset(sock: socket.socket) -> None:
    """Close the socket with an RST; unsent data is discarded."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def read_all(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def read_exactly(sock: socket.socket, n: int) -> bytes:
    data = b""
    while len(data) < n:
        part = sock.recv(n - len(data))
        assert part
        data += part
    return data
