"""The load: callers on raw non-blocking sockets, kept or new for each request, and one phone, all in this process.

Each caller sends its next request after the answer to its last one, so the number of callers is the number in flight.
"""

from __future__ import annotations

import gc
import json
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Protocol

from attrs import define, field

from bench.contestants import Address, pinned
from bench.measure import BenchError
from bench.wire import PING, PONG, TEXT, FrameReader, auth_message, frame, phone_answer, upgrade

__all__ = ["PATIENCE", "READ", "Load", "Phone", "drive", "new_code", "no_gc"]

READ = 65_536  # bytes
PATIENCE = 10.0  # s to wait for any answer
HEAD_END = b"\r\n\r\n"


@define
class Load:
    """Result of a load: the latency of each request, pairing or echo in seconds, and the duration.

    The latency of a request is from its send to the last byte of its answer. With a new connection for each request,
    that of all but each caller's first begins with the opening.
    """

    latencies: list[float] = field(factory=list)
    elapsed: float = 0.0
    own_cpu: float = 0.0  # of the load generator; near `elapsed`, the generator itself was the limit

    @property
    def amount(self) -> float:
        """Return the number of answered requests, of pairings or of echoes."""
        return len(self.latencies)


class Readable(Protocol):
    """An object whose socket a selector watches."""

    sock: socket.socket

    def on_readable(self) -> None: ...


class Phone:
    """A phone that is paired over a raw WebSocket and answers every command at once."""

    def __init__(self, address: Address, name: str, code: str) -> None:
        self.token = ""
        self.sock = socket.create_connection(address, timeout=PATIENCE)
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock.sendall(upgrade())
            head, _, rest = self._until(HEAD_END).partition(HEAD_END)
            if not head.startswith(b"HTTP/1.1 101"):
                raise BenchError(f"the relay refused a WebSocket: {head[:60]!r}")
            self._frames = FrameReader(rest)
            self.sock.sendall(auth_message(code, name))
            while not self.token:
                self._sign_in(self._recv())
        except BaseException:
            self.sock.close()
            raise

    def on_readable(self) -> None:
        """Answer every received command and ping."""
        out = []
        for opcode, payload in self._frames.feed(self._recv()):
            if opcode == TEXT:
                message = json.loads(payload)
                if message["type"] == "bridge.command":
                    out.append(phone_answer(message["payload"]["request_id"]))
            elif opcode == PING:
                out.append(frame(payload, PONG))
        if out:
            self.sock.sendall(b"".join(out))

    def close(self) -> None:
        """Close the socket without a close frame."""
        self.sock.close()

    def _sign_in(self, data: bytes) -> None:
        for opcode, payload in self._frames.feed(data):
            message = json.loads(payload) if opcode == TEXT else {}
            if message.get("type") == "auth.ok":
                self.token = message["payload"]["session_token"]
            elif message.get("type") == "auth.fail":
                raise BenchError(f"the relay did not accept a phone: {message['payload'].get('reason')}")

    def _until(self, end: bytes) -> bytes:
        data = b""
        while end not in data:
            data += self._recv()
        return data

    def _recv(self) -> bytes:
        data = self.sock.recv(READ)
        if not data:
            raise BenchError("the relay closed the phone's socket")
        return data


class _Caller:
    def __init__(self, address: Address, asked: bytes, load: Load) -> None:
        self.sock = _connect(address)
        self.going = True
        self.waiting = False
        self._asked = asked
        self._load = load
        self._held = b""
        self._size = 0  # bytes of the last answer, mostly equal to the next one's
        self._sent_at = 0.0

    def ask(self) -> None:
        self.waiting = True
        self._sent_at = time.perf_counter()
        if self.sock.send(self._asked) != len(self._asked):
            raise BenchError("a request did not fit into the socket")

    def on_readable(self) -> None:
        data = self.sock.recv(READ)
        if not data:
            raise BenchError("the server closed a connection")
        if self._held:
            data = self._held + data
        if not self._complete(data):
            self._held = data
            return
        self._held = b""
        self.waiting = False
        self._load.latencies.append(time.perf_counter() - self._sent_at)
        if self.going:
            self.ask()

    def close(self) -> None:
        self.sock.close()

    def _complete(self, data: bytes) -> bool:
        if not data.startswith(b"HTTP/1.1 200"):
            if len(data) < 12:
                return False
            raise BenchError(f"not the answer that was asked for: {data.partition(HEAD_END)[0][:80]!r}")
        if len(data) == self._size:
            return True
        head, end, body = data.partition(HEAD_END)
        if not end:
            return False
        _, found, rest = head.lower().partition(b"content-length:")
        if not found:
            raise BenchError("an answer without Content-Length")
        missing = int(rest.partition(b"\r\n")[0]) - len(body)
        if missing < 0:
            raise BenchError("more bytes than the answer has")
        self._size = len(data) + missing
        return missing == 0


class _FreshCaller(_Caller):
    """A caller with a new connection for each request. From its second request on, the latency includes the opening."""

    def __init__(self, address: Address, asked: bytes, load: Load, selector: selectors.BaseSelector) -> None:
        super().__init__(address, asked, load)
        self._address, self._selector, self._used = address, selector, False

    def ask(self) -> None:
        begun = time.perf_counter()
        if self._used:
            self._selector.unregister(self.sock)
            self.sock.close()
            self.sock = _connect(self._address)
            self._selector.register(self.sock, selectors.EVENT_READ, self.on_readable)
        self._used = True
        super().ask()
        self._sent_at = begun

    def on_readable(self) -> None:
        if self.waiting:
            super().on_readable()
        else:
            self._selector.unregister(self.sock)  # the server's FIN, after the last answer


def _connect(address: Address) -> socket.socket:
    sock = socket.create_connection(address, timeout=PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    return sock


def drive(
    address: Address,
    asked: bytes,
    *,
    callers: int,
    seconds: float,
    most: int,
    phone: Phone | None = None,
    fresh: bool = False,
) -> Load:
    """Load a server for `seconds` or until `most` requests are answered, at least one. Raises `BenchError`.

    `fresh` opens a connection for each request; `phone` answers commands meanwhile.
    """
    load = Load()
    with (
        selectors.DefaultSelector() as selector,
        _callers(
            callers, lambda: _FreshCaller(address, asked, load, selector) if fresh else _Caller(address, asked, load)
        ) as pool,
    ):
        watched: Sequence[Readable] = pool if phone is None else [*pool, phone]
        for one in watched:
            selector.register(one.sock, selectors.EVENT_READ, one.on_readable)
        with pinned(), no_gc():
            try:
                _loop(selector, pool, load, seconds, most)
            except OSError as error:
                raise BenchError(f"under load: {error}") from error
    return load


def new_code(address: Address) -> str:
    """Return a pairing code, requested as a program on the relay's host does."""
    conn = HTTPConnection(*address, timeout=PATIENCE)
    try:
        conn.request("POST", "/pairing")
        code = json.loads(conn.getresponse().read())["code"]
    finally:
        conn.close()
    return str(code)


def _loop(selector: selectors.BaseSelector, pool: Sequence[_Caller], load: Load, seconds: float, most: int) -> None:
    cpu, begun = time.process_time(), time.perf_counter()
    deadline = begun + seconds
    for caller in pool:
        caller.ask()
    while not load.latencies or (time.perf_counter() < deadline and len(load.latencies) < most):
        _take(selector, PATIENCE)
    load.elapsed = time.perf_counter() - begun
    load.own_cpu = time.process_time() - cpu
    answered = len(load.latencies)
    for caller in pool:
        caller.going = False
    while any(caller.waiting for caller in pool):
        _take(selector, PATIENCE)
    del load.latencies[answered:]  # answers after the end of the measurement


def _take(selector: selectors.BaseSelector, patience: float) -> None:
    ready = selector.select(patience)
    if not ready:
        raise BenchError(f"no answer within {patience:g} s")
    for key, _ in ready:
        key.data()


@contextmanager
def _callers(count: int, new_caller: Callable[[], _Caller]) -> Iterator[list[_Caller]]:
    pool: list[_Caller] = []
    try:
        for _ in range(count):
            pool.append(new_caller())  # noqa: PERF401 - those opened so far must be closed
        yield pool
    finally:
        for caller in pool:
            caller.close()


@contextmanager
def no_gc() -> Iterator[None]:
    """Disable garbage collection during the context, as it would count as the server's latency."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
