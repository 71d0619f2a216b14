"""Readers of streams: connections on raw non-blocking sockets in this process, each with one answer."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from uuid import uuid4

from attrs import define

from bench.contestants import Address, Server, pinned
from bench.load import PATIENCE, READ, no_gc
from bench.measure import BenchError
from bench.script import STAMP, Script
from bench.wire import request

__all__ = ["Reader", "Readers", "Told", "make_sessions"]

DELTA = b"event: assistant.delta\n"
DONE = b"event: done\n"
END = b"0\r\n\r\n"  # of a chunked body
KEPT = 64  # last bytes, in which a mark may have begun


@define
class Told:
    """Result of reading: `amount` deltas in `elapsed` seconds, with `own_cpu` seconds of readers and model."""

    amount: float = 0.0
    elapsed: float = 0.0
    own_cpu: float = 0.0


class Reader:
    """Reader of one stream. Latencies are in seconds, and measured only for a script with a pause."""

    def __init__(self, address: Address, session: str, script: Script) -> None:
        self.deltas = 0
        self.over = False
        self.first = 0.0  # s from the request to its first delta, without the time that the model's server took
        self.delays: list[float] = []  # s of each delta, from the model's server to this reader
        self._script = script
        self._kept = b""
        self._sent_at = 0
        body = json.dumps({"message": str(script)}).encode("ascii")
        self._asked = request("POST", f"/api/sessions/{session}/chat/stream", body=body)
        self.sock = socket.create_connection(address, timeout=PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)

    def ask(self) -> None:
        self._sent_at = time.monotonic_ns()
        if self.sock.send(self._asked) != len(self._asked):
            raise BenchError("a request did not fit into the socket")

    def on_readable(self) -> None:
        data = self.sock.recv(READ)
        if self._script.pause:
            self._read_stamps(data)
        else:
            self._count(data)
        if self._kept.endswith(END):
            self._finish()
        elif not data:
            raise BenchError(f"a stream was cut off after {self.deltas} deltas: {self._kept[:200]!r}")

    def wait_for_first(self) -> None:
        """Send the request, and read until there is a delta."""
        self.ask()
        self.sock.settimeout(PATIENCE)
        while not self.deltas:
            self.on_readable()

    def close(self) -> None:
        self.sock.close()

    def _count(self, data: bytes) -> None:
        data = self._kept + data
        self.deltas += data.count(DELTA)
        # Bytes that may begin a mark are searched again, a complete mark is not.
        mark = data.rfind(DELTA)
        self._kept = data[max(mark + len(DELTA) if mark >= 0 else 0, len(data) - KEPT) :]

    def _read_stamps(self, data: bytes) -> None:
        now = time.monotonic_ns()
        events, end, rest = (self._kept + data).rpartition(b"\n\n")
        for asked_at, said_at in STAMP.findall(events + end):
            if not self.deltas:
                self.first = (now - self._sent_at - (int(said_at) - int(asked_at))) / 1e9
            self.deltas += 1
            self.delays.append((now - int(said_at)) / 1e9)
        self._kept = rest

    def _finish(self) -> None:
        self.over = True
        if self.deltas != self._script.deltas:
            raise BenchError(f"a stream had {self.deltas} deltas instead of {self._script.deltas}")


class Readers:
    """Any number of concurrent readers; the CPU time of `model` counts as the load's."""

    def __init__(self, model: Server) -> None:
        self._model = model

    def read(self, address: Address, sessions: Sequence[str], script: Script) -> tuple[Told, list[Reader]]:
        """Request one stream in each session at once, and read all to their ends; return the result and the readers."""
        told = Told()
        with self.opened(address, sessions, script) as readers, selectors.DefaultSelector() as selector:
            with pinned(), no_gc():
                cpu, begun = self._cpu(), time.perf_counter()
                for reader in readers:
                    begin(selector, reader)
                left = len(readers)
                while left:
                    left -= take(selector)
                told.elapsed, told.own_cpu = time.perf_counter() - begun, self._cpu() - cpu
            told.amount = sum(reader.deltas for reader in readers)
            return told, readers

    def probe(self, address: Address, background: Sequence[str], script: Script, probes: Sequence[str]) -> list[float]:
        """Request a stream of one delta in each session of `probes` in turn; return the latency of each first delta.

        Meanwhile streams by `script` run in the sessions of `background`; after one of them has ended, no more probes
        are sent.
        """
        firsts = []
        with (
            self.opened(address, background, script) as others,
            selectors.DefaultSelector() as selector,
            pinned(),
            no_gc(),
        ):
            for other in others:
                begin(selector, other)
            while any(not other.deltas for other in others):
                take(selector)
            for session in probes:
                with self.opened(address, [session], Script(1, 0.001)) as (reader,):
                    begin(selector, reader)
                    while not reader.over:
                        take(selector)
                    firsts.append(reader.first)
                if any(other.over for other in others):
                    break
            while any(not other.over for other in others):
                take(selector)
        return firsts

    @contextmanager
    def opened(self, address: Address, sessions: Sequence[str], script: Script) -> Iterator[list[Reader]]:
        """Yield connected readers, which have sent no request yet."""
        readers: list[Reader] = []
        try:
            for session in sessions:
                readers.append(Reader(address, session, script))  # noqa: PERF401 - those opened so far must be closed
            yield readers
        finally:
            for reader in readers:
                reader.close()

    def _cpu(self) -> float:
        return time.process_time() + self._model.cpu()


def begin(selector: selectors.BaseSelector, reader: Reader) -> None:
    """Send a reader's request, and register the reader with the selector."""
    selector.register(reader.sock, selectors.EVENT_READ, reader)
    reader.ask()


def take(selector: selectors.BaseSelector) -> int:
    """Read available bytes; return how many streams have ended.

    Raises `BenchError` without data for `PATIENCE` seconds.
    """
    ready = selector.select(PATIENCE)
    if not ready:
        raise BenchError(f"no delta within {PATIENCE:g} s")
    over = 0
    for key, _ in ready:
        reader: Reader = key.data
        reader.on_readable()
        if reader.over:
            selector.unregister(reader.sock)
            over += 1
    return over


def make_sessions(address: Address, count: int, *, bare: bool) -> list[str]:
    """Create sessions; for a bare server, which accepts any name, return random ids."""
    if bare:
        return [str(uuid4()) for _ in range(count)]
    conn = HTTPConnection(*address, timeout=PATIENCE)
    made = []
    try:
        for _ in range(count):
            conn.request("POST", "/api/sessions", b"{}", {"Content-Type": "application/json"})
            answer = conn.getresponse()
            body = answer.read()
            if answer.status != 201:
                raise BenchError(f"no session was made: {answer.status}")
            made.append(str(json.loads(body)["id"]))
    finally:
        conn.close()
    return made
