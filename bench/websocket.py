"""Benchmark of WebSocket echoes: this project's engine on every loop, the `websockets` library and aiohttp.

The client writes raw bytes without code of the contestants: it sends text of 1 KiB, and compares the echo.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from bench.contestants import Address, Contestant, Server, available, missing, pinned, placement, running
from bench.load import HEAD_END, PATIENCE, READ, Load, no_gc
from bench.measure import BenchError, Progress, Scale, rotated
from bench.report import Table
from bench.rounds import MESSAGES, TimedRounds, notes_on, take_timed_round, timed_rows
from bench.wire import PING, PONG, TEXT, FrameReader, frame, upgrade

__all__ = ["ECHOES", "ECHO_PEERS", "websocket_section"]

SIZE = 1024  # bytes of a message
MESSAGE = (b"The quick brown fox jumps over the lazy dog. " * SIZE)[:SIZE]
IN_FLIGHT = (1, 16)  # messages on the one connection
WARM_UP = 0.1  # s


def _echo(runtime: str, *needs: str) -> Contestant:
    return Contestant(f"our echo, {runtime}", ("bench.peers_echo", runtime), needs)


def _peer(name: str, loop: str, *needs: str) -> Contestant:
    return Contestant(f"{name}, {loop}", (f"bench.peers_{name}", loop), (name, *needs))


ECHOES = (_echo("asyncio"), _echo("uvloop", "uvloop"), _echo("trio", "trio"), _echo("curio", "curio"))
ECHO_PEERS = (
    _peer("websockets", "asyncio"),
    _peer("websockets", "uvloop", "uvloop"),
    _peer("aiohttp", "asyncio"),
    _peer("aiohttp", "uvloop", "uvloop"),
)


def websocket_section(
    scale: Scale,
    progress: Progress,
    *,
    echoes: tuple[Contestant, ...] = ECHOES,
    peers: tuple[Contestant, ...] = ECHO_PEERS,
) -> list[Table]:
    """Return a table for each number of messages in flight. The ratios refer to the first echo."""
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        clients: dict[str, _Client] = {}
        for one in [*available(echoes), *available(peers)]:
            progress(f"websocket: starting {one.name}")
            server = servers[one.name] = stack.enter_context(running(one))
            client = clients[one.name] = _Client(one.name, server.address)
            stack.callback(client.sock.close)
        notes = ["no compression", placement(), *missing(echoes), *missing(peers)]
        return [_table(scale, progress, servers, clients, count, notes) for count in IN_FLIGHT]


class _Client:
    """A client with one WebSocket, on which it measures echoes."""

    def __init__(self, name: str, address: Address) -> None:
        self._name = name
        self.sock = socket.create_connection(address, timeout=PATIENCE)
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock.sendall(upgrade())
            data = b""
            while HEAD_END not in data:
                data += self._recv()
            head, _, rest = data.partition(HEAD_END)
            if not head.startswith(b"HTTP/1.1 101") or b"extensions" in head.lower():
                raise BenchError(f"{name} answered a handshake with {head[:60]!r}")
            self._frames = FrameReader(rest)
        except BaseException:
            self.sock.close()
            raise

    def run(self, count: int, seconds: float, most: int) -> Load:
        """Keep `count` messages in flight for `seconds`, or until `most` came back."""
        asked = frame(MESSAGE)
        latencies: list[float] = []
        with pinned(), no_gc():
            cpu, begun = time.process_time(), time.perf_counter()
            sent = [begun] * count  # send times of messages in flight, the oldest first
            self.sock.sendall(asked * count)
            now = begun
            while now - begun < seconds and len(latencies) < most:
                came = self._echoed()
                now = time.perf_counter()
                latencies += [now - at for at in sent[:came]]
                sent = sent[came:] + [now] * came
                self.sock.sendall(asked * came)
            elapsed, own_cpu = now - begun, time.process_time() - cpu
            left = count
            while left:  # the next run must not receive these
                left -= self._echoed()
        return Load(latencies, elapsed, own_cpu)

    def _echoed(self) -> int:
        """Return how many echoes came with the next bytes. Raises `BenchError` for a message that is no echo."""
        came = 0
        for opcode, payload in self._frames.feed(self._recv()):
            if opcode == PING:
                self.sock.sendall(frame(payload, PONG))
            elif opcode == TEXT and payload == MESSAGE:
                came += 1
            else:
                raise BenchError(f"{self._name} did not echo: {payload[:60]!r}")
        return came

    def _recv(self) -> bytes:
        try:
            data = self.sock.recv(READ)
        except TimeoutError as error:
            raise BenchError(f"{self._name}: no answer within {PATIENCE:g} s") from error
        if not data:
            raise BenchError(f"{self._name} closed the socket")
        return data


def _table(
    scale: Scale,
    progress: Progress,
    servers: Mapping[str, Server],
    clients: Mapping[str, _Client],
    count: int,
    notes: list[str],
) -> Table:
    runs = {name: TimedRounds() for name in servers}
    for client in clients.values():
        client.run(count, WARM_UP, scale.most_requests)
    seconds = scale.seconds / scale.load_rounds
    for turn in range(scale.load_rounds):
        for name in rotated(list(servers), turn):
            progress(f"websocket: {count} in flight, round {turn + 1} of {scale.load_rounds}, {name}")
            run = partial(clients[name].run, count, seconds, scale.most_requests)
            take_timed_round(runs[name], servers[name], run)
    title = f"WebSocket echo over loopback, text of {SIZE} bytes, one connection, {count} in flight"
    return Table(f"websocket_{count}", title, MESSAGES, timed_rows(runs), [*notes_on(runs, "messages"), *notes])
