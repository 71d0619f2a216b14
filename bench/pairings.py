"""Benchmark of concurrent pairings: a code, a socket, and a stored token; one row for each store."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from attrs import evolve

from bench.contestants import RELAYS, Address, Contestant, available, missing, pinned, placement, running, wait_healthy
from bench.load import PATIENCE, READ, Load, no_gc
from bench.measure import BenchError, Progress, Scale, rotated
from bench.report import Table
from bench.rounds import REQUESTS, TimedRounds, notes_on, take_timed_round, timed_rows
from bench.wire import TEXT, FrameReader, auth_message, request, upgrade
from svc_proto.machines.paired_session_registry import MAX_SESSIONS

__all__ = ["STORES", "pairings_section"]

STORES = (
    evolve(RELAYS[0], name="relay, store in a file", variables=(("RELAY_SESSIONS_FILE", "svc.db"),)),
    evolve(RELAYS[0], name="relay, store in memory"),
)
ASKED = request("POST", "/pairing")


def pairings_section(scale: Scale, progress: Progress, *, relays: tuple[Contestant, ...] = STORES) -> list[Table]:
    """Measure pairings at each available relay, and return one table. The ratios refer to the first of them."""
    with ExitStack() as stack:
        by_name = {one.name: stack.enter_context(running(one)) for one in available(relays)}
        runs = {name: TimedRounds() for name in by_name}
        for server in by_name.values():
            wait_healthy(server.address)
            _drive(server.address, callers=1, seconds=0.1, most=1)
        room = MAX_SESSIONS // scale.load_rounds - scale.connections - 1  # all stay paired
        for turn in range(scale.load_rounds):
            for name in rotated(list(by_name), turn):
                progress(f"pairings: round {turn + 1} of {scale.load_rounds}, {name}")
                seconds, server = scale.seconds / scale.load_rounds, by_name[name]
                most = min(scale.most_requests, room)
                run = partial(_drive, server.address, callers=scale.connections, seconds=seconds, most=most)
                take_timed_round(runs[name], server, run)
    title = f"Pairings over loopback, {scale.connections} phones at once, each with a code of its own"
    notes = [*notes_on(runs, "pairings"), placement(), *missing(relays)]
    return [Table("pairings", title, REQUESTS, timed_rows(runs), notes)]


class _Phone:
    """A phone that gets a code, pairs on a socket of its own, disconnects, and starts again."""

    def __init__(self, address: Address, number: int, load: Load, selector: selectors.BaseSelector) -> None:
        self._address, self._name, self._load, self._selector = address, f"bench-{number}", load, selector
        self._registrar = _Line(address, selector, self._take_code)
        self._line: _Line | None = None
        self._frames: FrameReader | None = None
        self._code = ""
        self._begun = 0.0

    def begin(self) -> None:
        self._begun = time.perf_counter()
        self._registrar.say(ASKED)

    def close(self) -> None:
        self._registrar.close()
        if self._line is not None:
            self._line.close()

    def _take_code(self, held: bytes) -> bytes:
        head, _, body = held.partition(b"\r\n\r\n")
        if not body.endswith(b"}"):
            return held
        if not head.startswith(b"HTTP/1.1 200"):
            raise BenchError(f"no code for a phone: {head[:60]!r}")
        self._code = json.loads(body)["code"]
        self._line, self._frames = _Line(self._address, self._selector, self._take_words), None
        self._line.say(upgrade())
        return b""

    def _take_words(self, held: bytes) -> bytes:
        assert self._line is not None  # set before the bytes of a socket arrive
        if self._frames is None:
            head, end, held = held.partition(b"\r\n\r\n")
            if not end:
                return head
            if not head.startswith(b"HTTP/1.1 101"):
                raise BenchError(f"the relay refused a WebSocket: {head[:60]!r}")
            self._frames = FrameReader()
            self._line.say(auth_message(self._code, self._name))
        for opcode, payload in self._frames.feed(held):
            if opcode == TEXT and json.loads(payload)["type"] != "auth.ok":
                raise BenchError(f"the relay did not accept a phone: {payload[:200]!r}")
            self._load.latencies.append(time.perf_counter() - self._begun)
            self._line.close()
            self.begin()
            return b""
        return b""


class _Line:
    """A connection that passes received bytes to `take`; bytes that it returns are passed again with the next ones."""

    def __init__(self, address: Address, selector: selectors.BaseSelector, take: Callable[[bytes], bytes]) -> None:
        self._selector, self._take, self._held = selector, take, b""
        self.sock = socket.create_connection(address, timeout=PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(self.sock, selectors.EVENT_READ, self.on_readable)

    def say(self, data: bytes) -> None:
        self.sock.sendall(data)

    def on_readable(self) -> None:
        data = self.sock.recv(READ)
        if not data:
            raise BenchError("the relay closed a connection")
        self._held = self._take(self._held + data)

    def close(self) -> None:
        if self.sock.fileno() >= 0:
            self._selector.unregister(self.sock)
            self.sock.close()


def _drive(address: Address, *, callers: int, seconds: float, most: int) -> Load:
    load = Load()
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        phones = [_Phone(address, number, load, selector) for number in range(callers)]
        for phone in phones:
            stack.callback(phone.close)
        with pinned(), no_gc():
            _loop(selector, phones, load, seconds, most)
    return load


def _loop(selector: selectors.BaseSelector, phones: Sequence[_Phone], load: Load, seconds: float, most: int) -> None:
    cpu, begun = time.process_time(), time.perf_counter()
    for phone in phones:
        phone.begin()
    while not load.latencies or (time.perf_counter() < begun + seconds and len(load.latencies) < most):
        ready = selector.select(PATIENCE)
        if not ready:
            raise BenchError(f"no answer within {PATIENCE:g} s")
        for key, _ in ready:
            key.data()
    load.elapsed, load.own_cpu = time.perf_counter() - begun, time.process_time() - cpu
